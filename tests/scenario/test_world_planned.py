"""A fresh installation: what might go is told and stays, what must go goes, until somebody lets disruption begin."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from shared import ports
from shared.disruption.planned import LET
from shared.model.action import EvictPod
from shared.report.journal import Note
from sim.lambdas.template import synthesised
from tests.scenario.test_world_disruption import CHEAPER, SIZES, phases, tainted
from tests.scenario.worlds import World, deployment, node_class, pool, vcpus

WARNING: Final = "EC2 Spot Instance Interruption Warning"


def fresh(replicas: int, **spec: Any) -> World:
    """Answer a world as `cdk deploy` leaves it, in which pods run and nothing has happened for a while."""
    spec = {"types": SIZES, "disruption": CHEAPER} | spec
    world = World(node_class(), pool(**spec), deployment(replicas), template=synthesised())
    world.settled(replicas)
    world.seconds(150)
    return world


class Redeployed(World):
    """May be deployed again with other settings."""

    chosen: Mapping[str, str] = MappingProxyType({"JOINER_DISRUPTION": "plan"})

    def _world(self, function: str, environment: dict[str, str]) -> ports.World:
        return super()._world(function, {**environment, **self.chosen})


def verdicts(world: World) -> list[Note]:
    return [note for entry in world.entries for note in entry.notes if note.kind == "Node"]


@pytest.mark.parametrize(("left", "reason"), [(2, "Underutilized"), (0, "Empty")])
def test_what_might_go_is_told_and_stays(left: int, reason: str) -> None:
    world = fresh(8)
    world.scale(left)
    world.until(lambda: world.events("default", "DisruptionPlanned"))
    world.seconds(600)
    assert (vcpus(world), phases(world), tainted(world), world.done(EvictPod)) == (8, [], [], [])
    [node] = world.nodes()
    last = verdicts(world)[-1]
    assert (last.name, last.verdict) == (node["metadata"]["name"], "kept")
    assert last.why.startswith(f"Planned: it would go, {reason}: ")
    assert last.why.endswith(LET)
    told = world.events("default", "DisruptionPlanned")
    assert told == [f"DisruptionPlanned: 1 of its nodes would go, `joiner explain node NAME` says why; {LET}"]


def test_what_must_go_goes() -> None:
    world = fresh(2, types=("m5.large",))
    [before] = world.living()
    detail = {"instance-id": before.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": WARNING, "detail": detail})
    world.until(lambda: before.instance_id not in {one.instance_id for one in world.living()})
    world.settled(2)


def test_what_expires_goes() -> None:
    world = fresh(2, types=("m5.large",), template={"expireAfter": "10m"})
    [before] = world.living()
    world.until(lambda: before.instance_id not in {one.instance_id for one in world.living()}, within=900)


def test_who_lets_it_go_later_loses_nothing_but_time() -> None:
    world = Redeployed(node_class(), pool(types=SIZES, disruption=CHEAPER), deployment(8))
    world.settled(8)
    world.scale(2)
    world.seconds(400)
    assert (vcpus(world), phases(world)) == (8, [])
    world.chosen = {"JOINER_DISRUPTION": "active"}
    world.until(lambda: vcpus(world) == 2)
