"""The metrics in the Prometheus text format: name, unit, labels and help of each.

Karpenter's names are used where Karpenter has a metric with the same meaning. All metrics are gauges: they describe one
snapshot of the cluster.
"""

from typing import Final

import msgspec

METRIC_TYPE: Final = "gauge"
RESOURCE_UNIT: Final = "cores, bytes or number"
"""The unit of metrics with the label resource_type: cpu in cores, memory in bytes, other resources as in Kubernetes."""
NODE_LABELS: Final = (
    "arch",
    "capacity_type",
    "instance_type",
    "managed",
    "node_name",
    "nodepool",
    "os",
    "region",
    "resource_type",
    "zone",
)


POD_LABELS: Final = (
    *("arch", "capacity_type", "instance_type", "managed", "name", "namespace", "node", "nodepool"),
    *("owner", "phase", "ready", "scheduled", "zone"),
)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric family."""

    name: str
    help_text: str
    unit: str
    labels: tuple[str, ...] = ()
    """Sorted by name."""


METRICS: Final = (
    Metric(
        name="joiner_catalog_age_seconds",
        help_text="Age of the catalog of instance types and prices; only in the output of joiner metrics.",
        unit="seconds",
    ),
    Metric(
        name="joiner_invalid_objects", help_text="Objects that are ignored because they are invalid.", unit="number"
    ),
    Metric(
        name="joiner_limit_usd_per_hour",
        help_text="Limit in US dollars per hour; of the cluster without nodepool.",
        unit="USD/h",
        labels=("nodepool",),
    ),
    Metric(
        name="joiner_limit_used_usd_per_hour",
        help_text="Price that counts against the limit, with volumes.",
        unit="USD/h",
        labels=("nodepool",),
    ),
    Metric(
        name="joiner_nodes",
        help_text="Nodes by NodePool, capacity type and instance type.",
        unit="number",
        labels=("capacity_type", "instance_type", "nodepool"),
    ),
    Metric(name="joiner_pods_pending", help_text="Pending pods.", unit="number"),
    Metric(
        name="joiner_snapshot_age_seconds",
        help_text="Time since the cluster was read; only in the output of joiner metrics.",
        unit="seconds",
    ),
    Metric(
        name="joiner_usd_per_hour",
        help_text="Price of the nodes in US dollars per hour.",
        unit="USD/h",
        labels=("capacity_type", "instance_type", "nodepool"),
    ),
    Metric(
        name="karpenter_cloudprovider_instance_type_offering_price_estimate",
        help_text="Price of the offering in US dollars per hour.",
        unit="USD/h",
        labels=("capacity_type", "instance_type", "zone"),
    ),
    Metric(name="karpenter_cluster_state_node_count", help_text="Nodes and NodeClaims.", unit="number"),
    Metric(
        name="karpenter_cluster_utilization_percent",
        help_text="Requested part of the allocatable resources of all nodes.",
        unit="%",
        labels=("resource_type",),
    ),
    Metric(
        name="karpenter_nodepools_allowed_disruptions",
        help_text="Nodes that may be disrupted at the same time.",
        unit="number",
        labels=("nodepool", "reason"),
    ),
    Metric(
        name="karpenter_nodepools_cost_total",
        help_text="Price of the nodes of the NodePool in US dollars per hour.",
        unit="USD/h",
        labels=("nodepool",),
    ),
    Metric(
        name="karpenter_nodepools_limit",
        help_text="spec.limits; cpu in cores.",
        unit=RESOURCE_UNIT,
        labels=("nodepool", "resource_type"),
    ),
    Metric(
        name="karpenter_nodepools_usage",
        help_text="Resources that count against the limits; cpu in cores.",
        unit=RESOURCE_UNIT,
        labels=("nodepool", "resource_type"),
    ),
    Metric(
        name="karpenter_nodes_allocatable",
        help_text="Resources of each node for pods; cpu in cores.",
        unit=RESOURCE_UNIT,
        labels=NODE_LABELS,
    ),
    Metric(
        name="karpenter_nodes_current_lifetime_seconds",
        help_text="Age of each node.",
        unit="seconds",
        labels=tuple(label for label in NODE_LABELS if label != "resource_type"),
    ),
    Metric(
        name="karpenter_nodes_total_pod_requests",
        help_text="Requests of the pods on each node, with those of DaemonSets; cpu in cores.",
        unit=RESOURCE_UNIT,
        labels=NODE_LABELS,
    ),
    Metric(
        name="karpenter_pods_state",
        help_text="1 for each pod, with its state in labels; labels of the node are empty for a pod without a node.",
        unit="number",
        labels=POD_LABELS,
    ),
    Metric(
        name="operator_nodeclaim_status_condition_count",
        help_text="1 for each condition of each NodeClaim.",
        unit="number",
        labels=("name", "namespace", "reason", "status", "type"),
    ),
)
"""Sorted by name."""
METRIC_BY_NAME: Final = {metric.name: metric for metric in METRICS}
