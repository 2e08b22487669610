"""Tests of the ground truth of fault simulations: owners of instances and commands that delete claims."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import CommandState, CommandTarget, Phase, build_command
from shared.model.ec2.fleet import FleetInstance, FleetRequest, FleetResult
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from sim.fault_simulation.checks.ground_truth import CLAIMS, GroundTruth
from sim.fault_simulation.events import script_manifests
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from tests.support.lifecycle_cases import NOW, make_instance

TOKEN = "l-1"  # noqa: S105 - of a launch, no secret
STARTED = replace(make_instance("a"), tags=((LAUNCH_GROUP, TOKEN),))
ANSWER = FleetInstance(
    instance_id="i-a",
    instance_type="m5.large",
    zone="us-east-1a",
    subnet_id="subnet-a",
    image_id="ami-1",
    capacity_type="spot",
)


@pytest.fixture(scope="module")
def world() -> FaultWorld:
    world = FaultWorld(1)
    world.apply(script_manifests.build_manifests(ScriptSetup()))
    return world


def create_claim(world: FaultWorld, name: str) -> str:
    """Create a claim and return its UID."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": script_manifests.MAIN_POOL}
    body = {"metadata": {"name": name}, "spec": {"nodeClassRef": reference, "requirements": []}}
    head: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
    uid: str = world.cluster.api.create(CLAIMS, head | body)["metadata"]["uid"]
    return uid


def write_launch_group(world: FaultWorld, uids: tuple[str, ...], result: FleetResult | None) -> None:
    request = FleetRequest(
        client_token=TOKEN,
        capacity=len(uids),
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(),
    )
    names = tuple(f"c{number}" for number, _ in enumerate(uids))
    group = LaunchGroup(
        name=TOKEN, claims=names, uids=uids, request=request, templates=(), created_at=NOW, result=result
    )
    stored_row = world.table.read("launch-group", TOKEN)
    body = msgspec.json.encode(group).decode()
    world.table.write("launch-group", TOKEN, body, version=stored_row.version if stored_row is not None else 0)


def test_instance_belongs_only_to_the_nodeclaim_uid_it_was_launched_for(
    world: FaultWorld,
) -> None:
    truth = GroundTruth(world)
    assert truth.list_owner_uids(make_instance("a")) == set()
    write_launch_group(world, ("u-0", "u-1"), None)
    assert truth.list_owner_uids(STARTED) == {"u-0", "u-1"}
    write_launch_group(world, ("u-0", "u-1"), FleetResult(fleet_id="f", instances=(ANSWER,)))
    assert truth.list_owner_uids(STARTED) == {"u-0"}
    assert create_claim(world, "c0") not in truth.list_owner_uids(STARTED)
    assert truth.find_owner("i-a") is None


@pytest.mark.parametrize(("phase", "taken_back"), [("ROLLED_BACK", True), ("LAUNCHED", False), ("DONE", False)])
def test_only_replacements_of_a_rolled_back_command_are_rolled_back(
    world: FaultWorld, phase: Phase, *, taken_back: bool
) -> None:
    new, old = f"new-{phase.lower()}".replace("_", "-"), f"old-{phase.lower()}".replace("_", "-")
    create_claim(world, new)
    create_claim(world, old)
    replacement = CreateNodeClaim(
        claim=NodeClaim(meta=ObjectMeta(name=new), node_class=NodeClassRef(name=script_manifests.MAIN_POOL))
    )
    target = CommandTarget(node=old, claim=old, claim_uid="u", provider_id="", pool=script_manifests.MAIN_POOL)
    command = build_command(reason="Drifted", method="Drift", targets=(target,), replacements=(replacement,))
    standing = CommandState(command=command, phase=phase, phase_since=NOW, proposed_at=NOW)
    world.table.write("command", command.command_id, msgspec.json.encode(standing).decode(), version=0)
    truth = GroundTruth(world)
    assert truth.is_rolled_back(new) is taken_back
    assert not truth.is_rolled_back(old)
    assert not truth.is_rolled_back("gone")
    assert truth.find_command(old) == standing
    assert truth.find_command(new) is None


def test_lagging_api_server_delays_watch_events_like_lists() -> None:
    world = FaultWorld(1)
    kube, path = world._build_kube(), "/api/v1/namespaces"  # noqa: SLF001 - as a function has it
    since = json.loads(kube.list(path))["metadata"]["resourceVersion"]

    def list_watched_names() -> list[str]:
        return [json.loads(event)["object"]["metadata"]["name"] for event in kube.watch(path, since=since)().events]

    for name in ("old", "new"):
        world.cluster.api.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        assert name in list_watched_names()
        world.clock.advance(timedelta(seconds=10))
    world.list_lag = timedelta(seconds=15)
    assert list_watched_names() == ["old"]
    world.clock.advance(timedelta(seconds=10))
    assert list_watched_names() == ["old", "new"]
