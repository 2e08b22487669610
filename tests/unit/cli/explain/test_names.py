"""How objects are named on the command line, and what is reported if the journal cannot be read completely."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.explain.evidence import UnknownObject, find_full_name
from cli.explain.group_answers import UNKNOWN_DELETION_REASON
from cli.explain.kinds import ExplainKind
from cli.main import main
from shared.errors import Forbidden
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import DeleteObject, TerminateInstances
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.memory_ports import MemoryBucket
from tests.unit.cli.explain.explained_journals import (
    JOINS,
    LAUNCH_ENTRIES,
    build_journal_evidence,
    build_recorded_bucket,
    make_claim_creation,
    make_entry,
    make_launched_patches,
    make_note,
    make_price_note,
    map_answers,
    write_journal,
)

Out = pytest.CaptureFixture[str]
POD = "shop/web-7d9f8c6b5-x2k9q"
SECOND_POD = "shop/web-7d9f8c6b5-abcde"


def make_pending_note(name: str) -> Any:
    return make_note("Pod", name, "Unschedulable", "pool default: too large")


def make_placed_note(name: str, node: str = "n1") -> Any:
    return make_note("Pod", name, f"node/{node}", "fits an existing node")


MACHINE = (
    make_entry(0, make_claim_creation(), notes=(make_placed_note("shop/cart"),)),
    make_entry(1, *make_launched_patches(), notes=(make_price_note(),)),
    make_entry(2, JOINS, function="lifecycle"),
)
ADDRESSED = (make_entry(0, notes=(make_note("Node", "ip-10-0-64-5.ec2.internal", "kept", "it is young"),)),)


@pytest.mark.parametrize(
    ("kind", "query", "name"),
    [
        ("node", "aws:///us-east-1c/i-1", "i-1"),
        ("nodeclaim", "nodeclaim/c1", "c1"),
        ("node", "nodes/c1", "c1"),
        ("pod", "pod/shop/cart", "shop/cart"),
        ("pod", "po/cart", "shop/cart"),
    ],
)
def test_names_in_kubectl_and_aws_notation_are_accepted(kind: ExplainKind, query: str, name: str) -> None:
    assert find_full_name(build_journal_evidence(*MACHINE), kind, query) == name


def test_node_is_found_by_its_ip_address() -> None:
    assert find_full_name(build_journal_evidence(*ADDRESSED), "node", "10.0.64.5") == "ip-10-0-64-5.ec2.internal"


def test_workload_name_selects_its_only_pod() -> None:
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_placed_note(POD), make_placed_note("shop/website-7d9f8c6b5-x2k9q")))
    )
    for query in ("web", "shop/web", "web-7d9f8c6b5"):
        assert find_full_name(evidence, "pod", query) == POD
    with pytest.raises(UnknownObject, match="not found"):
        find_full_name(evidence, "pod", "till/web")


def test_workload_name_selects_its_unschedulable_pod(tmp_path: Path, capsys: Out) -> None:
    older = make_entry(0, notes=(make_placed_note(SECOND_POD), make_pending_note(POD)))
    journal = write_journal(tmp_path, older, make_entry(1, notes=(make_placed_note(SECOND_POD),)))
    for query in ("web", "shop/web", "web-7d9f8c6b5"):
        assert main(["explain", "pod", query, "--journal", str(journal)]) == 0
        output = " ".join(capsys.readouterr().out.split())
        assert f"pod {POD} " in output
        assert f"2 pods of {query}; the others: {SECOND_POD}" in output


def test_workload_name_selects_the_pod_with_the_newest_decision() -> None:
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_placed_note("job/batch-0"), make_placed_note("job/batch-1"))),
        make_entry(1, notes=(make_placed_note("job/batch-1"),)),
        make_entry(2, notes=(make_placed_note("job/batch-api-x2k9q"),)),
    )
    assert find_full_name(evidence, "pod", "batch") == "job/batch-1"


def test_workload_name_in_two_namespaces_is_ambiguous() -> None:
    evidence = build_journal_evidence(make_entry(0, notes=(make_placed_note("a/web-0"), make_placed_note("b/web-0"))))
    with pytest.raises(UnknownObject, match="ambiguous: write one of a/web-0, b/web-0"):
        find_full_name(evidence, "pod", "web")
    assert find_full_name(evidence, "pod", "b/web") == "b/web-0"


def test_name_of_another_kind_suggests_the_right_command() -> None:
    with pytest.raises(UnknownObject, match="`joiner explain nodepool default`"):
        find_full_name(build_journal_evidence(*MACHINE), "pod", "default")


def test_node_removed_externally_is_not_reported_as_kept() -> None:
    ends = make_entry(
        9, TerminateInstances(instance_ids=("i-1",), message="its NodeClaim is being deleted"), function="lifecycle"
    )
    stays = make_entry(3, function="disrupt", notes=(make_note("Node", "n1", "blocked", "Deleting: it is deleting"),))
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, stays, ends), "node", "n1")
    assert answers["removed"][0] == UNKNOWN_DELETION_REASON
    assert "not disrupted" not in answers
    of_pool = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, ends), "nodepool", "default")
    assert of_pool["removed"] == (f"1 x {UNKNOWN_DELETION_REASON}",)


def test_replacement_node_names_the_replaced_node() -> None:
    command = make_note("Command", "drift-1", "PROPOSED", "it has drifted", links=("Node/old",), replaced_by=("c1",))
    answers = map_answers(
        build_journal_evidence(make_entry(0, function="disrupt", notes=(command,)), *MACHINE), "nodeclaim", "c1"
    )
    assert answers["reason"][1] == "replaces old: command drift-1"


def write_and_list_files(tmp_path: Path) -> list[Path]:
    write_journal(tmp_path, *MACHINE)
    return sorted(tmp_path.rglob("*.json"), key=lambda path: path.name)


def test_journal_entry_of_a_newer_version_is_read_partially_with_a_warning(tmp_path: Path, capsys: Out) -> None:
    path = write_and_list_files(tmp_path)[0]
    newer = json.loads(path.read_bytes())
    newer["done"].append({"action": {"action": "TeleportNode", "name": "n"}, "result": "done"})
    newer["notes"].append({"kind": "Pod"})
    newer["problems"] = [{"kind": "Pod"}]
    path.write_text(json.dumps(newer))
    assert main(["explain", "nodeclaim", "c1", "--journal", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "written by another version of Joiner: 1 action, 1 note, 1 problem skipped" in captured.err
    assert "created for       2 pods: shop/cart, shop/till" in captured.out
    assert "1 file could not be read completely: information may be missing" in " ".join(captured.out.split())


@pytest.mark.parametrize("body", [b"", b"\x00", b'{"function": "provision"', b'{"function": "x", "at": "soon"}', b"[]"])
def test_invalid_journal_entry_is_reported_as_possibly_missing_information(
    body: bytes, tmp_path: Path, capsys: Out
) -> None:
    write_and_list_files(tmp_path)[2].write_bytes(body)
    assert main(["explain", "pod", "nobody", "--journal", str(tmp_path)]) == 1
    stderr = " ".join(capsys.readouterr().err.split())
    assert "not a journal entry" in stderr
    assert "information may be missing" in stderr


def test_deleted_node_is_found_in_the_journal() -> None:
    deleted_entry = make_entry(
        9, DeleteObject(kind="NodeClaim", name="c1", uid="u", message="empty"), function="disrupt"
    )
    ends = make_entry(
        10, TerminateInstances(instance_ids=("i-1",), message="its NodeClaim is being deleted"), function="lifecycle"
    )
    answers = map_answers(build_journal_evidence(*MACHINE, deleted_entry, ends), "node", "i-1")
    assert answers["removed"][0] == "empty"
    assert f"terminated at {DEFAULT_START_TIME + timedelta(minutes=10):%Y-%m-%d %H:%M:%S}" in answers["names"][0]


class Closed(MemoryBucket):
    """A bucket that refuses to read some of the objects that it lists."""

    def __init__(self, open_: int) -> None:
        """Allow reading the first *open_* objects."""
        super().__init__()
        self.open = open_

    def get(self, key: str) -> bytes:
        if len([listed_key for listed_key in self.list_keys("") if listed_key <= key]) > self.open:
            raise Forbidden("s3:GetObject")
        return super().get(key)


@pytest.mark.parametrize(("open_", "is_told"), [(2, True), (0, False)])
def test_unreadable_bucket_objects_are_reported(
    open_: int,
    is_told: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    capsys: Out,
) -> None:
    bucket = Closed(open_)
    source_bucket = build_recorded_bucket(*MACHINE)
    for key in source_bucket.list_keys(""):
        bucket.put(key, source_bucket.get(key))
    monkeypatch.setattr("cli.journal.journal.get_default_region", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: bucket)
    assert main(["explain", "nodeclaim", "c1", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    captured = capsys.readouterr()
    assert "could not be read: Forbidden: s3:GetObject" in captured.err
    assert ("nodeclaim c1" in captured.out) is is_told
    assert ("none of " in captured.err) is not is_told


def test_unknown_name_reports_that_only_the_last_day_of_the_bucket_was_read(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setattr("cli.journal.journal.get_default_region", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: build_recorded_bucket(*MACHINE))
    assert main(["explain", "node", "old", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    assert "only the last day was read: --since 168h reads a week" in " ".join(capsys.readouterr().err.split())


def test_live_cluster_is_explained_despite_an_unreadable_journal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Out
) -> None:
    live = ClusterSnapshot(taken_at=DEFAULT_START_TIME, node_pools=(make_node_pool("default"),))
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: live)
    assert main(["explain", "nodepool", "default", "--journal", str(tmp_path / "no"), "--context", "prod"]) == 1
    captured = capsys.readouterr()
    assert "the journal could not be read" in captured.err
    assert "only about the live cluster" in captured.err
    assert "0 Nodes, 0 NodeClaims" in captured.out


def make_node_pool(name: str) -> NodePool:
    return NodePool(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default"))
