"""From a query (SQL text, a DataFrame, or a function that returns one) to a plan, or to a coded refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from slackwater.algebra import nodes as n
from slackwater.algebra.aggregates import is_collated
from slackwater.capture.collations import check_collations, settle_collations
from slackwater.capture.distinct import split_distinct
from slackwater.capture.equal_parts import with_equal_parts_once
from slackwater.capture.expands import nested_plans, settle_expands
from slackwater.capture.expressions import Unsupported
from slackwater.capture.first_rows import keep_first_rows
from slackwater.capture.hidden import add_generated, java_nodes, java_seq
from slackwater.capture.indistinct import check_distinct, refuse_indistinct, taken_below
from slackwater.capture.left_open import collated_columns, refuse_left_open
from slackwater.capture.lenient import note_lenient_aggregates
from slackwater.capture.noise import quiet
from slackwater.capture.order_dependent import refuse_order_dependent
from slackwater.capture.pivots import add_pivot_values
from slackwater.capture.plans import LEAF, PLACING, PYTHON, PlanReader, TableShape
from slackwater.capture.prune_empty import prune_empty
from slackwater.capture.ties import settle_ties
from slackwater.capture.trees import Tree, attribute_id, class_names, parse
from slackwater.capture.type_names import twin_field, type_text
from slackwater.capture.types import Typing, with_types
from slackwater.capture.unsaid import note_unsaid
from slackwater.capture.user_functions import UserFunction, functions_called
from slackwater.errors import QueryRefused

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

EXCLUDED_RULES = (
    "DecimalAggregates", "InferWindowGroupLimit", "MergeScalarSubqueries", "MergeSubplans", "OptimizeIn",
    "PropagateEmptyRelation", "ConvertToLocalRelation",
)  # fmt: skip
"""Optimizer rules that hide the algebra."""
MERGES = "org.apache.spark.sql.execution.planmerging.MergeSubplans"
"""Where Spark 4.3 has one of them."""

CAPTURE_SETTINGS = {
    "spark.sql.optimizer.excludedRules": ",".join(
        [*(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in EXCLUDED_RULES), MERGES]
    ),
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.inSetConversionThreshold": "100000",
    "spark.sql.maxToStringFields": "10000",
    "spark.sql.maxPlanStringLength": "2147483632",
}
"""Session settings under which queries are captured, on top of the view's pinned ones."""

_PRINTED = {"spark.sql.session.timeZone": "UTC", "spark.sql.legacy.timeParserPolicy": "CORRECTED"}
"""Session settings while Spark prints a plan."""

_UNSTABLE = {
    "CurrentTimestamp", "Now", "CurrentDate", "CurrentTime", "LocalTimestamp", "CurrentBatchTimestamp", "CurrentUser",
    "CurrentDatabase", "CurrentCatalog", "CurrentTimeZone", "Uuid", "Rand", "Randn", "RandStr", "Uniform", "Shuffle",
    "MonotonicallyIncreasingID", "SparkPartitionID", "InputFileName", "InputFileBlockStart", "InputFileBlockLength",
    "Sample", "SparkVersion", "SessionUser", "CurrentPath", "AesEncrypt", "TryAesEncrypt",
}  # fmt: skip
_FOREIGN_CODE = {
    "ScalaUDF",
    "ScalaAggregator",
    "ScalaUDAF",
    "HiveSimpleUDF",
    "HiveGenericUDF",
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
    "FlatMapGroupsInPandas",
    "PythonUDTF",
    "ScriptTransformation",
}


_SESSIONS = re.compile(r"\bsession_window\W*\(", re.IGNORECASE)
"""Sessions are merged where they meet, so groups of them are not like other groups; no optimized plan shows that."""

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
_STATEMENTS = ("Command", "ParsedStatement", "ExecutableDuringAnalysis")
# Anything but a query is refused before Spark sees it: Spark runs commands as soon as it analyzes them, and they may
# hide below other operators, as in WITH … INSERT.

_MOVING = re.compile(
    r"\b(?:date|timestamp\w*)(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*\n)*r?(['\"])\s*(?:now|today|tomorrow|yesterday)\b[^'\"]*\1",
    re.IGNORECASE,
)
"""Literals that Spark's parser turns into the present time, so that no plan shows what they were."""

_COLLATED = re.compile(r"\bcollate[ (]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured query.

    Attributes:
        plan: the algebra, possibly one Opaque node.
        columns: the user's names for the output columns, by position.
        order: the root's ORDER BY as SQL over the output columns, for `result()`.
        sql: the query's text where there is one.
        functions: the user-defined functions that the query calls.
    """

    plan: n.Rel
    columns: tuple[str, ...]
    order: tuple[str, ...]
    sql: str | None
    functions: tuple[str, ...] = ()


def capture(
    query: str | DataFrame,
    spark: SparkSession,
    tables: Mapping[int, TableShape],
    declared: Mapping[str, UserFunction] | None = None,
) -> Captured:
    """Turn a query into a plan.

    `spark` is a session with the capture settings in which every table is a temporary view over a symbolic leaf, and
    the `declared` user-defined functions are registered.
    """
    declared = declared or {}
    sql = query if isinstance(query, str) else None
    frame = _analyzed(query, spark)
    execution = frame._jdf.queryExecution()
    analyzed = json.loads(execution.analyzed().toJSON())
    functions = functions_called(analyzed, execution.analyzed(), declared)
    _refuse_unstable(analyzed, execution)
    _refuse_duplicate_columns(frame)
    refuse_indistinct(frame)
    try:
        if _SESSIONS.search(sql or str(execution.logical().toString())):
            raise Unsupported("OPERATOR_UNSUPPORTED", "session_window", "a row may join two sessions")
        plan = _optimized(execution)
        with _clocks_at_utc(spark):
            text = str(plan.toJSON())
            optimized = json.loads(text)
            _refuse_unstable_names(optimized)
            if ".Expand" in text:
                _add_projections(optimized, plan)
            written = str(execution.analyzed().toString())
            note_lenient_aggregates(optimized, plan, written)
            strict = str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"
            note_unsaid(optimized, plan, written, strict=strict, collated=_may_collate(text, written, tables))
            add_generated(optimized, plan, spark)
            add_pivot_values(optimized, plan, spark)
        if ".Expand" in text:
            settle_expands(optimized)
        kinds = {name: function.kind for name, function in declared.items()}
        rel, order = _read(optimized, frame, spark, tables, kinds)
        if _foreign(analyzed):
            # Its rows may be constants to Spark today, as those of a view over VALUES are.
            raise Unsupported("QUERY_UNSUPPORTED", _foreign(analyzed), "it is not a table here")
        return Captured(with_equal_parts_once(rel), tuple(frame.columns), order, sql, functions)
    except (Unsupported, n.IllegalNode) as error:
        illegal = Unsupported("OPERATOR_UNSUPPORTED", "plan", f"the algebra cannot hold it: {error}")
        why = error if isinstance(error, Unsupported) else illegal
        opaque = _opaque(sql, frame, analyzed, tables, why)
        if why.reason != NO_TABLE:  # constants have one order, and no rows have any
            refuse_left_open(analyzed, why, collated_columns(analyzed, _collated_leaves(tables)))
        return Captured(opaque, tuple(frame.columns), _root_order(analyzed, frame.columns), sql, functions)


def _optimized(execution: Any) -> Any:
    """Spark's optimized plan. Its optimizer fails over some queries: an ordered listagg(DISTINCT) beside another."""
    try:
        with quiet():
            return execution.optimizedPlan()
    except (PySparkException, Py4JJavaError) as error:
        told = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
        raise QueryRefused("QUERY_INVALID", f"Spark itself cannot plan the query: {told.splitlines()[0][:300]}",
                           "it cannot run it without Slackwater either: say the same otherwise") from error  # fmt: skip


NO_TABLE = "no table is left in the query's plan"


def _may_collate(plan: str, written: str, tables: Mapping[int, TableShape]) -> bool:
    """Whether some string of a query may have a collation: by its text, or by the columns of a table that it reads."""
    read = {int(found[1]) for found in LEAF.finditer(plan)} & set(tables)
    return bool(_COLLATED.search(written)) or any(is_collated(c.dtype) for t in read for c in tables[t].columns)


def _collated_leaves(tables: Mapping[int, TableShape]) -> frozenset[str]:
    """The leaves' names of columns whose strings have a collation."""
    listed = ((table, at, field) for table, shape in tables.items() for at, field in enumerate(shape.columns))
    return frozenset(f"sw_{table}_{at}" for table, at, field in listed if is_collated(field.dtype))


def _analyzed(query: str | DataFrame, spark: SparkSession) -> DataFrame:
    if isinstance(query, DataFrame):
        return query
    if not isinstance(query, str) or not query.strip():
        raise QueryRefused("QUERY_INVALID", "the query is empty", "give a SELECT statement or a DataFrame")
    try:
        with quiet():
            parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
            # Each look at a node is a call to the JVM: one of each class is enough.
            for name, node in {str(x.getClass().getSimpleName()): x for x in java_nodes(parsed)}.items():
                if (
                    "ExecuteImmediate" in name
                    or name == "InsertIntoDir"
                    or any(is_instance_of(spark._sc._gateway, node, f"{_LOGICAL}.{kind}") for kind in _STATEMENTS)
                ):
                    raise QueryRefused(
                        "QUERY_INVALID", f"the statement is not a query but {name}", "give a SELECT statement"
                    )
            if found := _MOVING.search(query):
                raise QueryRefused(
                    "QUERY_NONDETERMINISTIC",
                    f"{found[0]} means something else each day",
                    "a standing query must depend on its tables only: write the date itself",
                )
            return spark.sql(query)
    except PySparkException as error:
        first = str(error).strip().split("\n\n")[0].split(";\n")[0]
        advice = "check names, types and syntax against the tables of this warehouse"
        if "UNRESOLVED_ROUTINE" in first:
            advice = "declare a function of your own first, with register_udf or register_udaf of the engine"
        raise QueryRefused("QUERY_INVALID", f"Spark cannot read the query: {first}", advice) from error


def _refuse_unstable(analyzed: Any, execution: JavaObject) -> None:
    for name, _ in class_names(analyzed):
        if name in _FOREIGN_CODE:
            raise QueryRefused(
                "QUERY_NONDETERMINISTIC",
                f"the query calls a user-defined function ({name})",
                "use Spark's own functions, or a Python function that is declared deterministic with register_udf",
            )
    _refuse_unstable_names(analyzed)
    refuse_order_dependent(analyzed)
    if not execution.analyzed().deterministic():
        raise QueryRefused("QUERY_NONDETERMINISTIC", "Spark says that the query is not deterministic",
                           "a standing query must depend on its tables only")  # fmt: skip


def _refuse_unstable_names(plan: Any) -> None:
    """Refuse what is different each time: in the analyzed plan what was written, in the optimized one what Spark adds.

    Counter-example to looking at either alone: the optimizer turns `now()` into a constant, and joins NEAREST BY rows
    that it has numbered with `uuid()`.
    """
    for name, _ in class_names(plan):
        if name in _UNSTABLE:
            raise QueryRefused(
                "QUERY_NONDETERMINISTIC",
                f"{name} can answer differently each time it is run",
                "a standing query must depend on its tables only: keep the value in a column instead",
            )


def _refuse_duplicate_columns(frame: DataFrame) -> None:
    lowered = [c.casefold() for c in frame.columns]
    twice = sorted({c for c in lowered if lowered.count(c) > 1})
    if twice:
        raise QueryRefused("QUERY_INVALID", f"the query gives out the column {twice[0]!r} twice",
                           "name every output column with AS")  # fmt: skip
    for field in frame.schema:
        if twin := twin_field(field.dataType):
            raise QueryRefused("QUERY_INVALID", f"a struct in the column {field.name!r} has the field {twin!r} twice",
                               "give its fields names that differ in more than case")  # fmt: skip


@contextmanager
def _clocks_at_utc(spark: SparkSession) -> Iterator[None]:
    """Let Spark print dates and timestamps so that they can be read back.

    In the session's zone two timestamps look alike when clocks go back; by the legacy rules dates before our era look
    like others.
    """
    jvm: Any = spark._sc._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    active = sessions.getActiveSession()
    before = {name: str(spark.conf.get(name)) for name in _PRINTED}
    for name, value in _PRINTED.items():
        spark.conf.set(name, value)
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
        if active.isDefined():
            sessions.setActiveSession(active.get())


def _add_projections(optimized: list[dict[str, Any]], plan: JavaObject) -> None:
    """Spark's JSON leaves out the projections of an Expand: fetch them from the plan itself, subqueries included."""
    if not any(name == "Expand" for name, _ in class_names(optimized)):
        return
    for item, node in zip(optimized, java_nodes(plan), strict=True):
        if str(item["class"]).endswith(".Expand"):
            item["projections"] = [
                [json.loads(expr.toJSON()) for expr in java_seq(projection)]
                for projection in java_seq(node.projections())
            ]
        nested = list(nested_plans(item))
        below = java_seq(node.subqueries()) if nested else []
        if len(nested) == len(below):  # otherwise an Expand below stays without projections, and is not read
            for inner, inner_plan in zip(nested, below, strict=True):
                _add_projections(inner, inner_plan)


def _read(optimized: list[dict[str, Any]], frame: DataFrame, spark: SparkSession,
          tables: Mapping[int, TableShape], declared: Mapping[str, str]) -> tuple[n.Rel, tuple[str, ...]]:  # fmt: skip
    tree = parse(optimized)
    # A union reads its inputs by position, without naming columns.
    unions = (child for node in tree.walk() if node.name == "Union" for child in node.children)
    root_ids = _output_ids(tree).union(*(_output_ids(child) for child in unions))
    root_ids = root_ids.union(*(_output_ids(parse(plan)) for plan in _subquery_plans(optimized)))

    typing = Typing()

    def typed(rels: Sequence[n.Rel]) -> list[n.Rel]:
        return with_types(rels, _known_types(reader), typing, spark)

    reader = PlanReader(tables, lambda: function_names(spark), _needed(optimized, root_ids), typed, declared)
    order: tuple[n.SortKey, ...] = ()
    if tree.name == "Sort":
        rel, _ = reader.read(tree.children[0])
        order = reader.sort_keys(tree)
    else:
        rel, _ = reader.read(tree)
    if not _reads_a_table(rel):
        raise Unsupported("OPERATOR_UNSUPPORTED", tree.name, NO_TABLE)
    (rel,) = typed([rel])
    if _reads_a_table(pruned := prune_empty(rel)):
        rel = pruned
    check_collations(rel)
    check_distinct(rel := rel.transform_up(taken_below))
    rel = rel.transform_up(split_distinct).transform_up(settle_collations).transform_up(settle_ties)
    rel = rel.transform_up(keep_first_rows)
    if isinstance(rel, n.TopK):
        order = rel.keys
    names = rel.names
    if len(names) != len(frame.columns):
        raise Unsupported("OPERATOR_UNSUPPORTED", tree.name, "the plan's output does not match the query's")
    shown = _order_text(order, names, frame.columns)
    _check_types(rel, frame)
    return rel, shown


def _reads_a_table(rel: n.Rel) -> bool:
    return any(isinstance(node, n.Scan) for node in rel.walk())


def _known_types(reader: PlanReader) -> dict[str, str]:
    names = reader.names
    return names.read | {name: names.types[i] for i, name in names.by_id.items() if i in names.types}


def _subquery_plans(optimized: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [props["plan"] for name, props in class_names(optimized) if name == "ScalarSubquery"]


def _check_types(rel: n.Rel, frame: DataFrame) -> None:
    for ours, theirs in zip(rel.schema, frame.schema, strict=True):
        if ours.dtype != type_text(theirs.dataType):
            reason = f"column {theirs.name} came out as {ours.dtype}, not {type_text(theirs.dataType)}"
            raise Unsupported("EXPRESSION_UNSUPPORTED", "output", reason)


def _order_text(order: tuple[n.SortKey, ...], names: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """Sort keys as (column, direction) over the user's columns; keys that are not output columns end the list."""
    shown: list[str] = []
    for key in order:
        if key.expr.column not in names:
            break
        column = columns[names.index(str(key.expr.column))]
        shown.append(json.dumps([column, key.descending, key.nulls_first]))
    return tuple(shown)


def _root_order(analyzed: list[dict[str, Any]], columns: list[str]) -> tuple[str, ...]:
    """The ORDER BY of a query that is recomputed, as far as it names output columns."""
    tree = parse(analyzed)
    while tree.name in ("GlobalLimit", "LocalLimit", "Offset"):
        tree = tree.children[0]
    if tree.name != "Sort":
        return ()
    shown: list[str] = []
    for order in tree.nested_list("order"):
        key = order.children[0]
        if key.name != "AttributeReference" or key.props["name"] not in columns:
            break
        descending = order.object_name("direction") == "Descending"
        shown.append(json.dumps([key.props["name"], descending, order.object_name("nullOrdering") == "NullsFirst"]))
    return tuple(shown)


def _output_ids(tree: Tree) -> set[int]:
    while tree.name in ("Sort", "Filter", "Generate", "GlobalLimit", "LocalLimit", "Offset", *PLACING, *PYTHON):
        tree = tree.children[0]
    if tree.name == "LogicalRDD":
        return {attribute_id(a.props) for a in tree.nested_list("output")}
    if tree.name in ("Join", "Union"):
        return set().union(*(_output_ids(child) for child in tree.children))
    return set()


def _needed(optimized: list[dict[str, Any]], root_ids: set[int]) -> frozenset[int]:
    """Ids that anything reads. A leaf's own list of columns does not count, nor does a join that passes all on."""
    found = set(root_ids)
    waiting: list[Any] = [optimized]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict) and not str(value.get("class", "")).endswith(".LogicalRDD"):
            if str(value.get("class", "")).endswith(".AttributeReference"):
                found.add(attribute_id(value))
            waiting.extend(v for v in value.values() if isinstance(v, list | dict))
    return frozenset(found)


def _opaque(sql: str | None, frame: DataFrame, analyzed: Any, tables: Mapping[int, TableShape],
            why: Unsupported) -> n.Opaque:  # fmt: skip
    read: set[str] = set()
    for name, props in class_names(analyzed):
        match = LEAF.fullmatch(str(props.get("name", ""))) if name == "AttributeReference" else None
        if match:
            read.add(tables[int(match[1])].name)
    foreign = _foreign(analyzed)
    if why.code == "QUERY_UNSUPPORTED" or foreign or not read:
        reason = f"the query reads {foreign}, which is not a table here" if foreign else f"{why.operator}: {why.reason}"
        raise QueryRefused("QUERY_UNSUPPORTED", reason, "read only tables that were created in this warehouse")
    if sql is None:
        raise QueryRefused(why.code, f"{why.operator}: {why.reason}",
                           "give the query as SQL text: it can then be recomputed at each refresh")  # fmt: skip
    fields = tuple(n.Field(f"q{i}", type_text(f.dataType)) for i, f in enumerate(frame.schema))
    return n.Opaque(_without_end(sql), tuple(sorted(read)), fields, why.code, f"{why.operator}: {why.reason}")


def _without_end(sql: str) -> str:
    """The text without the semicolons that end it, and without what is said after them; it will stand in brackets."""
    try:
        words = [token for token in Spark.Tokenizer().tokenize(sql) if token.token_type.name != "SEMICOLON"]
    except TokenError:
        return sql.rstrip("; \t\r\n")
    return sql[: words[-1].end + 1]


def _foreign(analyzed: Any) -> str:
    """What the query reads that is not ours: its text would find other rows there next time, and nobody would know."""
    for name, props in class_names(analyzed):
        if name == "SubqueryAlias" and props["identifier"]["qualifier"]:
            return str(props["identifier"]["name"])
        if name.endswith("Relation") and name not in ("LocalRelation", "OneRowRelation"):
            return name
    return ""


_FUNCTION_NAMES: dict[str, str] = {}


def function_names(spark: SparkSession) -> Mapping[str, str]:
    """Spark's function name for each expression class, from its own registry."""
    if not _FUNCTION_NAMES:
        registry = spark._jsparkSession.sessionState().functionRegistry()
        listed = registry.listFunction()
        for i in range(listed.size()):
            identifier = listed.apply(i)
            info = registry.lookupFunction(identifier)
            if info.isDefined():
                simple = str(info.get().getClassName()).rsplit(".", 1)[-1]
                _FUNCTION_NAMES.setdefault(simple, str(identifier.funcName()))
    return _FUNCTION_NAMES


QuerySource = str | DataFrame | Callable[[Mapping[str, DataFrame]], DataFrame]
"""What a user may give as a query."""
