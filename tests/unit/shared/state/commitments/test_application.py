"""How commitments are applied: examples of the AWS documentation, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.ec2.commitments import CommitmentUse, OnDemandInstance, ReservedInstances, SavingsPlan
from shared.state.commitments.application import apply_commitments, get_normalization_factor

TYPES = {"m5.large": 0.1, "m5.xlarge": 0.2, "m5.2xlarge": 0.4, "r5.large": 0.13, "m5.metal": 4.6}
RATES = {"m5.large": 0.07, "m5.xlarge": 0.14, "m5.2xlarge": 0.26, "r5.large": 0.08}


def make_instances(*names: str, zone: str = "a") -> list[OnDemandInstance]:
    return [
        OnDemandInstance(instance_id=f"i-{number:03}", instance_type=name, zone=zone, usd_per_hour=TYPES.get(name, 1.0))
        for number, name in enumerate(names)
    ]


def list_covered(use: CommitmentUse, instances: list[OnDemandInstance]) -> list[float]:
    """Return the covered part of each instance, in the order of *instances*."""
    uncovered = dict(use.uncovered_usd_by_instance)
    return [round(1 - uncovered[instance.instance_id] / instance.usd_per_hour, 6) for instance in instances]


@pytest.mark.parametrize(
    ("reserved_type", "running", "covered"),
    [
        ("t2.medium", ["t2.small", "t2.small"], [1, 1]),
        ("t2.medium", ["t2.large"], [0.5]),
        ("c4.8xlarge", ["c4.4xlarge", "c4.4xlarge"], [1, 1]),
        ("c4.8xlarge", ["c4.4xlarge", *["c4.large"] * 8], [1, *[1] * 8]),
        ("t2.medium", ["m5.small"], [0]),
        ("m5.metal", ["m5.large", "m5.metal"], [0, 1]),
        ("g5.2xlarge", ["g5.xlarge", "g5.2xlarge"], [0, 1]),
    ],
)
def test_regional_reserved_instance_covers_all_sizes_of_its_family(
    reserved_type: str, running: list[str], covered: list[float]
) -> None:
    # https://docs.aws.amazon.com/whitepapers/latest/cost-optimization-reservation-models/
    # maximizing-utilization-with-size-flexibility-in-regional-reserved-instances.html
    instances = make_instances(*running)
    reserved = [ReservedInstances(reservation_id="r", instance_type=reserved_type, count=1)]
    assert list_covered(apply_commitments(instances, reserved, []), instances) == covered


def test_zonal_reserved_instances_cover_their_type_in_their_zone_first() -> None:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/apply_ri.html: two c4.xlarge in us-east-1a
    instances = [*make_instances("c4.xlarge", "c4.xlarge", "c4.xlarge", "c4.2xlarge")]
    zonal = ReservedInstances(reservation_id="z", instance_type="c4.xlarge", count=2, zone="a")
    elsewhere = ReservedInstances(reservation_id="y", instance_type="c4.xlarge", count=2, zone="b")
    regional = ReservedInstances(reservation_id="a", instance_type="c4.xlarge", count=1)
    use = apply_commitments(instances, [regional, zonal, elsewhere], [])
    assert list_covered(use, instances) == [1, 1, 1, 0]
    assert dict(use.used_by_commitment) == {"a": 1, "y": 0, "z": 2}


def test_savings_plan_covers_the_highest_savings_percentage_first() -> None:
    # https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html: 30 % before 18 %
    instances = [
        OnDemandInstance(instance_id="a", instance_type="m5.24xlarge", zone="a", usd_per_hour=10.0),
        *(
            OnDemandInstance(instance_id=f"r{number}", instance_type="r5.4xlarge", zone="a", usd_per_hour=1.0)
            for number in range(4)
        ),
    ]
    rates = (("m5.24xlarge", 8.20), ("r5.4xlarge", 0.70))
    plan = SavingsPlan(plan_id="p", kind="compute", commitment_usd_per_hour=2.80 + 4.10, rates=rates)
    use = apply_commitments(instances, [], [plan])
    assert list_covered(use, instances) == [0.5, 1, 1, 1, 1]
    assert use.uncovered_usd_per_hour == pytest.approx(5.0)


def test_of_equal_savings_percentages_the_lowest_rate_is_covered_first() -> None:
    instances = make_instances("m5.xlarge", "m5.large")
    plan = SavingsPlan(plan_id="p", kind="compute", commitment_usd_per_hour=0.07, rates=tuple(RATES.items()))
    assert list_covered(apply_commitments(instances, [], [plan]), instances) == [0, 1]


def test_plans_of_one_kind_are_applied_together_the_highest_savings_percentage_first() -> None:
    # https://docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html: the plans are grouped together
    instances = make_instances("m5.large", "r5.large")
    plans = [
        SavingsPlan(plan_id="a", kind="compute", commitment_usd_per_hour=0.09, rates=(("m5.large", 0.09),)),
        SavingsPlan(
            plan_id="b", kind="compute", commitment_usd_per_hour=0.05, rates=(("m5.large", 0.05), ("r5.large", 0.12))
        ),
    ]
    use = apply_commitments(instances, [], plans)
    assert dict(use.used_by_commitment) == {"a": 0, "b": pytest.approx(0.05)}
    assert list_covered(use, instances) == [1, 0]


def test_order_is_reserved_instances_then_instance_plans_then_compute_plans() -> None:
    instances = make_instances("m5.large", "m5.large", "m5.large")
    reserved = [ReservedInstances(reservation_id="r", instance_type="m5.large", count=1)]
    rates = tuple(RATES.items())
    plans = [
        SavingsPlan(plan_id="a", kind="compute", commitment_usd_per_hour=9, rates=rates),
        SavingsPlan(plan_id="b", kind="ec2-instance", commitment_usd_per_hour=0.07, instance_family="m5", rates=rates),
        SavingsPlan(plan_id="c", kind="ec2-instance", commitment_usd_per_hour=5, instance_family="r5", rates=rates),
    ]
    used = dict(apply_commitments(instances, reserved, plans).used_by_commitment)
    assert used == {"r": 1, "b": pytest.approx(0.07), "a": pytest.approx(0.07), "c": 0}


@pytest.mark.parametrize(
    ("name", "factor"), [("c5.9xlarge", 72), ("t2.nano", 0.25), ("a.b", None), ("m5.metal-24xl", None)]
)
def test_normalization_factor_follows_the_size(name: str, factor: float | None) -> None:
    assert get_normalization_factor(name) == factor


INSTANCES = st.lists(st.tuples(st.sampled_from(sorted(TYPES)), st.sampled_from("ab")), max_size=8).map(
    lambda pairs: [
        OnDemandInstance(instance_id=f"i-{number:03}", instance_type=name, zone=zone, usd_per_hour=TYPES[name])
        for number, (name, zone) in enumerate(pairs)
    ]
)
RESERVED = st.lists(
    st.tuples(st.sampled_from(sorted(TYPES)), st.integers(1, 3), st.sampled_from(("", "a"))), max_size=3
).map(
    lambda items: [
        ReservedInstances(reservation_id=f"r{number}", instance_type=name, count=count, zone=zone)
        for number, (name, count, zone) in enumerate(items)
    ]
)
PLANS = st.lists(
    st.tuples(st.sampled_from(("", "m5", "r5")), st.floats(0.01, 2), st.sampled_from((0.8, 1.0, 1.2))), max_size=3
).map(
    lambda items: [
        SavingsPlan(
            plan_id=f"p{number}",
            kind="ec2-instance" if family else "compute",
            commitment_usd_per_hour=amount,
            instance_family=family,
            rates=tuple((name, rate * factor) for name, rate in RATES.items()),
        )
        for number, (family, amount, factor) in enumerate(items)
    ]
)


@given(INSTANCES, RESERVED, PLANS)
def test_no_commitment_pays_for_more_than_it_has(
    instances: list[OnDemandInstance], reserved: list[ReservedInstances], plans: list[SavingsPlan]
) -> None:
    used = dict(apply_commitments(instances, reserved, plans).used_by_commitment)
    assert all(used[item.reservation_id] <= item.count for item in reserved)
    assert all(used[plan.plan_id] <= plan.commitment_usd_per_hour for plan in plans)


@given(INSTANCES, RESERVED, PLANS)
def test_order_of_instances_and_commitments_does_not_matter(
    instances: list[OnDemandInstance], reserved: list[ReservedInstances], plans: list[SavingsPlan]
) -> None:
    use = apply_commitments(instances, reserved, plans)
    assert apply_commitments(instances[::-1], reserved[::-1], plans[::-1]) == use


@given(INSTANCES, RESERVED, PLANS)
def test_removing_a_commitment_never_lowers_the_uncovered_cost(
    instances: list[OnDemandInstance], reserved: list[ReservedInstances], plans: list[SavingsPlan]
) -> None:
    cost = apply_commitments(instances, reserved, plans).uncovered_usd_per_hour
    for position in range(len(reserved)):
        fewer_commitments = [*reserved[:position], *reserved[position + 1 :]]
        assert apply_commitments(instances, fewer_commitments, plans).uncovered_usd_per_hour >= cost - 1e-9
    for position in range(len(plans)):
        fewer_plans = [*plans[:position], *plans[position + 1 :]]
        assert apply_commitments(instances, reserved, fewer_plans).uncovered_usd_per_hour >= cost - 1e-9


def test_what_is_paid_for_an_instance_is_its_covered_part_at_the_rates_of_the_commitments() -> None:
    instances = make_instances("m5.xlarge", "m5.xlarge")
    reserved = [ReservedInstances(reservation_id="r", instance_type="m5.large", count=1, usd_per_hour=0.06)]
    plan = SavingsPlan(plan_id="p", kind="compute", commitment_usd_per_hour=0.14, rates=tuple(sorted(RATES.items())))
    paid_usd = dict(apply_commitments(instances, reserved, [plan]).paid_usd_by_instance)
    assert paid_usd["i-000"] == pytest.approx(0.06 + 0.5 * 0.14)
    assert paid_usd["i-001"] == pytest.approx(0.07)
    assert apply_commitments(instances, [], []).paid_usd_by_instance == ()
