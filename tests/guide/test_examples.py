"""The manifests in `examples/` are valid and do what their comments say."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.convert.reading.sources import read_objects
from cli.lint.rules import lint_objects
from cli.main import main
from tests.guide.pages import ROOT

EXAMPLES = ROOT / "examples"
MANIFESTS = sorted(
    path
    for path in EXAMPLES.rglob("*.yaml")
    if path.relative_to(EXAMPLES).parts[0]
    not in ("older", "scenarios", "plan", "events", "argocd", "commitments.yaml", "hub.yaml")
)
"""Without older APIs, which are input for conversion, and without files that are no manifests."""
CATALOGUE = str(EXAMPLES / "catalogue.json")
COREDNS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  replicas: 2
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      priorityClassName: system-cluster-critical
      tolerations: [{key: CriticalAddonsOnly, operator: Exists}]
      containers: [{name: coredns, image: coredns, resources: {requests: {cpu: 100m, memory: 70Mi}}}]
"""


@pytest.mark.parametrize("path", [*MANIFESTS, EXAMPLES / "plan"], ids=lambda path: path.name)
def test_example_manifest_has_no_lint_findings(path: Path) -> None:
    objects = list(read_objects([str(path)], pytest.fail))
    assert objects
    findings = [finding for finding in lint_objects(objects) if "is not in the input" not in finding.message]
    assert [str(finding) for finding in findings] == []


def plan_examples(capsys: pytest.CaptureFixture[str], *names: str, extra_paths: Sequence[str] = ()) -> dict[str, Any]:
    """Return the plan for the example files with these *names*, and for the paths *extra_paths*."""
    files = [str(EXAMPLES / f"{name}.yaml") for name in names]
    sources = [word for file in (*files, *extra_paths) for word in ("-f", file)]
    assert main(["plan", *sources, "--instance-types", CATALOGUE, "-o", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def group_deployments(plan: dict[str, Any], key: str) -> dict[str, set[str]]:
    """Return the Deployments that have pods on new nodes, by the value of *key* of the node."""
    deployments: dict[str, set[str]] = {}
    for node in plan["newNodes"]:
        name = node[key] if key in node else node["cheapest"][key]
        deployments.setdefault(name, set()).update(pod.split("/")[1].rpartition("-")[0] for pod in node["pods"])
    return deployments


def test_inflate_example_gets_nodes_from_default_nodepool(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_examples(capsys, "getting-started", "inflate")
    assert group_deployments(plan, "nodePool") == {"default": {"inflate"}}
    assert sum(len(node["pods"]) for node in plan["newNodes"]) == 5


def test_two_nodepools_keep_their_pods_on_separate_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_examples(capsys, "getting-started", "two-pools")
    assert group_deployments(plan, "nodePool") == {"infra": {"ingress"}, "workernode": {"web"}}


def test_savings_plan_nodepool_is_filled_before_default_nodepool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    inflate = tmp_path / "inflate.yaml"
    inflate.write_text((EXAMPLES / "inflate.yaml").read_text().replace("replicas: 5", "replicas: 12"))
    plan = plan_examples(capsys, "savings-plan", extra_paths=[str(inflate)])
    nodes = Counter(node["nodePool"] for node in plan["newNodes"])
    assert nodes["savings-plan"] == 4
    assert nodes["default"] > 0
    assert {node["cheapest"]["instanceType"] for node in plan["newNodes"] if node["nodePool"] == "savings-plan"} == {
        "m7a.large"
    }


def test_gpu_nodes_are_used_only_by_pods_that_request_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_examples(capsys, "getting-started", "gpu", "inflate")
    assert group_deployments(plan, "nodePool") == {"gpu": {"train"}, "default": {"inflate"}}
    assert {node["cheapest"]["instanceType"] for node in plan["newNodes"] if node["nodePool"] == "gpu"} == {"g6.xlarge"}


def test_team_pods_run_on_nodes_of_the_team_nodepool(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_examples(capsys, "getting-started", "cost-labels", "inflate")
    assert group_deployments(plan, "nodePool") == {"my-team": {"theirs"}, "default": {"inflate"}}


def test_coredns_gets_a_system_node_in_an_empty_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    coredns = tmp_path / "coredns.yaml"
    coredns.write_text(COREDNS)
    assert group_deployments(
        plan_examples(capsys, "getting-started", "system", extra_paths=[str(coredns)]), "nodePool"
    ) == {"system": {"coredns"}}
    coredns.write_text(COREDNS.replace("    spec:\n", "    spec:\n      nodeSelector: {home: system}\n"))
    plan = plan_examples(capsys, "getting-started", "system", "inflate", extra_paths=[str(coredns)])
    assert group_deployments(plan, "nodePool") == {"system": {"coredns"}, "default": {"inflate"}}
    assert [node["cheapest"]["capacityType"] for node in plan["newNodes"] if node["nodePool"] == "system"] == [
        "on-demand"
    ]


def test_spot_is_used_except_by_pods_that_require_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_examples(capsys, "spot-with-fallback")
    assert group_deployments(plan, "capacityType") == {"spot": {"web"}, "on-demand": {"ledger"}}
    for node in plan["newNodes"]:
        assert len({name.partition(".")[0] for name in node["instanceTypes"]}) >= 3


def test_capacity_buffer_adds_capacity_beyond_existing_pods(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_without_buffer = plan_examples(capsys, "headroom")
    monkeypatch.setenv("FEATURE_GATES", "CapacityBuffer=true")
    plan_with_buffer = plan_examples(capsys, "headroom")
    room = [
        sum(_parse_cpu_milli(node["requests"]["cpu"]) for node in plan["newNodes"])
        for plan in (plan_without_buffer, plan_with_buffer)
    ]
    assert room == [2000, 4000]


def _parse_cpu_milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
