"""The installer leaves alone what belongs to another provider of Karpenter's API, as EKS Auto Mode."""

from typing import Any, Final

import msgspec
import pytest

from shared.ports.kubernetes import Kube
from tests.contract.kubernetes.test_crds import make_node_claim, make_node_pool
from tests.infra.installations import (
    CLAIMS,
    NODES,
    POOLS,
    TERMINATION_METADATA,
    Stack,
    create_object,
    is_there,
    read_object,
)

AUTO_MODE: Final = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
NODEPOOL_CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh"


def make_foreign_pool(name: str, **reference: str) -> dict[str, Any]:
    pool = make_node_pool(name)
    pool["spec"]["template"]["spec"]["nodeClassRef"] = AUTO_MODE | reference
    return pool


def make_foreign_claim(name: str, **reference: str) -> dict[str, Any]:
    claim = make_node_claim(name)
    claim["spec"]["nodeClassRef"] = AUTO_MODE | reference
    return claim


def create_objects_of_both(kube: Kube) -> None:
    """Create a pool, a claim and a node of Joiner (a) and of Auto Mode (b)."""
    create_object(kube, POOLS, make_node_pool("a"))
    create_object(kube, POOLS, make_foreign_pool("b"))
    create_object(kube, CLAIMS, make_node_claim("a"), labels={"karpenter.sh/nodepool": "a"}, **TERMINATION_METADATA)
    create_object(kube, CLAIMS, make_foreign_claim("b"), labels={"karpenter.sh/nodepool": "b"}, **TERMINATION_METADATA)
    for name, label in (("a", "karpenter.k8s.aws/ec2nodeclass"), ("b", "eks.amazonaws.com/nodeclass")):
        labels = {"karpenter.sh/nodepool": name, label: "default"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        create_object(kube, NODES, node, labels=labels, **TERMINATION_METADATA)


@pytest.mark.parametrize("on_destroy", ["keep", "purge"])
def test_finalizers_of_another_provider_stay(on_destroy: str, stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_objects_of_both(kube)
    assert stack.ask("Delete", OnDestroy=on_destroy)[0] == "SUCCESS"
    for collection in (CLAIMS, NODES):
        assert read_object(kube, f"{collection}/b")["metadata"]["finalizers"] == TERMINATION_METADATA["finalizers"]
        assert "finalizers" not in read_object(kube, f"{collection}/a")["metadata"]


@pytest.mark.parametrize("reference", [{}, {"group": "karpenter.k8s.aws"}, {"kind": "EC2NodeClass"}], ids=str)
def test_a_purge_deletes_no_pool_of_another_provider(reference: dict[str, str], stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, POOLS, make_node_pool("a"))
    create_object(kube, POOLS, make_foreign_pool("b", **reference))
    create_object(kube, CLAIMS, make_foreign_claim("b", **reference), **TERMINATION_METADATA)
    assert stack.ask("Delete", "emptied", OnDestroy="purge")[0] == "SUCCESS"
    assert [pool["metadata"]["name"] for pool in msgspec.json.decode(kube.list(POOLS))["items"]] == ["b"]
    assert "deletionTimestamp" not in read_object(kube, f"{CLAIMS}/b")["metadata"]


def test_a_purge_keeps_a_definition_with_objects_of_another_provider(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, POOLS, make_foreign_pool("b"))
    status, message = stack.ask("Delete", OnDestroy="purge")
    assert status == "SUCCESS"
    assert "nodepools.karpenter.sh kept: it has 1 object" in message
    assert is_there(kube, NODEPOOL_CRD)
    assert is_there(kube, f"{POOLS}/b")


def test_claims_of_another_provider_do_not_keep_the_stack(stack: Stack, kube: Kube) -> None:
    stack.ask("Create")
    create_object(kube, CLAIMS, make_foreign_claim("b"))
    assert stack.ask("Delete", "emptied") == ("SUCCESS", "no changes")
