"""What is said of a pod that has no place, and pools that take no part."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.catalogue import InstanceType
from shared.model.labels import HOSTNAME, NODEPOOL, ZONE
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClassRef
from shared.model.objects import Condition
from shared.model.pods import Pod
from shared.model.resources import Resources
from shared.model.taints import Taint
from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from tests.unit.catalogues import NOW, SIZES, instance_type, needs, node, node_class, placed, pod, pool, world


def _message(*pods: Pod, types: tuple[InstanceType, ...] = SIZES, **fields: object) -> str:
    return solve(replace(world(*pods, types=types), **fields)).unschedulable[0].message


def test_each_pool_says_in_order_of_weight_what_it_lacks() -> None:
    gpu = pool("gpu", weight=9, taints=(Taint(key="nvidia.com/gpu", effect="NoSchedule"),))
    message = _message(pod("one", memory="512Gi", node_selector=((ZONE, "a"),)), node_pools=(pool(), gpu))
    assert message == (
        "pool gpu: needs toleration nvidia.com/gpu:NoSchedule; pool default: no instance type has 512Gi memory in a"
    )


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (pod("x", "100", "900Gi"), "100 cpu and 900Gi memory together"),
        (
            pod("x", "16", "64Gi", node_selector=(("team", "b"),)),
            "the pod requires team In [b], the pool allows team In [a]",
        ),
        (pod("x", node_selector=(("mine", "b"),)), "does not define label mine"),
        (pod("x", node_selector=((ZONE, "q"),)), "no instance type it allows has topology.kubernetes.io/zone In [q]"),
        (pod("x", required_terms=(needs((ZONE, "Gt", ("3",))),)), "topology.kubernetes.io/zone >= 4"),
        (pod("x", node_selector=(("karpenter.sh/capacity-type", "spot"),)), "no instance type it allows has"),
    ],
)
def test_a_message_names_what_is_missing(some: Pod, words: str) -> None:
    assert words in _message(some, node_pools=(pool(labels=(("team", "a"),)),))


def test_what_is_there_but_sold_out_is_said_so() -> None:
    types = (instance_type("m", 4, zones=("a",)), instance_type("n", 2, zones=("b",)))
    sold = tuple(replace(offering, available=False) for offering in types[0].offerings)
    message = _message(pod("x", node_selector=((ZONE, "a"),)), types=(replace(types[0], offerings=sold), types[1]))
    assert "no instance type it allows can be bought in a now" in message


def test_two_needs_that_only_fail_together_are_both_named() -> None:
    types = (instance_type("wide", 16, 2), instance_type("tall", 2, 64))
    assert "8 cpu and 32Gi memory together" in _message(pod("x", "8", "32Gi"), types=types)


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (pool(node_class=NodeClassRef(name="gone")), "node class gone does not exist: create it or correct"),
        (pool(node_class=NodeClassRef(name="raw")), "node class raw is not ready (no subnets)"),
        (pool(node_class=NodeClassRef(name="going")), "node class going is being deleted"),
        (pool(node_class=NodeClassRef(name="x", kind="AKSNodeClass")), "is not ours"),
        (pool(replicas=3), "is static"),
        (replace(pool(), meta=replace(pool().meta, deleted_at=NOW)), "is being deleted"),
        (pool(conditions=(Condition(type="Ready", status="False", message="odd taint"),)), "(Ready): odd taint"),
        (pool(requirements=needs((ZONE, "In", ("q",)))), "leave no instance type"),
        (pool(limits=Resources(amounts=(("cpu", 0),))), "limit of cpu (0 left)"),
        (pool(limits=Resources(amounts=(("nodes", 0),))), "raise spec.limits.nodes"),
    ],
)
def test_a_pool_that_takes_no_part_is_named_with_the_remedy(some: NodePool, words: str) -> None:
    raw = replace(node_class("raw"), conditions=(Condition(type="Ready", status="False", message="no subnets"),))
    going = replace(node_class("going"), meta=replace(node_class("going").meta, deleted_at=NOW))
    message = _message(pod("one"), node_pools=(some,), node_classes=(node_class(), raw, going))
    assert message.startswith("pool default: ")
    assert words in message


def test_a_missing_node_class_may_be_assumed() -> None:
    cluster = world(pod("one"), node_classes=())
    assert placed(solve(cluster)) == {"one": "NoNodePool"}
    assert placed(solve(cluster, options=Options(readiness="Assumed"))) == {"one": "default"}


@pytest.mark.parametrize(("fields", "words"), [({"node_pools": ()}, "create one"), ({"catalogue": None}, "catalogue")])
def test_without_pools_or_catalogue_only_existing_nodes_are_used(fields: dict[str, Any], words: str) -> None:
    cluster = world(pod("one", "3"), pod("two", "3"), nodes=(node("here"),), **fields)
    assert placed(solve(cluster)) == {"one": "here", "two": "NoNodePool"}
    assert words in solve(cluster).unschedulable[0].message


@pytest.mark.parametrize(
    ("some", "reason"),
    [
        (pod("x", node_selector=((HOSTNAME, "here"),)), "InvalidPod"),
        (
            pod("x", required_terms=(needs((ZONE, "Exists", ())), needs(("karpenter.sh/other", "Exists", ())))),
            "InvalidPod",
        ),
        (pod("x", has_match_fields=True), "InvalidPod"),
        (pod("x", has_resource_claims=True), "ResourceClaimsIgnored"),
        (pod("x", required_terms=(needs((NODEPOOL, "DoesNotExist", ())),)), "OptedOut"),
        (pod("x", volume_claims=("gone",)), "VolumeNotUsable"),
    ],
)
def test_a_pod_that_is_not_valid_is_not_planned_for(some: Pod, reason: str) -> None:
    assert placed(solve(world(some))) == {"x": reason}


def test_one_pods_fault_is_no_others() -> None:
    assert placed(solve(world(pod("bad", has_match_fields=True), pod("good"))))["good"] == "default"
