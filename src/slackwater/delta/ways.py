"""Which way each operator of a plan is refreshed, before anything is run.

The answer follows from the algebra that operators declare, and from what is asked of them. An operator is asked for its
delta (D) or for its full output at the new version (F), as in `rules`:

* D of a linear or bilinear operator asks its inputs for D. So does a keyed one, which redoes the keys it finds there.
* An operator whose two full outputs must be compared asks its inputs for F.
* F of an aggregate that keeps partial rows needs only D below it. So does F of a window whose rows are kept because
  they could not be computed again bit by bit, and F of an intermediate result that is kept because an ordering, or a
  function without keys, reads it again. Any other F passes down to the tables.

States are assumed to fit the budget; a state that is dropped makes a refresh slower, or a recompute, never wrong.

Counter-example to looking at one operator alone: `ORDER BY … LIMIT` over an aggregate or a join follows the changes of
its tables, because its input is kept; the same over a table reads the table again.
"""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.algebra.aggregates import Combine
from slackwater.algebra.first_rows import First
from slackwater.algebra.nodes import Linearity, Opaque, Rel, TopK
from slackwater.algebra.printer import describe
from slackwater.algebra.windows import Window
from slackwater.delta.reasons import REASONS, Way
from slackwater.delta.rules import compares_results, repeatable


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a plan and its way.

    Attributes:
        label: what it does, without its inputs.
        code: the reason, one of `REASONS`.
        detail: what the reason is about here, such as the functions that are redone; may be empty.
        inputs: the operators below.
    """

    label: str
    code: str
    detail: str
    inputs: tuple[Operator, ...]

    @property
    def way(self) -> Way:
        """How it is refreshed."""
        return REASONS[self.code].way

    @property
    def text(self) -> str:
        """The way and the reason, in the words that all reports use."""
        return f"{self.way.value} [{self.code}]" + (f" {self.detail}" if self.detail else "")

    def walk(self) -> tuple[Operator, ...]:
        """This operator and all below it, parents first."""
        return (self, *(found for below in self.inputs for found in below.walk()))


def ways(plan: Rel) -> Operator:
    """The way of every operator; the tree has the shape of the plan's."""
    return _asked_for_full(plan) if compares_results(plan) else _asked_for_delta(plan)


def _asked_for_delta(node: Rel) -> Operator:
    if _merges(node):
        return _merged(node)
    if _is_constant(node):
        return _operator(node, "CONSTANT")
    if isinstance(node, First):
        return _operator(node, "FIRST_KEPT", *map(_asked_for_delta, node.children))
    if node.linearity in _WITHOUT_STATE:
        return _operator(node, _WITHOUT_STATE[node.linearity], *map(_asked_for_delta, node.children))
    if node.linearity is Linearity.MERGEABLE and _has_keys(node):
        return _operator(node, "GROUPS_REDONE", *map(_asked_for_delta, node.children), detail=_functions(node))
    if node.linearity is Linearity.KEYED and _has_keys(node):
        return _operator(node, "KEYS_REDONE", *map(_asked_for_delta, node.children))
    return _compared(node)


_WITHOUT_STATE = {Linearity.LEAF: "TABLE_CHANGES", Linearity.LINEAR: "LINEAR", Linearity.BILINEAR: "BILINEAR"}


def _asked_for_full(node: Rel) -> Operator:
    if _merges(node):
        return _merged(node)
    if _is_constant(node):
        return _operator(node, "CONSTANT")
    if isinstance(node, TopK) or not (_has_keys(node) and node.linearity is not Linearity.OPAQUE):
        return _compared(node)
    if isinstance(node, Window) and not node.repeatable and not _drifts_below(node):
        return _operator(node, "KEYS_REDONE", *map(_asked_for_delta, node.children))  # its own rows are kept
    if node.linearity is Linearity.LINEAR:
        inputs = tuple(map(_asked_for_full, node.children))
        lost = any(operator.way is Way.RECOMPUTE for operator in inputs)
        return _operator(node, "INPUT_RECOMPUTED" if lost else "RESULT_COMPARED", *inputs)
    # What stands below a join is kept where computing it again would be work; tables need no copy.
    below = _kept_input if len(node.children) > 1 else _asked_for_full
    return _operator(node, "FULL_OUTPUT", *map(below, node.children))


def _kept_input(node: Rel) -> Operator:
    intermediate = any(x.linearity not in (Linearity.LEAF, Linearity.LINEAR) for x in node.walk())
    return _asked_for_delta(node) if intermediate and not _drifts(node) else _asked_for_full(node)


def _merged(node: Rel) -> Operator:
    """An aggregate that keeps partial rows, unless it reads rows that cannot be followed."""
    if _drifts_below(node):
        return _operator(node, "FLOATING_INPUT", *map(_asked_for_full, node.children))
    code = _KEPT_AS[_combine(node)]
    detail = "" if code == "PARTIALS_ADD" else _functions(node)
    return _operator(node, code, *map(_asked_for_delta, node.children), detail=detail)


_KEPT_AS = {
    Combine.ADDITIVE: "PARTIALS_ADD",
    Combine.MERGEABLE: "PARTIALS_MERGE",
    Combine.KEPT: "GROUPS_REDONE",
}


def _compared(node: Rel) -> Operator:
    """An operator without keys, or without any algebra: all its rows are computed again."""
    if isinstance(node, Opaque):
        known = node.code in REASONS
        detail = node.reason if known else f"[{node.code}] {node.reason}"
        return Operator("Whole query", node.code if known else "OPERATOR_UNSUPPORTED", detail, ())
    opaque = node.linearity is Linearity.OPAQUE
    below = tuple(map(_asked_for_full if opaque else _kept_input, node.children))
    if isinstance(node, TopK):
        lost = any(operator.way is Way.RECOMPUTE for operator in below)
        return _operator(node, "ORDER_READS_ALL" if lost else "ORDER_REDONE", *below)
    return _operator(node, "NO_RULE" if opaque else "NO_KEYS", *below)


def _operator(node: Rel, code: str, *inputs: Operator, detail: str = "") -> Operator:
    return Operator(describe(node), code, detail, inputs)


# --- what operators declare ------------------------------------------------------------------------------------------


def _is_constant(node: Rel) -> bool:
    return node.linearity is Linearity.LEAF and not hasattr(node, "table")


def _combine(node: Rel) -> Combine:
    combine = getattr(node, "combine", Combine.REDO)
    return combine if isinstance(combine, Combine) else Combine.REDO


def _merges(node: Rel) -> bool:
    return node.linearity is Linearity.MERGEABLE and _combine(node) is not Combine.REDO


def _functions(node: Rel) -> str:
    hardest = _combine(node)
    return ", ".join(dict.fromkeys(a.func for a in getattr(node, "aggs", ()) if a.combine >= hardest))


_KEYS = ("groups", "partition", "partition_by", "pairs")
"""Where operators hold the keys by which they can be redone in part."""


def _has_keys(node: Rel) -> bool:
    """Whether touched rows can be told from others: an operator that declares its keys needs at least one."""
    declared = [getattr(node, name) for name in _KEYS if hasattr(node, name)]
    return all(bool(keys) for keys in declared) and not isinstance(node, TopK)


def _drifts(node: Rel) -> bool:
    return not all(repeatable(x) for x in node.walk())


def _drifts_below(node: Rel) -> bool:
    return any(_drifts(child) for child in node.children)
