"""An API server that asks for time gets it; one that is silent is not waited for by every call."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import Throttled, Unreachable
from shared.kube.patience import LONGEST, Patience

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


class World:
    """Seconds that pass when somebody waits, or says so."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.seconds = 0.0
        self.waited: list[float] = []
        self.patience = Patience(self.clock, self.wait)

    def clock(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.seconds += seconds

    def throttled(self, wished: float = 1) -> float:
        """Answer how many seconds one keeps away after a refusal that wishes for *wished*."""
        return self.patience.throttled(Throttled("429", timedelta(seconds=wished))).retry_after.total_seconds()


def test_who_is_refused_again_and_again_keeps_away_for_longer_and_longer() -> None:
    world = World()
    assert [world.throttled() for _ in range(7)] == [1, 2, 4, 8, 16, 30, LONGEST.total_seconds()]
    world.patience.answered()
    assert world.throttled() == 1


def test_the_servers_own_wish_counts_where_it_is_longer() -> None:
    world = World()
    assert [world.throttled(20), world.throttled(1), world.throttled(60)] == [20, 2, 60]


def test_nothing_is_sent_before_the_time_is_over() -> None:
    world = World()
    world.throttled(10)
    world.seconds = 4
    with pytest.raises(Throttled, match="PATCH /x: not sent: the API server asked for time") as raised:
        world.patience.check("PATCH /x")
    assert raised.value.retry_after == timedelta(seconds=6)
    world.seconds = 10
    world.patience.check("PATCH /x")


def test_who_was_silent_is_left_alone_for_as_long_again() -> None:
    world = World()
    world.patience.silent(timedelta(seconds=10))
    with pytest.raises(Unreachable, match="not sent: the API server was silent for 10 s"):
        world.patience.check("GET /x")
    world.seconds = 10
    world.patience.check("GET /x")


def test_an_answer_ends_it() -> None:
    world = World()
    world.patience.silent(timedelta(seconds=10))
    world.patience.answered()
    world.patience.check("GET /x")


def test_a_little_is_waited_for_within_a_call_but_not_again_soon() -> None:
    world = World()
    waits = [(0.0, 1, True), (5.0, 1, False), (59.9, 3, False), (60.0, 3, True), (500.0, 4, False)]
    for at, wished, has_waited in waits:
        world.seconds = at
        assert world.patience.wait(Throttled("429", timedelta(seconds=wished))) is has_waited, at
    assert world.waited == [1, 3]


def test_without_a_clock_there_is_nothing_to_keep_to() -> None:
    patience = Patience()
    fault = patience.throttled(Throttled("429"))
    patience.silent(timedelta(seconds=10))
    patience.check("GET /x")
    assert not patience.wait(fault)
