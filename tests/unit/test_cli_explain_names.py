"""By what names things are asked for at night, and what is said where the journal cannot be read, or not whole."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.explain_kinds import Kind
from cli.explain_look import Unknown, found
from cli.main import main
from shared.errors import Forbidden
from shared.model.action import DeleteObject, TerminateInstances
from shared.model.cluster import Cluster
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClassRef
from shared.model.objects import Meta
from sim.clock import START
from sim.memory import MemoryBucket
from tests.unit.explained_journals import (
    JOINS,
    MADE,
    asked,
    claim,
    entry,
    filled,
    launched,
    look,
    note,
    price,
    written,
)

Out = pytest.CaptureFixture[str]
POD = "shop/web-7d9f8c6b5-x2k9q"
OTHER = "shop/web-7d9f8c6b5-abcde"


def waiting(name: str) -> Any:
    return note("Pod", name, "Unschedulable", "pool default: too large")


def placed(name: str, node: str = "n1") -> Any:
    return note("Pod", name, f"node/{node}", "fits what is there")


MACHINE = (
    entry(0, claim(), notes=(placed("shop/cart"),)),
    entry(1, *launched(), notes=(price(),)),
    entry(2, JOINS, function="lifecycle"),
)
ADDRESSED = (entry(0, notes=(note("Node", "ip-10-0-64-5.ec2.internal", "kept", "it is young"),)),)


@pytest.mark.parametrize(
    ("kind", "wanted", "name"),
    [
        ("node", "aws:///us-east-1c/i-1", "i-1"),
        ("nodeclaim", "nodeclaim/c1", "c1"),
        ("node", "nodes/c1", "c1"),
        ("pod", "pod/shop/cart", "shop/cart"),
        ("pod", "po/cart", "shop/cart"),
    ],
)
def test_names_may_be_written_as_kubectl_and_aws_write_them(kind: Kind, wanted: str, name: str) -> None:
    assert found(look(*MACHINE), kind, wanted) == name


def test_a_node_is_found_by_its_address() -> None:
    assert found(look(*ADDRESSED), "node", "10.0.64.5") == "ip-10-0-64-5.ec2.internal"


def test_a_workload_with_one_pod_is_that_pod() -> None:
    seen = look(entry(0, notes=(placed(POD), placed("shop/website-7d9f8c6b5-x2k9q"))))
    for wanted in ("web", "shop/web", "web-7d9f8c6b5"):
        assert found(seen, "pod", wanted) == POD
    with pytest.raises(Unknown, match="nothing is known"):
        found(seen, "pod", "till/web")


def test_of_a_workload_with_several_pods_those_that_wait_are_named_first() -> None:
    seen = look(entry(0, notes=(placed(OTHER), waiting(POD))))
    with pytest.raises(Unknown) as told:
        found(seen, "pod", "web")
    said = str(told.value)
    assert "2 pods that may be its own, 1 without a place" in said
    assert said.index(POD) < said.index(OTHER)


def test_a_name_of_another_kind_is_told_with_the_command_to_ask() -> None:
    with pytest.raises(Unknown, match="`joiner explain nodepool default`"):
        found(look(*MACHINE), "pod", "default")


def test_a_machine_that_somebody_else_removed_is_not_said_to_stay() -> None:
    ends = entry(9, TerminateInstances(instance_ids=("i-1",), why="its claim is deleted"), function="lifecycle")
    stays = entry(3, function="disrupt", notes=(note("Node", "n1", "blocked", "Deleting: it is deleting"),))
    said = asked(look(*MADE, stays, ends), "node", "n1")
    assert said["removed because"][0] == "its NodeClaim was deleted, by whom the journal does not say"
    assert "why not removed" not in said
    of_pool = asked(look(*MADE, ends), "nodepool", "default")
    assert of_pool["removed because"] == ("1 x its NodeClaim was deleted, by whom the journal does not say",)


def test_a_machine_that_replaces_another_says_which() -> None:
    command = note("Command", "drift-1", "PROPOSED", "it has drifted", links=("Node/old",), replaced_by=("c1",))
    said = asked(look(entry(0, function="disrupt", notes=(command,)), *MACHINE), "nodeclaim", "c1")
    assert said["why"][1] == "in place of old: command drift-1"


def files(tmp_path: Path) -> list[Path]:
    written(tmp_path, *MACHINE)
    return sorted(tmp_path.rglob("*.json"), key=lambda path: path.name)


def test_an_entry_of_a_newer_version_is_told_as_far_as_it_can_be_read(tmp_path: Path, capsys: Out) -> None:
    path = files(tmp_path)[0]
    newer = json.loads(path.read_bytes())
    newer["done"].append({"action": {"action": "TeleportNode", "name": "n"}, "result": "done"})
    newer["notes"].append({"kind": "Pod"})
    newer["problems"] = [{"kind": "Pod"}]
    path.write_text(json.dumps(newer))
    assert main(["explain", "nodeclaim", "c1", "--journal", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "of another version: 1 action, 1 note, 1 problem cannot be read, the rest is told" in told.err
    assert "made for          2 pods: shop/cart, shop/till" in told.out
    assert "1 file could not be read, or not whole: it may be in what was lost" in " ".join(told.out.split())


@pytest.mark.parametrize("body", [b"", b"\x00", b'{"function": "provision"', b'{"function": "x", "at": "soon"}', b"[]"])
def test_what_is_no_entry_is_named_and_who_is_not_found_may_be_in_it(body: bytes, tmp_path: Path, capsys: Out) -> None:
    files(tmp_path)[2].write_bytes(body)
    assert main(["explain", "pod", "nobody", "--journal", str(tmp_path)]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "no entry of a journal" in told
    assert "it may be in what was lost" in told


def test_what_is_no_longer_there_is_found_in_the_journal() -> None:
    gone = entry(9, DeleteObject(kind="NodeClaim", name="c1", uid="u", why="empty"), function="disrupt")
    ends = entry(10, TerminateInstances(instance_ids=("i-1",), why="its claim is deleted"), function="lifecycle")
    said = asked(look(*MACHINE, gone, ends), "node", "i-1")
    assert said["removed because"][0] == "empty"
    assert f"gone since {START + timedelta(minutes=10):%Y-%m-%d %H:%M:%S}" in said["is"][0]


class Closed(MemoryBucket):
    """A bucket that lets nobody read some of what it lists."""

    def __init__(self, open_: int) -> None:
        """Let so many be read."""
        super().__init__()
        self.open = open_

    def get(self, key: str) -> bytes:
        if len([one for one in self.keys("") if one <= key]) > self.open:
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
    whole = filled(*MACHINE)
    for key in whole.keys(""):
        bucket.put(key, whole.get(key))
    monkeypatch.setattr("cli.explain_journals.region_here", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: bucket)
    assert main(["explain", "nodeclaim", "c1", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    told = capsys.readouterr()
    assert "could not be seen: Forbidden: s3:GetObject" in told.err
    assert ("nodeclaim c1" in told.out) is is_told
    assert ("none could be read" in told.err) is not is_told


def test_of_a_bucket_a_day_is_read_and_that_is_said_of_a_name_long_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setattr("cli.explain_journals.region_here", lambda: "us-east-1")
    monkeypatch.setattr("shared.aws.s3.S3Bucket", lambda *_: filled(*MACHINE))
    assert main(["explain", "node", "old", "--journal", "s3://b", "--now", "2026-11-21T09:00:00Z"]) == 1
    assert "only the last day was read: --since 168h sees a week" in " ".join(capsys.readouterr().err.split())


def test_a_live_cluster_is_told_of_though_the_journal_cannot_be_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Out
) -> None:
    live = Cluster(taken_at=START, node_pools=(pool_of("default"),))
    monkeypatch.setattr("cli.explain.live_of", lambda *_: live)
    assert main(["explain", "nodepool", "default", "--journal", str(tmp_path / "no"), "--context", "prod"]) == 1
    told = capsys.readouterr()
    assert "the journal could not be seen" in told.err
    assert "nothing is concluded from that" in told.err
    assert "0 nodes, 0 claims" in told.out


def pool_of(name: str) -> NodePool:
    return NodePool(meta=Meta(name=name), node_class=NodeClassRef(name="default"))
