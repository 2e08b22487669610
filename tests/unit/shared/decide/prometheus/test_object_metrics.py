"""Metrics with a series for each node, NodeClaim, pod and offering, as Karpenter's reference describes them."""

from datetime import timedelta

import msgspec

from shared.decide.prometheus.compute_metrics import compute_metrics
from shared.decide.prometheus.metric_table import METRIC_BY_NAME
from shared.model.cloud_provider.instance_type import Offering
from shared.model.core.metadata import Condition, OwnerReference
from shared.model.core.metrics.metric_samples import Sample
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import attach_claim, make_cluster_snapshot, make_instance_type, make_node, make_pod

PRICE = "karpenter_cloudprovider_instance_type_offering_price_estimate"
NODE_METRICS = {
    "karpenter_nodes_allocatable",
    "karpenter_nodes_current_lifetime_seconds",
    "karpenter_nodes_total_pod_requests",
    "operator_nodeclaim_status_condition_count",
}
POD_METRICS = {"karpenter_pods_state", PRICE}


def build_cluster() -> ClusterState:
    managed_node, node_claim = attach_claim(make_node("one", labels={"topology.kubernetes.io/zone": "a"}))
    running_pod = make_pod("runs", cpu="1", on="one")
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-1", uid="u", controller=True)
    meta = msgspec.structs.replace(running_pod.meta, owners=(owner,))
    ready = Condition(type="Ready", status="True")
    running_pod = msgspec.structs.replace(running_pod, meta=meta, phase="Running", conditions=(ready,))
    condition = Condition(type="Initialized", status="False", reason="NodeNotReady")
    node_claim = msgspec.structs.replace(node_claim, conditions=(*node_claim.conditions, condition))
    snapshot = make_cluster_snapshot(
        running_pod,
        make_pod("waits"),
        types=(make_instance_type("m.04", 4, 16, zones=("a",), price=0.25),),
        nodes=(managed_node,),
        node_claims=(node_claim,),
    )
    created_at = snapshot.taken_at - timedelta(minutes=3)
    node = msgspec.structs.replace(managed_node, meta=msgspec.structs.replace(managed_node.meta, created_at=created_at))
    return ClusterState(msgspec.structs.replace(snapshot, nodes=(node,)))


def list_label_values(samples: list[Sample], **selector: str) -> list[dict[str, str]]:
    """Return the labels of the samples that have the labels of *selector*."""
    label_sets = [dict(labels) for labels, _ in samples]
    return [labels for labels in label_sets if selector.items() <= labels.items()]


def test_pod_state_has_the_labels_of_the_node_once_the_pod_is_scheduled() -> None:
    samples = list(compute_metrics(build_cluster())["karpenter_pods_state"])
    assert [value for _, value in samples] == [1.0, 1.0]
    [running] = list_label_values(samples, name="runs")
    node_labels = {"node": "one", "nodepool": "default", "zone": "a", "managed": "true", "scheduled": "true"}
    assert running.items() >= (node_labels | {"owner": "ReplicaSet/web-1", "phase": "Running", "ready": "true"}).items()
    [waiting] = list_label_values(samples, name="waits")
    assert {name: waiting[name] for name in ("node", "nodepool", "zone", "owner")} == dict.fromkeys(
        ("node", "nodepool", "zone", "owner"), ""
    )
    assert (waiting["scheduled"], waiting["managed"], waiting["ready"]) == ("false", "false", "false")


def test_age_of_a_node_is_in_seconds() -> None:
    [(labels, age)] = compute_metrics(build_cluster())["karpenter_nodes_current_lifetime_seconds"]
    assert (dict(labels)["node_name"], age) == ("one", 180.0)


def test_each_condition_of_a_node_claim_is_a_series() -> None:
    samples = list(compute_metrics(build_cluster())["operator_nodeclaim_status_condition_count"])
    [labels] = list_label_values(samples, type="Initialized", status="False")
    assert (labels["reason"], labels["namespace"]) == ("NodeNotReady", "")


def test_price_of_offerings_is_the_lowest_known_one() -> None:
    cluster = build_cluster().snapshot
    assert cluster.catalog is not None
    [kind] = cluster.catalog.instance_types
    prices = (0.3, 0.2, float("inf"), 0.0)
    offerings = tuple(Offering(zone="a", capacity_type="reserved", price_usd_per_hour=price) for price in prices)
    unknown = Offering(zone="b", capacity_type="spot", price_usd_per_hour=float("inf"), available=False)
    kind = msgspec.structs.replace(kind, offerings=(*offerings, unknown))
    catalog = msgspec.structs.replace(cluster.catalog, instance_types=(kind,))
    for priced_catalog, expected in ((catalog, [0.2]), (None, [])):
        snapshot = msgspec.structs.replace(cluster, catalog=priced_catalog)
        samples = compute_metrics(ClusterState(snapshot))[PRICE]
        assert [value for _, value in samples] == expected
    assert dict(compute_metrics(ClusterState(msgspec.structs.replace(cluster, catalog=catalog)))[PRICE][0][0]) == {
        "capacity_type": "reserved",
        "instance_type": "m.04",
        "zone": "a",
    }


def test_utilization_is_in_percent_and_resources_are_named_as_in_karpenter() -> None:
    metrics = compute_metrics(build_cluster())
    utilization = {
        dict(labels)["resource_type"]: value for labels, value in metrics["karpenter_cluster_utilization_percent"]
    }
    assert utilization["cpu"] == 25.0
    resources = {
        dict(labels)["resource_type"]
        for name in metrics
        for labels, _ in metrics[name]
        if "resource_type" in dict(labels)
    }
    assert not any("-" in name for name in resources)


def test_detail_selects_metrics() -> None:
    cluster_state = build_cluster()
    summary, nodes, all_metrics = (
        set(compute_metrics(cluster_state, detail="summary")),
        set(compute_metrics(cluster_state, detail="nodes")),
        set(compute_metrics(cluster_state, detail="all")),
    )
    assert (nodes - summary, all_metrics - nodes) == (NODE_METRICS, POD_METRICS)
    assert all_metrics <= METRIC_BY_NAME.keys()


def test_cost_of_a_node_pool_is_the_sum_over_its_nodes() -> None:
    metrics = compute_metrics(build_cluster())
    assert metrics["karpenter_nodepools_cost_total"] == [((("nodepool", "default"),), 0.25)]
    assert sum(value for _, value in metrics["joiner_usd_per_hour"]) == 0.25
