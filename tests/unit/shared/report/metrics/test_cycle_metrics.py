"""Counts of a cycle's action results, and metrics of the fleet."""

from shared.model.core.labels import INSTANCE_TYPE
from shared.model.core.metadata import Problem
from shared.model.decisions.action import (
    LAUNCH_REFUSED_PREFIX,
    NO_CLAIM_MESSAGE,
    LaunchInstances,
    PublishEvent,
    TerminateInstances,
)
from shared.report.journal.journal import ActionResult
from shared.report.metrics.cycle_metrics import compute_fleet_metrics, count_action_results
from shared.state.cluster_state import ClusterState
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside
from tests.support.catalogues import attach_claim, make_cluster_snapshot, make_instance_type, make_node

LAUNCH = LaunchInstances(group=Outside().build_launch_group())
LEAKED = TerminateInstances(instance_ids=("i-1", "i-2"), message=NO_CLAIM_MESSAGE)


def test_failed_actions_and_launch_failures_are_counted_separately() -> None:
    results = (
        ActionResult(action=LAUNCH, result="failed", message="Invalid: no such subnet"),
        ActionResult(action=LEAKED, result="failed", message="Throttled: later"),
        ActionResult(action=LAUNCH, result="done"),
    )
    assert count_action_results(results) == {
        "Actions": 3.0,
        "FailedActions": 2.0,
        "LaunchFailures": 1.0,
        "OrphanedInstancesTerminated": 0.0,
        "ThrottledCalls": 1.0,
    }


def test_launch_rejected_by_ec2_counts_as_a_launch_failure() -> None:
    refusal_event = PublishEvent(
        kind="NodePool",
        name="a",
        reason="Unauthorized",
        message=f"{LAUNCH_REFUSED_PREFIX}: no right",
        at=DEFAULT_START_TIME,
    )
    other_event = PublishEvent(kind="NodePool", name="a", reason="Odd", message="something else", at=DEFAULT_START_TIME)
    sent = ActionResult(action=LAUNCH, result="done")
    results = (
        sent,
        ActionResult(action=refusal_event, result="skipped"),
        ActionResult(action=other_event, result="done"),
    )
    assert count_action_results(results)["LaunchFailures"] == 1.0
    assert count_action_results((ActionResult(action=LAUNCH, result="failed"), *results))["LaunchFailures"] == 1.0


def test_throttled_reads_count_as_throttles() -> None:
    problems = (
        Problem(kind="EC2", name="prod", message="could not be read: Throttled: RequestLimitExceeded; nothing"),
        Problem(kind="EC2", name="prod", message="could not be read: Unreachable: timed out; nothing"),
    )
    assert count_action_results((), problems)["ThrottledCalls"] == 1.0


def test_leaked_instances_are_counted_after_termination() -> None:
    drain_termination = TerminateInstances(instance_ids=("i-3",), message="it was drained")
    results = (ActionResult(action=LEAKED, result="done"), ActionResult(action=drain_termination, result="done"))
    assert count_action_results(results)["OrphanedInstancesTerminated"] == 2.0


def test_fleet_cost_is_the_sum_of_known_node_prices() -> None:
    priced_type = make_instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    odd = make_node("odd", labels={INSTANCE_TYPE: "m.99"})
    pairs = (attach_claim(make_node("one")), attach_claim(make_node("two")), attach_claim(odd))
    nodes, claims = zip(*pairs, strict=True)
    cluster = make_cluster_snapshot(types=(priced_type,), nodes=(*nodes, make_node("of-nobody")), node_claims=claims)
    assert compute_fleet_metrics(ClusterState(cluster)) == {"ManagedNodes": 3.0, "FleetUsdPerHour": 0.5}
