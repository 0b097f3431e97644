"""Types that Spark's JSON leaves out: ask Spark's analyzer, at most four times for a whole plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr, quote
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.windows import Window
from slackwater.capture.expressions import Unsupported
from slackwater.capture.noise import quiet
from slackwater.capture.type_names import type_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Typing:
    """What is known: the type of each column name, and of each expression text."""

    columns: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def ask(self, texts: set[str], spark: SparkSession) -> None:
        """Learn the types of expressions from one analysis."""
        self.texts.update((text, self.columns[name]) for name in self.columns if (text := quote(name)) in texts)
        unknown = sorted(texts - set(self.texts))
        if not unknown:
            return
        source = ", ".join(f"CAST(NULL AS {t}) AS {quote(c)}" for c, t in self.columns.items()) or "1 AS one"
        wanted = ", ".join(f"{t} AS x{i}" for i, t in enumerate(unknown))
        try:
            with quiet():
                schema = spark.sql(f"SELECT {wanted} FROM (SELECT {source})").schema
        except PySparkException as error:
            reason = f"Spark does not read its own expression back: {str(error).strip().splitlines()[0][:200]}"
            raise Unsupported("EXPRESSION_UNSUPPORTED", "expression", reason) from error
        self.texts.update(zip(unknown, (type_text(f.dataType) for f in schema), strict=True))

    def typed(self, expr: Expr) -> Expr:
        """The expression with its type."""
        dtype = expr.dtype or self.texts.get(expr.text, "")
        return Expr(expr.op, expr.args, expr.text, dtype, expr.value)


def with_types(plans: Sequence[n.Rel], known: Mapping[str, str], typing: Typing, spark: SparkSession) -> list[n.Rel]:
    """The same plans with the type of every output column and aggregate argument filled in.

    `known` has the columns whose type Spark told; names are unique in a query, so one table of types serves all nodes,
    and all plans of a query can be asked for together.
    """
    typing.columns.update(known)
    nodes = [node for plan in plans for node in plan.walk()]
    declaring = (n.Scan, n.Expand, Generate, Values)
    typing.columns.update((f.name, f.dtype) for x in nodes if isinstance(x, declaring) for f in x.fields)
    aggregates = [x for x in nodes if isinstance(x, n.Aggregate)]
    typing.ask({e.text for x in aggregates for e in _scalars(x)}, spark)
    typing.ask({a.text for x in aggregates for a in x.aggs}, spark)
    typing.columns.update((a.name, typing.texts[a.text]) for x in aggregates for a in x.aggs)
    typing.columns.update((g.name, typing.texts[g.expr.text]) for x in aggregates for g in x.groups)
    windows = [x for x in nodes if isinstance(x, Window)]
    typing.ask({t for x in windows for t in _window_texts(x)}, spark)
    typing.columns.update((c.name, typing.texts[c.text(x.partition)]) for x in windows for c in x.calls)
    typing.ask({i.expr.text for x in nodes if isinstance(x, n.Project) for i in x.items if not i.expr.dtype}, spark)
    return [plan.transform_up(lambda node: _typed(node, typing)) for plan in plans]


def _scalars(node: n.Aggregate) -> list[Expr]:
    return [g.expr for g in node.groups] + [arg for a in node.aggs for arg in a.args]


def _window_texts(node: Window) -> list[str]:
    return [c.text(node.partition) for c in node.calls] + [a.text for c in node.calls for a in c.args if not a.dtype]


def _typed(node: n.Rel, typing: Typing) -> n.Rel | None:
    if isinstance(node, n.Project):
        return n.Project(node.child, tuple(n.Item(i.name, typing.typed(i.expr)) for i in node.items))
    if isinstance(node, n.Aggregate):
        groups = tuple(n.Item(g.name, typing.typed(g.expr)) for g in node.groups)
        aggs = tuple(
            replace(a, dtype=typing.texts[a.text], args=tuple(typing.typed(arg) for arg in a.args)) for a in node.aggs
        )
        return n.Aggregate(node.child, groups, aggs)
    if isinstance(node, Window):
        calls = tuple(
            replace(c, dtype=typing.texts[c.text(node.partition)], args=tuple(map(typing.typed, c.args)))
            for c in node.calls
        )
        return Window(node.child, node.partition, calls)
    if isinstance(node, n.Union):
        first = node.inputs[0].schema
        return n.Union(node.inputs, tuple(n.Field(f.name, g.dtype) for f, g in zip(node.fields, first, strict=True)))
    return None
