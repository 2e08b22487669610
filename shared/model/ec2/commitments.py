"""Commitments of an AWS account: Reserved Instances and Savings Plans, and the instances that they may pay for."""

from typing import Literal, TypeAlias

import msgspec

SavingsPlanKind: TypeAlias = Literal["ec2-instance", "compute"]


class ReservedInstances(msgspec.Struct, frozen=True, kw_only=True):
    """Reserved Instances of one purchase, for Linux with default tenancy."""

    reservation_id: str
    instance_type: str
    count: int
    zone: str = ""
    """"": regional, with instance size flexibility; else zonal."""


class SavingsPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An active Savings Plan, with its rates in the region of the cluster."""

    plan_id: str
    kind: SavingsPlanKind
    commitment_usd_per_hour: float
    instance_family: str = ""
    """Of an EC2 Instance Savings Plan, like `m5`; its rates are those of its own region."""
    rates: tuple[tuple[str, float], ...] = ()
    """Rate in USD per hour by instance type, sorted; an instance type without a rate is not covered."""


class OnDemandInstance(msgspec.Struct, frozen=True, kw_only=True):
    """A running on-demand instance of the account."""

    instance_id: str
    instance_type: str
    zone: str
    usd_per_hour: float
    """On-demand price."""
    hours: float = 1.0
    """Part of the hour in which it runs."""


class CommitmentUse(msgspec.Struct, frozen=True, kw_only=True):
    """What commitments pay for in an hour."""

    uncovered_usd_by_instance: tuple[tuple[str, float], ...]
    """On-demand cost that no commitment covers, by instance id, sorted."""
    used_by_commitment: tuple[tuple[str, float], ...]
    """Used part by id: of Reserved Instances a number of instances of their type, of Savings Plans USD per hour."""

    @property
    def uncovered_usd_per_hour(self) -> float:
        """The on-demand cost that no commitment covers."""
        return sum(amount for _, amount in self.uncovered_usd_by_instance)
