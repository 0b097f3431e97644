"""Spark's aggregate functions to ours: the name, the arguments, and the spelling where it is not `name(arguments)`.

Functions whose answer depends on the order of the rows are given one answer where that is possible without leaving what
Spark allows: `max_by` breaks ties by the value, lists are sorted, `listagg` orders by the text last. Such a function is
marked `completed`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from slackwater.algebra.aggregates import decimal_of, is_variance
from slackwater.algebra.expressions import Expr, call, conjunction, lit
from slackwater.capture.expressions import ExpressionReader, Unsupported
from slackwater.capture.trees import Tree, type_name
from slackwater.capture.user_functions import MERGING

PLAIN = {
    "Sum": "sum", "Count": "count", "Average": "avg", "Min": "min", "Max": "max", "StddevSamp": "stddev_samp",
    "StddevPop": "stddev_pop", "VarianceSamp": "var_samp", "VariancePop": "var_pop", "BitAndAgg": "bit_and",
    "BitOrAgg": "bit_or", "BitXorAgg": "bit_xor", "Skewness": "skewness", "Kurtosis": "kurtosis", "Corr": "corr",
    "CovPopulation": "covar_pop", "CovSample": "covar_samp", "RegrSlope": "regr_slope",
    "RegrIntercept": "regr_intercept", "RegrR2": "regr_r2", "RegrSXY": "regr_sxy",
    "BitmapConstructAgg": "bitmap_construct_agg", "BitmapOrAgg": "bitmap_or_agg", "BitmapAndAgg": "bitmap_and_agg",
    "CountMinSketchAgg": "count_min_sketch", "VectorSum": "vector_sum", "VectorAvg": "vector_avg",
    "SchemaOfVariantAgg": "schema_of_variant_agg",
}  # fmt: skip
"""Functions that are spelled as their name and their arguments."""

_SILENT = {"class", "num-children", "evalContext", "evalMode", "nullOnDivideByZero", "mutableAggBufferOffset",
           "inputAggBufferOffset", "prettyName", "createBitmapFunctionName"}  # fmt: skip

ORDER_FIELD, VALUE_FIELD = "o", "v"


@dataclass(frozen=True, slots=True)
class Function:
    """What a call means.

    Attributes:
        func: Spark's name of the function.
        args: its arguments.
        form: the spelling, where it is not `func(args)`; see `AggCall.form`.
        field: the field of the result that is the answer, where the result is a struct.
        completed: the answer is one of several that Spark could give.
        user: how a user-defined function follows a change; see `AggCall.user`.
    """

    func: str
    args: tuple[Expr, ...]
    form: str = ""
    field: str = ""
    completed: bool = False
    user: str = ""


def read_function(tree: Tree, exprs: ExpressionReader, *, distinct: bool = False) -> Function:
    """Turn one aggregate function."""
    special = _SPECIAL.get(tree.name)
    if special is not None:
        return special(tree, exprs, distinct)
    if tree.name not in PLAIN:
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "the aggregate function is not incremental yet")
    _check_properties(tree)
    func, args = PLAIN[tree.name], _read_all(tree, exprs)
    # Spark's JSON does not tell `try_sum` from `sum`; where one of them occurs, its name was noted beside it.
    func = str(tree.props.get("prettyName", func)) if str(tree.props.get("prettyName", "")).startswith("try_") else func
    if is_variance(func):
        return Function(func, tuple(_uncast(a) for a in args))
    return Function(func, _counted(args, distinct) if func == "count" else args)


def _read_all(tree: Tree, exprs: ExpressionReader) -> tuple[Expr, ...]:
    return tuple(exprs.read(child) for child in tree.children)


def _check_properties(tree: Tree, *known: str) -> None:
    if tree.props.get("nullOnDivideByZero") is False:
        # What we merge says NULL of too few rows, as Spark does unless it is told to say NaN.
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, "spark.sql.legacy.statisticalAggregate is on")
    extra = {k: v for k, v in tree.props.items() if k not in _SILENT and k not in known and not _is_index(v)}
    if any(v not in (None, [], {}) for v in extra.values()):
        raise Unsupported("EXPRESSION_UNSUPPORTED", tree.name, f"its properties {sorted(extra)} have no place in SQL")


def _is_index(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_index(v) for v in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _counted(args: tuple[Expr, ...], distinct: bool) -> tuple[Expr, ...]:
    """What `count` counts: constants that are not NULL count rows; several columns count where none is NULL."""
    columns = tuple(a for a in args if a.op != "lit" or a.text.startswith("CAST(NULL"))
    if len(columns) <= 1:
        return columns
    present = conjunction(tuple(call("is_not_null", c, dtype="boolean") for c in columns))
    return (call("if", present, call("struct", *columns), lit(None)),)


def _uncast(arg: Expr) -> Expr:
    """Spark casts what it takes the variance of to DOUBLE; the exact value below merges, so let Spark cast again."""
    below = arg.args[0] if arg.op == "cast" and arg.dtype == "double" else arg
    return below if below.dtype in ("tinyint", "smallint", "int") or decimal_of(below.dtype) else arg


def by_order(order: Expr, value: Expr) -> Expr:
    """What `max_by` compares, ties broken by the value; NULL where the order is NULL, for such rows do not count."""
    both = call("named_struct", lit(ORDER_FIELD), order, lit(VALUE_FIELD), value)
    return call("if", call("is_null", order, dtype="boolean"), lit(None), both)


def _extreme_by(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    """`max_by(v, o)` is the field v of the largest (o, v): the same answer or, among ties, the one with the largest v.

    As a maximum it merges. Counter-example to keeping `max_by` of each part without its order: the larger of two parts
    cannot be told from their values.
    """
    _check_properties(tree)
    value, order = _read_all(tree, exprs)
    func = "max" if tree.name == "MaxBy" else "min"
    return Function(func, (by_order(order, value),), field=VALUE_FIELD, completed=True)


def _extremes_by(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    _check_properties(tree, "reverse")
    value, order, k = _read_all(tree, exprs)
    return Function("min_by" if tree.props["reverse"] else "max_by", (value, by_order(order, value), k), completed=True)


def _percentile(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    _check_properties(tree, "reverse")
    value, share, frequency = (exprs.read(tree.children[0]), _share(tree.children[1], exprs),
                               exprs.read(tree.children[2]))  # fmt: skip
    form = f"percentile({'DISTINCT ' if distinct else ''}{{0}}, {{1}}, {{2}})"
    if tree.props["reverse"]:
        if distinct or frequency.value != 1:
            raise Unsupported("EXPRESSION_UNSUPPORTED", "Percentile", "this form of the function is not incremental")
        form = "percentile_cont({1}) WITHIN GROUP (ORDER BY {0} DESC)"
    return Function("percentile", (value, share, frequency), form)


def _percentile_disc(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    _check_properties(tree, "reverse", "legacyCalculation")
    if distinct or tree.props.get("legacyCalculation"):
        raise Unsupported("EXPRESSION_UNSUPPORTED", "PercentileDisc", "this form of the function is not incremental")
    value, share = exprs.read(tree.children[0]), _share(tree.children[1], exprs)
    direction = " DESC" if tree.props["reverse"] else ""
    inner = f"percentile_disc({{1}}) WITHIN GROUP (ORDER BY {{0}}{direction})"
    return Function("percentile_disc", (value, share), inner)


def _share(tree: Tree, exprs: ExpressionReader) -> Expr:
    """A percentage or an array of them, which Spark folds into one constant."""
    if tree.name == "Literal" and type_name(tree.props["dataType"]) == "array<double>" and tree.props.get("value"):
        shares = [float(x) for x in json.loads(str(tree.props["value"]))]
        return Expr("lit", (), f"array({', '.join(f'{x!r}D' for x in shares)})", "array<double>")
    return exprs.read(tree)


def _mode(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    if distinct or tree.props.get("reverseOpt") is None:
        raise Unsupported("EXPRESSION_UNSUPPORTED", "Mode", "among equally frequent values any may be the answer")
    direction = "" if tree.props["reverseOpt"] else " DESC"
    return Function("mode", _read_all(tree, exprs), f"mode() WITHIN GROUP (ORDER BY {{0}}{direction})")


def _collect(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    func = "collect_list" if tree.name == "CollectList" else "collect_set"
    nulls = "" if tree.props.get("ignoreNulls", True) is True else " RESPECT NULLS"
    inner = f"{func}({'DISTINCT ' if distinct else ''}{{0}}){{filter}}{nulls}"
    return Function(func, _read_all(tree, exprs), f"sort_array({inner})", completed=True)


def _list_agg(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    value, delimiter = exprs.read(tree.children[0]), exprs.read(tree.children[1])
    listed = "{0}" if delimiter.dtype == "void" else "{0}, {1}"
    args, keys = [value, delimiter], []
    for order in tree.children[2:]:
        down = order.object_name("direction") == "Descending"
        nulls = "FIRST" if order.object_name("nullOrdering") == "NullsFirst" else "LAST"
        keys.append(f"{{{len(args)}}} {'DESC' if down else 'ASC'} NULLS {nulls}")
        args.append(exprs.read(order.children[0]))
    if not distinct or not keys:
        keys.append("{0} ASC NULLS FIRST")
    head = f"listagg({'DISTINCT ' if distinct else ''}{listed})"
    return Function("listagg", tuple(args), f"{head} WITHIN GROUP (ORDER BY {', '.join(keys)})", completed=True)


def _count_distinct_roughly(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    error = float(tree.props["relativeSD"])
    form = f"approx_count_distinct({'DISTINCT ' if distinct else ''}{{0}}, {error!r}D)"
    return Function("approx_count_distinct", _read_all(tree, exprs), form)


def _regr_square(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    """`regr_sxx` and `regr_syy` have become the second moment of one of their arguments where neither is NULL.

    So what is DISTINCT are the values of that argument, not the pairs: Spark has it so.
    """
    form = f"regr_syy({'DISTINCT ' if distinct else ''}{{0}}, {{0}})"
    return Function("regr_syy", _read_all(tree, exprs), form)


def _user_defined(tree: Tree, exprs: ExpressionReader, distinct: bool) -> Function:
    """A user-defined aggregate is called by its name; that it was declared has been seen to before."""
    func = str(tree.props["name"])
    return Function(func, _read_all(tree, exprs), user="merge" if exprs.declared[func] == MERGING else "kept")


_SPECIAL = {
    "MaxBy": _extreme_by, "MinBy": _extreme_by, "MaxMinByK": _extremes_by, "Percentile": _percentile,
    "PercentileDisc": _percentile_disc, "Mode": _mode, "CollectList": _collect, "CollectSet": _collect,
    "ListAgg": _list_agg, "HyperLogLogPlusPlus": _count_distinct_roughly, "RegrReplacement": _regr_square,
    "PythonUDAF": _user_defined,
}  # fmt: skip
