"""The costs of a month so far, as billed, and what a monthly budget allows because of them."""

from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

BudgetStep: TypeAlias = Literal["", "spot-only", "high-priority-only", "no-new-nodes"]
"""What a monthly budget restricts; each step includes the ones before it."""
BUDGET_STEPS: Final[tuple[BudgetStep, ...]] = ("", "spot-only", "high-priority-only", "no-new-nodes")
_MAX_PERCENT: Final = 1000


class MonthCosts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The costs of the nodes of one month, from the cost ledger: instances, without volumes."""

    month: str
    """``2026-11``, UTC."""
    until: datetime
    """Everything up to this full hour is billed."""
    past_days: tuple[tuple[str, float], ...] = ()
    """Cost in USD by day, for days with a report, sorted."""
    today_usd: float = 0.0
    """Cost of the day that the ledger contains."""

    @property
    def usd(self) -> float:
        """Cost of the month so far."""
        return sum(amount for _, amount in self.past_days) + self.today_usd


class BudgetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A monthly budget, and from which percentage of it each step applies."""

    budget_usd: float = 0.0
    """0: no budget."""
    step_percents: tuple[int, int, int] = (80, 90, 100)
    min_priority: int = 1
    """Pods of this priority or more have high priority."""


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a monthly budget is used, and the step that follows."""

    policy: BudgetPolicy
    used_usd: float
    step: BudgetStep

    @property
    def used_percent(self) -> float:
        """Used part of the budget."""
        return 100 * self.used_usd / self.policy.budget_usd if self.policy.budget_usd else 0.0


def find_budget_state(policy: BudgetPolicy, costs: MonthCosts | None, now: datetime) -> BudgetState:
    """Return how much of the budget of this month is used; nothing is if no costs of this month are known."""
    is_current = costs is not None and costs.month == format_month(now)
    used_usd = costs.usd if costs is not None and is_current else 0.0
    state = BudgetState(policy=policy, used_usd=used_usd, step="")
    reached = sum(state.used_percent >= percent for percent in policy.step_percents) if policy.budget_usd else 0
    return msgspec.structs.replace(state, step=BUDGET_STEPS[reached])


def format_month(instant: datetime) -> str:
    """Return the month of *instant* in UTC, like ``2026-11``."""
    return f"{instant.astimezone(UTC):%Y-%m}"


def parse_budget_steps(text: str) -> tuple[int, int, int]:
    """Parse the percentages of a budget from which its steps apply.

    >>> parse_budget_steps("80,90,100")
    (80, 90, 100)

    Raises:
        ValueError: *text* is not three ascending percentages.
    """
    parts = [part.strip() for part in text.split(",")]
    percents = [int(part) for part in parts if part.isdecimal()]
    if len(parts) != len(BUDGET_STEPS) - 1 or len(percents) != len(parts) or percents != sorted(percents):
        raise ValueError(f"{text!r} is not three ascending percentages: write a list like 80,90,100")
    if not 0 < percents[0] <= percents[-1] <= _MAX_PERCENT:
        raise ValueError(f"{text!r}: percentages are from 1 to {_MAX_PERCENT}: write a list like 80,90,100")
    return percents[0], percents[1], percents[2]
