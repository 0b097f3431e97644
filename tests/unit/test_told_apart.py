"""What rows with maps are grouped by: their entries, wherever the map is."""

from __future__ import annotations

import pytest

from slackwater.algebra.nodes import Field
from slackwater.execution.told_apart import told_apart


@pytest.mark.parametrize(
    ("dtype", "key"),
    [
        ("int", "`m`"),
        ("map<string,int>", "SORT_ARRAY(MAP_ENTRIES(`m`))"),
        ("array<map<string,int>>", "TRANSFORM(`m`, x0 -> SORT_ARRAY(MAP_ENTRIES(x0)))"),
        (
            "struct<`it's`:int,b:map<date,string>>",
            "IF(`m` IS NULL, NULL, NAMED_STRUCT('it\\'s', `m`['it\\'s'], 'b', SORT_ARRAY(MAP_ENTRIES(`m`['b']))))",
        ),
        (
            "map<int,map<int,int>>",
            "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(`m`), x0 -> NAMED_STRUCT('key', x0['key'], "
            "'value', SORT_ARRAY(MAP_ENTRIES(x0['value'])))))",
        ),
        ("map<string,variant>", "`m`"),
        ("map<string,interval>", "`m`"),
        ("map<string,interval day to second>", "SORT_ARRAY(MAP_ENTRIES(`m`))"),
    ],
)
def test_a_map_is_grouped_by_its_entries(dtype: str, key: str) -> None:
    columns, keys = told_apart((Field("m", dtype),))
    assert keys == [key]
    assert columns == ["`m`" if key == "`m`" else "ANY_VALUE(`m`) AS `m`"]


def test_zeros_inside_of_a_map_are_told_apart() -> None:
    _, keys = told_apart((Field("m", "map<string,double>"),))
    assert keys == ["SORT_ARRAY(MAP_ENTRIES(`m`))", "CAST(SORT_ARRAY(MAP_ENTRIES(`m`)) AS STRING)"]
