"""Spark's joins, generators and constant relations to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import AggCall
from slackwater.algebra.expressions import Expr, call, col, conjunction, lit
from slackwater.algebra.generate import Generate, Values
from slackwater.algebra.joins import ANTI, EXISTS, FULL, LEFT, RIGHT, SEMI, MatchJoin, OuterJoin
from slackwater.capture.expressions import ExpressionReader, NameBook, Unsupported
from slackwater.capture.scalars import TOO_MANY_ROWS
from slackwater.capture.trees import Tree, attribute_id, parse, type_name

if TYPE_CHECKING:
    from slackwater.capture.plans import PlanReader

_OUTER = {"LeftOuter": LEFT, "RightOuter": RIGHT, "FullOuter": FULL}
_MATCH = {"LeftSemi": SEMI, "LeftAnti": ANTI}
_GENERATORS = {
    "Explode": "explode", "PosExplode": "posexplode", "Inline": "inline", "Stack": "stack", "JsonTuple": "json_tuple",
}  # fmt: skip
"""Generators that are deterministic and whose SQL spelling says all."""

RANGE = 1_000
"""The longest `range(…)` that becomes constant rows."""

_NOBODY = -1
"""The id of a column that Spark does not know of, so that nothing refers to it."""


class JoinReader:
    """Reads operators that join, or that make rows from expressions."""

    def __init__(self, plan: PlanReader, exprs: ExpressionReader, names: NameBook) -> None:
        """Share the plan's readers."""
        self._plan, self._exprs, self._names = plan, exprs, names

    def join(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """Any join; NOT IN comes as an anti join with a condition that is true for what is unknown."""
        kind = _kind(tree)
        if kind == "LeftSingle":
            return self._single(tree)
        if kind not in ("Inner", "Cross", "ExistenceJoin", *_OUTER, *_MATCH):
            raise Unsupported("OPERATOR_UNSUPPORTED", f"Join {kind}", "this kind of join is not incremental yet")
        left, left_ids = self._plan.read(tree.children[0])
        right, right_ids = self._apart(left, *self._plan.read(tree.children[1]))
        trees = [tree.nested("condition")] if tree.props.get("condition") else []
        if kind in ("Inner", "Cross"):
            return self._inner(left, right, trees), left_ids + right_ids
        beside = self._plan.with_scalars(left, trees)
        condition = self._exprs.read(trees[0]) if trees else lit(True, dtype="boolean")
        ids = left_ids
        if kind in _OUTER:
            rel: n.Rel = OuterJoin(beside, right, condition, _OUTER[kind])
            shown, ids = left.schema + right.schema, left_ids + right_ids
        elif kind in _MATCH:
            rel, shown = MatchJoin(beside, right, condition, _MATCH[kind]), left.schema
        else:
            flag = parse(tree.props["joinType"]["exists"])
            ident = attribute_id(flag.props)
            self._names.types[ident] = "boolean"
            name = self._names.name(ident, flag.props["name"])
            rel = MatchJoin(beside, right, condition, EXISTS, name)
            shown, ids = (*left.schema, n.Field(name, "boolean")), [*left_ids, ident]
        return (rel if beside is left else n.Project(rel, n.pass_through(shown))), ids

    def _single(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """A scalar subquery that is correlated by equalities and finds at most one row, or fails.

        before:  L ⟕₁[l = r] R
        after:   π[…, IF(n > 1, error, v)](L ⟕[l = r] γ[r; count(*) AS n, min(v) AS v](R))
        """
        left, left_ids = self._plan.read(tree.children[0])
        right, right_ids = self._apart(left, *self._plan.read(tree.children[1]))
        (right,) = self._plan.typed([right])
        condition = self._exprs.read(tree.nested("condition")) if tree.props.get("condition") else lit(True)
        ours, theirs = set(left.names), set(right.names)
        pairs: list[tuple[str, Expr, Expr]] = []
        only: list[Expr] = []
        for term in condition.conjuncts():
            sides = term.args if term.op in ("=", "<=>") else ()
            if sides and sides[0].inputs <= ours and sides[1].inputs and sides[1].inputs <= theirs:
                pairs.append((term.op, sides[0], sides[1]))
            elif sides and sides[1].inputs <= ours and sides[0].inputs and sides[0].inputs <= theirs:
                pairs.append((term.op, sides[1], sides[0]))
            elif term.inputs <= theirs:
                only.append(term)
            else:
                raise Unsupported("OPERATOR_UNSUPPORTED", "Join LeftSingle", f"correlated by {term.text}")
        found = n.Filter(right, conjunction(tuple(only))) if only else right
        keys = tuple(n.Item(self._names.fresh("key"), expr) for _, _, expr in pairs)
        many = AggCall(self._names.fresh("count"), "count", (), "bigint")
        values = tuple(
            AggCall(self._names.fresh(f.name), "min", (col(f.name, f.dtype),), f.dtype) for f in right.schema
        )
        matched = conjunction(
            tuple(call(op, mine, col(key.name, key.expr.dtype), dtype="boolean")
                  for (op, mine, _), key in zip(pairs, keys, strict=True))
        )  # fmt: skip
        joined = OuterJoin(left, n.Aggregate(found, keys, (many, *values)), matched, LEFT)
        several = call(">", col(many.name, "bigint"), lit(1), dtype="boolean")
        error = call("raise_error", lit(TOO_MANY_ROWS))
        items = [
            n.Item(f.name, Expr("if", (several, error, made), call("if", several, error, made).text, f.dtype))
            for f, made in zip(right.schema, (col(v.name, v.dtype) for v in values), strict=True)
        ]
        return n.Project(joined, (*n.pass_through(left.schema), *items)), left_ids + right_ids

    def _inner(self, left: n.Rel, right: n.Rel, trees: list[Tree]) -> n.Rel:
        """An inner or cross join; its condition may read scalar subqueries."""
        beside = self._plan.with_scalars(left, trees)
        rel: n.Rel = n.Join(beside, right, self._exprs.read(trees[0]) if trees else None)
        return rel if beside is left else n.Project(rel, n.pass_through(left.schema + right.schema))

    def _apart(self, left: n.Rel, right: n.Rel, ids: list[int]) -> tuple[n.Rel, list[int]]:
        """The right side under names that the left side does not use: both may read the same columns of one leaf."""
        taken = set(left.names)
        if taken.isdisjoint(right.names):
            return right, ids
        items = []
        for ident, item in zip(ids, n.pass_through(right.schema), strict=True):
            if item.name in taken:
                self._names.by_id[ident] = self._names.fresh(item.name)
                item = n.Item(self._names.by_id[ident], item.expr)
            items.append(item)
        return n.Project(right, tuple(items)), ids

    def generate(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """LATERAL VIEW, a generator in the SELECT list, and the copies that INTERSECT ALL and EXCEPT ALL make."""
        child, ids = self._plan.read(tree.children[0])
        generator = tree.nested("generator")
        if generator.name == "ReplicateRows":
            return self._replicated(child, generator), [*ids, _NOBODY]
        function = _GENERATORS.get(generator.name)
        if function is None:
            raise Unsupported("OPERATOR_UNSUPPORTED", generator.name, "this generator is not incremental yet")
        made = call(function, *(self._exprs.read(part) for part in generator.children))
        dropped = set(tree.props["unrequiredChildIndex"])
        kept = [at for at in range(len(ids)) if at not in dropped]
        fields, new_ids = [], []
        for attribute in tree.nested_list("generatorOutput"):
            ident, dtype = attribute_id(attribute.props), type_name(attribute.props["dataType"])
            self._names.types[ident] = dtype
            fields.append(n.Field(self._names.name(ident, attribute.props["name"]), dtype))
            new_ids.append(ident)
        names = tuple(child.names[at] for at in kept)
        rel = Generate(child, made, tuple(fields), names, bool(tree.props["outer"]))
        return rel, [ids[at] for at in kept] + new_ids

    def _replicated(self, child: n.Rel, generator: Tree) -> n.Rel:
        """Each row as often as its first cell says. The copies are the row's own columns, under the same ids."""
        count = self._exprs.read(generator.children[0])
        times = Expr("cast", (count,), f"CAST({count.text} AS INT)", "int")
        copies = call("explode", call("array_repeat", lit(1, dtype="int"), times))
        return Generate(child, copies, (n.Field(self._names.fresh("copy"), "int"),), child.names)

    def numbers(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """The rows of `range(…)`, where they are few enough to be written down."""
        rows = range(int(tree.props["start"]), int(tree.props["end"]), int(tree.props["step"]))
        if len(rows) > RANGE:
            raise Unsupported("OPERATOR_UNSUPPORTED", "Range", f"only ranges of up to {RANGE:,} numbers are constants")
        return self.values(Tree("LocalRelation", {**tree.props, "data": [[str(number)] for number in rows]}, ()))

    def values(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """Constant rows."""
        fields, ids = [], []
        attributes = tree.nested_list("output") if "output" in tree.props else []
        for attribute in attributes:
            ident, dtype = attribute_id(attribute.props), type_name(attribute.props["dataType"])
            self._names.types[ident] = dtype
            fields.append(n.Field(self._names.name(ident, attribute.props["name"]), dtype))
            ids.append(ident)
        types = [attribute.props["dataType"] for attribute in attributes]
        rows = tuple(
            tuple(
                self._exprs.read(Tree("Literal", {"dataType": dtype, "value": text}, ()))
                for dtype, text in zip(types, row, strict=True)
            )
            for row in tree.props.get("data") or ()
        )
        return Values(tuple(fields), rows if attributes else ((),)), ids


def _kind(tree: Tree) -> str:
    joined = tree.props["joinType"]
    named = joined.get("object") or joined.get("product-class") or "other"
    return str(named).rsplit(".", 1)[-1].rstrip("$")
