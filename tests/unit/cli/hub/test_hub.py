"""Tests of `joiner hub`: two clusters in folders, clusters that cannot be read, and buckets with an assumed role."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any, Final

import msgspec
import pytest
import yaml

import cli.hub.session
from cli.cluster.fixes import SIGN_IN_HINT
from cli.hub.cluster_buckets import FolderBucket, TurnTakingBucket, open_cluster_bucket
from cli.hub.hub_file import HubCluster, read_hub_file
from cli.hub.session import read_hub
from cli.main import main
from shared.aws import clients as aws_clients
from shared.aws.clients import TemporaryCredentials
from shared.errors import Fault, Forbidden, Invalid, NotFound, Throttled, Unreachable
from shared.ports.storage import Bucket
from shared.report.costs.cost_ledger import CostLedger
from sim.world.memory_ports import MemoryBucket
from tests.unit.cli.hub.hub_buckets import AT, EXAMPLE, WritableFolder, put_newest_record

NOW: Final = "2026-11-21T09:09:00Z"
ROLE: Final = "arn:aws:iam::444455556666:role/joiner-hub"
Out = pytest.CaptureFixture[str]


def write_hub(tmp_path: Path, *clusters: dict[str, Any]) -> str:
    path = tmp_path / "hub.yaml"
    path.write_text(yaml.safe_dump({"clusters": list(clusters)}))
    return str(path)


def run_json(capsys: Out, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    status = main(["hub", *arguments, "-o", "json", "--now", NOW])
    return status, json.loads(capsys.readouterr().out)["clusters"]


def test_cluster_that_cannot_be_read_is_a_row_and_does_not_stop_the_others(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    file = write_hub(
        tmp_path,
        {"name": "a", "folder": str(EXAMPLE)},
        {"name": "gone", "folder": "nothing"},
        {"name": "b", "folder": "copy"},
    )
    status, clusters = run_json(capsys, file)
    assert status == 1
    assert [cluster["name"] for cluster in clusters] == ["a", "gone", "b"]
    assert clusters[0] == clusters[2] | {"name": "a", "nextSteps": clusters[0]["nextSteps"]}
    assert clusters[1] == {
        "remarks": [],
        "nextSteps": [{"purpose": "list the copied journal", "command": f"ls {tmp_path / 'nothing'}/journal"}],
        "name": "gone",
        "error": f"{tmp_path / 'nothing'}: folder not found: check folder; a relative path is relative to the hub file",
    }
    assert main(["hub", file, "--now", NOW, "--wide"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith("gone  could not be read: ")
    assert lines[5:] == [
        "2 of 3 clusters: 2 nodes, $0.1092/h, $0.18 today, $0.18 this month, 4 pending pods, 0 drifted nodes",
        "not in the totals, because they could not be read: gone",
    ]


def test_clusters_that_can_all_be_read_exit_with_zero(tmp_path: Path, capsys: Out) -> None:
    status, [cluster] = run_json(capsys, write_hub(tmp_path, {"name": "a", "folder": str(EXAMPLE)}))
    assert status == 0
    assert (cluster["nodes"], cluster["usdPerHour"], cluster["pendingPods"]) == (1, 0.054623, 2)
    assert (cluster["dayUsd"], cluster["monthUsd"], cluster["driftedNodes"]) == (0.091365, 0.091365, 0)
    assert (cluster["kubernetesVersion"], cluster["silent"], cluster["pauses"]) == ("1.34", False, [])


def test_cluster_without_a_recent_entry_is_reported_as_silent(tmp_path: Path, capsys: Out) -> None:
    file = write_hub(tmp_path, {"name": "a", "folder": str(EXAMPLE)})
    assert main(["hub", file, "--now", "2026-11-21T11:09:00Z"]) == 0
    expected = "a: no journal entry for 2h1m, the values are older: run `joiner doctor` for this cluster"
    assert expected in capsys.readouterr().out


def test_unreadable_decision_record_is_named_and_older_values_are_shown(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy/snapshot")
    assert main(["hub", write_hub(tmp_path, {"name": "a", "folder": "copy"}), "--now", NOW, "-o", "json"]) == 1
    captured = capsys.readouterr()
    [cluster] = json.loads(captured.out)["clusters"]
    assert (cluster["nodePools"], cluster["pauses"], cluster["driftedNodes"]) == (None, None, None)
    assert cluster["nodes"] is not None
    assert "joiner hub: a: snapshot/" in captured.err


def test_clusters_are_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    barrier = Barrier(3, timeout=20)

    class WaitingBucket(MemoryBucket):
        """Lists only when three clusters do so."""

        def list_keys(self, prefix: str) -> tuple[str, ...]:
            barrier.wait()
            return super().list_keys(prefix)

    @contextmanager
    def open_waiting_bucket(_: HubCluster) -> Iterator[Bucket]:
        yield WaitingBucket()

    monkeypatch.setattr(cli.hub.session, "open_cluster_bucket", open_waiting_bucket)
    rows = read_hub([HubCluster(name=name, bucket="b") for name in "abc"], AT).rows
    assert [(row.cluster.name, row.error[:18]) for row in rows] == [(name, "no journal entries") for name in "abc"]


def test_refused_role_is_an_error_with_the_fields_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str, str]] = []

    def refuse(_: object, role: str, external_id: str, session: str) -> TemporaryCredentials:
        requests.append((role, external_id, session))
        raise Forbidden(f"sts:AssumeRole {role}: AccessDenied")

    monkeypatch.setattr(aws_clients, "assume_role", refuse)
    cluster = HubCluster(name="a", bucket="bucket", region="us-east-1", role=ROLE, external_id="x1")
    [row] = read_hub([cluster], AT).rows
    assert requests == [(ROLE, "x1", "joiner-hub")]
    assert row.error == (
        f"sts:AssumeRole {ROLE}: AccessDenied: check role and external-id, the trust policy of the role, "
        "and your permission sts:AssumeRole"
    )


@pytest.mark.parametrize(
    ("fault", "cluster", "fix"),
    [
        (Forbidden("s3:GetObject: ExpiredToken"), {}, SIGN_IN_HINT),
        (Forbidden("s3:GetObject x: AccessDenied"), {}, "check the permissions of your identity (`aws sts get-caller-"),
        (Forbidden("s3:GetObject x: AccessDenied"), {"role": ROLE}, f"check the permissions of {ROLE} on the bucket"),
        (NotFound("s3:ListObjectsV2: NoSuchBucket"), {}, "check bucket and region: the bucket's name is the stack"),
        (Unreachable("s3: timeout"), {}, "check region and the network"),
        (Throttled("s3: SlowDown"), {}, "try again in a minute"),
        (Invalid("s3: odd"), {}, ""),
    ],
)
def test_fault_of_a_cluster_is_shown_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, cluster: dict[str, str], fix: str
) -> None:
    @contextmanager
    def refuse_bucket(_: HubCluster) -> Iterator[Bucket]:
        raise fault
        yield

    monkeypatch.setattr(cli.hub.session, "open_cluster_bucket", refuse_bucket)
    [row] = read_hub([HubCluster(name="a", bucket="bucket", region="us-east-1", **cluster)], AT).rows
    assert row.error.startswith(f"{fault}{f': {fix}' if fix else ''}")


def test_hub_without_a_readable_cluster_has_no_table(tmp_path: Path, capsys: Out) -> None:
    assert main(["hub", write_hub(tmp_path, {"name": "gone", "folder": "nothing"}), "--now", NOW, "--wide"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("gone  could not be read: ")
    assert lines[2].startswith("0 of 1 cluster: ? nodes, ?, ? today, ? this month, ? pending pods, ? drifted nodes")


def test_late_costs_and_pauses_are_named_below_the_totals(tmp_path: Path, capsys: Out) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "a")
    ledger = CostLedger(since=AT - timedelta(hours=9), until=AT.replace(hour=2, minute=0))
    (tmp_path / "a/costs/today.json").write_bytes(msgspec.json.encode(ledger))
    put_newest_record(WritableFolder(tmp_path / "a"), pause_everything)
    assert main(["hub", write_hub(tmp_path, {"name": "a", "folder": "a"}), "--now", NOW, "--wide"]) == 0
    text = capsys.readouterr().out
    assert "a: costs only until 2026-11-21T02:00:00Z\n" in text
    assert "a: paused: " in text
    assert "a: paused: NodePool default: " in text


def pause_everything(record: dict[str, Any]) -> None:
    """Set `mode: plan`, and pause the disruption of the NodePool."""
    record["given"]["settings"]["mode"] = "plan"
    annotations = record["cluster"]["node_pools"][0]["meta"].setdefault("annotations", [])
    annotations.append(["joiner.dev/disruption-paused", "true by anna because audit"])


def test_part_of_a_folder_that_cannot_be_read_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    with pytest.raises(NotFound, match="file not found"):
        FolderBucket(tmp_path).get("missing.json")
    with pytest.raises(Unreachable, match="Is a directory"):
        FolderBucket(tmp_path).get("journal")


def test_nothing_can_be_written(tmp_path: Path) -> None:
    from threading import Lock  # noqa: PLC0415 - only here

    with open_cluster_bucket(HubCluster(name="a", folder=str(tmp_path))) as bucket, pytest.raises(Invalid):
        bucket.put("x", b"")
    with pytest.raises(Invalid):
        TurnTakingBucket(MemoryBucket(), Lock()).put("x", b"")
    assert list(tmp_path.iterdir()) == []


VALID: Final = {"name": "a", "bucket": "bucket-a", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([], "clusters: missing or empty: write a list of clusters, each with name and bucket"),
        (["a"], "cluster 1: not a mapping: write name: and bucket:"),
        ([{"bucket": "bucket-a", "region": "us-east-1"}], "cluster 1: name: missing: write a name"),
        ([VALID, VALID], "cluster a: name: used twice: write a unique name"),
        (
            [VALID | {"rolle": ROLE}],
            "cluster a: rolle: unknown field: use name, bucket, folder, region, role, external-id, context",
        ),
        ([VALID | {"external-id": 12}], "cluster a: external-id: 12 is not text: write it in quotes"),
        ([{"name": "a"}], "cluster a: bucket, folder: both are missing: write the bucket"),
        ([VALID | {"folder": "x"}], "cluster a: bucket, folder: both are set"),
        ([{"name": "a", "folder": "x", "role": ROLE}], "cluster a: role: not used with folder: remove it"),
        ([VALID | {"bucket": "s3://b"}], "cluster a: bucket: 's3://b' is not a bucket name: write it without s3://"),
        (
            [{"name": "a", "bucket": "bucket-a"}],
            "cluster a: region: '' is not a region: write the region of the bucket",
        ),
        ([VALID | {"role": "joiner-hub"}], "cluster a: role: 'joiner-hub' is not the ARN of a role"),
        ([VALID | {"role": ROLE, "external-id": "?"}], "cluster a: external-id: '?' is not an external ID"),
        ([VALID | {"external-id": "x1"}], "cluster a: external-id: set without role"),
    ],
)
def test_error_in_the_hub_file_names_cluster_field_and_fix(
    tmp_path: Path, capsys: Out, clusters: list[Any], message: str
) -> None:
    file = write_hub(tmp_path, *clusters)
    assert main(["hub", file]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"joiner hub: {file}: {message}" in captured.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clusters: [", ":2: not YAML: "),
        ("clusters: []\n---\nclusters: []\n", ": 2 documents: write one document with `clusters:`"),
        ("clusters: [a]\nrole: x\n", ": role: unknown field: remove it"),
        (f"clusters: {['a'] * 501}", ": clusters: 501 clusters: use several files with at most 500"),
    ],
)
def test_file_that_is_no_hub_file_is_an_error_with_the_fix(
    tmp_path: Path, capsys: Out, text: str, message: str
) -> None:
    file = tmp_path / "hub.yaml"
    file.write_text(text)
    assert main(["hub", str(file)]) == 1
    assert f"joiner hub: {file}{message}" in capsys.readouterr().err


def test_hub_file_is_read_with_all_fields(tmp_path: Path) -> None:
    fields = {"role": ROLE, "external-id": "x1", "context": "prod"}
    file = write_hub(tmp_path, VALID | fields, {"name": "b", "folder": "copy"})
    assert read_hub_file(file) == (
        HubCluster(name="a", bucket="bucket-a", region="us-east-1", role=ROLE, external_id="x1", context="prod"),
        HubCluster(name="b", folder=str(tmp_path / "copy")),
    )


def test_example_file_is_valid(capsys: Out) -> None:
    assert main(["hub", str(EXAMPLE.parent / "hub.yaml"), "--now", NOW]) == 0
    assert "demo" in capsys.readouterr().out
