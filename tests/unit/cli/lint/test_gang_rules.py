"""`joiner lint`: gangs of pods."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

GANG, SIZE, TOPOLOGY = "joiner.dev/gang", "joiner.dev/gang-size", "joiner.dev/gang-topology"


def lint_job(
    annotations: dict[str, str], own_annotations: dict[str, str], tmp_path: Path, capsys: Any
) -> list[tuple[str, str, str]]:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": own_annotations},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}},
    }
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    main(["lint", "-f", str(path), "-o", "json"])
    findings = json.loads(capsys.readouterr().out)
    return [
        (finding["level"], finding["field"], finding["message"]) for finding in findings if "gang" in finding["field"]
    ]


@pytest.mark.parametrize(
    ("annotations", "own_annotations", "level", "key", "message"),
    [
        ({GANG: "train"}, {}, "error", SIZE, "is missing: write the number of pods"),
        ({GANG: "train", SIZE: "0"}, {}, "error", SIZE, "'0' is not a number from 1 to 10,000"),
        ({GANG: "train", SIZE: "2", TOPOLOGY: "rack"}, {}, "error", TOPOLOGY, "'rack' is not a topology"),
        (
            {SIZE: "2"},
            {},
            "warning",
            SIZE,
            "has no effect: the pods are in no gang; add the annotation joiner.dev/gang",
        ),
        ({}, {GANG: "train"}, "warning", GANG, "has no effect on a Job, only on its pods: move it to spec.template"),
    ],
)
def test_invalid_gang_is_reported(
    annotations: dict[str, str],
    own_annotations: dict[str, str],
    level: str,
    key: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [finding] = lint_job(annotations, own_annotations, tmp_path, capsys)
    assert finding[0] == level
    assert key in finding[1]
    assert message in finding[2]


def test_valid_gang_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint_job({GANG: "train", SIZE: "2", TOPOLOGY: "zone"}, {}, tmp_path, capsys) == []
    assert lint_job({SIZE: "1"}, {}, tmp_path, capsys) == []
