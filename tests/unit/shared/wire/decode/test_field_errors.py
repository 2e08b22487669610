"""Tests of field errors: an invalid object is reported by field, with a fix, and the other objects are read."""

from typing import Any

import pytest

from shared.model.cluster import ClusterSnapshot
from shared.take.snapshot import SnapshotRequest, take_snapshot
from tests.support.snapshot_world import Lists, make_object, make_pod, make_world

REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
LIKE = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def take_cluster_snapshot(**lists: list[Any]) -> ClusterSnapshot:
    kinds = {
        "pods": "Pod",
        "nodes": "Node",
        "node_claims": "NodeClaim",
        "node_classes": "EC2NodeClass",
        "daemon_sets": "DaemonSet",
        "budgets": "PodDisruptionBudget",
        "volumes": "PersistentVolume",
        "storage_classes": "StorageClass",
        "csi_nodes": "CSINode",
    }
    kube = Lists({kinds[field]: objects for field, objects in lists.items()})
    return take_snapshot(make_world(kube), SnapshotRequest(lists=tuple(lists)))


def make_node_affinity(**expression: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


def make_containers(**quantities: Any) -> list[dict[str, Any]]:
    return [{"name": "app", "resources": quantities}]


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (
            make_pod("bad", containers=make_containers(requests={"memory": "1gi"})),
            "spec.containers[app].resources.requests: memory: not a quantity: '1gi'; write an amount",
        ),
        (
            make_pod("bad", containers=make_containers(limits={"cpu": ""})),
            "spec.containers[app].resources.limits: cpu: not a quantity",
        ),
        (make_pod("bad", containers=make_containers(requests={"cpu": "-1"})), "cpu: below zero: '-1'"),
        (
            make_pod("bad", initContainers=[{"name": "i", "resources": {"requests": {"cpu": "x"}}}]),
            "spec.initContainers[i].resources.requests: cpu",
        ),
        (make_pod("bad", overhead={"cpu": "much"}), "spec.overhead: cpu: not a quantity: 'much'"),
        (
            make_pod("bad", resources={"requests": {"cpu": "much"}}),
            "spec.resources.requests: cpu: not a quantity: 'much'",
        ),
        (
            make_pod("bad", affinity=make_node_affinity(key="a", operator="Near", values=["b"])),
            "nodeSelectorTerms[0]: a: unknown operator 'Near'",
        ),
        (
            make_pod("bad", affinity=make_node_affinity(key="a", operator="In", values=[])),
            "a: In needs at least one value",
        ),
        (make_pod("bad", affinity=make_node_affinity(key="a", operator="Gt", values=["b"])), "a: Gt takes one integer"),
        (make_pod("bad", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}), "every term is empty"),
        (
            make_pod("bad", topologySpreadConstraints=[{"topologyKey": "z", "labelSelector": LIKE}]),
            "spec.topologySpreadConstraints[0].labelSelector: unknown operator 'Like'",
        ),
        (
            make_pod("bad", tolerations=[{"key": "a", "value": 4}]),
            "spec.tolerations[0].value: expected `str`, got `int`; put it in quotes",
        ),
        (make_pod("bad", tolerations="all"), "spec.tolerations: expected `array`, got `str`; correct the field"),
        (
            make_pod("bad", containers=[{"ports": [{"hostPort": "http"}]}]),
            "spec.containers[0].ports[0].hostPort: expected `int`, got `str`",
        ),
        (make_object("bad", "shop"), "missing required field `spec`"),
        (
            {"metadata": {"name": "bad", "namespace": "shop", "creationTimestamp": "today"}, "spec": {}},
            "metadata.creationTimestamp",
        ),
    ],
)
def test_invalid_pod_is_reported_and_left_out(pod: dict[str, Any], words: str) -> None:
    cluster = take_cluster_snapshot(pods=[make_pod("first"), pod, make_pod("last")])
    assert [decoded_pod.meta.name for decoded_pod in cluster.pods] == ["first", "last"]
    [problem] = cluster.problems
    assert (problem.kind, problem.name) == ("Pod", "shop/bad")
    assert words in problem.message


@pytest.mark.parametrize("junk", ["text", 3, [], {}, {"metadata": 3}, {"metadata": {"name": 4}}, {"spec": []}])
def test_non_object_list_items_are_left_out(junk: object) -> None:
    cluster = take_cluster_snapshot(pods=[make_pod("first"), junk, make_pod("last")])
    assert [decoded_pod.meta.name for decoded_pod in cluster.pods] == ["first", "last"]
    assert [problem.name for problem in cluster.problems] == ["without a name"]


def test_unnamed_object_is_reported_with_its_namespace() -> None:
    [problem] = take_cluster_snapshot(pods=[{"metadata": {"namespace": "shop"}, "spec": {}}]).problems
    assert problem.name == "without a name in namespace shop"


def test_invalid_bound_pod_is_reported_with_its_node() -> None:
    bound = make_pod("bad", nodeName="ip-1", overhead={"cpu": "much"})
    odd = make_pod("odd", nodeName="ip-2", priority="high")
    assert [problem.node for problem in take_cluster_snapshot(pods=[bound, odd]).problems] == ["ip-1", "ip-2"]


def test_problem_contains_the_object_uid() -> None:
    bad = make_pod("bad", overhead={"cpu": "much"})
    bad["metadata"]["uid"] = "u-1"
    assert take_cluster_snapshot(pods=[bad]).problems[0].uid == "u-1"


def test_null_field_counts_as_missing() -> None:
    plain = make_pod("cart", containers=[{"name": "app"}])
    nulls = make_pod(
        "cart",
        containers=[{"name": "app", "resources": None, "ports": None}],
        initContainers=None,
        nodeSelector=None,
        affinity={"nodeAffinity": None},
        nodeName=None,
    )
    nulls["metadata"] |= {"labels": None, "creationTimestamp": None}
    nulls["status"] = {"conditions": None}
    cluster = take_cluster_snapshot(pods=[nulls], csi_nodes=[make_object("n", spec={"drivers": None})])
    assert cluster.problems == ()
    assert cluster.pods == take_cluster_snapshot(pods=[plain]).pods
    assert cluster.csi_nodes[0].limits == ()


@pytest.mark.parametrize(
    ("field", "bad", "words"),
    [
        (
            "node_claims",
            make_object("bad", spec={"nodeClassRef": REF, "expireAfter": "soon"}),
            "spec.expireAfter: not a duration",
        ),
        (
            "node_claims",
            make_object("bad", spec={"requirements": [{"key": "a", "operator": "Is"}]}),
            "spec.requirements: a: unknown operator",
        ),
        ("node_claims", make_object("bad", spec={}, status={"capacity": {"cpu": "x"}}), "status.capacity: cpu"),
        (
            "node_classes",
            make_object("bad", spec={"blockDeviceMappings": [{"ebs": {"volumeSize": "20gi"}}]}),
            "spec.blockDeviceMappings[0].ebs.volumeSize: not a quantity: '20gi'",
        ),
        ("node_classes", make_object("bad", spec={"role": 3}), "spec.role: expected `str`, got `int`"),
        (
            "node_classes",
            make_object(
                "bad", spec={}, status={"amis": [{"id": "ami-1", "requirements": [{"key": "a", "operator": "Is"}]}]}
            ),
            "status.amis[0].requirements: a",
        ),
        ("nodes", make_object("bad", status={"allocatable": {"cpu": "x"}}), "status.allocatable: cpu: not a quantity"),
        (
            "daemon_sets",
            make_object("bad", "shop", spec={"template": {"spec": {"overhead": {"cpu": "x"}}}}),
            "spec.template.spec.overhead: cpu",
        ),
        ("budgets", make_object("bad", "shop", spec={"selector": LIKE}), "spec.selector: unknown operator 'Like'"),
        (
            "storage_classes",
            make_object("bad", allowedTopologies=[{"matchLabelExpressions": [{"key": "z"}]}]),
            "allowedTopologies[0]: z: In needs",
        ),
        (
            "volumes",
            make_object("bad", spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [LIKE]}}}),
            "nodeSelectorTerms[0]: a: unknown operator",
        ),
    ],
)
def test_invalid_objects_of_every_kind_are_reported_by_field(field: str, bad: dict[str, Any], words: str) -> None:
    cluster = take_cluster_snapshot(**{field: [bad]})
    assert getattr(cluster, field) == ()
    assert words in cluster.problems[0].message
    assert cluster.problems[0].name.endswith("bad")
