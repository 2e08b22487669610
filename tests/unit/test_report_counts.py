"""What is counted of a cycle's actions and of the fleet."""

from shared.launch.outcome import REFUSED
from shared.lifecycle.garbage import NO_CLAIM
from shared.model.action import LaunchInstances, PublishEvent, TerminateInstances
from shared.model.labels import INSTANCE_TYPE
from shared.model.objects import Problem
from shared.model.state import state_nodes
from shared.report.counts import of_actions, of_fleet
from shared.report.journal import Done
from sim.clock import START
from tests.unit.actions_world import Outside
from tests.unit.catalogues import claimed, instance_type, node, world

LAUNCH = LaunchInstances(group=Outside().group())
LEAKED = TerminateInstances(instance_ids=("i-1", "i-2"), why=NO_CLAIM)


def test_what_failed_is_counted_and_launches_apart() -> None:
    done = (
        Done(action=LAUNCH, result="failed", message="Invalid: no such subnet"),
        Done(action=LEAKED, result="failed", message="Throttled: later"),
        Done(action=LAUNCH, result="done"),
    )
    assert of_actions(done) == {
        "Actions": 3.0,
        "FailedActions": 2.0,
        "LaunchFailures": 1.0,
        "LeaksEnded": 0.0,
        "Throttles": 1.0,
    }


def test_that_ec2_refuses_is_a_failure_though_the_call_was_answered() -> None:
    told = PublishEvent(kind="NodePool", name="a", reason="Unauthorized", message=f"{REFUSED}: no right", at=START)
    other = PublishEvent(kind="NodePool", name="a", reason="Odd", message="something else", at=START)
    sent = Done(action=LAUNCH, result="done")
    every = (sent, Done(action=told, result="skipped"), Done(action=other, result="done"))
    assert of_actions(every)["LaunchFailures"] == 1.0
    assert of_actions((Done(action=LAUNCH, result="failed"), *every))["LaunchFailures"] == 1.0


def test_that_something_could_not_be_read_for_we_ask_too_much_is_throttling_too() -> None:
    problems = (
        Problem(kind="EC2", name="prod", message="could not be read: Throttled: RequestLimitExceeded; nothing"),
        Problem(kind="EC2", name="prod", message="could not be read: Unreachable: timed out; nothing"),
    )
    assert of_actions((), problems)["Throttles"] == 1.0


def test_machines_that_were_leaked_are_counted_once_they_are_ended() -> None:
    wanted = TerminateInstances(instance_ids=("i-3",), why="it was drained")
    done = (Done(action=LEAKED, result="done"), Done(action=wanted, result="done"))
    assert of_actions(done)["LeaksEnded"] == 2.0


def test_a_fleet_costs_what_its_machines_do_and_who_has_no_price_costs_nothing() -> None:
    some = instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    odd = node("odd", labels={INSTANCE_TYPE: "m.99"})
    pairs = (claimed(node("one")), claimed(node("two")), claimed(odd))
    nodes, claims = zip(*pairs, strict=True)
    cluster = world(types=(some,), nodes=(*nodes, node("of-nobody")), node_claims=claims)
    assert of_fleet(cluster, state_nodes(cluster)) == {"ManagedNodes": 3.0, "FleetUsdPerHour": 0.5}
