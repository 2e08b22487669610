"""`joiner lint`: schedules of NodePools and CapacityBuffers."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

Object = dict[str, Any]
ZONE = "joiner.dev/schedule-time-zone"
SCHEDULE = "joiner.dev/schedule"
POOL_SPEC = {
    "template": {
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        }
    }
}
BUFFER_SPEC = {"podTemplateRef": {"name": "a"}, "replicas": 1}
API_BY_KIND = {
    "NodePool": "karpenter.sh/v1",
    "CapacityBuffer": "autoscaling.x-k8s.io/v1beta1",
    "Deployment": "apps/v1",
}


@pytest.mark.parametrize(
    ("kind", "spec", "annotations", "findings"),
    [
        ("NodePool", POOL_SPEC, {SCHEDULE: "@daily 1h paused=true", ZONE: "Asia/Tokyo"}, []),
        ("NodePool", POOL_SPEC, {SCHEDULE: "@daily 1h paused=x"}, [("error", SCHEDULE, "'x' is not a reason")]),
        (
            "NodePool",
            POOL_SPEC,
            {SCHEDULE: "@daily 1h replicas=0"},
            [("error", SCHEDULE, "needs a NodePool with spec.r")],
        ),
        ("NodePool", POOL_SPEC | {"replicas": 1}, {SCHEDULE: "@daily 1h replicas=0"}, []),
        (
            "NodePool",
            POOL_SPEC,
            {SCHEDULE: "@daily 1h paused=true", ZONE: "Tokyo"},
            [("error", ZONE, "not a time zone")],
        ),
        ("NodePool", POOL_SPEC, {ZONE: "Asia/Tokyo"}, [("warning", ZONE, "has no effect without joiner.dev/schedule")]),
        ("CapacityBuffer", BUFFER_SPEC, {SCHEDULE: "@daily 1h replicas=0"}, []),
        (
            "CapacityBuffer",
            BUFFER_SPEC,
            {SCHEDULE: "@daily 1h percentage=1"},
            [("error", SCHEDULE, "needs spec.scalab")],
        ),
        (
            "Deployment",
            {},
            {SCHEDULE: "@daily 1h replicas=0"},
            [("warning", SCHEDULE, "has no effect on a Deployment")],
        ),
    ],
)
def test_schedule_is_checked_once_with_the_line_of_its_annotation(
    kind: str,
    spec: Object,
    annotations: dict[str, str],
    findings: list[tuple[str, str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "manifest.yaml"
    metadata = {"name": "a", "annotations": annotations}
    file.write_text(yaml.safe_dump({"apiVersion": API_BY_KIND[kind], "kind": kind, "metadata": metadata, "spec": spec}))
    main(["lint", "-f", str(file), "-o", "json"])
    reported = [item for item in json.loads(capsys.readouterr().out) if "schedule" in item["field"]]
    assert len(reported) == len(findings)
    for item, (level, key, words) in zip(reported, findings, strict=True):
        assert (item["level"], item["field"]) == (level, f"metadata.annotations.{key}")
        assert words in item["message"]
        assert not item["location"].endswith(":1")
