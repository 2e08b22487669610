"""How AWS applies commitments to the instances of an hour, in the documented order.

1. Zonal Reserved Instances: the same instance type in their zone.
2. Regional Reserved Instances: any zone, any size of their instance family, the smallest instances first. Sizes are
   compared by normalization factors. Some instance families have no size flexibility.
   https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html
3. EC2 Instance Savings Plans, then Compute Savings Plans. The plans of one kind are applied together: the combination
   of plan and usage with the highest savings percentage first, of equal percentages the lowest rate, until nothing is
   left of the commitments.
   https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html

A Reserved Instance covers an hour of usage per hour, also of several instances at the same time. A commitment can cover
a part of an instance; the rest is covered by the next commitment, or costs the on-demand price.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from shared.model.ec2.commitments import (
    CommitmentUse,
    OnDemandInstance,
    ReservedInstances,
    SavingsPlan,
    SavingsPlanKind,
)

_FACTORS: Final = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}
"""Normalization factors; N xlarge has N times that of xlarge."""
_FAMILIES_WITHOUT_SIZE_FLEXIBILITY: Final = frozenset(
    (
        *("g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f"),
        *("hpc7a", "inf1", "inf2", "p5", "u7i-6tb", "u7i-8tb"),
    )
)
"""As the page on Reserved Instances lists them."""
PLAN_KINDS: Final[tuple[SavingsPlanKind, ...]] = ("ec2-instance", "compute")
"""In the order of application."""
MIN_PART: Final = 1e-9
"""A smaller uncovered part of an instance is a rounding error."""


def apply_commitments(
    instances: Iterable[OnDemandInstance], reserved: Iterable[ReservedInstances], plans: Iterable[SavingsPlan]
) -> CommitmentUse:
    """Return what *reserved* and *plans* pay for of *instances*; the order of the arguments does not matter."""
    application = _Application(instances)
    for reservation in sorted(reserved, key=lambda item: (not item.zone, item.reservation_id)):
        application.apply_reserved(reservation)
    all_plans = sorted(plans, key=lambda plan: plan.plan_id)
    for kind in PLAN_KINDS:
        application.apply_plans([plan for plan in all_plans if plan.kind == kind])
    return application.build_use()


def get_normalization_factor(instance_type: str) -> float | None:
    """Return the normalization factor of the size of *instance_type*; None for bare metal and unknown sizes.

    >>> [get_normalization_factor(name) for name in ("m5.4xlarge", "t3.small", "m5.metal")]
    [32.0, 1.0, None]
    """
    size = instance_type.partition(".")[2]
    multiple = size.removesuffix("xlarge")
    if multiple != size and multiple.isdecimal():
        return int(multiple) * _FACTORS["xlarge"]
    return _FACTORS.get(size)


def get_family(instance_type: str) -> str:
    """Return the instance family, like `m5`."""
    return instance_type.partition(".")[0]


def get_flexible_size(reservation: ReservedInstances) -> float | None:
    """Return the normalization factor of *reservation*; None if it covers its own instance type only."""
    has_flexible_family = get_family(reservation.instance_type) not in _FAMILIES_WITHOUT_SIZE_FLEXIBILITY
    return get_normalization_factor(reservation.instance_type) if has_flexible_family and not reservation.zone else None


def get_plan_rate(plan: SavingsPlan, instance_type: str, usd_per_hour: float) -> float | None:
    """Return the rate at which *plan* covers *instance_type* with the on-demand price *usd_per_hour*, None if never."""
    if plan.kind == "ec2-instance" and get_family(instance_type) != plan.instance_family:
        return None
    rate = _index_rates(plan.rates).get(instance_type, 0.0)
    return rate if 0 < rate < usd_per_hour else None


def get_plan_order(plan: SavingsPlan, rate: float, usd_per_hour: float) -> tuple[float, float, str]:
    """Return the sort key of a plan for an instance: highest savings percentage, lowest rate, plan."""
    return -round(1 - rate / usd_per_hour, 9), rate, plan.plan_id


@lru_cache(maxsize=64)
def _index_rates(rates: tuple[tuple[str, float], ...]) -> dict[str, float]:
    return dict(rates)


class _Application:
    """The uncovered parts of the instances while commitments are applied one after the other."""

    def __init__(self, instances: Iterable[OnDemandInstance]) -> None:
        self._instances = sorted(instances, key=lambda instance: instance.instance_id)
        self._uncovered_parts = {instance.instance_id: instance.hours for instance in self._instances}
        self._used: dict[str, float] = {}
        self._paid_usd: dict[str, float] = {}

    def apply_reserved(self, reservation: ReservedInstances) -> None:
        factor = get_flexible_size(reservation)
        if factor is None:
            self._apply_to_usage(
                reservation,
                (instance for instance in self._instances if _is_same_type(instance, reservation)),
                lambda _: 1.0,
            )
            return
        family = get_family(reservation.instance_type)
        sized_instances = [
            (size / factor, instance)
            for instance in self._instances
            if get_family(instance.instance_type) == family
            and (size := get_normalization_factor(instance.instance_type)) is not None
        ]
        sized_instances.sort(key=lambda pair: (pair[0], pair[1].instance_id))
        units = {instance.instance_id: count for count, instance in sized_instances}
        self._apply_to_usage(
            reservation,
            (instance for _, instance in sized_instances),
            lambda instance: units[instance.instance_id],
        )

    def apply_plans(self, plans: list[SavingsPlan]) -> None:
        """Apply *plans*, all of one kind: each combination of a plan and an instance in the order of its savings."""
        self._used |= {plan.plan_id: 0.0 for plan in plans}
        usages = [
            (*get_plan_order(plan, rate, instance.usd_per_hour), instance.instance_id, plan, rate, instance)
            for plan in plans
            for instance in self._instances
            for rate in (get_plan_rate(plan, instance.instance_type, instance.usd_per_hour),)
            if rate is not None
        ]
        usages.sort(key=lambda usage: usage[:4])
        for *_, plan, rate, instance in usages:
            remaining = plan.commitment_usd_per_hour - self._used[plan.plan_id]
            used = self._apply_amount(instance, remaining, rate, 1.0)
            self._used[plan.plan_id] = min(plan.commitment_usd_per_hour, self._used[plan.plan_id] + used)

    def _apply_to_usage(
        self,
        reservation: ReservedInstances,
        instances: Iterable[OnDemandInstance],
        get_full_amount: Callable[[OnDemandInstance], float],
    ) -> None:
        """Spend *reservation* on *instances* in this order; an uncovered instance takes *get_full_amount*."""
        amount = remaining = float(reservation.count)
        for instance in instances:
            full_amount = get_full_amount(instance)
            remaining -= self._apply_amount(instance, remaining, full_amount, reservation.usd_per_hour)
        self._used[reservation.reservation_id] = min(amount, amount - remaining)

    def _apply_amount(self, instance: OnDemandInstance, remaining: float, full_amount: float, unit_usd: float) -> float:
        """Spend up to *remaining* on *instance*, which takes *full_amount* per hour; return what is spent.

        One unit of it costs *unit_usd*.
        """
        part = self._uncovered_parts[instance.instance_id]
        covered_part = min(part, remaining / full_amount)
        if covered_part <= MIN_PART:
            return 0.0
        self._uncovered_parts[instance.instance_id] = part - covered_part
        paid_usd = self._paid_usd.get(instance.instance_id, 0.0)
        self._paid_usd[instance.instance_id] = paid_usd + covered_part * full_amount * unit_usd
        return covered_part * full_amount

    def build_use(self) -> CommitmentUse:
        return CommitmentUse(
            uncovered_usd_by_instance=tuple(
                (instance.instance_id, max(0.0, self._uncovered_parts[instance.instance_id]) * instance.usd_per_hour)
                for instance in self._instances
            ),
            used_by_commitment=tuple(sorted(self._used.items())),
            paid_usd_by_instance=tuple(sorted(self._paid_usd.items())),
        )


def _is_same_type(instance: OnDemandInstance, reservation: ReservedInstances) -> bool:
    return instance.instance_type == reservation.instance_type and reservation.zone in ("", instance.zone)
