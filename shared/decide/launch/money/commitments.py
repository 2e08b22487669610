"""How AWS applies commitments to the instances of an hour, in the documented order.

1. Zonal Reserved Instances: the same instance type in their zone.
2. Regional Reserved Instances: any zone, any size of their instance family, the smallest instances first. Sizes are
   compared by normalization factors. Some instance families have no size flexibility.
   https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html
3. EC2 Instance Savings Plans, then Compute Savings Plans: the usage with the highest savings percentage first, of equal
   percentages the usage with the lowest rate, until nothing is left of the commitment.
   https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html

A Reserved Instance covers an hour of usage per hour, also of several instances at the same time. A commitment can cover
a part of an instance; the rest is covered by the next commitment, or costs the on-demand price.
"""

from collections.abc import Callable, Iterable
from typing import Final

from shared.model.ec2.commitments import CommitmentUse, OnDemandInstance, ReservedInstances, SavingsPlan

_FACTORS: Final = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}
"""Normalization factors; N xlarge has N times that of xlarge."""
_FAMILIES_WITHOUT_SIZE_FLEXIBILITY: Final = frozenset(
    (
        *("g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f"),
        *("hpc7a", "inf1", "inf2", "p5", "u7i-6tb", "u7i-8tb"),
    )
)
"""As the page on Reserved Instances lists them."""
_MIN_PART: Final = 1e-9
"""A smaller uncovered part of an instance is a rounding error."""


def apply_commitments(
    instances: Iterable[OnDemandInstance], reserved: Iterable[ReservedInstances], plans: Iterable[SavingsPlan]
) -> CommitmentUse:
    """Return what *reserved* and *plans* pay for of *instances*; the order of the arguments does not matter."""
    application = _Application(instances)
    for reservation in sorted(reserved, key=lambda item: (not item.zone, item.reservation_id)):
        application.apply_reserved(reservation)
    for plan in sorted(plans, key=lambda item: (item.kind != "ec2-instance", item.plan_id)):
        application.apply_plan(plan)
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


class _Application:
    """The uncovered parts of the instances while commitments are applied one after the other."""

    def __init__(self, instances: Iterable[OnDemandInstance]) -> None:
        self._instances = sorted(instances, key=lambda instance: instance.instance_id)
        self._uncovered_parts = {instance.instance_id: instance.hours for instance in self._instances}
        self._used: dict[str, float] = {}

    def apply_reserved(self, reservation: ReservedInstances) -> None:
        factor = get_normalization_factor(reservation.instance_type)
        family = reservation.instance_type.partition(".")[0]
        if reservation.zone or factor is None or family in _FAMILIES_WITHOUT_SIZE_FLEXIBILITY:
            self._apply_to_usage(
                reservation.reservation_id,
                float(reservation.count),
                (instance for instance in self._instances if _is_same_type(instance, reservation)),
                lambda _: 1.0,
            )
            return
        sized_instances = [
            (size / factor, instance)
            for instance in self._instances
            if instance.instance_type.partition(".")[0] == family
            and (size := get_normalization_factor(instance.instance_type)) is not None
        ]
        sized_instances.sort(key=lambda pair: (pair[0], pair[1].instance_id))
        units = {instance.instance_id: count for count, instance in sized_instances}
        self._apply_to_usage(
            reservation.reservation_id,
            float(reservation.count),
            (instance for _, instance in sized_instances),
            lambda instance: units[instance.instance_id],
        )

    def apply_plan(self, plan: SavingsPlan) -> None:
        rates = dict(plan.rates)
        family = plan.instance_family if plan.kind == "ec2-instance" else ""
        usages = [
            (
                -round(1 - rates[instance.instance_type] / instance.usd_per_hour, 9),
                rates[instance.instance_type],
                instance,
            )
            for instance in self._instances
            if 0 < rates.get(instance.instance_type, 0.0) < instance.usd_per_hour
            and family in ("", instance.instance_type.partition(".")[0])
        ]
        usages.sort(key=lambda usage: (usage[0], usage[1], usage[2].instance_id))
        self._apply_to_usage(
            plan.plan_id,
            plan.commitment_usd_per_hour,
            (instance for _, _, instance in usages),
            lambda instance: rates[instance.instance_type],
        )

    def _apply_to_usage(
        self,
        commitment_id: str,
        amount: float,
        instances: Iterable[OnDemandInstance],
        get_full_amount: Callable[[OnDemandInstance], float],
    ) -> None:
        """Spend *amount* on *instances* in this order; each costs *get_full_amount* if nothing of it is covered."""
        remaining = amount
        for instance in instances:
            part = self._uncovered_parts[instance.instance_id]
            full_amount = get_full_amount(instance)
            covered_part = min(part, remaining / full_amount)
            if covered_part > _MIN_PART:
                self._uncovered_parts[instance.instance_id] = part - covered_part
                remaining -= covered_part * full_amount
        self._used[commitment_id] = min(amount, amount - remaining)

    def build_use(self) -> CommitmentUse:
        return CommitmentUse(
            uncovered_usd_by_instance=tuple(
                (instance.instance_id, max(0.0, self._uncovered_parts[instance.instance_id]) * instance.usd_per_hour)
                for instance in self._instances
            ),
            used_by_commitment=tuple(sorted(self._used.items())),
        )


def _is_same_type(instance: OnDemandInstance, reservation: ReservedInstances) -> bool:
    return instance.instance_type == reservation.instance_type and reservation.zone in ("", instance.zone)
