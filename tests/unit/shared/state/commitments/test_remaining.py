"""What is left of commitments, and what it pays for one more instance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.ec2.commitments import Commitments, OnDemandInstance, ReservedInstances, SavingsPlan
from shared.state.commitments.application import apply_commitments
from shared.state.commitments.remaining import RemainingCommitments

PRICES = {"m5.large": 0.1, "m5.xlarge": 0.2, "m5.2xlarge": 0.4, "r5.large": 0.13, "g5.xlarge": 1.0}
RATES = (("m5.2xlarge", 0.26), ("m5.large", 0.07), ("m5.xlarge", 0.14), ("r5.large", 0.08))
REGIONAL = ReservedInstances(reservation_id="regional", instance_type="m5.large", count=3)
ZONAL = ReservedInstances(reservation_id="zonal", instance_type="m5.large", count=1, zone="a")
INFLEXIBLE = ReservedInstances(reservation_id="g", instance_type="g5.xlarge", count=1)
COMPUTE = SavingsPlan(plan_id="compute", kind="compute", commitment_usd_per_hour=0.2, rates=RATES)
FAMILY = SavingsPlan(
    plan_id="family",
    kind="ec2-instance",
    commitment_usd_per_hour=0.05,
    instance_family="m5",
    rates=(("m5.large", 0.05),),
)


def build_remaining(commitments: Commitments, *running: str, zone: str = "b") -> RemainingCommitments:
    instances = [
        OnDemandInstance(instance_id=f"i-{number}", instance_type=name, zone=zone, usd_per_hour=PRICES[name])
        for number, name in enumerate(running)
    ]
    return RemainingCommitments(commitments, apply_commitments(instances, commitments.reserved, commitments.plans))


@pytest.mark.parametrize(
    ("commitments", "running", "new", "uncovered", "amounts"),
    [
        (Commitments(reserved=(REGIONAL,)), ["m5.large"], ("m5.xlarge", "a"), 0.0, {"regional": 2.0}),
        (Commitments(reserved=(REGIONAL,)), ["m5.xlarge"], ("m5.xlarge", "a"), 0.1, {"regional": 1.0}),
        (Commitments(reserved=(REGIONAL,)), [], ("r5.large", "a"), 0.13, {}),
        (Commitments(reserved=(INFLEXIBLE,)), [], ("g5.xlarge", "a"), 0.0, {"g": 1.0}),
        (Commitments(reserved=(ZONAL,)), [], ("m5.large", "b"), 0.1, {}),
        (Commitments(reserved=(ZONAL, REGIONAL)), [], ("m5.large", "a"), 0.0, {"zonal": 1.0}),
        (Commitments(plans=(COMPUTE,)), ["m5.large"], ("r5.large", "a"), 0.0, {"compute": 0.08}),
        (Commitments(plans=(COMPUTE,)), ["m5.large"], ("m5.2xlarge", "a"), 0.2, {"compute": 0.13}),
        (Commitments(plans=(COMPUTE, FAMILY)), [], ("m5.large", "a"), 0.0, {"family": 0.05}),
        (
            Commitments(reserved=(REGIONAL,), plans=(COMPUTE,)),
            [],
            ("m5.2xlarge", "a"),
            0.0,
            {"regional": 3.0, "compute": 0.065},
        ),
    ],
)
def test_rest_covers_a_new_instance_in_the_order_of_aws(
    commitments: Commitments, running: list[str], new: tuple[str, str], uncovered: float, amounts: dict[str, float]
) -> None:
    coverage = build_remaining(commitments, *running).find_coverage(*new, PRICES[new[0]])
    assert coverage.uncovered_usd_per_hour == pytest.approx(uncovered)
    assert dict(coverage.amounts) == pytest.approx(amounts)
    assert coverage.zone == ("a" if "zonal" in amounts else "")


COMMITMENTS = st.builds(
    lambda counts, usd: Commitments(
        reserved=tuple(
            ReservedInstances(
                reservation_id=f"{item.reservation_id}-{number}",
                instance_type=item.instance_type,
                count=count,
                zone=item.zone,
            )
            for number, (item, count) in enumerate(counts)
        ),
        plans=tuple(
            SavingsPlan(plan_id=f"p{number}", kind="compute", commitment_usd_per_hour=amount, rates=RATES)
            for number, amount in enumerate(usd)
        ),
    ),
    st.lists(st.tuples(st.sampled_from((REGIONAL, ZONAL, INFLEXIBLE)), st.integers(1, 3)), max_size=3),
    st.lists(st.floats(0.01, 1), max_size=2),
)
RUNNING = st.lists(st.sampled_from(sorted(PRICES)), max_size=5)
NEW = st.lists(st.tuples(st.sampled_from(sorted(PRICES)), st.sampled_from("ab")), max_size=8)


@given(COMMITMENTS, RUNNING, NEW)
def test_allocations_never_exceed_what_is_left(
    commitments: Commitments, running: list[str], new: list[tuple[str, str]]
) -> None:
    remaining = build_remaining(commitments, *running)
    amounts_before = remaining.amounts
    used_amounts = dict.fromkeys(amounts_before, 0.0)
    for name, zone in new:
        coverage = remaining.find_coverage(name, zone, PRICES[name])
        remaining.take(coverage.amounts)
        for commitment, amount in coverage.amounts:
            used_amounts[commitment] += amount
        assert 0 <= coverage.uncovered_usd_per_hour <= PRICES[name]
    assert all(used_amounts[name] <= amounts_before[name] + 1e-9 for name in used_amounts)
    assert all(amount >= 0 for amount in remaining.amounts.values())


@given(COMMITMENTS, NEW)
def test_copy_is_independent(commitments: Commitments, new: list[tuple[str, str]]) -> None:
    remaining = build_remaining(commitments)
    before, copy = remaining.amounts, remaining.copy()
    for name, zone in new:
        copy.take(copy.find_coverage(name, zone, PRICES[name]).amounts)
    assert remaining.amounts == before


@given(COMMITMENTS, st.sampled_from(sorted(PRICES)), st.sampled_from("ab"))
def test_without_a_commitment_no_instance_is_cheaper(commitments: Commitments, name: str, zone: str) -> None:
    price = build_remaining(commitments).find_coverage(name, zone, PRICES[name]).uncovered_usd_per_hour
    for position in range(len(commitments.reserved)):
        fewer_commitments = Commitments(
            reserved=commitments.reserved[:position] + commitments.reserved[position + 1 :], plans=commitments.plans
        )
        assert (
            build_remaining(fewer_commitments).find_coverage(name, zone, PRICES[name]).uncovered_usd_per_hour
            >= price - 1e-9
        )
