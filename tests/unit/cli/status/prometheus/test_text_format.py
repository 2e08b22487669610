"""`joiner status -o prometheus`."""

import re
from pathlib import Path

import pytest

from cli.main import main
from cli.status.prometheus.text_format import render_metrics
from shared.model.core.resources import parse_resources
from shared.model.karpenter.money_limit import MoneyPolicy
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)
from tests.support.cli.fleet_files import POOL, make_claim, make_node_manifests
from tests.unit.cli.status.test_status import write_inputs

SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="[^"]*",?)+\})? (\+?[-0-9.e+]+|inf)')


def test_prometheus_output_uses_karpenter_metric_names() -> None:
    managed_node, node_claim = attach_claim(make_node("one"))
    node_pool = make_node_pool(
        budgets=(DisruptionBudget(nodes="50%", reasons=("Empty",)),),
        limits=parse_resources({"cpu": "16", "memory": "1Gi"}),
    )
    kind = make_instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    snapshot = make_cluster_snapshot(
        make_pod("waits"), types=(kind,), nodes=(managed_node,), node_claims=(node_claim,), node_pools=(node_pool,)
    )
    metric_lines = render_metrics(ClusterState(snapshot), detail="summary").splitlines()
    assert [line for line in metric_lines if not line.startswith("#")] == [
        "joiner_invalid_objects 0",
        'joiner_nodes{capacity_type="on-demand",instance_type="m.04",nodepool="default"} 1',
        "joiner_pods_pending 1",
        'joiner_usd_per_hour{capacity_type="on-demand",instance_type="m.04",nodepool="default"} 0.25',
        "karpenter_cluster_state_node_count 1",
        'karpenter_cluster_utilization_percent{resource_type="cpu"} 0',
        'karpenter_cluster_utilization_percent{resource_type="memory"} 0',
        'karpenter_cluster_utilization_percent{resource_type="pods"} 0',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="drifted"} inf',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="empty"} 1',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="underutilized"} inf',
        'karpenter_nodepools_cost_total{nodepool="default"} 0.25',
        'karpenter_nodepools_limit{nodepool="default",resource_type="cpu"} 16',
        'karpenter_nodepools_limit{nodepool="default",resource_type="memory"} 1073741824',
        'karpenter_nodepools_usage{nodepool="default",resource_type="cpu"} 4',
        'karpenter_nodepools_usage{nodepool="default",resource_type="memory"} 17179869184',
        'karpenter_nodepools_usage{nodepool="default",resource_type="nodes"} 1',
        'karpenter_nodepools_usage{nodepool="default",resource_type="pods"} 110',
    ]
    assert (
        sum(line.startswith("# TYPE ") for line in metric_lines)
        == sum(line.startswith("# HELP ") for line in metric_lines)
        == 10
    )


def test_prometheus_output_has_limits_in_usd_only_if_there_are_some() -> None:
    managed_node, node_claim = attach_claim(make_node("one"))
    kind = make_instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    snapshot = make_cluster_snapshot(types=(kind,), nodes=(managed_node,), node_claims=(node_claim,))
    assert "limit_usd" not in render_metrics(ClusterState(snapshot))
    lines = render_metrics(ClusterState(snapshot), MoneyPolicy(cluster_limit=4_000_000)).splitlines()
    assert [line for line in lines if line.startswith("joiner_limit")] == [
        'joiner_limit_usd_per_hour{nodepool=""} 4',
        'joiner_limit_used_usd_per_hour{nodepool=""} 0.25',
    ]


def test_prometheus_output_without_prices_omits_cost_and_escapes_labels() -> None:
    managed_node, node_claim = attach_claim(make_node("one", labels={"node.kubernetes.io/instance-type": 'a"b\\c'}))
    snapshot = make_cluster_snapshot(nodes=(managed_node,), node_claims=(node_claim,), catalog=None)
    metrics = render_metrics(ClusterState(snapshot))
    assert "joiner_usd_per_hour{" not in metrics
    assert r'instance_type="a\"b\\c"' in metrics


def test_status_prints_valid_prometheus_text_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_inputs(tmp_path, POOL, *make_node_manifests("n1", 4), make_claim("c1", "n1", 4))
    assert main([*source, "-o", "prometheus"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
