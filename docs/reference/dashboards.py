"""Dashboards of Grafana, generated from the metric table, which has the units, descriptions and labels of panels."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.decide.prometheus.metric_table import METRIC_BY_NAME, RESOURCE_UNIT

FOLDER: Final = Path(__file__).resolve().parents[2] / "examples" / "grafana"
GRAFANA_UNITS: Final = {"seconds": "s", "USD/h": "currencyUSD", "number": "short", "%": "percent"}
RESOURCE_UNITS: Final = {"cpu": "short", "memory": "bytes", "pods": "short"}
RATIO_UNIT: Final = "percentunit"
COLUMN_COUNT: Final = 2
PANEL_WIDTH: Final = 12
PANEL_HEIGHT: Final = 8
DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """A panel that shows a metric, or the ratio of two metrics."""

    title: str
    metric: str
    shown_labels: tuple[str, ...] = ()
    """Labels of the shown series; the others are summed up."""
    divisor: str = ""
    """Metric by which *metric* is divided; empty: none."""
    resource: str = ""
    """Value of the label resource_type; empty: the metric does not have this label."""
    factor: int = 1

    def build_expression(self) -> str:
        """Return the query in PromQL, with the variables of the dashboard."""
        expression = self._build_sum(self.metric)
        if self.divisor:
            return f"{expression} / {self._build_sum(self.divisor)}"
        return f"{expression} * {self.factor}" if self.factor != 1 else expression

    def get_unit(self) -> str:
        """Return Grafana's name of the unit of the values."""
        if self.divisor:
            return RATIO_UNIT
        unit = METRIC_BY_NAME[self.metric].unit
        return RESOURCE_UNITS[self.resource] if unit == RESOURCE_UNIT else GRAFANA_UNITS[unit]

    def _build_sum(self, name: str) -> str:
        labels = METRIC_BY_NAME[name].labels
        selectors = ['cluster=~"$cluster"']
        if "nodepool" in labels:
            selectors.append('nodepool=~"$nodepool"')
        if self.resource:
            selectors.append(f'resource_type="{self.resource}"')
        return f"sum by ({', '.join(('cluster', *self.shown_labels))}) ({name}{{{','.join(selectors)}}})"


class Dashboard(msgspec.Struct, frozen=True, kw_only=True):
    """A dashboard."""

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]


HOURS_PER_MONTH: Final = 730
DASHBOARDS: Final = (
    Dashboard(
        uid="joiner-cluster",
        title="Joiner / Cluster",
        description="Nodes, prices, limits and disruption budgets. For the scrape target, and for remote write with "
        "remote-write-metrics: summary.",
        panels=(
            Panel(title="Pending pods", metric="joiner_pods_pending"),
            Panel(title="Nodes of Joiner by NodePool", metric="joiner_nodes", shown_labels=("nodepool",)),
            Panel(title="Nodes of Joiner by capacity type", metric="joiner_nodes", shown_labels=("capacity_type",)),
            Panel(title="Nodes of Joiner by instance type", metric="joiner_nodes", shown_labels=("instance_type",)),
            Panel(title="All nodes and NodeClaims", metric="karpenter_cluster_state_node_count"),
            Panel(title="Price per hour by NodePool", metric="joiner_usd_per_hour", shown_labels=("nodepool",)),
            Panel(
                title="Price per hour by instance type", metric="joiner_usd_per_hour", shown_labels=("instance_type",)
            ),
            Panel(
                title="Cost of NodePools per hour", metric="karpenter_nodepools_cost_total", shown_labels=("nodepool",)
            ),
            Panel(
                title="Requested part of all allocatable CPU",
                metric="karpenter_cluster_utilization_percent",
                resource="cpu",
            ),
            Panel(
                title="Requested part of all allocatable memory",
                metric="karpenter_cluster_utilization_percent",
                resource="memory",
            ),
            Panel(title="Price of a month of 730 hours", metric="joiner_usd_per_hour", factor=HOURS_PER_MONTH),
            Panel(title="Limit in USD per hour", metric="joiner_limit_usd_per_hour", shown_labels=("nodepool",)),
            Panel(
                title="Used part of the limit in USD per hour",
                metric="joiner_limit_used_usd_per_hour",
                shown_labels=("nodepool",),
                divisor="joiner_limit_usd_per_hour",
            ),
            Panel(
                title="CPU that counts against the limit of the NodePool",
                metric="karpenter_nodepools_usage",
                shown_labels=("nodepool",),
                resource="cpu",
            ),
            Panel(
                title="Memory of the nodes of the NodePool",
                metric="karpenter_nodepools_usage",
                shown_labels=("nodepool",),
                resource="memory",
            ),
            Panel(
                title="Used part of the CPU limit of the NodePool",
                metric="karpenter_nodepools_usage",
                shown_labels=("nodepool",),
                divisor="karpenter_nodepools_limit",
                resource="cpu",
            ),
            Panel(
                title="Nodes that may be disrupted",
                metric="karpenter_nodepools_allowed_disruptions",
                shown_labels=("nodepool", "reason"),
            ),
            Panel(title="Invalid objects", metric="joiner_invalid_objects"),
            Panel(title="Age of the catalog", metric="joiner_catalog_age_seconds"),
        ),
    ),
    Dashboard(
        uid="joiner-nodes",
        title="Joiner / Nodes",
        description="Requests and allocatable resources of nodes. For the scrape target, and for remote write with "
        "remote-write-metrics: nodes or all.",
        panels=(
            *(
                Panel(
                    title=f"Requested part of the {text} by {label_text}",
                    metric="karpenter_nodes_total_pod_requests",
                    shown_labels=(label,),
                    divisor="karpenter_nodes_allocatable",
                    resource=resource,
                )
                for label, label_text in (
                    ("nodepool", "NodePool"),
                    ("instance_type", "instance type"),
                    ("node_name", "node"),
                )
                for resource, text in (("cpu", "CPU"), ("memory", "memory"))
            ),
            Panel(
                title="Allocatable CPU by zone",
                metric="karpenter_nodes_allocatable",
                shown_labels=("zone",),
                resource="cpu",
            ),
            Panel(
                title="Requested CPU by zone",
                metric="karpenter_nodes_total_pod_requests",
                shown_labels=("zone",),
                resource="cpu",
            ),
            Panel(
                title="Pods by node",
                metric="karpenter_nodes_total_pod_requests",
                shown_labels=("node_name",),
                resource="pods",
            ),
            Panel(title="Age of nodes", metric="karpenter_nodes_current_lifetime_seconds", shown_labels=("node_name",)),
            Panel(
                title="NodeClaims by condition",
                metric="operator_nodeclaim_status_condition_count",
                shown_labels=("type", "status"),
            ),
            Panel(title="Age of the snapshot (scrape target only)", metric="joiner_snapshot_age_seconds"),
        ),
    ),
    Dashboard(
        uid="joiner-pods",
        title="Joiner / Pods and offerings",
        description="Pods by state, and prices of offerings. For the scrape target, and for remote write with "
        "remote-write-metrics: all.",
        panels=(
            Panel(title="Pods by phase", metric="karpenter_pods_state", shown_labels=("phase",)),
            Panel(title="Pods by namespace", metric="karpenter_pods_state", shown_labels=("namespace",)),
            Panel(title="Pods by capacity type", metric="karpenter_pods_state", shown_labels=("capacity_type",)),
            Panel(
                title="Pods by scheduled and ready", metric="karpenter_pods_state", shown_labels=("scheduled", "ready")
            ),
            Panel(
                title="Prices of offerings",
                metric="karpenter_cloudprovider_instance_type_offering_price_estimate",
                shown_labels=("instance_type", "capacity_type", "zone"),
            ),
        ),
    ),
)


def render_dashboards() -> dict[Path, str]:
    """Render the JSON file of each dashboard, by path."""
    return {
        FOLDER / f"{dashboard.uid}.json": json.dumps(build_document(dashboard), indent=2) + "\n"
        for dashboard in DASHBOARDS
    }


def build_document(dashboard: Dashboard) -> dict[str, Any]:
    """Return the JSON model of *dashboard*, for the import of Grafana."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["joiner"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                _build_variable("cluster", "label_values(joiner_pods_pending, cluster)"),
                _build_variable("nodepool", 'label_values(joiner_nodes{cluster=~"$cluster"}, nodepool)'),
            ]
        },
        "panels": [_build_panel(panel, number) for number, panel in enumerate(dashboard.panels)],
    }


def _build_variable(name: str, query: str) -> dict[str, Any]:
    """Return a variable; `All` also matches series without the label."""
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": DATA_SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _build_panel(panel: Panel, number: int) -> dict[str, Any]:
    row, column = divmod(number, COLUMN_COUNT)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": METRIC_BY_NAME[panel.metric].help_text,
        "datasource": DATA_SOURCE,
        "gridPos": {"x": column * PANEL_WIDTH, "y": row * PANEL_HEIGHT, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.get_unit(), "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "datasource": DATA_SOURCE,
                "expr": panel.build_expression(),
                "legendFormat": " ".join(f"{{{{{label}}}}}" for label in ("cluster", *panel.shown_labels)),
            }
        ],
    }
