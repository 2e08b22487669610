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

from shared.apply.executor import apply_actions
from shared.apply.follow_up_messages import send_follow_up
from shared.apply.kubernetes.events import FIRST_REPEAT_INTERVAL, publish_event
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import MAX_FOLLOW_UP_DELAY, CreateNodeClaim, FollowUp, LaunchInstances, PublishEvent
from shared.ports.world import World
from shared.store.launch_groups import ROW_KIND
from shared.store.lease import LEASE_TTL, hold_lease
from shared.store.offerings.unavailable_offerings import read_unavailable_offerings, record_unavailable_offerings
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.fault_tap import Killed, PortCall, Tap
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from sim.world.memory_ports import MemoryTable
from tests.support.actions_world import Outside, Post, make_claim

WORLD = Outside().build_world()


class Reachable(Protocol):
    """What there is to reach."""

    def build_world(self, name: str = ..., *, tap: Tap | None = ...) -> World:
        """Build the world of the process called *name*, with *tap* at every call."""


class Process:
    """A call that stands still at every port until it is resumed: a thread of which one at a time runs."""

    def __init__(self, outside: Reachable, name: str, body: Callable[[World], None]) -> None:
        """Stand before the first step."""
        self.over = self._dying = False
        self._go, self._stands = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, args=(body, outside.build_world(name, tap=self._pause_at_call)))
        self._thread.start()

    def resume(self) -> None:
        if not self.over:
            self._go.release()
            self._stands.acquire()

    def finish(self) -> None:
        while not self.over:
            self.resume()
        self._thread.join()

    def kill_at_next_call(self) -> None:
        self._dying = True
        self.finish()

    def _pause_at_call(self, call: PortCall) -> None:
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


def build_planner(outside: Outside, name: str) -> Callable[[World], None]:
    """Build a cycle that takes the lease, reads the recorded launch groups, and launches one of them or a new one."""
    launch_group = outside.build_launch_group(f"group-{name}")

    def run_cycle(world: World) -> None:
        with hold_lease(world, "planner") as fence:
            if fence is None:
                return
            launch_groups = [msgspec.json.decode(row.body, type=LaunchGroup) for row in world.table.list_rows(ROW_KIND)]
            if not launch_groups:
                apply_actions(
                    (CreateNodeClaim(claim=make_claim(name)), LaunchInstances(group=launch_group)), world, fence
                )
            elif launch_groups[0].result is None:
                apply_actions((LaunchInstances(group=launch_groups[0]),), world, fence)

    return run_cycle


def start_two(outside: Outside) -> dict[str, Process]:
    return {name: Process(outside, name, build_planner(outside, name)) for name in ("one", "two")}


def count_instances_at_end(outside: Outside) -> int:
    """Run a third planner after the others and return how many instances there are."""
    outside.clock.advance(LEASE_TTL)
    build_planner(outside, "three")(outside.build_world("three"))
    assert len(outside.table.list_rows(ROW_KIND)) == 1
    return len(outside.list_instances())


@given(
    st.lists(st.sampled_from(("one", "two", "one", "two", "a minute")), max_size=60),
    st.permutations(("one", "two")),
    st.sets(st.sampled_from(("one", "two"))),
)
def test_two_concurrent_provision_runs_launch_one_instance(
    schedule: list[str], ends: list[str], dying: set[str]
) -> None:
    outside = Outside()
    processes = start_two(outside)
    for step in schedule:
        if step == "a minute":
            outside.clock.advance(LEASE_TTL)
        else:
            processes[step].resume()
    for name in ends:
        processes[name].kill_at_next_call() if name in dying else processes[name].finish()
    assert count_instances_at_end(outside) == 1


MAX_STEPS = 30


@pytest.mark.parametrize("dies", [False, True])
def test_provision_that_loses_its_lease_at_any_call_launches_no_extra_instance(dies: bool) -> None:  # noqa: FBT001 - a table's column
    moments = []
    for stop in range(MAX_STEPS):
        outside = Outside()
        processes = start_two(outside)
        for _ in range(stop):
            processes["one"].resume()
        moments.append(processes["one"].over)
        outside.clock.advance(LEASE_TTL)
        processes["two"].finish()
        processes["one"].kill_at_next_call() if dies else processes["one"].finish()
        assert count_instances_at_end(outside) == 1, f"after {stop} steps"
    assert not moments[0]
    assert moments[-1], "there are more steps than were tried"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 1200)), max_size=12))
def test_requested_follow_up_arrives_within_its_delay(wishes: list[tuple[int, int]]) -> None:
    clock, post = Clock(), Post()
    world = msgspec.structs.replace(WORLD, clock=clock.get_time, table=MemoryTable(), mailbox=post)
    arrivals: list[datetime] = []
    for passed, after in wishes:
        clock.advance(timedelta(seconds=passed))
        now, before = clock.get_time(), len(post.sent)
        send_follow_up(FollowUp(function="provision", after=timedelta(seconds=after)), world)
        arrivals += [now + delay for _, _, delay in post.sent[before:]]
        assert any(now < arrival <= now + min(timedelta(seconds=after), MAX_FOLLOW_UP_DELAY) for arrival in arrivals)


@given(st.lists(st.integers(0, 600), min_size=1, max_size=8))
def test_offering_is_unavailable_until_its_latest_expiration(ends: list[int]) -> None:
    world = msgspec.structs.replace(WORLD, table=MemoryTable())
    for end in ends:
        record_unavailable_offerings(
            [UnavailableOffering(capacity_type="spot", until=DEFAULT_START_TIME + timedelta(seconds=end))], world
        )
    last = DEFAULT_START_TIME + timedelta(seconds=max(ends))
    [offering] = read_unavailable_offerings(world.table, last - timedelta(seconds=1), [])
    assert offering.until == last
    assert read_unavailable_offerings(world.table, last, []) == ()


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8))
def test_event_is_written_at_most_once_in_two_minutes(waits: list[int]) -> None:
    api = ApiServer(Clock(), definitions=())
    world = msgspec.structs.replace(WORLD, kube=InMemoryKube(api))
    at, write_times = DEFAULT_START_TIME, []
    for wait in waits:
        at += timedelta(seconds=wait)
        revision = api.revision
        publish_event(PublishEvent(kind="Node", name="n", reason="Test", message="again", at=at), world)
        write_times += [at] * (api.revision - revision)
    assert write_times[0] == DEFAULT_START_TIME + timedelta(seconds=waits[0])
    assert all(later - sooner >= FIRST_REPEAT_INTERVAL for sooner, later in pairwise(write_times))
