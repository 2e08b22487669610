"""Commitments of an AWS account: Reserved Instances and Savings Plans, and the instances that they may pay for."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

SavingsPlanKind: TypeAlias = Literal["ec2-instance", "compute"]


class ReservedInstances(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Reserved Instances of one purchase, for Linux with default tenancy."""

    reservation_id: str
    instance_type: str
    count: int
    zone: str = ""
    """"": regional, with instance size flexibility; else zonal."""
    usd_per_hour: float = 0.0
    """Effective price of one instance, with its share of the payment in advance."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def commitment_id(self) -> str:
        """The id under which its use is counted."""
        return self.reservation_id


class SavingsPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A Savings Plan, with its rates in the region of the cluster."""

    plan_id: str
    kind: SavingsPlanKind
    commitment_usd_per_hour: float
    instance_family: str = ""
    """Of an EC2 Instance Savings Plan, like `m5`; its rates are those of its own region."""
    rates: tuple[tuple[str, float], ...] = ()
    """Rate in USD per hour by instance type, sorted; an instance type without a rate is not covered."""
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def commitment_id(self) -> str:
        """The id under which its use is counted."""
        return self.plan_id


class OnDemandInstance(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A running on-demand instance of the account, or several equal ones."""

    instance_id: str
    instance_type: str
    zone: str
    usd_per_hour: float
    """On-demand price."""
    hours: float = 1.0
    """Part of the hour in which it runs; of several instances, the sum."""


class Commitments(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The commitments that can pay for instances in the region of the cluster."""

    reserved: tuple[ReservedInstances, ...] = ()
    plans: tuple[SavingsPlan, ...] = ()
    other_instances: tuple[OnDemandInstance, ...] = ()
    """The on-demand instances of the account that Joiner did not launch for this cluster."""
    other_regions: tuple[str, ...] = ()
    """Ids of commitments for other regions, sorted; they are not counted."""

    def select_active(self, at: datetime) -> "Commitments":
        """Return the commitments whose term contains *at*."""
        return msgspec.structs.replace(
            self,
            reserved=tuple(item for item in self.reserved if _is_active(item, at)),
            plans=tuple(plan for plan in self.plans if _is_active(plan, at)),
        )


class CommitmentUse(msgspec.Struct, frozen=True, kw_only=True):
    """What commitments pay for in an hour."""

    uncovered_usd_by_instance: tuple[tuple[str, float], ...]
    """On-demand cost that no commitment covers, by instance id, sorted."""
    used_by_commitment: tuple[tuple[str, float], ...]
    """Used part by id: of Reserved Instances a number of instances of their type, of Savings Plans USD per hour."""
    paid_usd_by_instance: tuple[tuple[str, float], ...] = ()
    """The cost of the used parts by instance id, sorted: the covered usage at the rates of the commitments."""

    @property
    def uncovered_usd_per_hour(self) -> float:
        """The on-demand cost that no commitment covers."""
        return sum(amount for _, amount in self.uncovered_usd_by_instance)


class Coverage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is left of commitments and would pay for one more instance."""

    uncovered_usd_per_hour: float
    """The rest of the on-demand price."""
    amounts: tuple[tuple[str, float], ...] = ()
    """Used amounts by commitment, in the order of application, in the units of `CommitmentUse`."""
    zone: str = ""
    """The zone, if one of the commitments applies there only."""

    @property
    def commitment_ids(self) -> tuple[str, ...]:
        """The commitments that pay."""
        return tuple(name for name, _ in self.amounts)


def merge_amounts(coverages: Iterable[Coverage]) -> tuple[tuple[str, float], ...]:
    """Return the largest amount of each commitment over *coverages*, sorted: what the most expensive of them uses."""
    amounts: dict[str, float] = {}
    for name, amount in (item for coverage in coverages for item in coverage.amounts):
        amounts[name] = max(amounts.get(name, 0.0), amount)
    return tuple(sorted(amounts.items()))


def _is_active(item: ReservedInstances | SavingsPlan, at: datetime) -> bool:
    return (item.starts_at is None or item.starts_at <= at) and (item.ends_at is None or at < item.ends_at)
