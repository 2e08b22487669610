"""The full life of a stack in the embedded world: installed, at work, emptied and removed; nothing is left."""

from datetime import timedelta

import msgspec
import pytest
import yaml

from shared.errors import NotFound
from shared.installer.manifests import MANAGED_BY_LABEL, build_manifest_path, get_manifest_name
from shared.wire.paths import CRD_KIND
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.infra.guarded import MANIFESTS
from tests.infra.installations import Stack, parse_release_manifests

POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@pytest.fixture
def world() -> EmbeddedWorld:
    """A world with pods and nodes; the CRDs were applied by hand and handed over since."""
    world = EmbeddedWorld(template=synthesize_template())
    handed_over = {"metadata": {"labels": {MANAGED_BY_LABEL: "joiner"}}}
    for manifest in parse_release_manifests():
        if manifest["kind"] == CRD_KIND:
            InMemoryKube(world.cluster.api).patch(build_manifest_path(manifest), msgspec.json.encode(handed_over))
    world.apply(yaml.safe_load_all(MANIFESTS))
    world.run(timedelta(minutes=5))
    assert world.list_active_instances()
    return world


@pytest.fixture
def stack(world: EmbeddedWorld) -> Stack:
    installed_stack = Stack(InMemoryKube(world.cluster.api), world.clock)
    status, message = installed_stack.ask("Create")
    assert (status, message.count("updated"), message.count(" created")) == ("SUCCESS", 5, 4)
    return installed_stack


def list_remaining_objects(world: EmbeddedWorld) -> list[str]:
    nodes = [get_manifest_name(node) for node in world.cluster.api.list("nodes")]
    return nodes + [
        build_manifest_path(manifest)
        for manifest in parse_release_manifests()
        if is_there(world, build_manifest_path(manifest))
    ]


def is_there(world: EmbeddedWorld, path: str) -> bool:
    try:
        InMemoryKube(world.cluster.api).read(path)
    except NotFound:
        return False
    return True


def test_purge_leaves_no_instances_and_no_objects(world: EmbeddedWorld, stack: Stack) -> None:
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"
    assert world.list_active_instances() == ()
    world.runtime.stop()
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert list_remaining_objects(world) == []


def test_stack_deletion_fails_by_default_until_its_nodes_are_gone(world: EmbeddedWorld, stack: Stack) -> None:
    profile = dict(world.wiring.functions[0].environment)["JOINER_INSTANCE_PROFILE"]
    status, message = stack.ask("Delete", "emptied", Profiles=[profile])
    assert status == "FAILED"
    assert "with the role of the stack" in message
    InMemoryKube(world.cluster.api).delete(f"{POOLS}/default")
    world.run(timedelta(minutes=10))
    assert stack.ask("Delete", "emptied", Profiles=[profile])[0] == "SUCCESS"
    world.runtime.stop()
    status, message = stack.ask("Delete")
    assert (status, world.list_active_instances()) == ("SUCCESS", ())
    assert "ec2nodeclasses.karpenter.k8s.aws kept: it has 1 object" in message
    [node_class] = world.cluster.api.list("ec2nodeclasses.karpenter.k8s.aws")
    assert "finalizers" not in node_class["metadata"]
    assert list_remaining_objects(world) == [
        build_manifest_path(manifest)
        for manifest in parse_release_manifests()
        if get_manifest_name(manifest).startswith("ec2nodeclasses")
    ]


def test_abandoned_stack_is_deleted_without_running_functions(world: EmbeddedWorld, stack: Stack) -> None:
    world.runtime.stop()
    kube = InMemoryKube(world.cluster.api)
    for claim in world.cluster.api.list("nodeclaims.karpenter.sh"):
        kube.delete(f"{CLAIMS}/{get_manifest_name(claim)}")
    assert stack.ask("Delete", "emptied", OnDestroy="abandon")[0] == "SUCCESS"
    running = [instance.provider_id for instance in world.list_active_instances()]
    status, message = stack.ask("Delete", OnDestroy="abandon")
    assert status == "SUCCESS"
    assert all(f"its instance may still run: {provider_id}" in message for provider_id in running)
    assert not [node for node in world.cluster.api.list("nodes") if node["metadata"].get("finalizers")]
