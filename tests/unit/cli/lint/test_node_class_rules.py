"""`joiner lint`: annotations of EC2NodeClasses."""

import json
from pathlib import Path

import pytest
import yaml

from cli.main import main
from shared.model.core.labels import CANARY, IMAGE_MINIMUM_AGE, LAUNCH_FAILURES, PAUSE_AFTER_FAILURES

SPEC_BY_KIND = {
    "EC2NodeClass": {
        "role": "node",
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
    },
    "NodePool": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
            }
        }
    },
}
API_BY_KIND = {"EC2NodeClass": "karpenter.k8s.aws/v1", "NodePool": "karpenter.sh/v1"}


@pytest.mark.parametrize(
    ("kind", "annotations", "level", "key", "message"),
    [
        ("EC2NodeClass", {CANARY: "nodes=0 soak=1h"}, "error", CANARY, "nodes=0 is not a number from 1 to 100"),
        ("EC2NodeClass", {IMAGE_MINIMUM_AGE: "soon"}, "error", IMAGE_MINIMUM_AGE, "'soon' is not a duration"),
        ("EC2NodeClass", {PAUSE_AFTER_FAILURES: "1"}, "error", PAUSE_AFTER_FAILURES, "'1' is not a number from 2 to"),
        ("NodePool", {PAUSE_AFTER_FAILURES: "3"}, "warning", PAUSE_AFTER_FAILURES, "has no effect on a NodePool"),
        ("EC2NodeClass", {LAUNCH_FAILURES: "{}"}, "error", LAUNCH_FAILURES, "is not a history of Joiner"),
        ("EC2NodeClass", {PAUSE_AFTER_FAILURES: "3", CANARY: "soak=1h"}, "", "", ""),
    ],
)
def test_invalid_annotation_is_reported_with_field_and_fix(
    kind: str,
    annotations: dict[str, str],
    level: str,
    key: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    metadata = {"name": "default", "annotations": annotations}
    manifest = {"apiVersion": API_BY_KIND[kind], "kind": kind, "metadata": metadata, "spec": SPEC_BY_KIND[kind]}
    path = tmp_path / "class.yaml"
    path.write_text(yaml.safe_dump(manifest))
    main(["lint", "-f", str(path), "-o", "json"])
    findings = [item for item in json.loads(capsys.readouterr().out) if "joiner.dev" in item["field"]]
    assert [item["level"] for item in findings] == ([level] if level else [])
    assert all(key in item["field"] and message in item["message"] for item in findings)
