"""Calls of functions: by version and alias, and those that nobody waits for."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from sim.clock import Clock
from sim.sandboxes.service import LambdaService, Later
from sim.sandboxes.workers import Heart, Workers
from tests.contract.sandbox_directory import ARN, Place, place

pytestmark = pytest.mark.loopback


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "qualifier", "version"),
    [
        ("tiny", "", "$LATEST"),
        ("tiny", "live", "7"),
        (f"{ARN}tiny:live", "", "7"),
        (f"{ARN}tiny:$LATEST", "", "$LATEST"),
    ],
)
def test_a_call_finds_its_version_by_name_arn_and_alias(tiny: Place, name: str, qualifier: str, version: str) -> None:
    tiny.account.publish("7")
    tiny.account.live = "7"
    assert tiny.service.invoker(name, qualifier, b"{}").version == version
    assert [seen for _, seen in tiny.account.seen()] == [version]


def test_nobody_is_called_who_is_not_there(tiny: Place) -> None:
    with pytest.raises(LookupError):
        tiny.service.invoke("other", "", b"{}")
    with pytest.raises(LookupError):
        tiny.service.take("other", "", b"{}")


def test_a_canary_gets_its_share(tiny: Place) -> None:
    tiny.account.publish("1")
    tiny.account.publish("2")
    tiny.account.live, tiny.account.weights = "1", {"2": 0.3}
    asked = Counter(tiny.ask("live").version for _ in range(100))
    assert set(asked) == {"1", "2"}
    assert 15 <= asked["2"] <= 45
    tiny.account.live, tiny.account.weights = "2", {}
    assert tiny.ask("live").version == "2"


def test_a_call_that_is_taken_is_made_without_anybody_waiting(tiny: Place) -> None:
    tiny.service.take("tiny", "", b'{"say": "later"}', by="somebody")
    assert not tiny.calls
    assert tiny.service.pending == 1
    tiny.until(lambda: tiny.service.pending == 0)
    assert [(one.by, one.how.status) for one in tiny.calls] == [("somebody", "success")]


@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (2, 3)])
def test_what_fails_is_made_again_as_often_as_it_may_and_then_given_up(tiny: Place, retries: int, calls: int) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(async_retries=retries)
    tiny.service.take("tiny", "", b'{"do": "raise"}')
    tiny.until(lambda: tiny.service.pending == 0)
    assert len(tiny.calls) == calls
    assert len({one.request_id for one in tiny.calls}) == 1, "a repetition has the id of the call"
    [(given_up, why)] = tiny.given_up
    assert given_up.payload == b'{"do": "raise"}'
    assert "as asked" in why


class AtOnce(Workers):
    def start(self, work: Callable[[], object]) -> None:
        work()


def test_what_is_throttled_is_tried_again_until_it_is_too_old(tiny: Place) -> None:
    tiny.account.versions["$LATEST"] = tiny.account.made(reserved_concurrency=0, max_event_age_seconds=60)
    clock, given_up = Clock(), list[Later]()
    service = LambdaService(
        tiny.account, tiny.sandboxes, clock.now, AtOnce(), give_up=lambda _function, one, _why: given_up.append(one)
    )
    service.take("tiny", "", b"{}")
    while service.pending:
        service.look()
        clock.advance(timedelta(seconds=1))
    assert not tiny.calls
    assert [(one.throttles, one.failures) for one in given_up] == [(5, 0)], "after 0, 1, 3, 7, 15 and 31 seconds"


def test_a_call_of_a_function_that_was_deleted_is_forgotten(tiny: Place) -> None:
    tiny.account.live = "7"
    tiny.account.publish("7")
    tiny.service.take("tiny", "live", b"{}")
    del tiny.account.versions["7"]
    tiny.until(lambda: tiny.service.pending == 0)
    assert not tiny.calls


def test_the_heart_beats_until_it_is_stopped(tiny: Place) -> None:
    heart = Heart([tiny.service.look])
    tiny.service.take("tiny", "", b"{}")
    tiny.until(lambda: bool(tiny.calls), look=False)
    heart.stop()
    assert not heart.broken


def test_the_heart_beats_on_after_a_look_that_failed() -> None:
    looks: list[str] = []
    done = Event()

    def fail() -> None:
        looks.append("failed")
        raise ValueError("as asked")

    heart = Heart([fail, lambda: done.set() if len(looks) > 1 else None])
    assert done.wait(600)
    heart.stop()
    assert heart.broken[0] == "ValueError: as asked"


def test_workers_that_have_ended_take_nothing_more() -> None:
    workers, looks = Workers(1), list[str]()
    workers.end()
    workers.start(lambda: looks.append("too late"))
    assert not looks
