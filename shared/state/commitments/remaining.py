"""What is left of commitments next to the running instances, and what it would pay for one more instance.

The rest of a commitment covers new instances in the order in which AWS applies commitments. This is exact for Reserved
Instances. A new instance with a higher savings percentage than a running one could also take over its part of a Savings
Plan; that part counts as used.
"""

from typing import Self, TypeAlias

from shared.model.ec2.commitments import Commitments, CommitmentUse, Coverage, SavingsPlan
from shared.state.commitments.application import (
    MIN_PART,
    PLAN_KINDS,
    get_family,
    get_flexible_size,
    get_normalization_factor,
    get_plan_order,
    get_plan_rate,
)

Share: TypeAlias = tuple[str, float, str]
"""A commitment, how much of it one instance uses, and the zone in which it applies ("": any)."""
Tier: TypeAlias = tuple[int, str]
"""Commitments that are applied together: their rank in the order of AWS, and the zone in which they apply."""


class RemainingCommitments:
    """The rest of each commitment, by id: instances of its type, or USD per hour."""

    def __init__(self, commitments: Commitments, use: CommitmentUse) -> None:
        """Start with *commitments*, all active, minus *use*."""
        used = dict(use.used_by_commitment)
        self._commitments = commitments
        self._amounts = {
            item.commitment_id: item.count - used.get(item.commitment_id, 0.0) for item in commitments.reserved
        }
        self._amounts |= {
            plan.commitment_id: plan.commitment_usd_per_hour - used.get(plan.commitment_id, 0.0)
            for plan in commitments.plans
        }
        self._ranks = {item.commitment_id: 0 if item.zone else 1 for item in commitments.reserved}
        self._ranks |= {plan.commitment_id: 2 + PLAN_KINDS.index(plan.kind) for plan in commitments.plans}
        self._shares_by_price: dict[tuple[str, float], tuple[Share, ...]] = {}

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = type(self).__new__(type(self))
        clone._commitments, clone._amounts = self._commitments, dict(self._amounts)  # noqa: SLF001 - of its own class
        clone._shares_by_price, clone._ranks = self._shares_by_price, self._ranks  # noqa: SLF001
        return clone

    @property
    def amounts(self) -> dict[str, float]:
        """The rest by commitment."""
        return dict(self._amounts)

    def has_rest(self) -> bool:
        """Return whether anything is left."""
        return any(amount > MIN_PART for amount in self._amounts.values())

    def can_cover(self, instance_type: str, usd_per_hour: float) -> bool:
        """Return whether some commitment could pay for *instance_type* and is not used up."""
        return any(self._amounts[name] > MIN_PART for name, _, _ in self._list_shares(instance_type, usd_per_hour))

    def find_zones(self, instance_type: str, usd_per_hour: float) -> tuple[str, ...]:
        """Return the zones of the zonal Reserved Instances for *instance_type* that are not used up, sorted."""
        shares = self._list_shares(instance_type, usd_per_hour)
        return tuple(sorted({zone for name, _, zone in shares if zone and self._amounts[name] > MIN_PART}))

    def list_tiers(self, instance_type: str, usd_per_hour: float) -> tuple[Tier, ...]:
        """Return the tiers of the commitments that could pay for *instance_type* and are not used up, in order."""
        shares = self._list_shares(instance_type, usd_per_hour)
        return tuple(sorted({(self._ranks[name], zone) for name, _, zone in shares if self._amounts[name] > MIN_PART}))

    def find_coverage(self, instance_type: str, zone: str, usd_per_hour: float) -> Coverage:
        """Return what the rest would pay for one more instance with the on-demand price *usd_per_hour*."""
        uncovered_part, covered_zone = 1.0, ""
        amounts: list[tuple[str, float]] = []
        for name, full_amount, share_zone in self._list_shares(instance_type, usd_per_hour):
            part = min(uncovered_part, self._amounts[name] / full_amount) if share_zone in ("", zone) else 0.0
            if part > MIN_PART:
                uncovered_part -= part
                amounts.append((name, part * full_amount))
                covered_zone = covered_zone or share_zone
        is_covered = uncovered_part <= MIN_PART
        return Coverage(
            uncovered_usd_per_hour=0.0 if is_covered else uncovered_part * usd_per_hour,
            amounts=tuple(amounts),
            zone=covered_zone,
        )

    def take(self, amounts: tuple[tuple[str, float], ...]) -> None:
        """Subtract *amounts*, by commitment; nothing becomes negative."""
        for name, amount in amounts:
            self._amounts[name] = max(0.0, self._amounts[name] - amount)

    def _list_shares(self, instance_type: str, usd_per_hour: float) -> tuple[Share, ...]:
        key = (instance_type, usd_per_hour)
        shares = self._shares_by_price.get(key)
        if shares is None:
            shares = self._shares_by_price[key] = _list_shares(self._commitments, *key)
        return shares


def _list_shares(commitments: Commitments, instance_type: str, usd_per_hour: float) -> tuple[Share, ...]:
    """Return the commitments that can cover *instance_type*, in the order of application."""
    shares: list[Share] = []
    size = get_normalization_factor(instance_type)
    for item in sorted(commitments.reserved, key=lambda item: (not item.zone, item.reservation_id)):
        flexible_size = get_flexible_size(item)
        if flexible_size is None and item.instance_type == instance_type:
            shares.append((item.commitment_id, 1.0, item.zone))
        elif flexible_size and size is not None and get_family(item.instance_type) == get_family(instance_type):
            shares.append((item.commitment_id, size / flexible_size, ""))
    return (*shares, *_list_plan_shares(commitments.plans, instance_type, usd_per_hour))


def _list_plan_shares(plans: tuple[SavingsPlan, ...], instance_type: str, usd_per_hour: float) -> tuple[Share, ...]:
    rated_plans = [
        (PLAN_KINDS.index(plan.kind), *get_plan_order(plan, rate, usd_per_hour), plan.commitment_id, rate)
        for plan in plans
        if (rate := get_plan_rate(plan, instance_type, usd_per_hour)) is not None
    ]
    return tuple((name, rate, "") for *_, name, rate in sorted(rated_plans))
