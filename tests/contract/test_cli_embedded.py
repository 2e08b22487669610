"""Commands that ask an account themselves, over HTTP, for all that it sells: a thousand types, once each."""

import json
import os
from pathlib import Path

import pytest

from cli.main import main
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.http.server import EmbeddedAws
from tests.unit.cli_objects import pod, pool
from tests.unit.test_cli_catalogues import NODE_CLASS

Out = pytest.CaptureFixture[str]
pytestmark = pytest.mark.loopback


def test_a_plan_asks_the_account_what_it_sells(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cluster.json"
    on_demand = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    other = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "unknown"}}
    pools = (pool("a", requirements=on_demand), pool("b", requirements=on_demand, **other))
    pods = (pod(name, nodeSelector={"karpenter.sh/nodepool": name}) for name in ("a", "b"))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE_CLASS, *pools, *pods]}))
    source = ("--instance-types", "aws:us-east-1")
    with EmbeddedAws(Cloud(Clock())) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        assert main(["plan", "--now", "2026-11-21T08:00:00Z", "-f", str(path), *source, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pricedAt"] == "2026-11-21T08:00:00Z"
    assert [node["nodePool"] for node in told["newNodes"]] == ["a", "b"]
    assert all(node["cheapest"]["zone"].startswith("us-east-1") for node in told["newNodes"])


def test_a_node_class_is_resolved_by_an_embedded_cloud_and_credentials_stay_as_they_were(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    for name in ("CLUSTER_NAME", "JOINER_INSTANCE_PROFILE", "FEATURE_GATES"):
        monkeypatch.delenv(name, raising=False)
    assert main(["nodeclass", "resolve", "-f", "examples/nodeclass/al2023.yaml", "--embedded", "-o", "json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    assert len(one["instanceTypes"]) > 1000
    assert os.environ["AWS_ACCESS_KEY_ID"] == "mine"
