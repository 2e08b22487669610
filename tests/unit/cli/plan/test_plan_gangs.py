"""`joiner plan` with gangs and ProvisioningRequests."""

import json
from pathlib import Path

import pytest
import yaml

from cli.main import main

EXAMPLES = Path(__file__).parents[4] / "examples"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train-0", "annotations": {"joiner.dev/gang": "train", "joiner.dev/gang-size": "2"}},
    "spec": {"containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}]},
}
REQUEST = {
    "apiVersion": "autoscaling.x-k8s.io/v1",
    "kind": "ProvisioningRequest",
    "metadata": {"name": "train"},
    "spec": {
        "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 3}],
    },
}
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "worker"},
    "template": {"spec": POD["spec"]},
}


def plan_pod_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: object) -> tuple[list[str], int]:
    """Return the reasons of unschedulable pods, and the number of pods on new nodes."""
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    arguments = ["plan", "-f", str(EXAMPLES / "plan" / "pools.yaml"), "-f", str(path)]
    main([*arguments, "--instance-types", str(EXAMPLES / "catalogue.json"), "-o", "json"])
    document = json.loads(capsys.readouterr().out)
    reasons = [item["reason"] for item in document["unschedulable"]]
    return reasons, sum(len(node["pods"]) for node in document["newNodes"])


def test_gangs_are_planned_only_if_the_variable_is_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan_pod_reasons(tmp_path, capsys, POD) == ([], 1)
    monkeypatch.setenv("JOINER_GANGS", "on")
    assert plan_pod_reasons(tmp_path, capsys, POD) == (["GangIncomplete"], 0)


def test_requests_are_planned_only_if_the_variable_is_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan_pod_reasons(tmp_path, capsys, REQUEST, TEMPLATE) == ([], 0)
    monkeypatch.setenv("JOINER_PROVISIONING_REQUESTS", "on")
    assert plan_pod_reasons(tmp_path, capsys, REQUEST, TEMPLATE) == ([], 3)
