"""`joiner lint`: gangs whose pods start after each other."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

GANG, SIZE = "joiner.dev/gang", "joiner.dev/gang-size"
ALONE = {SIZE: "1"}


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def lint_manifest(manifest: dict[str, Any]) -> list[tuple[str, str, str]]:
        path = tmp_path / "manifest.yaml"
        path.write_text(yaml.safe_dump(manifest))
        main(["lint", "-f", str(path), "-o", "json"])
        findings = json.loads(capsys.readouterr().out)
        return [(finding["level"], finding["field"], finding["message"]) for finding in findings]

    return lint_manifest


def make_template(annotations: dict[str, str] | None) -> dict[str, Any]:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    meta = {} if annotations is None else {"annotations": annotations}
    return {"metadata": meta, "spec": {"containers": [container]}}


def make_leader_worker_set(
    policy: str,
    worker: dict[str, str] | None = None,
    leader: dict[str, str] | None = None,
    *,
    size: int = 4,
) -> dict[str, Any]:
    templates = {"workerTemplate": make_template(worker), "size": size}
    if leader is not None:
        templates["leaderTemplate"] = make_template(leader)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {"startupPolicy": policy, "leaderWorkerTemplate": templates},
    }


def make_job_set(order: str, *jobs: dict[str, str] | None, depends: bool = False) -> dict[str, Any]:
    replicated_jobs: list[dict[str, Any]] = [
        {"name": f"job{number}", "template": {"spec": {"template": make_template(annotations)}}}
        for number, annotations in enumerate(jobs)
    ]
    if depends:
        replicated_jobs[-1]["dependsOn"] = [{"name": "job0", "status": "Ready"}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"startupPolicy": {"startupPolicyOrder": order}, "replicatedJobs": replicated_jobs},
    }


@pytest.mark.parametrize(
    ("manifest", "field", "fix"),
    [
        (
            make_leader_worker_set("LeaderReady"),
            "spec.startupPolicy",
            'set joiner.dev/gang-size: "1" in spec.leaderWorkerTemplate.workerTemplate.metadata.annotations, or write',
        ),
        (make_leader_worker_set("LeaderReady", {SIZE: "4"}), "spec.startupPolicy", "or write LeaderCreated"),
        (
            make_leader_worker_set("LeaderReady", None, {}),
            "spec.startupPolicy",
            "leaderTemplate.metadata.annotations and ",
        ),
        (
            make_leader_worker_set("LeaderReady", None, ALONE),
            "spec.startupPolicy",
            "workerTemplate.metadata.annotations",
        ),
        (make_job_set("InOrder", None, None), "spec.startupPolicy.startupPolicyOrder", "or write AnyOrder"),
        (
            make_job_set("InOrder", ALONE, None),
            "spec.startupPolicy.startupPolicyOrder",
            "in spec.replicatedJobs[1].template.spec.template.metadata.annotations, or write AnyOrder",
        ),
        (make_job_set("AnyOrder", None, None, depends=True), "spec.replicatedJobs[1].dependsOn", "or remove it"),
    ],
)
def test_gang_whose_pods_start_after_each_other_is_reported(
    lint: Any, manifest: dict[str, Any], field: str, fix: str
) -> None:
    [(level, found_field, message)] = lint(manifest)
    assert (level, found_field) == ("warning", field)
    assert "the pods of the gang never all exist: if the setting gangs is on, they get no nodes" in message
    assert fix in message


@pytest.mark.parametrize(
    "manifest",
    [
        make_leader_worker_set("LeaderCreated"),
        make_leader_worker_set("LeaderReady", size=1),
        make_leader_worker_set("LeaderReady", ALONE),
        make_leader_worker_set("LeaderReady", {GANG: "workers", SIZE: "3"}, ALONE),
        make_leader_worker_set("LeaderReady", {SIZE: "3"}, ALONE),
        make_job_set("AnyOrder", None, None),
        make_job_set("InOrder", None),
        make_job_set("InOrder", ALONE, {SIZE: "8"}),
        make_job_set("AnyOrder", None, None) | {"spec": {"replicatedJobs": "text"}},
    ],
)
def test_gang_whose_pods_can_all_exist_has_no_finding(lint: Any, manifest: dict[str, Any]) -> None:
    assert lint(manifest) == []
