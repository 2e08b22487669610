"""The Savings Plans and Reserved Instances of the account, as Describe shows them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.ec2.commitments import Commitments, ReservedInstances, SavingsPlan
from sim.cloud import seeded_random

TERM_DURATION: Final = timedelta(days=365)


class AccountCommitments:
    """The commitments of one account; the rates of its Savings Plans are those of one region."""

    def __init__(self, region: str, on_demand_prices: Mapping[str, float], seed: int) -> None:
        """Start without commitments."""
        self._region, self._prices, self._seed = region, on_demand_prices, seed
        self._reserved: list[ReservedInstances] = []
        self._plans: list[tuple[SavingsPlan, str]] = []

    def add_reserved(
        self, instance_type: str, count: int, now: datetime, *, zone: str = "", discount: float = 0.4
    ) -> ReservedInstances:
        """Buy Reserved Instances for one year at *discount* from the on-demand price, without payment in advance."""
        reserved = ReservedInstances(
            reservation_id=seeded_random.build_uuid(self._seed, "reserved", len(self._reserved)),
            instance_type=instance_type,
            count=count,
            zone=zone,
            usd_per_hour=round(self._prices[instance_type] * (1 - discount), 6),
            starts_at=now,
            ends_at=now + TERM_DURATION,
        )
        self._reserved.append(reserved)
        return reserved

    def add_plan(
        self, usd_per_hour: float, now: datetime, *, family: str = "", region: str = "", discount: float = 0.3
    ) -> SavingsPlan:
        """Buy a Savings Plan for one year: an EC2 Instance Savings Plan for *family*, else a Compute Savings Plan.

        An EC2 Instance Savings Plan is for *region*, by default the own one.
        """
        names = [name for name in self._prices if family in ("", name.partition(".")[0])]
        plan = SavingsPlan(
            plan_id=seeded_random.build_uuid(self._seed, "savings-plan", len(self._plans)),
            kind="ec2-instance" if family else "compute",
            commitment_usd_per_hour=usd_per_hour,
            instance_family=family,
            rates=tuple((name, round(self._prices[name] * (1 - discount), 6)) for name in sorted(names)),
            starts_at=now,
            ends_at=now + TERM_DURATION,
        )
        self._plans.append((plan, region or self._region if family else ""))
        return plan

    def list_reserved(self, now: datetime) -> tuple[ReservedInstances, ...]:
        """Return the active Reserved Instances, sorted by id."""
        active = Commitments(reserved=tuple(self._reserved)).select_active(now).reserved
        return tuple(sorted(active, key=lambda item: item.reservation_id))

    def list_plans(self, now: datetime, region: str) -> tuple[SavingsPlan, ...]:
        """Return the active plans that cover *region*, sorted by id; only plans in the own region have rates."""
        return tuple(
            plan if region == self._region else msgspec.structs.replace(plan, rates=())
            for plan, plan_region in self.list_all_plans(now)
            if plan_region in ("", region)
        )

    def list_all_plans(self, now: datetime) -> tuple[tuple[SavingsPlan, str], ...]:
        """Return the active plans with their region ("": all), sorted by id."""
        active = [(plan, region) for plan, region in self._plans if Commitments(plans=(plan,)).select_active(now).plans]
        return tuple(sorted(active, key=lambda pair: pair[0].plan_id))
