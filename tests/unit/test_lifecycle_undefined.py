"""Definitions that are not served: what nobody can see is not taken for gone, nor what depends on it for free to go."""

import json

import pytest

from shared.launch.catalogues import is_due
from shared.launch.groups import plan_launches
from shared.lifecycle.decide import decide
from shared.model.action import (
    DeleteObject,
    EvictPod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    TaintNode,
    TerminateInstances,
)
from shared.model.cluster import Cluster
from shared.model.objects import Problem
from tests.unit import launch_cases
from tests.unit.launch_cases import node_class
from tests.unit.lifecycle_cases import NOW, POOL, Case, claim, cluster, instance, node, of, pod, true
from tests.unit.test_lifecycle_termination import leaving

POOLS = Problem(kind="CustomResourceDefinition", name="nodepools.karpenter.sh", message="is not installed")
CLASSES = Problem(kind="CustomResourceDefinition", name="ec2nodeclasses.karpenter.k8s.aws", message="is not installed")


def leaves(mine: Case, **fields: Case) -> list[str]:
    """Answer what is done to the machine of *mine* that cannot be undone, and to its Node."""
    usual = {"nodes": (node(),), "pods": (pod(),), "instances": (instance(),), "node_pools": ()}
    actions = decide(cluster(node_claims=(mine,), **(usual | fields)))
    kinds = (DeleteObject, EvictPod, TaintNode, TerminateInstances)
    released = [one for one in of(PatchMetadata, actions) if one.finalizers is not None]
    return [type(one).__name__ for one in (*(some for kind in kinds for some in of(kind, actions)), *released)]


def test_a_claim_that_was_deleted_with_its_pool_waits_while_pools_cannot_be_seen() -> None:
    deleted = leaving(None)
    assert leaves(deleted) == ["DeleteObject", "TaintNode"]
    assert leaves(deleted, problems=(CLASSES,)) == ["DeleteObject", "TaintNode"]
    assert leaves(deleted, problems=(POOLS,)) == []
    actions = decide(cluster(node_claims=(deleted,), nodes=(node(),), instances=(instance(),), problems=(POOLS,)))
    [said] = [one for one in of(PublishEvent, actions) if one.reason == "FailedDraining"]
    assert (said.kind, said.type) == ("NodeClaim", "Warning")
    assert "nodepools.karpenter.sh is not served" in said.message
    assert "apply the CustomResourceDefinitions" in said.message


@pytest.mark.parametrize(
    ("mine", "fields"),
    [
        (leaving(), {"nodes": (node(),)}),
        (leaving(None), {"nodes": (node(going=True),)}),
        (leaving(None), {"instances": (instance(state="shutting-down"),)}),
    ],
    ids=["drain announced", "tainted, as by an interruption", "instance ending"],
)
def test_an_end_that_has_begun_goes_on(mine: Case, fields: Case) -> None:
    assert leaves(mine, problems=(POOLS,), **fields) != []


@pytest.mark.parametrize(
    ("mine", "seen"),
    [(leaving(None, conditions=true("Launched")), (instance(),)), (claim(launched=False, deleted=NOW), ())],
)
def test_a_claim_that_has_not_joined_waits_too(mine: Case, seen: Case) -> None:
    assert leaves(mine, nodes=(), pods=(), instances=seen) != []
    assert leaves(mine, nodes=(), pods=(), instances=seen, problems=(POOLS,)) == []


def test_living_claims_live_on() -> None:
    assert leaves(claim(), problems=(POOLS, CLASSES)) == []


def test_a_claim_whose_class_cannot_be_seen_is_not_given_up() -> None:
    mine = launch_cases.claim("a")
    [gone] = plan_launches(launch_cases.cluster(mine, node_classes=())).unlaunchable
    assert (gone.reason, gone.final) == ("NodeClassNotFound", True)
    [hidden] = plan_launches(launch_cases.cluster(mine, node_classes=(), problems=(CLASSES,))).unlaunchable
    assert (hidden.reason, hidden.final) == ("NodeClassNotReady", False)


def test_a_pool_whose_class_cannot_be_seen_does_not_say_that_there_is_none() -> None:
    def readiness(*problems: Problem) -> tuple[str, str]:
        actions = decide(cluster(node_pools=(POOL,), node_classes=(), problems=problems))
        [status] = [json.loads(one.status) for one in of(PatchStatus, actions) if one.kind == "NodePool"]
        [found] = [one for one in status["conditions"] if one["type"] == "NodeClassReady"]
        return found["status"], found["reason"]

    assert readiness() == ("False", "NodeClassNotFound")
    assert readiness(CLASSES) == ("Unknown", "NodeClassReadinessUnknown")


def test_the_catalogue_stays_as_it_is_while_no_class_can_be_seen() -> None:
    before = Cluster(taken_at=NOW)
    assert is_due(before, Cluster(taken_at=NOW, node_classes=(node_class(),)))
    assert not is_due(before, Cluster(taken_at=NOW, node_classes=(node_class(),), problems=(CLASSES,)))


def test_a_definition_is_lacked_by_its_whole_name() -> None:
    assert cluster(problems=(POOLS,)).lacks("nodepools.karpenter.sh")
    assert not cluster(problems=(POOLS,)).lacks("nodeclaims.karpenter.sh")
    other = Problem(kind="NodePool", name="nodepools.karpenter.sh", message="")
    assert not cluster(problems=(other,)).lacks("nodepools.karpenter.sh")
