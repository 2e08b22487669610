"""Tests of objects of other providers: they are not validated and not in the snapshot."""

import json
from typing import Any

import pytest

from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.karpenter.other_providers import SHARED_FIELDS, is_of_other_provider
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from sim.world.embedded_world import EmbeddedWorld
from tests.scenario.worlds import make_node_pool

AUTO_MODE = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
UNKNOWN_CAPACITY_TYPE = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["capacity-block"]}


def make_pool(name: str, reference: dict[str, str]) -> dict[str, Any]:
    pool = make_node_pool(name)
    pool["spec"]["template"]["spec"] |= {"nodeClassRef": reference, "requirements": [UNKNOWN_CAPACITY_TYPE]}
    return pool


def make_claim(name: str) -> dict[str, Any]:
    spec = {"nodeClassRef": AUTO_MODE, "requirements": [], "expireAfter": "a while"}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}, "spec": spec}


def test_lists_leave_out_objects_of_other_providers() -> None:
    world = EmbeddedWorld()
    world.apply([make_node_pool("ours"), make_pool("theirs", AUTO_MODE)])
    problems: list[Problem] = []
    kinds = [kind for kind in RESOURCE_KINDS if kind.field in SHARED_FIELDS]
    parts = Reflector(InMemoryKube(world.cluster.api), None, world.clock.get_time()).read_lists(kinds, problems)
    assert [pool.name for pool in parts["node_pools"]] == ["ours"]
    assert problems == []


def test_files_leave_out_objects_of_other_providers_and_report_their_names() -> None:
    reports: list[tuple[str, tuple[str, ...]]] = []
    pools = [make_pool("b", AUTO_MODE), make_node_pool("ours"), make_pool("a", AUTO_MODE)]
    cluster = build_snapshot_from_documents(
        [*pools, make_claim("c")], Clock().get_time(), report_left_out=lambda *report: reports.append(report)
    )
    assert ([pool.name for pool in cluster.node_pools], cluster.problems) == (["ours"], ())
    assert reports == [("node_claims", ("c",)), ("node_pools", ("a", "b"))]


def test_files_leave_out_claims_and_nodes_of_other_providers() -> None:
    labels = {"karpenter.sh/nodepool": "theirs", "eks.amazonaws.com/nodeclass": "default"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    cluster = build_snapshot_from_documents([make_claim("c"), node], Clock().get_time())
    assert (cluster.node_claims, cluster.problems) == ((), ())
    assert [node.name for node in cluster.nodes] == ["n"]


@pytest.mark.parametrize(
    ("reference", "problem_count"),
    [
        (AUTO_MODE, 0),
        (AUTO_MODE | {"group": "karpenter.k8s.aws"}, 0),
        (AUTO_MODE | {"kind": "EC2NodeClass"}, 0),
        (AUTO_MODE | {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}, 1),
        (AUTO_MODE | {"group": ""}, 1),
    ],
    ids=str,
)
def test_only_own_pools_are_validated(reference: dict[str, str], problem_count: int) -> None:
    [kind] = [kind for kind in RESOURCE_KINDS if kind.kind == "NodePool"]
    body = json.dumps({"items": [make_pool("a", reference)]}).encode()
    _, problems, _ = kind.decode_page(body)
    assert len(problems) == problem_count


@pytest.mark.parametrize(
    ("labels", "is_of_other"),
    [
        ({"karpenter.sh/nodepool": "a", "eks.amazonaws.com/nodeclass": "b"}, True),
        ({"karpenter.sh/nodepool": "a", "karpenter.k8s.aws/ec2nodeclass": "b"}, False),
        ({"karpenter.sh/nodepool": "a"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_node_of_another_provider_has_its_node_class_label(labels: dict[str, str], *, is_of_other: bool) -> None:
    assert is_of_other_provider(ObjectMeta(name="n", labels=tuple(sorted(labels.items())))) is is_of_other
