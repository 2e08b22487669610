"""Laws of the history of offerings: decay, order of events, forgetting."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.cloud_provider.offering_history import (
    RECOMMENDATION_WEIGHT,
    RISK_HALVING_PERIOD,
    OfferingEvent,
    OfferingHistory,
    OfferingRecord,
    add_events,
)

START = datetime(2026, 11, 21, tzinfo=UTC)
MINUTES = st.integers(0, 3 * 24 * 60)
EVENTS = st.builds(
    OfferingEvent,
    instance_type=st.sampled_from(["m5.large", "c5.large"]),
    zone=st.just("us-east-1a"),
    capacity_type=st.sampled_from(["spot", "on-demand"]),
    kind=st.sampled_from(["interruption", "rebalance-recommendation", "capacity-error"]),
    at=MINUTES.map(lambda minutes: START + timedelta(minutes=minutes)),
    share=st.sampled_from([1.0, 0.5, 0.25]),
    evictions_usd=st.sampled_from([0.0, 0.02, 1.0]),
)
END = START + timedelta(days=3)


def make_event(**fields: object) -> OfferingEvent:
    defaults = {
        "instance_type": "m5.large",
        "zone": "us-east-1a",
        "capacity_type": "spot",
        "kind": "interruption",
        "at": START,
    }
    return OfferingEvent(**(defaults | fields))  # type: ignore[arg-type]  # of the test


def list_counts(history: OfferingHistory, now: datetime) -> dict[object, tuple[float, ...]]:
    records = (record.with_decay(now) for record in history.records)
    return {
        record.key: (record.interruptions, record.evictions_usd, record.capacity_errors)
        for record in records
        if record.size >= 0.05
    }


@given(st.lists(EVENTS, max_size=6), st.randoms(use_true_random=False))
def test_order_of_events_does_not_matter(events: list[OfferingEvent], random: object) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    one_by_one = OfferingHistory()
    for event in shuffled:
        one_by_one = add_events(one_by_one, (event,), END)
    together = list_counts(add_events(OfferingHistory(), events, END), END)
    apart = list_counts(one_by_one, END)
    assert together.keys() == apart.keys()
    for key, counts in together.items():
        assert apart[key] == pytest.approx(counts, abs=1e-6)


@given(EVENTS, MINUTES, MINUTES)
def test_decay_in_two_steps_is_decay_in_one(event: OfferingEvent, first: int, second: int) -> None:
    [record] = add_events(OfferingHistory(), (event,), event.at).records or (None,)
    if record is None:
        return
    middle = record.at + timedelta(minutes=first)
    end = middle + timedelta(minutes=second)
    stepwise, direct = record.with_decay(middle).with_decay(end), record.with_decay(end)
    assert stepwise.at == direct.at
    assert stepwise.interruptions == pytest.approx(direct.interruptions)
    assert stepwise.capacity_errors == pytest.approx(direct.capacity_errors)


@given(EVENTS, MINUTES)
def test_counts_only_fall_without_events(event: OfferingEvent, minutes: int) -> None:
    for record in add_events(OfferingHistory(), (event,), event.at).records:
        later = record.with_decay(record.at + timedelta(minutes=minutes))
        assert later.interruptions <= record.interruptions
        assert later.evictions_usd <= record.evictions_usd
        assert later.capacity_errors <= record.capacity_errors


def test_a_count_loses_half_in_a_half_life_and_is_forgotten_at_last() -> None:
    history = add_events(OfferingHistory(), (make_event(),), START)
    [record] = history.records
    assert record.with_decay(START + RISK_HALVING_PERIOD).interruptions == 0.5
    assert add_events(history, (), START + 6 * RISK_HALVING_PERIOD).records
    assert add_events(history, (), START + 7 * RISK_HALVING_PERIOD).records == ()


def test_interruption_of_one_of_four_nodes_counts_a_quarter() -> None:
    [record] = add_events(OfferingHistory(), (make_event(share=0.25, evictions_usd=2.0),), START).records
    assert (record.interruptions, record.evictions_usd) == (0.25, 0.5)


def test_rebalance_recommendation_counts_less_than_an_interruption() -> None:
    [record] = add_events(OfferingHistory(), (make_event(kind="rebalance-recommendation"),), START).records
    assert (record.interruptions, record.capacity_errors) == (RECOMMENDATION_WEIGHT, 0.0)


def test_steady_interruptions_give_their_own_rate() -> None:
    """One interruption of the only node every two hours, for ten half-lives: 0.5 per hour."""
    record = OfferingRecord(instance_type="m5.large", zone="us-east-1a", capacity_type="spot", at=START)
    for number in range(120):
        record = record.add(make_event(at=START + timedelta(hours=2 * number)))
    middle = record.with_decay(record.at + timedelta(hours=1))
    assert middle.interruptions_per_hour == pytest.approx(0.5, rel=0.01)
