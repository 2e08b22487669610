"""An invocation whose time is nearly up makes what it planned, and wakes the next one at once."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.trigger import counting
from shared.cycle import provision
from shared.model.action import CreateNodeClaim, EvictPod, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.ports import World as Ports
from shared.scheduling import pack
from sim.bench import prepared
from tests.scenario.worlds import CLAIMS, World, deployment, node_class, pool


def counted(left: timedelta) -> Ports:
    return msgspec.structs.replace(prepared(12), time_left=lambda: left)


@pytest.mark.parametrize(("seconds", "is_planned"), [(50, True), (3, False)])
def test_a_plan_is_ended_while_there_is_time_to_act_on_it(
    monkeypatch: pytest.MonkeyPatch, seconds: int, *, is_planned: bool
) -> None:
    monkeypatch.setattr(pack, "LOOK", 1)
    report = provision(counted(timedelta(seconds=seconds)), "schedule")
    actions = [one.action for one in report.outcomes]
    assert any(isinstance(one, CreateNodeClaim) for one in actions) is is_planned
    at_once = [one for one in actions if isinstance(one, FollowUp) and not one.after and one.function == "provision"]
    assert bool(at_once) is not is_planned
    assert report.counts["PendingPods"] == 12.0
    assert report.counts["UnschedulablePods"] == 0.0
    assert report.counts["PriceAgeSeconds"] == 0.0


class Short(World):
    """A world whose lifecycle is told that so much time is left."""

    left = timedelta(minutes=1)

    def _world(self, function: str, environment: dict[str, str]) -> Ports:
        ports = super()._world(function, environment)
        return msgspec.structs.replace(ports, time_left=lambda: self.left) if function == "lifecycle" else ports


def test_a_lifecycle_whose_time_is_up_leaves_the_rest_to_the_next_and_wakes_it_at_once() -> None:
    world = Short(node_class(), pool(after="Never"), deployment(3))
    world.settled(3)
    (claim,) = world.claims()
    world.live.api.delete(CLAIMS, claim["metadata"]["name"])
    world.left = timedelta(seconds=3)
    world.runtime.stop()
    world.runtime.invoke("lifecycle", {"source": "schedule"})
    done = world.entries[-1].done
    assert {one.result for one in done if not isinstance(one.action, FollowUp)} == {"skipped"}
    assert any(isinstance(one.action, FollowUp) and not one.action.after and one.result == "done" for one in done)
    assert not world.done(TaintNode)
    world.left = timedelta(minutes=1)
    world.seconds(2)
    assert world.done(TaintNode)


def test_what_is_only_said_is_said_last() -> None:
    """If a function is stopped in the middle of many machines, it is not for its events that a drain comes late."""
    world = World(node_class(), pool(after="Never"), deployment(3))
    world.settled(3)
    world.entries.clear()
    for claim in world.claims():
        world.live.api.delete(CLAIMS, claim["metadata"]["name"])
    world.until(lambda: world.done(EvictPod))
    entry = next(one for one in world.entries if any(isinstance(each.action, EvictPod) for each in one.done))
    kinds = [isinstance(each.action, PublishEvent) for each in entry.done]
    first = kinds.index(True)
    assert not any(isinstance(each.action, EvictPod | PatchStatus) for each in entry.done[first:])


def test_what_is_left_is_what_the_trigger_says() -> None:
    context: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 1500)
    left = counting(prepared(1), context).time_left
    assert left is not None
    assert left() == timedelta(seconds=1.5)
