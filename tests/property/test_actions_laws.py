"""What holds however calls are interleaved, interrupted and repeated."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Semaphore, Thread
from typing import Protocol

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.actions.apply import apply
from shared.actions.events import QUIET_FOR, publish
from shared.actions.followups import LONGEST, follow_up
from shared.actions.launches import KIND
from shared.actions.lease import LASTS, leased
from shared.actions.marks import mark_unavailable
from shared.model.action import CreateNodeClaim, FollowUp, LaunchInstances, PublishEvent
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.ports import World
from shared.snapshot.rows import unavailable_offerings
from sim.clock import START, Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from sim.faults import Call, Killed, Tap
from sim.memory import MemoryTable
from tests.unit.actions_world import Outside, Post, claim

WORLD = Outside().world()


class Reachable(Protocol):
    """What there is to reach."""

    def world(self, name: str = ..., *, tap: Tap | None = ...) -> World:
        """Answer it for whoever is called *name*, with *tap* at every call."""


class Process:
    """A call that stands still at every port until it is resumed: a thread of which one at a time runs."""

    def __init__(self, outside: Reachable, name: str, body: Callable[[World], None]) -> None:
        """Stand before the first step."""
        self.over = self._dying = False
        self._go, self._stands = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, args=(body, outside.world(name, tap=self._tap)))
        self._thread.start()

    def resume(self) -> None:
        if not self.over:
            self._go.release()
            self._stands.acquire()

    def finish(self) -> None:
        while not self.over:
            self.resume()
        self._thread.join()

    def kill(self) -> None:
        self._dying = True
        self.finish()

    def _tap(self, call: Call) -> None:
        self._stands.release()
        self._go.acquire()
        if self._dying:
            raise Killed(call.method)

    def _run(self, body: Callable[[World], None], world: World) -> None:
        self._go.acquire()
        try:
            with suppress(Killed):
                body(world)
        finally:
            self.over = True
            self._stands.release()


def planner(outside: Outside, name: str) -> Callable[[World], None]:
    """Answer a cycle: take the lease, look at what was written down, launch that or something new."""
    own = outside.group(f"group-{name}")

    def cycle(world: World) -> None:
        with leased(world, "planner") as fence:
            if fence is None:
                return
            known = [msgspec.json.decode(row.body, type=LaunchGroup) for row in world.table.rows(KIND)]
            if not known:
                apply((CreateNodeClaim(claim=claim(name)), LaunchInstances(group=own)), world, fence)
            elif known[0].result is None:
                apply((LaunchInstances(group=known[0]),), world, fence)

    return cycle


def start_two(outside: Outside) -> dict[str, Process]:
    return {name: Process(outside, name, planner(outside, name)) for name in ("one", "two")}


def settled(outside: Outside) -> int:
    """Let a third one come when all is over; answer how many instances there are."""
    outside.clock.advance(LASTS)
    planner(outside, "three")(outside.world("three"))
    assert len(outside.table.rows(KIND)) == 1
    return len(outside.instances())


@given(
    st.lists(st.sampled_from(("one", "two", "one", "two", "a minute")), max_size=60),
    st.permutations(("one", "two")),
    st.sets(st.sampled_from(("one", "two"))),
)
def test_two_planners_never_both_launch(schedule: list[str], ends: list[str], dying: set[str]) -> None:
    outside = Outside()
    processes = start_two(outside)
    for step in schedule:
        if step == "a minute":
            outside.clock.advance(LASTS)
        else:
            processes[step].resume()
    for name in ends:
        processes[name].kill() if name in dying else processes[name].finish()
    assert settled(outside) == 1


STEPS = 30


@pytest.mark.parametrize("dies", [False, True])
def test_a_planner_that_is_overtaken_anywhere_launches_nothing_of_its_own_after(dies: bool) -> None:  # noqa: FBT001 - a table's column
    moments = []
    for stop in range(STEPS):
        outside = Outside()
        processes = start_two(outside)
        for _ in range(stop):
            processes["one"].resume()
        moments.append(processes["one"].over)
        outside.clock.advance(LASTS)
        processes["two"].finish()
        processes["one"].kill() if dies else processes["one"].finish()
        assert settled(outside) == 1, f"after {stop} steps"
    assert not moments[0]
    assert moments[-1], "there are more steps than were tried"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 1200)), max_size=12))
def test_whoever_asked_to_be_woken_is_woken_by_then(wishes: list[tuple[int, int]]) -> None:
    clock, post = Clock(), Post()
    world = msgspec.structs.replace(WORLD, clock=clock.now, table=MemoryTable(), mailbox=post)
    arrivals: list[datetime] = []
    for passed, after in wishes:
        clock.advance(timedelta(seconds=passed))
        now, before = clock.now(), len(post.sent)
        follow_up(FollowUp(function="provision", after=timedelta(seconds=after)), world)
        arrivals += [now + delay for _, _, delay in post.sent[before:]]
        assert any(now < arrival <= now + min(timedelta(seconds=after), LONGEST) for arrival in arrivals)


@given(st.lists(st.integers(0, 600), min_size=1, max_size=8))
def test_an_offering_is_out_until_the_latest_end(ends: list[int]) -> None:
    world = msgspec.structs.replace(WORLD, table=MemoryTable())
    for end in ends:
        mark_unavailable([UnavailableOffering(capacity_type="spot", until=START + timedelta(seconds=end))], world)
    last = START + timedelta(seconds=max(ends))
    [seen] = unavailable_offerings(world.table, last - timedelta(seconds=1), [])
    assert seen.until == last
    assert unavailable_offerings(world.table, last, []) == ()


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8))
def test_an_event_is_written_at_most_once_in_two_minutes(waits: list[int]) -> None:
    api = ApiServer(Clock(), definitions=())
    world = msgspec.structs.replace(WORLD, kube=InMemoryKube(api))
    at, written = START, []
    for wait in waits:
        at += timedelta(seconds=wait)
        revision = api.revision
        publish(PublishEvent(kind="Node", name="n", reason="Test", message="again", at=at), world)
        written += [at] * (api.revision - revision)
    assert written[0] == START + timedelta(seconds=waits[0])
    assert all(later - sooner >= QUIET_FOR for sooner, later in pairwise(written))
