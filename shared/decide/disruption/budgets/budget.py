"""Disruption budgets: how many nodes of a NodePool may be disrupted at a time.

An invalid budget allows none.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final

import msgspec

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.model.core.calendar.cron_schedule import is_schedule_active
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.labels import DISRUPTION_WINDOWS
from shared.model.core.metadata import is_condition_true
from shared.model.core.units import compute_percentage
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.karpenter.pause import VOLUNTARY_REASONS
from shared.model.karpenter.spot_share import find_pool_share_problem
from shared.state.state_node import StateNode, is_deleting_or_marked

UNLIMITED_DISRUPTIONS: Final = 2147483647
BUDGETS_FIELD: Final = "spec.disruption.budgets"
BUDGET_REASONS: Final = VOLUNTARY_REASONS
"""Reasons that a budget can name. Disruption for other reasons is not limited by budgets."""
_NODES_PATTERN: Final = re.compile(r"(?:(?P<percent>100|[0-9]{1,2})%|(?P<count>[0-9]+))")


class AllowedDisruptions(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes may be disrupted at a time, and the error if an invalid budget allows none."""

    count: int
    problem: str = ""


class DisruptionCount(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a NodePool.

    The total that percentages refer to, and how many of them are being disrupted or not ready.
    """

    total: int = 0
    disrupting: int = 0


def compute_allowed_disruptions(pool: NodePool, reason: str, total: int, now: datetime) -> AllowedDisruptions:
    """Return the minimum that the pool's active budgets allow for *reason*; `UNLIMITED_DISRUPTIONS` if none applies."""
    annotations, annotation_problem = parse_disruption_annotations(pool), _find_annotation_problem(pool)
    if annotation_problem:
        return AllowedDisruptions(count=0, problem=annotation_problem)
    if not annotations.is_window_open(now):
        return AllowedDisruptions(count=0, problem=f"{DISRUPTION_WINDOWS}: now is outside all disruption windows")
    return compute_min_allowed(pool.budgets, reason, total, now, get_time_zone(annotations.zone))


def find_budget_problem(pool: NodePool, now: datetime) -> str:
    """Return which of the pool's budgets and annotations are invalid; "" if all are valid."""
    annotations, annotation_problem = parse_disruption_annotations(pool), _find_annotation_problem(pool)
    if annotation_problem:
        return annotation_problem
    return compute_min_allowed(pool.budgets, "", 0, now, get_time_zone(annotations.zone)).problem


def _find_annotation_problem(pool: NodePool) -> str:
    """Return the errors in the annotations of *pool*; an invalid Spot share counts, as its limit is not known."""
    problems = (*parse_disruption_annotations(pool).problems, find_pool_share_problem(pool))
    return "; ".join(filter(None, problems))


def compute_min_allowed(
    budgets: Iterable[DisruptionBudget],
    reason: str,
    total: int,
    now: datetime,
    zone: tzinfo = UTC,
    budgets_field: str = BUDGETS_FIELD,
) -> AllowedDisruptions:
    """Return the minimum that the active *budgets* allow for *reason*.

    *total*: number of nodes that percentages refer to; *zone*: time zone of the schedules; *budgets_field*: the field
    or setting that contains the budgets, for messages.
    """
    counts: list[int] = []
    problems: list[str] = []
    for index, budget in enumerate(budgets):
        try:
            counts.append(_compute_limit(budget, reason, total, now, zone))
        except ValueError as error:
            problems.append(f"{budgets_field}[{index}]: {error}")
    if problems:
        return AllowedDisruptions(count=0, problem="; ".join(problems))
    return AllowedDisruptions(count=min(counts, default=UNLIMITED_DISRUPTIONS))


def count_disruptions(
    states: Iterable[StateNode], command_nodes: frozenset[str] = frozenset()
) -> Mapping[str, DisruptionCount]:
    """Count nodes by NodePool; *command_nodes*: names of nodes that other commands already disrupt."""
    counts_by_pool: dict[str, DisruptionCount] = {}
    for state in states:
        if not is_counted_by_budgets(state):
            continue
        count = counts_by_pool.get(state.pool, DisruptionCount())
        is_disrupting = (
            is_deleting_or_marked(state)
            or state.node is None
            or not state.node.is_ready()
            or state.name in command_nodes
        )
        counts_by_pool[state.pool] = DisruptionCount(total=count.total + 1, disrupting=count.disrupting + is_disrupting)
    return counts_by_pool


def is_counted_by_budgets(state: StateNode) -> bool:
    """Return whether budgets count the node: it is initialized, and its instance is not terminating."""
    if state.claim is None or not state.is_initialized():
        return False
    return not is_condition_true(state.claim.conditions, "InstanceTerminating")


def _compute_limit(budget: DisruptionBudget, reason: str, total: int, now: datetime, zone: tzinfo) -> int:
    unknown_reasons = sorted(set(budget.reasons or ()) - set(BUDGET_REASONS))
    if unknown_reasons:
        raise ValueError(f"{unknown_reasons[0]!r} is not a disruption reason: use {', '.join(BUDGET_REASONS)}")
    limit = _parse_nodes(budget.nodes, total)
    if not _is_active(budget, now, zone) or (budget.reasons is not None and reason not in budget.reasons):
        return UNLIMITED_DISRUPTIONS
    return limit


def _parse_nodes(nodes: str, total: int) -> int:
    match = _NODES_PATTERN.fullmatch(nodes)
    if match is None:
        raise ValueError(f"nodes {nodes!r} is neither a number nor a percentage up to 100%")
    if match["count"] is not None:
        return int(match["count"])
    return compute_percentage(total, int(match["percent"]))


def _is_active(budget: DisruptionBudget, now: datetime, zone: tzinfo) -> bool:
    if not budget.schedule and budget.duration is None:
        return True
    if not budget.schedule or budget.duration is None:
        raise ValueError("schedule and duration belong together: set both or neither")
    return is_schedule_active(budget.schedule, budget.duration, now, zone)
