"""A stack's whole life in the embedded world: installed, at work, emptied and taken out again; nothing is left."""

from datetime import timedelta

import msgspec
import pytest
import yaml

from functions.installer.manifests import DEFINITION, MANAGED_BY, name_of, path_of
from shared.errors import Gone
from sim.cluster.kube import InMemoryKube
from sim.embedded import Embedded
from sim.lambdas.template import synthesised
from tests.infra.guarded import MANIFESTS
from tests.infra.installations import Stack, wanted

POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


@pytest.fixture
def world() -> Embedded:
    """Pods have come, and nodes for them; the definitions were applied by hand, and handed over since."""
    world = Embedded(template=synthesised())
    handed_over = {"metadata": {"labels": {MANAGED_BY: "joiner"}}}
    for one in wanted():
        if one["kind"] == DEFINITION:
            InMemoryKube(world.live.api).patch(path_of(one), msgspec.json.encode(handed_over))
    world.apply(yaml.safe_load_all(MANIFESTS))
    world.run(timedelta(minutes=5))
    assert world.living()
    return world


@pytest.fixture
def stack(world: Embedded) -> Stack:
    made = Stack(InMemoryKube(world.live.api), world.clock)
    status, told = made.ask("Create")
    assert (status, told.count("brought up to date"), told.count(" made")) == ("SUCCESS", 5, 4)
    return made


def left(world: Embedded) -> list[str]:
    nodes = [name_of(one) for one in world.live.api.list("nodes")]
    return nodes + [path_of(one) for one in wanted() if is_there(world, path_of(one))]


def is_there(world: Embedded, path: str) -> bool:
    try:
        InMemoryKube(world.live.api).read(path)
    except Gone:
        return False
    return True


def test_a_purge_leaves_neither_machines_nor_objects(world: Embedded, stack: Stack) -> None:
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"
    assert world.living() == ()
    world.runtime.stop()
    assert stack.ask("Delete", OnDestroy="purge")[0] == "SUCCESS"
    assert left(world) == []


def test_by_default_the_stack_stays_while_its_nodes_run_and_goes_after_them(world: Embedded, stack: Stack) -> None:
    profile = dict(world.wiring.functions[0].environment)["JOINER_INSTANCE_PROFILE"]
    status, told = stack.ask("Delete", "emptied", Profiles=[profile])
    assert status == "FAILED"
    assert "nodes run with the stack's role" in told
    InMemoryKube(world.live.api).delete(f"{POOLS}/default")
    world.run(timedelta(minutes=10))
    assert stack.ask("Delete", "emptied", Profiles=[profile])[0] == "SUCCESS"
    world.runtime.stop()
    status, told = stack.ask("Delete")
    assert (status, world.living()) == ("SUCCESS", ())
    assert "ec2nodeclasses.karpenter.k8s.aws stays: it has 1 objects" in told
    [node_class] = world.live.api.list("ec2nodeclasses.karpenter.k8s.aws")
    assert "finalizers" not in node_class["metadata"]
    assert left(world) == [path_of(one) for one in wanted() if name_of(one).startswith("ec2nodeclasses")]


def test_without_functions_nothing_hangs(world: Embedded, stack: Stack) -> None:
    world.runtime.stop()
    kube = InMemoryKube(world.live.api)
    for one in world.live.api.list("nodeclaims.karpenter.sh"):
        kube.delete(f"{CLAIMS}/{name_of(one)}")
    assert stack.ask("Delete", "emptied", OnDestroy="abandon")[0] == "SUCCESS"
    running = [one.provider_id for one in world.living()]
    status, told = stack.ask("Delete", OnDestroy="abandon")
    assert status == "SUCCESS"
    assert all(f"its instance may still run: {one}" in told for one in running)
    assert not [one for one in world.live.api.list("nodes") if one["metadata"].get("finalizers")]
