"""Commands that read the instance types of an account: about a thousand types."""

import json
from pathlib import Path

import pytest

from cli.main import main
from sim.aws_http.server import EmbeddedAws
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.support.cli.cli_objects import make_node_pool, make_pod
from tests.unit.cli.planning.test_catalog_source import NODE_CLASS

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.loopback


def test_plan_reads_instance_types_from_the_account(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.json"
    on_demand = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    other_class_ref = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "unknown"}}
    pools = (
        make_node_pool("a", requirements=on_demand),
        make_node_pool("b", requirements=on_demand, **other_class_ref),
    )
    pods = (make_pod(name, nodeSelector={"karpenter.sh/nodepool": name}) for name in ("a", "b"))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE_CLASS, *pools, *pods]}))
    source = ("--instance-types", "aws:us-east-1")
    with EmbeddedAws(Cloud(Clock())) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        assert main(["plan", "--now", "2026-11-21T08:00:00Z", "-f", str(path), *source, "-o", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["pricedAt"] == "2026-11-21T08:00:00Z"
    assert [node["nodePool"] for node in plan["newNodes"]] == ["a", "b"]
    assert all(node["cheapest"]["zone"].startswith("us-east-1") for node in plan["newNodes"])


def test_embedded_node_class_resolution_lists_the_instance_types_of_a_region(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLUSTER_NAME", "JOINER_INSTANCE_PROFILE", "FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)
    assert main(["nodeclass", "resolve", "-f", "examples/nodeclass/al2023.yaml", "--embedded", "-o", "json"]) == 0
    [node_class] = json.loads(capsys.readouterr().out)
    assert len(node_class["instanceTypes"]) > 1000
