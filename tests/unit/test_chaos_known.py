"""What those who judge a play know of it: whose a machine is, and by which command a claim goes."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim
from shared.model.cluster import LaunchGroup
from shared.model.commands import Phase, Standing, Target, command
from shared.model.ec2 import FleetInstance, FleetRequest, FleetResult
from shared.model.labels import LAUNCH_GROUP
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from sim.chaos import manifests
from sim.chaos.known import CLAIMS, Truth
from sim.chaos.script import Setting
from sim.chaos.world import ChaosWorld
from tests.unit.lifecycle_cases import NOW, instance

TOKEN = "l-1"  # noqa: S105 - of a launch, no secret
STARTED = replace(instance("a"), tags=((LAUNCH_GROUP, TOKEN),))
ANSWER = FleetInstance(
    instance_id="i-a",
    instance_type="m5.large",
    zone="us-east-1a",
    subnet_id="subnet-a",
    image_id="ami-1",
    capacity_type="spot",
)


@pytest.fixture(scope="module")
def world() -> ChaosWorld:
    world = ChaosWorld(1)
    world.apply(manifests.set_up(Setting()))
    return world


def made(world: ChaosWorld, name: str) -> str:
    """Make a claim; answer its uid."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": manifests.POOL}
    body = {"metadata": {"name": name}, "spec": {"nodeClassRef": reference, "requirements": []}}
    head: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"}
    uid: str = world.live.api.create(CLAIMS, head | body)["metadata"]["uid"]
    return uid


def launched(world: ChaosWorld, uids: tuple[str, ...], result: FleetResult | None) -> None:
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
    known = world.table.read("launch-group", TOKEN)
    body = msgspec.json.encode(group).decode()
    world.table.write("launch-group", TOKEN, body, version=known.version if known is not None else 0)


def test_a_machine_belongs_to_the_claim_that_it_was_started_for_and_to_no_other_of_that_name(
    world: ChaosWorld,
) -> None:
    truth = Truth(world)
    assert truth.owners_of(instance("a")) == set()
    launched(world, ("u-0", "u-1"), None)
    assert truth.owners_of(STARTED) == {"u-0", "u-1"}
    launched(world, ("u-0", "u-1"), FleetResult(fleet_id="f", instances=(ANSWER,)))
    assert truth.owners_of(STARTED) == {"u-0"}
    assert made(world, "c0") not in truth.owners_of(STARTED)
    assert truth.heir("i-a") is None


@pytest.mark.parametrize(("phase", "taken_back"), [("ROLLED_BACK", True), ("LAUNCHED", False), ("DONE", False)])
def test_only_who_was_made_for_a_command_that_was_rolled_back_is_taken_back_with_it(
    world: ChaosWorld, phase: Phase, *, taken_back: bool
) -> None:
    new, old = f"new-{phase.lower()}".replace("_", "-"), f"old-{phase.lower()}".replace("_", "-")
    made(world, new)
    made(world, old)
    asked = CreateNodeClaim(claim=NodeClaim(meta=Meta(name=new), node_class=NodeClassRef(name=manifests.POOL)))
    target = Target(node=old, claim=old, claim_uid="u", provider_id="", pool=manifests.POOL)
    told = command(reason="Drifted", method="Drift", targets=(target,), replacements=(asked,))
    standing = Standing(command=told, phase=phase, phase_since=NOW, proposed_at=NOW)
    world.table.write("command", told.command_id, msgspec.json.encode(standing).decode(), version=0)
    truth = Truth(world)
    assert truth.is_taken_back(new) is taken_back
    assert not truth.is_taken_back(old)
    assert not truth.is_taken_back("gone")
    assert truth.command_of(old) == standing
    assert truth.command_of(new) is None


def test_a_server_that_lags_shows_by_a_watch_what_a_list_would_show() -> None:
    world = ChaosWorld(1)
    kube, path = world._kube(), "/api/v1/namespaces"  # noqa: SLF001 - as a function has it
    since = json.loads(kube.list(path))["metadata"]["resourceVersion"]

    def shown() -> list[str]:
        return [json.loads(one)["object"]["metadata"]["name"] for one in kube.watch(path, since=since)().events]

    for name in ("old", "new"):
        world.live.api.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        assert name in shown()
        world.clock.advance(timedelta(seconds=10))
    world.behind = timedelta(seconds=15)
    assert shown() == ["old"]
    world.clock.advance(timedelta(seconds=10))
    assert shown() == ["old", "new"]
