"""The one rule of consolidation: a disruption pays if its savings, for as long as they last, exceed what it costs.

Savings per hour, multiplied by their expected duration, must cover the evictions and the launches. No disruption has to
save for longer than a day: a node that stays cheap to remove for a day is removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.savings.disruption_cost import (
    DisruptionCost,
    EvictionCosts,
    compute_disruption_cost,
    format_amount,
)
from shared.decide.disruption.savings.savings_duration import (
    MAX_SAVINGS_DURATION,
    SavingsDuration,
    estimate_savings_duration,
)
from shared.model.core.formatting import format_elapsed, format_usd_per_hour
from shared.state.state_node import StateNode

_ONE_HOUR: Final = timedelta(hours=1)
_MIN_DURATION: Final = timedelta(minutes=1)
"""The shortest duration over which costs are spread."""


class CommandValue(msgspec.Struct, frozen=True, kw_only=True):
    """What a command saves, for how long, and what it costs."""

    savings_usd_per_hour: float
    duration: SavingsDuration
    cost: DisruptionCost

    @property
    def payback_period(self) -> timedelta:
        """The time until the savings have paid for the disruption; at most a day."""
        if self.cost.usd <= 0:
            return timedelta()
        if self.savings_usd_per_hour <= 0:
            return MAX_SAVINGS_DURATION
        hours = self.cost.usd / self.savings_usd_per_hour
        return timedelta(hours=min(hours, MAX_SAVINGS_DURATION / _ONE_HOUR))

    @property
    def savings_usd(self) -> float:
        """The savings in the expected duration."""
        return self.savings_usd_per_hour * (self.duration.expected / _ONE_HOUR)

    @property
    def net_usd_per_hour(self) -> float:
        """The savings less the costs, which are spread over the expected duration."""
        hours = max(self.duration.expected, _MIN_DURATION) / _ONE_HOUR
        return self.savings_usd_per_hour - self.cost.usd / hours

    def is_worthwhile(self) -> bool:
        """Return whether the savings are expected to last for the payback period."""
        return self.duration.expected >= self.payback_period

    def format(self) -> str:
        """Return the sum of a command that pays, "" if it costs nothing."""
        if self.cost.usd <= 0:
            return ""
        savings, duration = format_amount(self.savings_usd), format_elapsed(self.duration.expected)
        return f"saves {savings} over an expected {duration}{self._format_basis()}, costs {self.cost.format()}"

    def format_refusal(self, now: datetime) -> str:
        """Return the sum of a command that does not pay yet, and when it will if nothing changes."""
        if self.duration.error is not None:
            return (
                f"would save {format_usd_per_hour(self.savings_usd_per_hour)} for an expected "
                f"{format_elapsed(self.duration.expected)}{self._format_basis()}, costs {self.cost.format()}: "
                f"pays if it saves for {format_elapsed(self.payback_period)}"
            )
        pays_at = now + self.payback_period - self.duration.expected
        return (
            f"would save {format_usd_per_hour(self.savings_usd_per_hour)}, costs {self.cost.format()}: waits until "
            f"{pays_at:%Y-%m-%d %H:%M:%S} UTC, when nothing has changed for {format_elapsed(self.payback_period)}"
            + (f" ({self.duration.last_change})" if self.duration.last_change else "")
        )

    def _format_basis(self) -> str:
        """Return the basis of a forecast and its error, or which other change has shortened the duration; else ""."""
        duration = self.duration
        if duration.error is None:
            return f" ({duration.last_change})" if duration.last_change else ""
        return f" (±{format_elapsed(duration.error)}: {duration.basis})"


def compute_command_value(
    targets: Sequence[Candidate],
    savings_usd_per_hour: float,
    eviction_costs: EvictionCosts,
    now: datetime,
    launch_time_by_pool: Mapping[str, datetime],
    *,
    forecast_duration: SavingsDuration | None = None,
    receivers: Iterable[StateNode] = (),
) -> CommandValue:
    """Return the value of disrupting *targets* together, which saves *savings_usd_per_hour*.

    *launch_time_by_pool*: when nodes were last launched for pending pods; *receivers*: existing nodes that receive the
    pods. Both count if the evictions have a price.
    *forecast_duration*: how long the savings last by the workload history; pods that have not changed for a day
    outweigh it.
    """
    new_nodes_usd_per_hour = sum(target.price_usd_per_hour for target in targets) - savings_usd_per_hour
    cost = compute_disruption_cost(targets, eviction_costs, new_nodes_usd_per_hour)
    launch_times, receiver_states = (launch_time_by_pool, tuple(receivers)) if cost.evictions_usd > 0 else ({}, ())
    duration = estimate_savings_duration(targets, now, launch_times, receiver_states, forecast_duration)
    return CommandValue(savings_usd_per_hour=savings_usd_per_hour, duration=duration, cost=cost)


def merge_values(values: Sequence[CommandValue]) -> CommandValue:
    """Return the value of disruptions that each pay on their own: their savings, costs, and mean duration."""
    savings_usd_per_hour = sum(value.savings_usd_per_hour for value in values)
    savings_usd = sum(value.savings_usd for value in values)
    first_duration = min((value.duration for value in values), key=lambda duration: duration.expected)
    return CommandValue(
        savings_usd_per_hour=savings_usd_per_hour,
        duration=msgspec.structs.replace(first_duration, expected=_ONE_HOUR * (savings_usd / savings_usd_per_hour))
        if savings_usd_per_hour > 0
        else first_duration,
        cost=DisruptionCost(
            evictions=sum(value.cost.evictions for value in values),
            evictions_usd=sum(value.cost.evictions_usd for value in values),
            lost_work_usd=sum(value.cost.lost_work_usd for value in values),
            overlap=max(value.cost.overlap for value in values),
            launches_usd=sum(value.cost.launches_usd for value in values),
        ),
    )
