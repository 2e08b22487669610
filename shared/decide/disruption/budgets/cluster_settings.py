"""Disruption settings of the deployment, in addition to the fields of the NodePools."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from shared.decide.disruption.budgets.budget import compute_min_allowed
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.metadata import Problem
from shared.model.core.units import parse_duration
from shared.model.decisions.pod_run_time import RunTimeRecord
from shared.model.decisions.workload_history import DemandForecast
from shared.model.karpenter.node_pool import DisruptionBudget

EVERYTHING = "*"
"""Used instead of a reason: all reasons."""
BUDGETS_SETTING: Final = "disruption-budgets"
TIME_ZONE_SETTING: Final = "disruption-time-zone"
_SAMPLE_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)


class DisruptionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The disruption settings of the deployment."""

    spot_to_spot: bool = False
    """The feature gate SpotToSpotConsolidation."""
    budgets: tuple[DisruptionBudget, ...] = ()
    """Budgets for the nodes of all NodePools together."""
    time_zone: str = "UTC"
    """Time zone of the schedules of *budgets*."""
    overlap: timedelta = timedelta()
    """How long new nodes run beside old ones and are paid for; 0: new nodes cost nothing while both run."""
    eviction_price_usd: float = 0.0
    """The price of evicting a normal pod, in NodePools without their own price."""
    workload_cooldown: timedelta = timedelta()
    """How long a workload is left alone after a disruption; 0: off."""
    frees_limits: bool = False
    """Whether disrupted nodes release their share of limits at once, as in Karpenter.

    If replacements have to be launched first, the limit reservations would reject them.
    """
    forecasts: tuple[DemandForecast, ...] = ()
    """How much capacity NodePools will need, by the workload history; empty: there is no history."""
    run_times: tuple[RunTimeRecord, ...] = ()
    """How long finite pods run, by the workload history."""
    problem: str = ""
    """Which setting is invalid: no node is disrupted voluntarily until it is corrected."""

    def list_problems(self) -> tuple[Problem, ...]:
        """Return the problems to report."""
        if not self.problem:
            return ()
        message = f"{self.problem}; voluntary disruption stops until the setting is corrected and deployed"
        return (Problem(kind="Setting", name="joiner", message=message),)


class _BudgetJson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A budget in the format of a NodePool."""

    nodes: str = "10%"
    reasons: tuple[Literal["Drifted", "Empty", "Underutilized"], ...] | None = None
    schedule: str = ""
    duration: str | None = None


def parse_disruption_settings(budgets_text: str, zone_name: str, *, spot_to_spot: bool = False) -> DisruptionSettings:
    """Parse the settings; *budgets_text* is JSON in the format of a NodePool's spec.disruption.budgets, or "".

    >>> settings = parse_disruption_settings('[{"nodes": "5%"}, {"nodes": "0", "reasons": ["Drifted"]}]', "UTC")
    >>> [budget.nodes for budget in settings.budgets]
    ['5%', '0']

    An invalid setting is returned as the result's *problem*, which names the setting.
    """
    try:
        get_time_zone(zone_name or "UTC")
    except ValueError as error:
        return DisruptionSettings(spot_to_spot=spot_to_spot, problem=f"{TIME_ZONE_SETTING}: {error}")
    try:
        parsed_budgets = _parse_budgets(budgets_text)
    except ValueError as error:
        return DisruptionSettings(spot_to_spot=spot_to_spot, problem=f"{BUDGETS_SETTING}{error}")
    problem = compute_min_allowed(
        parsed_budgets, "", 0, _SAMPLE_TIME, get_time_zone(zone_name or "UTC"), BUDGETS_SETTING
    ).problem
    return DisruptionSettings(
        spot_to_spot=spot_to_spot, budgets=parsed_budgets, time_zone=zone_name or "UTC", problem=problem
    )


def _parse_budgets(text: str) -> tuple[DisruptionBudget, ...]:
    try:
        parsed_budgets = msgspec.json.decode(text or "[]", type=tuple[_BudgetJson, ...])
    except msgspec.DecodeError as error:
        raise ValueError(f": {error}; write a JSON list like spec.disruption.budgets of a NodePool") from None
    return tuple(_parse_budget(number, budget_json) for number, budget_json in enumerate(parsed_budgets))


def _parse_budget(index: int, budget_json: _BudgetJson) -> DisruptionBudget:
    try:
        duration = None if budget_json.duration is None else parse_duration(budget_json.duration)
    except ValueError as error:
        raise ValueError(f"[{index}].duration: {error}") from None
    return DisruptionBudget(
        nodes=budget_json.nodes, reasons=budget_json.reasons, schedule=budget_json.schedule, duration=duration
    )
