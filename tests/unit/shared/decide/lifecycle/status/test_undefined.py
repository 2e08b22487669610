"""CRDs that are not served: their objects do not count as deleted, and dependent objects are kept."""

import json

import pytest

from shared.decide.launch.instance_types.catalog import is_catalog_due
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import (
    DeleteObject,
    EvictPod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    TaintNode,
    TerminateInstances,
)
from tests.support import launch_cases
from tests.support.launch_cases import make_node_class
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    Case,
    filter_actions,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    make_pod,
    make_true_conditions,
)
from tests.support.snapshot_decisions import decide_lifecycle, plan_launches
from tests.unit.shared.decide.lifecycle.termination.test_termination import make_deleted_claim

POOLS = Problem(kind="CustomResourceDefinition", name="nodepools.karpenter.sh", message="is not installed")
CLASSES = Problem(kind="CustomResourceDefinition", name="ec2nodeclasses.karpenter.k8s.aws", message="is not installed")


def list_irreversible_actions(node_claim: Case, **fields: Case) -> list[str]:
    """Return the irreversible actions on the instance and the Node of a claim."""
    usual = {"nodes": (make_node(),), "pods": (make_pod(),), "instances": (make_instance(),), "node_pools": ()}
    actions = decide_lifecycle(make_cluster(node_claims=(node_claim,), **(usual | fields)))
    kinds = (DeleteObject, EvictPod, TaintNode, TerminateInstances)
    released = [patch for patch in filter_actions(PatchMetadata, actions) if patch.finalizers is not None]
    return [
        type(action).__name__
        for action in (*(kind_action for kind in kinds for kind_action in filter_actions(kind, actions)), *released)
    ]


def test_deleted_node_claim_is_not_drained_while_the_node_pool_crd_is_not_served() -> None:
    deleted = make_deleted_claim(None)
    assert list_irreversible_actions(deleted) == ["DeleteObject", "TaintNode"]
    assert list_irreversible_actions(deleted, problems=(CLASSES,)) == ["DeleteObject", "TaintNode"]
    assert list_irreversible_actions(deleted, problems=(POOLS,)) == []
    actions = decide_lifecycle(
        make_cluster(node_claims=(deleted,), nodes=(make_node(),), instances=(make_instance(),), problems=(POOLS,))
    )
    [event] = [action for action in filter_actions(PublishEvent, actions) if action.reason == "FailedDraining"]
    assert (event.kind, event.type) == ("NodeClaim", "Warning")
    assert "nodepools.karpenter.sh is not served" in event.message
    assert "apply the CRDs" in event.message


@pytest.mark.parametrize(
    ("node_claim", "fields"),
    [
        (make_deleted_claim(), {"nodes": (make_node(),)}),
        (make_deleted_claim(None), {"nodes": (make_node(going=True),)}),
        (make_deleted_claim(None), {"instances": (make_instance(state="shutting-down"),)}),
    ],
    ids=["drain started", "tainted by an interruption", "instance shutting down"],
)
def test_started_termination_continues_while_the_node_pool_crd_is_not_served(node_claim: Case, fields: Case) -> None:
    assert list_irreversible_actions(node_claim, problems=(POOLS,), **fields) != []


@pytest.mark.parametrize(
    ("node_claim", "instances"),
    [
        (make_deleted_claim(None, conditions=make_true_conditions("Launched")), (make_instance(),)),
        (make_claim(launched=False, deleted=NOW), ()),
    ],
)
def test_unregistered_node_claim_is_not_terminated_while_the_node_pool_crd_is_not_served(
    node_claim: Case, instances: Case
) -> None:
    assert list_irreversible_actions(node_claim, nodes=(), pods=(), instances=instances) != []
    assert list_irreversible_actions(node_claim, nodes=(), pods=(), instances=instances, problems=(POOLS,)) == []


def test_node_claims_are_kept_while_crds_are_not_served() -> None:
    assert list_irreversible_actions(make_claim(), problems=(POOLS, CLASSES)) == []


def test_launch_is_postponed_while_the_node_class_crd_is_not_served() -> None:
    node_claim = launch_cases.make_claim("a")
    [missing] = plan_launches(launch_cases.make_cluster(node_claim, node_classes=())).unlaunchable
    assert (missing.reason, missing.final) == ("NodeClassNotFound", True)
    [hidden] = plan_launches(launch_cases.make_cluster(node_claim, node_classes=(), problems=(CLASSES,))).unlaunchable
    assert (hidden.reason, hidden.final) == ("NodeClassNotReady", False)


def test_node_pool_readiness_is_unknown_while_the_node_class_crd_is_not_served() -> None:
    def get_readiness(*problems: Problem) -> tuple[str, str]:
        actions = decide_lifecycle(make_cluster(node_pools=(POOL,), node_classes=(), problems=problems))
        [status] = [
            json.loads(patch.status) for patch in filter_actions(PatchStatus, actions) if patch.kind == "NodePool"
        ]
        [condition] = [entry for entry in status["conditions"] if entry["type"] == "NodeClassReady"]
        return condition["status"], condition["reason"]

    assert get_readiness() == ("False", "NodeClassNotFound")
    assert get_readiness(CLASSES) == ("Unknown", "NodeClassReadinessUnknown")


def test_catalog_is_not_rebuilt_while_the_node_class_crd_is_not_served() -> None:
    before = ClusterSnapshot(taken_at=NOW)
    assert is_catalog_due(before, ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),)))
    assert not is_catalog_due(
        before, ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),), problems=(CLASSES,))
    )


def test_unserved_crd_is_matched_by_its_full_name() -> None:
    assert make_cluster(problems=(POOLS,)).is_unserved("nodepools.karpenter.sh")
    assert not make_cluster(problems=(POOLS,)).is_unserved("nodeclaims.karpenter.sh")
    pool_problem = Problem(kind="NodePool", name="nodepools.karpenter.sh", message="")
    assert not make_cluster(problems=(pool_problem,)).is_unserved("nodepools.karpenter.sh")
