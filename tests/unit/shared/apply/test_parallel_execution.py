"""The executor with parallel calls: bounded, fenced, within the time limit; a failure does not stop the others."""

from datetime import timedelta
from itertools import count
from time import sleep
from typing import Any, cast

import msgspec
import pytest

from shared.apply.executor import LEASE_LOST_MESSAGE, MIN_PARALLEL_GROUPS, apply_actions
from shared.apply.independent_actions import MAX_PARALLEL_EC2_CALLS
from shared.errors import Throttled
from shared.model.core.taints import Taint
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    FollowUp,
    LaunchInstances,
    PatchMetadata,
    TaintNode,
    TerminateInstances,
)
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE
from shared.ports.aws import Ec2
from shared.ports.storage import FencingToken, Table, TableRow
from shared.store.lease import LEASE_TTL, hold_lease
from sim.fault_tap import Killed, PortCall
from tests.support.actions_world import Outside, make_claim
from tests.support.parallel_world import SlowPort, make_parallel

NAMES = tuple(f"n-{number:02}" for number in range(40))
TAINT = Taint(key="karpenter.sh/disrupted", value="", effect="NoSchedule")
TAINTS = tuple(TaintNode(name=name, resource_version="", taints=(TAINT,)) for name in NAMES)
CLAIMS = tuple(CreateNodeClaim(claim=make_claim(name)) for name in NAMES)


@pytest.fixture
def outside() -> Outside:
    """All external systems, with a Node for each name."""
    outside = Outside()
    for name in NAMES:
        outside.create_node(name)
    return outside


def list_tainted_nodes(outside: Outside) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in outside.api.list("nodes")
        if any(taint["key"] == TAINT.key for taint in node["spec"].get("taints", ()))
    ]


def test_as_many_calls_as_allowed_run_at_once_and_outcomes_keep_the_order(outside: Outside) -> None:
    world, kube = make_parallel(outside.build_world(), 8, seconds=0.01)
    outcomes = apply_actions(TAINTS, world)
    assert [outcome.action for outcome in outcomes] == list(TAINTS)
    assert {outcome.result for outcome in outcomes} == {"done"}
    assert kube.max_running_count == 8
    assert list_tainted_nodes(outside) == list(NAMES)


def test_calls_on_one_node_are_never_at_the_same_time(outside: Outside) -> None:
    world, kube = make_parallel(outside.build_world())
    apply_actions(TAINTS[:1] * 10, world)
    assert kube.max_running_count == 1


def test_few_groups_are_performed_without_threads(outside: Outside) -> None:
    world, kube = make_parallel(outside.build_world())
    apply_actions(TAINTS[: MIN_PARALLEL_GROUPS - 1], world)
    assert kube.max_running_count == 1


def test_one_failed_action_does_not_stop_the_others(outside: Outside) -> None:
    def throttle(call: PortCall) -> None:
        if call.detail.endswith(NAMES[3]):
            raise Throttled("later")

    outcomes = apply_actions(TAINTS, make_parallel(outside.build_world(tap=throttle))[0])
    assert [outcome.action for outcome in outcomes if outcome.result != "done"] == [TAINTS[3]]
    assert outcomes[3].message == "Throttled: later"
    assert len(list_tainted_nodes(outside)) == len(NAMES) - 1


def test_call_to_ec2_waits_for_the_calls_before_it(outside: Outside) -> None:
    terminate = TerminateInstances(instance_ids=(), message="test")
    patches = tuple(PatchMetadata(kind="Node", name=name, labels=(("a", "1"),)) for name in NAMES)
    apply_actions((*TAINTS, terminate, *patches), make_parallel(outside.build_world())[0])
    ports = [call.port for call in outside.calls if call.phase == "after"]
    assert ports == ["kube"] * 40 + ["ec2"] + ["kube"] * 40


def test_no_call_is_started_after_the_time_limit_except_follow_ups(outside: Outside) -> None:
    checks = count()
    wake = FollowUp(function="lifecycle", after=timedelta(), message="more")
    world, _ = make_parallel(outside.build_world(), 4)
    outcomes = apply_actions((*TAINTS, wake), world, is_over=lambda: next(checks) >= 10)
    assert [outcome.message for outcome in outcomes].count(OUT_OF_TIME_MESSAGE) == 30
    assert len(list_tainted_nodes(outside)) == 10
    assert outcomes[-1].result == "done"


def test_many_threads_read_the_lease_once(outside: Outside) -> None:
    def read_slowly(call: PortCall) -> None:
        if call.port == "table":
            sleep(0.01)

    world, _ = make_parallel(outside.build_world(tap=read_slowly))
    with hold_lease(world, "planner") as fence:
        outside.calls.clear()
        outcomes = apply_actions(CLAIMS, world, fence)
        assert outside.list_called_methods("table") == ["read"]
    assert {outcome.result for outcome in outcomes} == {"done"}


def test_lost_lease_creates_no_node_claim_and_skips_what_follows(outside: Outside) -> None:
    launch = LaunchInstances(group=outside.build_launch_group())
    world, _ = make_parallel(outside.build_world())
    actions: tuple[Action, ...] = (*CLAIMS, launch, *TAINTS)
    with hold_lease(world, "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"):
            outside.calls.clear()
            outcomes = apply_actions(actions, world, fence)
    assert {(outcome.result, outcome.message) for outcome in outcomes} == {("skipped", LEASE_LOST_MESSAGE)}
    assert outside.list_called_methods("kube") == []
    assert outside.list_called_methods("ec2") == []


def test_lease_lost_in_the_middle_stops_the_creation_of_node_claims(outside: Outside) -> None:
    created = count()

    def lose_lease(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("kube", "create", "after") and next(created) == 5:
            outside.clock.advance(LEASE_TTL)
            outside.table.write("lease", "planner", "{}", version=1)

    world, _ = make_parallel(outside.build_world(tap=lose_lease), 4)
    with hold_lease(world, "planner") as fence:
        outcomes = apply_actions(CLAIMS, world, fence)
    results = [outcome.result for outcome in outcomes]
    assert 6 <= results.count("done") <= 9  # the calls that were running are complete
    assert results.count("skipped") == len(CLAIMS) - results.count("done")
    assert len(outside.api.list("nodeclaims.karpenter.sh")) == results.count("done")


@pytest.mark.parametrize("error", [Killed("x"), ZeroDivisionError("x")])
def test_exception_other_than_a_fault_starts_no_more_calls_and_propagates(
    outside: Outside, error: BaseException
) -> None:
    calls = count()

    def fail(call: PortCall) -> None:
        if call.phase == "before" and next(calls) == 5:
            raise error

    with pytest.raises(type(error)):
        apply_actions(TAINTS, make_parallel(outside.build_world(tap=fail), 4)[0])
    assert 5 <= len(list_tainted_nodes(outside)) <= 8


def test_mode_plan_makes_no_call_in_threads(outside: Outside) -> None:
    world, kube = make_parallel(outside.build_world(mode="plan"))
    assert {outcome.message for outcome in apply_actions(TAINTS, world)} == {"mode is plan"}
    assert kube.max_running_count == 0


class TableWithFencedWrites:
    """A table that counts how many fenced writes run at once."""

    def __init__(self, table: Table) -> None:
        """Count the writes to *table*."""
        self._table = table
        self.running_count = self.max_running_count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, *arguments: Any, fence: FencingToken | None = None, **options: Any) -> TableRow:
        self.running_count += fence is not None
        self.max_running_count = max(self.max_running_count, self.running_count)
        sleep(0.002)
        try:
            return self._table.write(*arguments, fence=fence, **options)
        finally:
            self.running_count -= fence is not None


def test_launches_run_at_once_but_never_two_fenced_writes(outside: Outside) -> None:
    launches = tuple(LaunchInstances(group=outside.build_launch_group(f"group-{number}")) for number in range(12))
    world = outside.build_world()
    ec2, table = SlowPort(world.ec2, 0.02), TableWithFencedWrites(world.table)
    world = msgspec.structs.replace(world, ec2=cast("Ec2", ec2), table=cast("Table", table), max_parallel_calls=16)
    with hold_lease(world, "planner") as fence:
        outcomes = apply_actions(launches, world, fence)
    assert [outcome.action for outcome in outcomes] == list(launches)
    assert {outcome.result for outcome in outcomes} == {"done"}
    assert 1 < ec2.max_running_count <= MAX_PARALLEL_EC2_CALLS
    assert table.max_running_count == 1
    assert len(outside.list_instances()) == len(launches)


def test_lease_lost_in_the_middle_stops_launches(outside: Outside) -> None:
    launches = tuple(LaunchInstances(group=outside.build_launch_group(f"group-{number}")) for number in range(20))
    sent = count()

    def take_lease(call: PortCall) -> None:
        if (call.method, call.phase) == ("create_fleet", "after") and next(sent) == 0:
            outside.clock.advance(LEASE_TTL)
            row = outside.table.read("lease", "planner")
            assert row is not None
            outside.table.write("lease", "planner", "{}", version=row.version)

    world, _ = make_parallel(outside.build_world(tap=take_lease))
    with hold_lease(world, "planner") as fence:
        outcomes = apply_actions(launches, world, fence)
    results = [outcome.result for outcome in outcomes]
    assert 1 <= results.count("done") <= MAX_PARALLEL_EC2_CALLS
    assert results.count("skipped") == len(launches) - results.count("done")
