"""The shape of a plan that a view's strategy works on, and when a plan was made for another strategy."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from slackwater.algebra.lookups import LookupJoin
from slackwater.algebra.multi_join import MultiJoin
from slackwater.algebra.nodes import Join, Rel
from slackwater.errors import ViewError
from slackwater.planning.blind_aggregates import outer_joins_unseen
from slackwater.planning.grouped_first import group_first
from slackwater.planning.higher_order import MOST_VIEWS, TooManyViews, higher_order
from slackwater.planning.join_groups import UniqueKeys
from slackwater.planning.join_order import LeafRows
from slackwater.planning.lookups import with_lookups
from slackwater.planning.match_lookups import matches_by_key
from slackwater.planning.narrowed_groups import narrow_groups

if TYPE_CHECKING:
    from slackwater.view import View

WITH_LOOKUPS = ("auto", "plain", "recycler")
"""Strategies that keep what waits in joins. The recycler differs from `auto` in what it selects, not in what it
selects from; the others are baselines, and keep what their names promise."""


def shaped(plan: Rel, strategy: str, changing: Collection[str], unique: UniqueKeys, base_rows: LeafRows) -> Rel:
    """The plan as a strategy needs it: with lookups marked, or with its joins side by side."""
    if strategy in WITH_LOOKUPS:
        return with_lookups(plan, unique, base_rows)
    return with_views(plan, changing) if strategy == "higher_order" else plan


def rewritten(plan: Rel, strategy: str, unique: UniqueKeys) -> Rel:
    """The plan with less to ask for at a refresh, where the strategy is free to choose it."""
    if strategy not in WITH_LOOKUPS:
        return plan
    return group_first(outer_joins_unseen(matches_by_key(plan, unique)), unique)


def narrowed(plan: Rel, strategy: str, leaf_rows: LeafRows, base_rows: LeafRows, unique: UniqueKeys) -> Rel:
    """The plan with fewer groups, where the strategy is free to choose it."""
    return narrow_groups(plan, leaf_rows, base_rows, unique) if strategy in WITH_LOOKUPS else plan


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


def made_for_another_strategy(view: View, strategy: str | None = None) -> str | None:
    """Why the plan must be made anew: the strategy was changed since it was made, or would be by this one."""
    strategy = view.strategy if strategy is None else strategy
    nodes = list(view.plan.walk())
    marked = any(isinstance(x, LookupJoin) for x in nodes) and strategy not in WITH_LOOKUPS
    wants = strategy == "higher_order" and any(isinstance(x, Join) for x in view.logical_plan.walk())
    has = any(isinstance(x, MultiJoin) for x in nodes)
    return "the plan was made for another strategy" if marked or wants != has else None
