"""`joiner status -o prometheus`."""

import re
from pathlib import Path

import pytest

from cli.main import main
from cli.prometheus import exposition
from shared.model.nodepools import Budget
from shared.model.resources import parse_resources
from tests.unit.catalogues import claimed, instance_type, node, pod, pool, world
from tests.unit.fleet_files import POOL, claim, machine
from tests.unit.test_cli_status import written

SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="[^"]*",?)+\})? (\+?[-0-9.e+]+|inf)')


def test_a_fleet_is_told_by_the_names_that_karpenter_has() -> None:
    known, its = claimed(node("one"))
    some = pool(
        budgets=(Budget(nodes="50%", reasons=("Empty",)),), limits=parse_resources({"cpu": "16", "memory": "1Gi"})
    )
    kind = instance_type("m.04", 4, 16, zones=("a",), price=0.25)
    seen = world(pod("waits"), types=(kind,), nodes=(known,), node_claims=(its,), node_pools=(some,))
    said = exposition(seen).splitlines()
    assert [line for line in said if not line.startswith("#")] == [
        'joiner_nodes{capacity_type="on-demand",instance_type="m.04",nodepool="default"} 1',
        "joiner_pods_waiting 1",
        'joiner_usd_per_hour{capacity_type="on-demand",instance_type="m.04",nodepool="default"} 0.25',
        "karpenter_cluster_state_node_count 1",
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="Drifted"} inf',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="Empty"} 1',
        'karpenter_nodepools_allowed_disruptions{nodepool="default",reason="Underutilized"} inf',
        'karpenter_nodepools_limit{nodepool="default",resource_type="cpu"} 16',
        'karpenter_nodepools_limit{nodepool="default",resource_type="memory"} 1073741824',
        'karpenter_nodepools_usage{nodepool="default",resource_type="cpu"} 4',
        'karpenter_nodepools_usage{nodepool="default",resource_type="memory"} 17179869184',
        'karpenter_nodepools_usage{nodepool="default",resource_type="nodes"} 1',
        'karpenter_nodepools_usage{nodepool="default",resource_type="pods"} 110',
    ]
    assert sum(line.startswith("# TYPE ") for line in said) == sum(line.startswith("# HELP ") for line in said) == 7


def test_without_prices_there_are_no_dollars_and_odd_names_are_escaped() -> None:
    known, its = claimed(node("one", labels={"node.kubernetes.io/instance-type": 'a"b\\c'}))
    said = exposition(world(nodes=(known,), node_claims=(its,), catalogue=None))
    assert "joiner_usd_per_hour{" not in said
    assert r'instance_type="a\"b\\c"' in said


def test_the_command_prints_what_prometheus_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path, POOL, *machine("n1", 4), claim("c1", "n1", 4))
    assert main([*source, "-o", "prometheus"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("# ") or SAMPLE.fullmatch(line) for line in lines)
