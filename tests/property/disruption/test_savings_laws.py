"""Laws of the rule that a disruption must pay for its evictions and launches."""

from datetime import timedelta
from math import log
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.savings.command_value import CommandValue, merge_values
from shared.decide.disruption.savings.disruption_cost import DisruptionCost
from shared.decide.disruption.savings.savings_duration import MAX_SAVINGS_DURATION, SavingsDuration
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import OwnerReference
from sim.cloud.seeded_random import draw_fraction
from tests.support.catalogues import NOW
from tests.support.disruption_fleet import (
    decide_disruption,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

amounts = st.floats(1e-6, 100)
quiet_periods = st.timedeltas(timedelta(), MAX_SAVINGS_DURATION)
ONE_HOUR: Final = timedelta(hours=1)


def make_value(savings: float, quiet: timedelta, evictions_usd: float = 0.0, launches_usd: float = 0.0) -> CommandValue:
    return CommandValue(
        savings_usd_per_hour=savings,
        duration=SavingsDuration(expected=quiet, basis="quiet"),
        cost=DisruptionCost(evictions=1, evictions_usd=evictions_usd, launches_usd=launches_usd),
    )


def compute_reference_payback(savings: float, new_price: float, overlap: timedelta) -> timedelta:
    """Return the payback period of a replacement while evictions cost nothing."""
    return timedelta(seconds=min(MAX_SAVINGS_DURATION.total_seconds(), overlap.total_seconds() * new_price / savings))


@given(savings=amounts, new_price=amounts, overlap=st.timedeltas(timedelta(seconds=1), ONE_HOUR), quiet=quiet_periods)
def test_without_eviction_price_a_replacement_waits_for_the_payback_period(
    savings: float, new_price: float, overlap: timedelta, quiet: timedelta
) -> None:
    value = make_value(savings, quiet, launches_usd=new_price * (overlap / ONE_HOUR))
    reference = compute_reference_payback(savings, new_price, overlap)
    assert abs(value.payback_period - reference) <= timedelta(microseconds=1)
    if abs(quiet - reference) > timedelta(microseconds=1):
        assert value.is_worthwhile() == (quiet >= reference)


@given(savings=st.floats(0, 100), quiet=quiet_periods)
def test_deletion_without_eviction_price_never_waits(savings: float, quiet: timedelta) -> None:
    assert make_value(savings, quiet).is_worthwhile()


@given(savings=st.floats(0, 100), price=st.floats(0, 1e6), launches_usd=st.floats(0, 100))
def test_node_that_stays_cheap_to_remove_for_a_day_is_removed(
    savings: float, price: float, launches_usd: float
) -> None:
    assert make_value(savings, MAX_SAVINGS_DURATION, price, launches_usd).is_worthwhile()


@given(savings=amounts, quiet=quiet_periods, price=st.floats(0, 100), increase=st.floats(0, 100))
def test_higher_eviction_price_never_makes_a_command_pay(
    savings: float, quiet: timedelta, price: float, increase: float
) -> None:
    assert (
        make_value(savings, quiet, price).is_worthwhile()
        >= make_value(savings, quiet, price + increase).is_worthwhile()
    )


@given(savings=amounts, quiet=quiet_periods, increase=st.timedeltas(timedelta(), ONE_HOUR), price=amounts)
def test_command_that_pays_still_pays_after_a_longer_quiet_period(
    savings: float, quiet: timedelta, increase: timedelta, price: float
) -> None:
    assert (
        make_value(savings, quiet, price).is_worthwhile()
        <= make_value(savings, quiet + increase, price).is_worthwhile()
    )


@given(st.lists(st.tuples(amounts, quiet_periods, st.floats(0, 1)), min_size=1, max_size=5))
def test_merged_deletions_have_the_sum_of_savings_and_costs(parts: list[tuple[float, timedelta, float]]) -> None:
    values = [make_value(savings, quiet, price) for savings, quiet, price in parts]
    merged = merge_values(values)
    assert merged.cost.usd == pytest.approx(sum(value.cost.usd for value in values))
    assert merged.savings_usd == pytest.approx(sum(value.savings_usd for value in values), rel=1e-6, abs=1e-6)


@given(price=st.floats(0, 1e5), quiet=st.timedeltas(timedelta(), timedelta(days=3)), is_job=st.booleans())
def test_controller_removes_a_node_that_stays_cheap_to_remove_for_a_day(
    price: float, quiet: timedelta, *, is_job: bool
) -> None:
    """Its pods fit on another node, which protects itself: after a day, neither price nor lost work keeps the node."""
    pod = make_web_pod("1", "200m")
    if is_job:
        job = OwnerReference(api_version="batch/v1", kind="Job", name="import", uid="job", controller=True)
        pod = replace(pod, meta=replace(pod.meta, owners=(job,)), started_at=NOW - timedelta(days=9))
    node, claim, pods = make_node_with_pods("a", pod)
    past = tuple(replace(condition, since=NOW - timedelta(days=9)) for condition in claim.conditions)
    machine = (node, replace(claim, conditions=past, last_pod_event_at=NOW - quiet), pods)
    receiver = make_node_with_pods("b", make_web_pod("2", "1"), annotations={DO_NOT_DISRUPT: "true"})
    decision = decide_disruption(make_fleet(machine, receiver), DisruptionSettings(eviction_price_usd=price))
    if quiet >= MAX_SAVINGS_DURATION or price == 0:
        assert summarize_commands(decision) == [("SingleNode", ["a"], [])]
    elif price > 0.2 * (quiet / ONE_HOUR):
        assert decision.commands == ()


def draw_gaps(kind: str, mean_hours: float, seed: int) -> list[float]:
    """Return the hours between changes: memoryless, or heavy-tailed (Pareto with exponent 1.5) with the same mean."""
    fractions = [1 - draw_fraction(seed, kind, mean_hours, number) for number in range(400)]
    if kind == "memoryless":
        return [-mean_hours * log(fraction) for fraction in fractions]
    return [mean_hours / 3 * fraction ** (-1 / 1.5) for fraction in fractions]


def wait_until_it_pays(savings: float, price: float) -> float:
    """Return after how many quiet hours the rule accepts the command, on a grid of minutes."""
    return next(
        minutes / 60
        for minutes in range(24 * 60 + 1)
        if make_value(savings, timedelta(minutes=minutes), price).is_worthwhile()
    )


@pytest.mark.parametrize("kind", ["memoryless", "heavy-tailed"])
@pytest.mark.parametrize("mean_hours", [0.05, 0.5, 1, 4])
def test_rule_costs_at_most_twice_as_much_as_perfect_foresight(kind: str, mean_hours: float) -> None:
    """Each change ends the savings: the node is needed again. Waiting wastes savings, disrupting costs the price."""
    savings, price = 0.2, 0.12
    wait = wait_until_it_pays(savings, price)
    gaps = draw_gaps(kind, mean_hours, seed=7)
    rule_cost = sum(savings * min(gap, wait) + (price if gap > wait else 0.0) for gap in gaps)
    ideal_cost = sum(min(savings * gap, price) for gap in gaps)
    assert ideal_cost * 0.999 <= rule_cost <= 2 * ideal_cost + savings / 60 * len(gaps)


@pytest.mark.parametrize("kind", ["memoryless", "heavy-tailed"])
@pytest.mark.parametrize("mean_hours", [0.05, 0.2, 0.5])
def test_commands_that_the_rule_refuses_would_not_have_paid(kind: str, mean_hours: float) -> None:
    """Where changes come sooner than the payback period, disrupting at once loses more than refused commands miss."""
    savings, price = 0.2, 0.12
    wait = wait_until_it_pays(savings, price)
    refused_gaps = [gap for gap in draw_gaps(kind, mean_hours, seed=11) if gap <= wait]
    assert refused_gaps
    assert sum(savings * gap - price for gap in refused_gaps) < 0
    assert all(savings * gap <= price * 1.03 for gap in refused_gaps)
