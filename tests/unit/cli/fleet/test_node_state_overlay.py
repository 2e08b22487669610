"""States that the journal adds: interrupted and blocked nodes."""

from datetime import UTC, datetime, timedelta

from cli.fleet.decisions.node_state_overlay import merge_states

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
READY_AND_DRAINED = [(START, "ready"), (START + timedelta(minutes=10), "draining")]


def after(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def test_interrupted_node_stays_interrupted_until_it_is_gone() -> None:
    states = [*READY_AND_DRAINED, (after(12), "gone")]
    assert merge_states(states, after(9), ()) == [(START, "ready"), (after(9), "interrupted"), (after(12), "gone")]


def test_ready_node_is_blocked_while_its_verdict_says_so() -> None:
    changes = [(after(1), True), (after(5), False), (after(11), True)]
    assert merge_states(READY_AND_DRAINED, None, changes) == [
        (START, "ready"),
        (after(1), "blocked"),
        (after(5), "ready"),
        (after(10), "draining"),
    ]


def test_node_that_is_not_ready_is_not_blocked() -> None:
    states = [(START, "requested"), (after(2), "ready")]
    assert merge_states(states, None, [(after(1), True)]) == [(START, "requested"), (after(2), "blocked")]


def test_states_of_the_same_time_are_one() -> None:
    assert merge_states([(START, "cordoned"), (START, "draining")], None, ()) == [(START, "draining")]
