"""How objects are named on the command line, and what is reported if the journal cannot be read completely."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.explain.evidence import UnknownObject, find_full_name
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
def test_names_may_be_written_as_kubectl_and_aws_write_them(kind: ExplainKind, query: str, name: str) -> None:
    assert find_full_name(build_journal_evidence(*MACHINE), kind, query) == name


def test_a_node_is_found_by_its_address() -> None:
    assert find_full_name(build_journal_evidence(*ADDRESSED), "node", "10.0.64.5") == "ip-10-0-64-5.ec2.internal"


def test_a_workload_with_one_pod_is_that_pod() -> None:
    evidence = build_journal_evidence(
        make_entry(0, notes=(make_placed_note(POD), make_placed_note("shop/website-7d9f8c6b5-x2k9q")))
    )
    for query in ("web", "shop/web", "web-7d9f8c6b5"):
        assert find_full_name(evidence, "pod", query) == POD
    with pytest.raises(UnknownObject, match="nothing is known"):
        find_full_name(evidence, "pod", "till/web")


def test_of_a_workload_with_several_pods_those_that_wait_are_named_first() -> None:
    evidence = build_journal_evidence(make_entry(0, notes=(make_placed_note(SECOND_POD), make_pending_note(POD))))
    with pytest.raises(UnknownObject) as raised:
        find_full_name(evidence, "pod", "web")
    message = str(raised.value)
    assert "2 pods that may be its own, 1 without a place" in message
    assert message.index(POD) < message.index(SECOND_POD)


def test_a_name_of_another_kind_is_told_with_the_command_to_ask() -> None:
    with pytest.raises(UnknownObject, match="`joiner explain nodepool default`"):
        find_full_name(build_journal_evidence(*MACHINE), "pod", "default")


def test_a_machine_that_somebody_else_removed_is_not_said_to_stay() -> None:
    ends = make_entry(
        9, TerminateInstances(instance_ids=("i-1",), message="its NodeClaim is being deleted"), function="lifecycle"
    )
    stays = make_entry(3, function="disrupt", notes=(make_note("Node", "n1", "blocked", "Deleting: it is deleting"),))
    answers = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, stays, ends), "node", "n1")
    assert answers["removed because"][0] == "its NodeClaim was deleted, by whom the journal does not say"
    assert "why not removed" not in answers
    of_pool = map_answers(build_journal_evidence(*LAUNCH_ENTRIES, ends), "nodepool", "default")
    assert of_pool["removed because"] == ("1 x its NodeClaim was deleted, by whom the journal does not say",)


def test_a_machine_that_replaces_another_says_which() -> None:
    command = make_note("Command", "drift-1", "PROPOSED", "it has drifted", links=("Node/old",), replaced_by=("c1",))
    answers = map_answers(
        build_journal_evidence(make_entry(0, function="disrupt", notes=(command,)), *MACHINE), "nodeclaim", "c1"
    )
    assert answers["why"][1] == "in place of old: command drift-1"


def write_and_list_files(tmp_path: Path) -> list[Path]:
    write_journal(tmp_path, *MACHINE)
    return sorted(tmp_path.rglob("*.json"), key=lambda path: path.name)


def test_an_entry_of_a_newer_version_is_told_as_far_as_it_can_be_read(tmp_path: Path, capsys: Out) -> None:
    path = write_and_list_files(tmp_path)[0]
    newer = json.loads(path.read_bytes())
    newer["done"].append({"action": {"action": "TeleportNode", "name": "n"}, "result": "done"})
    newer["notes"].append({"kind": "Pod"})
    newer["problems"] = [{"kind": "Pod"}]
    path.write_text(json.dumps(newer))
    assert main(["explain", "nodeclaim", "c1", "--journal", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "of another version: 1 action, 1 note, 1 problem cannot be read, the rest is told" in captured.err
    assert "made for          2 pods: shop/cart, shop/till" in captured.out
    assert "1 file could not be read, or not whole: it may be in what was lost" in " ".join(captured.out.split())


@pytest.mark.parametrize("body", [b"", b"\x00", b'{"function": "provision"', b'{"function": "x", "at": "soon"}', b"[]"])
def test_what_is_no_entry_is_named_and_who_is_not_found_may_be_in_it(body: bytes, tmp_path: Path, capsys: Out) -> None:
    write_and_list_files(tmp_path)[2].write_bytes(body)
    assert main(["explain", "pod", "nobody", "--journal", str(tmp_path)]) == 1
    stderr = " ".join(capsys.readouterr().err.split())
    assert "no entry of a journal" in stderr
    assert "it may be in what was lost" in stderr


def test_what_is_no_longer_there_is_found_in_the_journal() -> None:
    deleted_entry = make_entry(
        9, DeleteObject(kind="NodeClaim", name="c1", uid="u", message="empty"), function="disrupt"
    )
    ends = make_entry(
        10, TerminateInstances(instance_ids=("i-1",), message="its NodeClaim is being deleted"), function="lifecycle"
    )
    answers = map_answers(build_journal_evidence(*MACHINE, deleted_entry, ends), "node", "i-1")
    assert answers["removed because"][0] == "empty"
    assert f"gone since {DEFAULT_START_TIME + timedelta(minutes=10):%Y-%m-%d %H:%M:%S}" in answers["is"][0]


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
def test_what_a_bucket_does_not_let_be_seen_is_said_to_be_unseen(
    open_: int,
    is_told: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
    capsys: Out,
) -> None:
    bucket = Closed(open_)
    source_bucket = build_recorded_bucket(*MACHINE)
    for key in source_bucket.list_keys(""):
        bucket.put(key, source_bucket.get(key))
    monkeypatch.setattr("cli.explain.journal.get_default_region", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: bucket)
    assert main(["explain", "nodeclaim", "c1", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    captured = capsys.readouterr()
    assert "could not be seen: Forbidden: s3:GetObject" in captured.err
    assert ("nodeclaim c1" in captured.out) is is_told
    assert ("none could be read" in captured.err) is not is_told


def test_of_a_bucket_a_day_is_read_and_that_is_said_of_a_name_long_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setattr("cli.explain.journal.get_default_region", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: build_recorded_bucket(*MACHINE))
    assert main(["explain", "node", "old", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    assert "only the last day was read: --since 168h sees a week" in " ".join(capsys.readouterr().err.split())


def test_a_live_cluster_is_told_of_though_the_journal_cannot_be_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Out
) -> None:
    live = ClusterSnapshot(taken_at=DEFAULT_START_TIME, node_pools=(make_node_pool("default"),))
    monkeypatch.setattr("cli.explain.command.read_live_cluster", lambda *_: live)
    assert main(["explain", "nodepool", "default", "--journal", str(tmp_path / "no"), "--context", "prod"]) == 1
    captured = capsys.readouterr()
    assert "the journal could not be seen" in captured.err
    assert "nothing is concluded from that" in captured.err
    assert "0 nodes, 0 claims" in captured.out


def make_node_pool(name: str) -> NodePool:
    return NodePool(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default"))
