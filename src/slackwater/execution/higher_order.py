"""The strategy `higher_order` in a refresh: when a view's plan is of the shape that it needs, and when it cannot be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Join, Rel
from slackwater.errors import ViewError
from slackwater.planning.higher_order import MOST_VIEWS, TooManyViews, higher_order

WITH_LOOKUPS = ("auto", "planned")
"""Strategies that keep what waits in joins; the others are baselines, and keep what these keep."""

if TYPE_CHECKING:
    from slackwater.view import View


def with_views(plan: Rel, changing: Collection[str]) -> Rel:
    """The plan with its joins as higher-order maintenance needs them, or a refusal."""
    try:
        return higher_order(plan, changing)
    except TooManyViews as error:
        raise ViewError(
            "HIGHER_ORDER_TOO_LARGE",
            f"higher-order maintenance of {error.tables} would keep more than {MOST_VIEWS} views",
            "use another strategy, or mark tables complete that will not change any more",
        ) from error


def made_for_another_strategy(view: View) -> str | None:
    """Why the plan must be made anew: the strategy was changed since it was made."""
    marked = any(isinstance(x, LookupJoin) for x in view.plan.walk())
    if marked and view.strategy not in WITH_LOOKUPS:
        return "the plan was made for another strategy"
    wants = view.strategy == "higher_order" and any(isinstance(x, Join) for x in view.logical_plan.walk())
    has = any(isinstance(x, MultiJoin) for x in view.plan.walk())
    return "the plan was made for another strategy" if wants != has else None
