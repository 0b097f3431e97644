"""How an operator can follow a change, and the stable codes that say why. Codes are never renamed.

`docs/reasons.md` explains each code; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Way(Enum):
    """How an operator's output follows a change of its inputs; from the least work to the most."""

    DELTA = "delta"
    MERGE = "merge"
    REDO_KEYS = "redo keys"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an operator is refreshed in its way, in one sentence."""

    way: Way
    text: str


REASONS: Final[dict[str, Reason]] = {
    "TABLE_CHANGES": Reason(Way.DELTA, "the changes that the table recorded are read"),
    "CONSTANT": Reason(Way.DELTA, "the rows are part of the query and never change"),
    "LINEAR": Reason(Way.DELTA, "each changed row is treated by itself"),
    "BILINEAR": Reason(Way.DELTA, "the changed rows of one input meet the rows of the other"),
    "RESULT_COMPARED": Reason(Way.DELTA, "the new output is put together from kept states and compared with the last"),
    "PARTIALS_ADD": Reason(Way.MERGE, "partial rows are kept, and inserts and deletes add to them"),
    "PARTIALS_MERGE": Reason(Way.MERGE, "partial rows are kept and inserts merge; a group that lost a row is redone"),
    "FIRST_KEPT": Reason(
        Way.MERGE, "the first rows and some more are kept: what comes is sorted in, what goes makes room"
    ),
    "GROUPS_REDONE": Reason(
        Way.REDO_KEYS, "no partial row helps these functions: groups with a changed row are redone"
    ),
    "KEYS_REDONE": Reason(Way.REDO_KEYS, "the rows whose key a change touches are redone"),
    "ORDER_REDONE": Reason(Way.REDO_KEYS, "the first rows are chosen again from an input that is kept"),
    "NO_KEYS": Reason(Way.RECOMPUTE, "there is no key to tell touched rows from others: any change redoes all"),
    "ORDER_READS_ALL": Reason(Way.RECOMPUTE, "the first rows are chosen again from an input that is not kept"),
    "FULL_OUTPUT": Reason(Way.RECOMPUTE, "an operator above reads all rows at each refresh, and none are kept here"),
    "INPUT_RECOMPUTED": Reason(Way.RECOMPUTE, "an input is recomputed, and all its rows pass through here"),
    "FLOATING_INPUT": Reason(Way.RECOMPUTE, "it reads floating-point aggregates, whose old rows cannot be taken back"),
    "NO_RULE": Reason(Way.RECOMPUTE, "the operator declares no algebra: its two full outputs are compared"),
    "OPERATOR_UNSUPPORTED": Reason(
        Way.RECOMPUTE, "the algebra cannot follow an operator of the query, and so all of it is recomputed"
    ),
    "EXPRESSION_UNSUPPORTED": Reason(
        Way.RECOMPUTE, "the algebra cannot follow an expression of the query, and so all of it is recomputed"
    ),
}
"""Every reason, by its code."""
