"""Proof: a view's result against a recompute at the same version, as bags."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from slackwater.algebra.aggregates import has_floats, is_collated, is_float
from slackwater.algebra.nodes import Field, Opaque, Project, Schema, TopK
from slackwater.algebra.ordering import breaks_ties
from slackwater.capture.type_names import type_text
from slackwater.errors import ViewError
from slackwater.execution.binding import name_frame
from slackwater.execution.leaves import leaves
from slackwater.execution.program import INITIAL, compile_program
from slackwater.execution.render import WEIGHT, consolidated, render, table_view
from slackwater.execution.reports import Verification

if TYPE_CHECKING:
    from slackwater.view import View

FLOAT_TOLERANCE = 1e-9
"""Sums of FLOAT/DOUBLE depend on the order of addition, in Spark itself too."""

MOST_DIFFERENCES = 10_000


def recompute(view: View) -> DataFrame:
    """The query over the tables at the view's version, by plain Spark.

    The user's own SQL text is run where there is one. A query with LIMIT is run from its plan, so that ties are broken
    as they are in the view; `verify` compares with the text what ties leave alone.
    """
    spark = view.engine.sessions.get("proof", view.settings)
    if isinstance(view.plan, Opaque) or not view.ordered:
        found = _by_text(view, spark)
        if found is not None:
            return found
    for name, table in leaves(view.engine, view.inputs).items():
        name_frame(spark, table_view(name, "new"), table.snapshot(spark, view.version), lasts=True)
    program = compile_program(view.logical_plan, INITIAL, {}, {}, frozenset(), {})
    assert program.root is not None  # noqa: S101 - a full program always has a root
    return spark.sql(render(program.root)).toDF(*view.columns)


def _by_text(view: View, spark: SparkSession) -> DataFrame | None:
    """The user's own text over the tables at the view's version; None where there is none that can be run."""
    if view.sql is None:
        return None
    for name, table in leaves(view.engine, _mentioned(view)).items():
        rows = table.snapshot(spark, view.version).toDF(*(f.name for f in table.schema))
        rows.createOrReplaceTempView("`" + name.replace("`", "``") + "`")
    try:
        return spark.sql(str(view.sql)).toDF(*view.columns)
    except AnalysisException as error:
        # A table that the query mentions and its plan does not read may have been dropped.
        if isinstance(view.plan, Opaque) or error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
            raise
        return None


def _chosen_by(view: View) -> tuple[int, ...] | None:
    """By which output columns a LIMIT at the top chooses its rows; None where there is none, or ties below it matter.

    Whichever rows are chosen among equals, their keys are the same: these can be told from the text alone. Keys that
    are equal without being the same, such as 0.0 and -0.0, cannot, nor can keys that are no output columns, and what
    follows such a key.
    """
    top, above = view.logical_plan, list[Project]()
    while isinstance(top, Project):
        above.append(top)
        top = top.child
    if not isinstance(top, TopK) or any(isinstance(x, TopK) or breaks_ties(x) for x in top.child.walk()):
        return None
    shown = {name: name for name in top.names}
    for project in reversed(above):
        passed = {item.expr.column: item.name for item in project.items if item.expr.column is not None}
        shown = {name: passed[now] for name, now in shown.items() if now in passed}
    chosen: list[int] = []
    for key in top.keys:
        dtype = key.expr.dtype
        if key.expr.column not in shown or has_floats(dtype) or is_collated(dtype):
            break
        chosen.append(view.logical_plan.names.index(shown[key.expr.column]))
    return tuple(chosen)


def _differing(spark: SparkSession, expected: DataFrame, actual: DataFrame, fields: Schema) -> list[Row]:
    """Rows that one of two bags lacks, with the weight +1 where it is the second.

    As many as can be looked at; but all where some of them may be noise, because those beside it may not be.
    """
    names = [f.name for f in fields]
    signed = expected.select(*names, F.lit(1).alias(WEIGHT)).unionAll(actual.select(*names, F.lit(-1).alias(WEIGHT)))
    net = consolidated("SELECT * FROM {both}", fields, plain=False, loose=True)
    found = spark.sql(net, both=signed)
    return (found if any(is_float(f.dtype) for f in fields) else found.limit(MOST_DIFFERENCES)).collect()


def _mentioned(view: View) -> list[str]:
    """What the text of the query may read: more than the plan does where Spark saw that a part has no rows."""
    text = str(view.sql).casefold()
    names = [t.name for t in view.engine.tables()] + [v.name for v in view.engine.views() if v.version]
    others = (name for name in names if name.casefold().replace("`", "``") in text and name != view.name)
    return [*view.inputs, *(name for name in others if name not in view.inputs)]


def verify(view: View, examples: int) -> Verification:
    """Compare; rows that differ only in the last digits of floating-point columns are equal."""
    started = time.perf_counter()
    if not view.version:
        raise ViewError("VIEW_EMPTY", f"view {view.name!r} has no result yet", "call refresh() first")
    if moved := view.engine.functions.moved(view):
        raise ViewError(
            "FUNCTION_CHANGED",
            f"the code of {', '.join(moved)} has changed since view {view.name!r} was refreshed",
            "call refresh() first: it recomputes the result with the new code",
        )
    spark = view.engine.sessions.get("proof", view.settings)
    fields = tuple(Field(f"c{i}", type_text(f.dataType)) for i, f in enumerate(view.schema))
    names = [f.name for f in fields]
    actual = view.result_frame(spark).toDF(*names)
    differing = _differing(spark, recompute(view).toDF(*names), actual, fields)
    if not differing and (chosen := _chosen_by(view)) is not None and (text := _by_text(view, spark)) is not None:
        fields = tuple(fields[at] for at in chosen)
        differing = _differing(spark, text.toDF(*names), actual, fields)
    missing = [tuple(r)[:-1] for r in differing if r[WEIGHT] > 0]
    unexpected = [tuple(r)[:-1] for r in differing if r[WEIGHT] < 0]
    missing, unexpected = _without_noise(missing, unexpected, [is_float(f.dtype) for f in fields])
    rows = sum(s.sign * s.row_count for s in view.engine.catalog.segments(f"v{view.id}", at=view.version))
    return Verification(view.name, view.version, not missing and not unexpected, rows, tuple(missing[:examples]),
                        tuple(unexpected[:examples]), time.perf_counter() - started)  # fmt: skip


def _without_noise(missing: list[Any], unexpected: list[Any], floats: list[bool]) -> tuple[list[Any], list[Any]]:
    """Pair off rows that are equal but for rounding."""
    if not any(floats):
        return missing, unexpected
    rest: list[Any] = []
    waiting: dict[Any, list[Any]] = {}
    # In order, the first candidates are the likely ones, however many there are.
    for row in sorted(unexpected, key=lambda r: _float_part(r, floats)):
        waiting.setdefault(_exact_part(row, floats), []).append(row)
    for row in sorted(missing, key=lambda r: _float_part(r, floats)):
        candidates = waiting.get(_exact_part(row, floats), [])
        match = next((c for c in candidates if _close(row, c, floats)), None)
        if match is None:
            rest.append(row)
        else:
            candidates.remove(match)
    return rest, [row for rows in waiting.values() for row in rows]


def _exact_part(row: Any, floats: list[bool]) -> str:
    return repr([v for v, is_f in zip(row, floats, strict=True) if not is_f])


def _float_part(row: Any, floats: list[bool]) -> list[tuple[int, float]]:
    """The numbers of a row, to be put in order: NULL first and NaN last."""
    values = [v for v, is_f in zip(row, floats, strict=True) if is_f]
    return [(0, 0.0) if v is None else (2, 0.0) if math.isnan(v) else (1, v) for v in values]


def _close(a: Any, b: Any, floats: list[bool]) -> bool:
    for x, y, is_f in zip(a, b, floats, strict=True):
        if not is_f or x == y:
            continue
        if x is None or y is None:
            return False
        if math.isnan(x) and math.isnan(y):
            continue
        if not math.isclose(x, y, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE):
            return False
    return True
