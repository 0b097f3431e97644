"""Spark's logical operators to the algebra's nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.algebra import nodes as n
from slackwater.algebra.expressions import Expr
from slackwater.algebra.scalars import ScalarFilter
from slackwater.capture.aggregates import AggregateReader
from slackwater.capture.expressions import ExpressionReader, NameBook, Unsupported
from slackwater.capture.joins import JoinReader
from slackwater.capture.scalars import ScalarReader
from slackwater.capture.trees import Tree, attribute_id, parse, type_name
from slackwater.capture.windows import WindowReader, sort_key

LEAF = re.compile(r"sw_(\d+)_(\d+)")
"""The name of a leaf's column: the table's number and the column's position."""


_ALL = 2**31 - 1
"""No LIMIT reaches further."""

PYTHON = ("BatchEvalPython", "ArrowEvalPython")
"""Operators that call user-defined functions: Spark's optimizer takes these out of all other expressions."""

PLACING = ("Repartition", "RepartitionByExpression", "RebalancePartitions")
"""Operators that say where rows are computed, not which ones there are."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """What capture must know of a table: its name and columns."""

    name: str
    columns: tuple[n.Field, ...]


@dataclass(slots=True)
class PlanReader:
    """Reads one optimized plan.

    `outputs` holds, for each node read, the ids of its output columns in order: Spark ties columns by id.
    """

    tables: Mapping[int, TableShape]
    functions: Callable[[], Mapping[str, str]]
    needed: frozenset[int]
    typed: Callable[[Sequence[n.Rel]], list[n.Rel]]
    declared: Mapping[str, str] = field(default_factory=dict)
    names: NameBook = field(default_factory=NameBook)
    _exprs: ExpressionReader = field(init=False)
    _scalars: ScalarReader = field(init=False)

    def __post_init__(self) -> None:
        """Set up the expression reader over the same names."""
        self._scalars = ScalarReader(self.read, self.typed, self.names)
        self._exprs = ExpressionReader(self.names, self.functions, self._scalars.column, self.declared)

    def read(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """The node and the ids of its output columns."""
        reader = _READERS.get(tree.name)
        if reader is None:
            raise Unsupported("OPERATOR_UNSUPPORTED", tree.name, "the algebra has no rule for this operator yet")
        return reader(self, tree)

    def _leaf(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        fields, positions, ids, table = [], [], [], None
        for attribute in tree.nested_list("output"):
            match = LEAF.fullmatch(attribute.props["name"])
            if match is None or int(match[1]) not in self.tables:
                raise Unsupported("QUERY_UNSUPPORTED", tree.name, "the query reads something that is not a table here")
            table = self.tables[int(match[1])]
            ident, position = attribute_id(attribute.props), int(match[2])
            if ident not in self.needed:
                continue
            column = table.columns[position]
            fields.append(n.Field(self.names.name(ident, column.name), column.dtype))
            positions.append(position)
            ids.append(ident)
        if table is None:
            raise Unsupported("QUERY_UNSUPPORTED", tree.name, "a table without columns")
        return n.Scan(table.name, tuple(fields), tuple(positions)), ids

    def _filter(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        child, ids = self.read(tree.children[0])
        condition = tree.nested("condition")
        scalar = self._scalars.beside(child, [condition])
        if scalar is not None:
            return ScalarFilter(child, scalar, self._exprs.read(condition)), ids
        return n.Filter(child, self._exprs.read(condition)), ids

    def _project(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        child, _ = self.read(tree.children[0])
        trees = tree.nested_list("projectList")
        child = self.with_scalars(child, trees)
        items, ids = self.items(trees)
        return n.Project(child, tuple(items)), ids

    def _python(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        """The input's columns, and one more for each call of a user-defined function."""
        child, ids = self.read(tree.children[0])
        calls = tree.nested_list("udfs")
        items = list(n.pass_through(child.schema))
        child = self.with_scalars(child, calls)
        for made, attribute in zip(calls, tree.nested_list("resultAttrs"), strict=True):
            ident = attribute_id(attribute.props)
            self.names.types[ident] = type_name(attribute.props["dataType"])
            items.append(n.Item(self.names.name(ident, made.props["name"]), self._exprs.read(made)))
            ids = [*ids, ident]
        return n.Project(child, tuple(items)), ids

    def with_scalars(self, child: n.Rel, trees: list[Tree]) -> n.Rel:
        """The input with the values of the scalar subqueries that the expressions read."""
        scalar = self._scalars.beside(child, trees)
        return child if scalar is None else n.Join(child, scalar, None)

    def items(
        self, trees: list[Tree], replace: Callable[[Tree], Expr | None] | None = None
    ) -> tuple[list[n.Item], list[int]]:
        """Named output expressions. A plain renaming keeps the name of what it renames, where that name is free.

        It is not free where the column itself is handed on too: `SELECT c AS key, c` puts the renaming first.
        """
        items: list[n.Item] = []
        ids: list[int] = []
        taken: set[str] = set()
        handed_on = {self._exprs.read(tree, replace).column for tree in trees if tree.name == "AttributeReference"}
        for tree in trees:
            expr = self._exprs.read(tree, replace)
            ident = attribute_id(tree.props)
            if tree.name == "Alias" and expr.column is not None and expr.column not in taken | handed_on:
                self.names.alias(ident, expr.column)
            name = self.names.name(ident, tree.props["name"])
            if name in taken and tree.name != "AttributeReference":
                raise Unsupported("OPERATOR_UNSUPPORTED", "Project", f"the column {name} is given out twice")
            if name in taken:
                # Spark takes an alias away that changes no name: one id then stands in two places, with one value.
                name = self.names.fresh(name)
            taken.add(name)
            dtype = expr.dtype or self.names.types.get(ident, "")
            items.append(n.Item(name, Expr(expr.op, expr.args, expr.text, dtype, expr.value)))
            ids.append(ident)
        return items, ids

    def _join(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        return JoinReader(self, self._exprs, self.names).join(tree)

    def _generate(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        return JoinReader(self, self._exprs, self.names).generate(tree)

    def _values(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        return JoinReader(self, self._exprs, self.names).values(tree)

    def _range(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        return JoinReader(self, self._exprs, self.names).numbers(tree)

    def _union(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        read = [self.read(child) for child in tree.children]
        first, ids = read[0]
        # Branches may share names with each other and with what is above, so the output gets names of its own.
        fields = tuple(n.Field(self.names.fresh(f.name), f.dtype) for f in first.schema)
        for ident, f in zip(ids, fields, strict=True):
            self.names.by_id[ident] = f.name
        return n.Union(tuple(rel for rel, _ in read), fields), ids

    def _expand(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        child, _ = self.read(tree.children[0])
        # The projections read the input's columns: they come before the output takes over any id.
        if not tree.props.get("projections"):
            raise Unsupported("OPERATOR_UNSUPPORTED", "Expand", "GROUPING SETS or several DISTINCTs in a subquery")
        rows = [tuple(self._exprs.read(parse(item)) for item in p) for p in tree.props["projections"]]
        fields, ids = [], []
        for at, attribute in enumerate(tree.nested_list("output")):
            ident = attribute_id(attribute.props)
            passed = {row[at].column for row in rows}
            if ident not in self.names.by_id or passed != {self.names.by_id[ident]}:
                self.names.by_id[ident] = self.names.fresh(attribute.props["name"])
            fields.append(n.Field(self.names.by_id[ident], type_name(attribute.props["dataType"])))
            ids.append(ident)
        return n.Expand(child, tuple(rows), tuple(fields)), ids

    def _aggregate(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        child, _ = self.read(tree.children[0])
        return AggregateReader(self, self._exprs, self.names, self.with_scalars).read(tree, child)

    def _window(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        child, ids = self.read(tree.children[0])
        return WindowReader(self._exprs, self.names).read(tree, child, ids)

    def _passed(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        # A relation is a bag: an order that no limit reads means nothing. The root's order is kept by the caller.
        return self.read(tree.children[0])

    def _limit(self, tree: Tree) -> tuple[n.Rel, list[int]]:
        cuts = []
        while tree.name in ("GlobalLimit", "LocalLimit", "Offset"):
            cuts.append(tree)
            tree = tree.children[0]
        # The one below cuts first: of ten rows, OFFSET 3 leaves seven. A local limit only leads up to a global one.
        offset, end = 0, _ALL
        for cut in reversed(cuts):
            if cut.name == "Offset":
                offset = min(end, offset + _count(cut.nested("offsetExpr")))
            elif cut.name == "GlobalLimit":
                end = min(end, offset + _count(cut.nested("limitExpr")))
        if (offset, end) == (0, _ALL):
            return self.read(tree)
        limit = end - offset
        above = []
        while tree.name == "Project" and _sort_below(tree):
            # LIMIT over a projection over a SORT: the projection may drop the sort's columns, so it comes last.
            above.append(tree)
            tree = tree.children[0]
        child, ids = self.read(tree)
        keys = self.sort_keys(tree) if tree.name == "Sort" else ()
        rel: n.Rel = n.TopK(child, keys, limit, offset)
        for project in reversed(above):
            items, ids = self.items(project.nested_list("projectList"))
            rel = n.Project(rel, tuple(items))
        return rel, ids

    def sort_keys(self, tree: Tree) -> tuple[n.SortKey, ...]:
        """The keys of a Sort whose input has been read already."""
        return tuple(sort_key(order, self._exprs) for order in tree.nested_list("order"))


def _sort_below(tree: Tree) -> bool:
    while tree.name == "Project":
        tree = tree.children[0]
    return tree.name == "Sort"


def _count(tree: Tree) -> int:
    if tree.name != "Literal":
        raise Unsupported("OPERATOR_UNSUPPORTED", "Limit", "the limit is not a constant")
    return int(tree.props["value"])


_READERS: dict[str, Callable[[PlanReader, Tree], tuple[n.Rel, list[int]]]] = {
    "LogicalRDD": PlanReader._leaf,
    "Filter": PlanReader._filter,
    "Project": PlanReader._project,
    "Join": PlanReader._join,
    "Generate": PlanReader._generate,
    "LocalRelation": PlanReader._values,
    "OneRowRelation": PlanReader._values,
    "Union": PlanReader._union,
    "Expand": PlanReader._expand,
    "Aggregate": PlanReader._aggregate,
    "Window": PlanReader._window,
    "Range": PlanReader._range,
    "Sort": PlanReader._passed,
    "GlobalLimit": PlanReader._limit,
    "LocalLimit": PlanReader._limit,
    "Offset": PlanReader._limit,
    **dict.fromkeys(PYTHON, PlanReader._python),
    **dict.fromkeys(PLACING, PlanReader._passed),
}
