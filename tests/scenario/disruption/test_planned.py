"""A new installation: planned disruption is only reported until it is enabled; forced disruption happens."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from shared.decide.disruption.plan_mode import ENABLE_HINT
from shared.model.decisions.action import EvictPod
from shared.ports import world as ports_world
from shared.report.journal.journal import DecisionNote
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from tests.scenario.disruption.test_disruption import CHEAPER, SIZES, list_phases, list_tainted_nodes
from tests.scenario.worlds import World, count_vcpus, make_deployment, make_node_class, make_node_pool

WARNING: Final = "EC2 Spot Instance Interruption Warning"


def build_new_world(replicas: int, **spec: Any) -> World:
    """Build a world as `cdk deploy` leaves it, in which pods run and nothing has happened for a while."""
    spec = {"types": SIZES, "disruption": CHEAPER} | spec
    world = World(make_node_class(), make_node_pool(**spec), make_deployment(replicas), template=synthesize_template())
    world.wait_until_settled(replicas)
    world.advance_seconds(150)
    return world


class Redeployed(World):
    """May be deployed again with other settings."""

    overrides: Mapping[str, str] = MappingProxyType({"JOINER_DISRUPTION": "plan"})

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        return super()._build_world(function, {**environment, **self.overrides})


def list_node_notes(world: World) -> list[DecisionNote]:
    return [note for entry in world.entries for note in entry.notes if note.kind == "Node"]


@pytest.mark.parametrize(("remaining_replicas", "reason"), [(2, "Underutilized"), (0, "Empty")])
def test_planned_mode_reports_disruption_candidates_and_keeps_their_nodes(remaining_replicas: int, reason: str) -> None:
    world = build_new_world(8)
    world.scale(remaining_replicas)
    world.wait_until(lambda: world.list_events("default", "DisruptionPlanned"))
    world.advance_seconds(600)
    assert (count_vcpus(world), list_phases(world), list_tainted_nodes(world), world.list_done_actions(EvictPod)) == (
        8,
        [],
        [],
        [],
    )
    [node] = world.list_nodes()
    last = list_node_notes(world)[-1]
    assert (last.name, last.verdict) == (node["metadata"]["name"], "kept")
    assert last.reason.startswith(f"Planned: would be disrupted, {reason}: ")
    assert last.reason.endswith(ENABLE_HINT)
    events = world.list_events("default", "DisruptionPlanned")
    assert events == [
        (f"DisruptionPlanned: 1 of its nodes would be disrupted, `joiner explain node NAME` shows why; {ENABLE_HINT}")
    ]


def test_planned_mode_still_handles_spot_interruptions() -> None:
    world = build_new_world(2, types=("m5.large",))
    [before] = world.list_active_instances()
    detail = {"instance-id": before.instance_id}
    world.runtime.put_event({"source": "aws.ec2", "detail-type": WARNING, "detail": detail})
    world.wait_until(lambda: before.instance_id not in {one.instance_id for one in world.list_active_instances()})
    world.wait_until_settled(2)


def test_planned_mode_still_expires_nodes() -> None:
    world = build_new_world(2, types=("m5.large",), template={"expireAfter": "10m"})
    [before] = world.list_active_instances()
    world.wait_until(
        lambda: before.instance_id not in {one.instance_id for one in world.list_active_instances()}, timeout=900
    )


def test_consolidation_starts_once_disruption_is_set_to_active() -> None:
    world = Redeployed(make_node_class(), make_node_pool(types=SIZES, disruption=CHEAPER), make_deployment(8))
    world.wait_until_settled(8)
    world.scale(2)
    world.advance_seconds(400)
    assert (count_vcpus(world), list_phases(world)) == (8, [])
    world.overrides = {"JOINER_DISRUPTION": "active"}
    world.wait_until(lambda: count_vcpus(world) == 2)
