"""A query that is recomputed as its own text must name one answer by itself.

Where the algebra follows a query, ties are broken, lists are sorted and orders completed (`ties.py`, `functions.py`).
Of a query that Spark runs as it was written nothing of this is done: what its author left open stays open, each
recompute may choose otherwise, and `verify` would report differences that are none. So such a query is refused.

Accepted: ORDER BY … LIMIT where what is given out is computed from what is sorted by; window functions that treat
peers alike, or see their whole partition; lists of which only the order or the size is asked.
"""

from __future__ import annotations

from typing import Any

from slackwater.algebra.aggregates import has_floats
from slackwater.capture.order_dependent import LISTS, trees
from slackwater.capture.trees import Tree, Unsupported, attribute_id, type_name
from slackwater.errors import QueryRefused

_LIMITS = ("GlobalLimit", "LocalLimit", "Offset", "Tail")
_NEUTRAL = ("Filter", "SubqueryAlias", "View", "Sort")
_POSITIONAL = {"RowNumber": "row_number", "NTile": "ntile", "Lag": "lag", "Lead": "lead", "First": "first_value",
               "Last": "last_value", "NthValue": "nth_value"}  # fmt: skip
_RANKS = ("Rank", "DenseRank", "PercentRank", "CumeDist")
_CHOOSING = {"MaxBy": "max_by", "MinBy": "min_by", "MaxMinByK": "max_by"}
_UNORDERED_USES = ("SortArray", "Size", "Cardinality", "ArraySize")
_BY_VALUE = ("Distinct", "Deduplicate", "Intersect", "Except")
_NAMING = ("Min", "Max", "Mode")
_RENUMBERING = ("Collate", "CTERelationRef", "UnionLoop", "UnionLoopRef", "Expand", "Generate", "Pivot")
"""What gives a string a collation, or its columns other numbers than those they are computed from."""


Collated = frozenset[int] | None
"""The columns that may hold strings with a collation; None where any string may be one."""


def refuse_left_open(analyzed: list[dict[str, Any]], why: Unsupported, collated: Collated) -> None:
    """Refuse a query that leaves its answer open and that is recomputed for another reason, which the error tells."""
    for tree in trees(analyzed):
        found = _open(tree, None, collated)
        if found:
            what, advice = found
            raise QueryRefused(
                "QUERY_NONDETERMINISTIC",
                f"{what}, and of a query that is recomputed as it was written nothing is put in order;"
                f" it is recomputed because of {why.operator}: {why.reason}",
                f"{advice}, or write the query without {why.operator}",
            )


def _open(tree: Tree, above: Tree | None, collated: Collated) -> tuple[str, str] | None:
    """What the tree leaves open and what to do about it; None where there is one answer."""
    found = _open_here(tree, above, collated)
    below = tree.children if tree.name not in _LIMITS or found else (_below_limits(tree),)
    over = above if tree.name == "AggregateExpression" else tree
    return found or next(filter(None, (_open(child, over, collated) for child in below)), None)


def _open_here(tree: Tree, above: Tree | None, collated: Collated) -> tuple[str, str] | None:
    name = tree.name
    if name in _LIMITS and not _one_row(_below_limits(tree)) and not _fixed(_below_limits(tree), collated):
        return "LIMIT takes some of the rows that its ORDER BY leaves tied", "order by all columns that are selected"
    if name == "WindowExpression":
        return _open_window(tree)
    if name in _CHOOSING:
        return f"{_CHOOSING[name]} takes any of the values whose order is equal", "use max or min of a struct"
    if name in LISTS and not _sorted_list(tree, above, collated):
        return f"{LISTS[name]} lists values in any order", "put sort_array around it, or order by the value itself"
    naming = name in ("Aggregate", *_NAMING) and _reads_collated(tree, collated)
    if naming or (name in _BY_VALUE and _gives_collated(tree.children[0], collated)):
        return "among strings that a collation takes for equal any may be the answer", "group by lower(…) or the like"
    return None


def _below_limits(tree: Tree) -> Tree:
    """What a LIMIT with its OFFSET takes rows of: two limits and an offset are one clause."""
    while tree.name in _LIMITS:
        tree = tree.children[-1]
    return tree


def _one_row(tree: Tree) -> bool:
    while tree.name in ("Project", *_NEUTRAL):
        tree = tree.children[-1]
    return tree.name == "Aggregate" and not tree.props["groupingExpressions"]


def _fixed(tree: Tree, collated: Collated) -> bool:
    """Whether rows that are tied are the same: all that is given out is computed from what is sorted by."""
    projected: list[Tree] = []
    while tree.name in ("Project", "SubqueryAlias", "View"):
        projected += [tree] if tree.name == "Project" else []
        tree = tree.children[0]
    if tree.name != "Sort":
        return False
    keys = {attribute_id(k.props) for o in tree.nested_list("order") if _exact(k := o.children[0], collated)}
    known = keys | _computed_from(keys, tree.children[0])
    for project in reversed(projected):
        items = project.nested_list("projectList")
        if not all(_references(item) <= known for item in items):
            return False
        known |= {attribute_id(item.props) for item in items}
    outputs = _outputs(tree.children[0])
    return bool(projected) or (outputs is not None and outputs <= known)


def _exact(key: Tree, collated: Collated) -> bool:
    """Whether equal values of a sort key are the same: not for 0.0 and -0.0, nor for texts under a collation."""
    if key.name != "AttributeReference":
        return False
    dtype = type_name(key.props["dataType"])
    return not has_floats(dtype) and not _is_collated(key, collated)


def _is_collated(column: Tree, collated: Collated) -> bool:
    if "string" not in type_name(column.props["dataType"]):
        return False
    return collated is None or attribute_id(column.props) in collated


def collated_columns(analyzed: list[dict[str, Any]], leaves: frozenset[str]) -> Collated:
    """The columns computed from the leaves' columns of these names, whose strings have a collation."""
    found: set[int] = set()
    aliases: dict[int, set[int]] = {}
    for tree in (part for whole in trees(analyzed) for part in whole.walk()):
        if tree.name in _RENUMBERING:
            return None
        if tree.name == "AttributeReference" and tree.props["name"] in leaves:
            found.add(attribute_id(tree.props))
        if tree.name == "Alias":
            aliases[attribute_id(tree.props)] = _references(tree)
    while more := {ident for ident, read in aliases.items() if ident not in found and read & found}:
        found |= more
    return frozenset(found)


def _computed_from(keys: set[int], tree: Tree) -> set[int]:
    if tree.name != "Project":
        return set()
    return {attribute_id(item.props) for item in tree.nested_list("projectList") if _references(item) <= keys}


def _outputs(tree: Tree) -> set[int] | None:
    while tree.name in _NEUTRAL:
        tree = tree.children[0]
    listed = {"Project": "projectList", "Aggregate": "aggregateExpressions"}.get(tree.name)
    return None if listed is None else {attribute_id(item.props) for item in tree.nested_list(listed)}


def _references(item: Tree) -> set[int]:
    """The columns that an expression reads; none that could be known where it holds a subquery."""
    if any("plan" in part.props for part in item.walk()):
        return {-1}
    return {attribute_id(part.props) for part in item.walk() if part.name == "AttributeReference"}


def _open_window(tree: Tree) -> tuple[str, str] | None:
    function, spec = tree.children
    function = function.children[0] if function.name == "AggregateExpression" else function
    advice = "use rank() or a RANGE frame, which treat tied rows alike"
    if function.name in _POSITIONAL:
        return f"{_POSITIONAL[function.name]} goes by a row's place among those that its ORDER BY leaves tied", advice
    if function.name in _RANKS:
        return None
    frame = spec.children[-1]
    if frame.name != "SpecifiedWindowFrame" or frame.object_name("frameType") != "RowFrame":
        return None
    bounds = [child.name for child in frame.children]
    if bounds == ["UnboundedPreceding$", "UnboundedFollowing$"]:
        return None
    return "a frame by ROWS takes some of the rows that its ORDER BY leaves tied", advice


def _sorted_list(tree: Tree, above: Tree | None, collated: Collated) -> bool:
    value = tree.children[0]
    if not all(_exact(part, collated) for part in value.walk() if part.name == "AttributeReference"):
        return False
    if tree.name == "ListAgg":
        orders = [child.children[0] for child in tree.children[2:]]
        return value.name == "AttributeReference" and any(
            o.name == "AttributeReference" and attribute_id(o.props) == attribute_id(value.props) for o in orders
        )
    return above is not None and above.name in _UNORDERED_USES


def _gives_collated(tree: Tree, collated: Collated) -> bool:
    given = _outputs(tree)
    return collated is None or (bool(collated) if given is None else bool(given & collated))


def _reads_collated(tree: Tree, collated: Collated) -> bool:
    read = tree.nested_list("groupingExpressions") if tree.name == "Aggregate" else tree.children
    parts = [part for expr in read for part in expr.walk()]
    return any(part.name == "AttributeReference" and _is_collated(part, collated) for part in parts)
