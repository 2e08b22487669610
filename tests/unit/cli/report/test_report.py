"""`joiner report`: one page of a journal, and the same as a document."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from jinja2 import UndefinedError
from msgspec.structs import replace

from cli.journal.journal import Cycle
from cli.main import main
from cli.report.decisions import list_decisions
from cli.report.fleet import choose_bar_seconds
from cli.terminal.html import TEMPLATE_FOLDER, render_template
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, Problem
from shared.model.decisions.action import (
    CreateNodeClaim,
    DeleteObject,
    EvictPod,
    PatchMetadata,
    TagInstance,
    TerminateInstances,
)
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.report.journal.journal import LAUNCHED_VERDICT, ActionResult, DecisionNote, JournalEntry, build_entry_key
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.cli.journal_plays import build_interrupted_world, unpack_bucket
from tests.support.cli.page_assets import read_embedded_document, write_fake_assets

Out = pytest.CaptureFixture[str]
EVIL = "<script>alert('x')</script>\"&"
VOID = frozenset(("meta", "br", "path", "rect", "line"))


class Checker(HTMLParser):
    """Reads a page, and insists that it is well-formed and harmless."""

    def __init__(self) -> None:
        """Begin before the page."""
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.tables: list[dict[str, int]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        if tag == "table":
            self.tables.append({"caption": 0, "th": 0, "td": 0})
        elif tag in ("caption", "th", "td"):
            self.tables[-1][tag] += 1
            assert tag != "th" or ("scope", "col") in attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse_page(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(checker.tags)
    assert not re.search(r"https?:|url\(|@import", html)
    return checker


def make_entry(minute: float, *actions: Any, function: str = "provision", **fields: Any) -> JournalEntry:
    results = tuple(ActionResult(action=action, result="done") for action in actions)
    at = DEFAULT_START_TIME + timedelta(minutes=minute)
    return JournalEntry(function=function, trigger="schedule", at=at, cluster="abc", **({"results": results} | fields))


def make_node_entries(number: int, pool_: str = "default", minute: float = 0.0) -> Iterator[JournalEntry]:
    """Yield the journal entries that launch one node."""
    claim, labels = f"{pool_}-{number}", ((NODEPOOL, pool_),)
    node_claim = NodeClaim(meta=ObjectMeta(name=claim, labels=labels), node_class=NodeClassRef(name="default"))
    node_labels = (*labels, (INSTANCE_TYPE, "m5.large"), (CAPACITY_TYPE, "spot"), (ZONE, "us-east-1a"))
    launched = DecisionNote(
        kind="NodeClaim", name=claim, verdict=LAUNCHED_VERDICT, reason="m5.large", usd_per_hour=0.05
    )
    yield make_entry(minute, CreateNodeClaim(claim=node_claim, pods=("a/b",), message="1 pod fits no node"))
    yield make_entry(minute + 0.1, PatchMetadata(kind="NodeClaim", name=claim, labels=node_labels), notes=(launched,))
    yield make_entry(
        minute + 1,
        TagInstance(
            instance_id=f"i-{number}", tags=(("karpenter.sh/nodeclaim", claim), ("Name", f"node-{number}.internal"))
        ),
        function="lifecycle",
    )


def make_node_note(number: int, reason: str = "PDB shop/cart allows none", verdict: str = "blocked") -> DecisionNote:
    return DecisionNote(kind="Node", name=f"node-{number}.internal", verdict=verdict, reason=reason)


def make_pod_note(
    name: str, message: str = "pool default: no instance type with 512 GiB", reason: str = "NoOffering"
) -> DecisionNote:
    return DecisionNote(kind="Pod", name=name, verdict=reason, reason=message)


def write_journal(folder: Path, *entries: JournalEntry) -> Path:
    for number, entry in enumerate(entries):
        path = folder / build_entry_key(entry, f"r{number:05d}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(entry))
    return folder


def read_report(folder: Path, *flags: str, capsys: Out) -> dict[str, Any]:
    assert main(["report", "-o", "json", "--journal", str(folder), *flags]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def render_page(folder: Path, *flags: str, capsys: Out) -> str:
    assert main(["report", "-", "--journal", str(folder), *flags]) == 0
    return capsys.readouterr().out


def render_report(folder: Path, *flags: str, capsys: Out) -> str:
    """Return the page without its script and its data: the part for readers, printers and mail."""
    return re.sub(r"<script.*?</script>\n", "", render_page(folder, *flags, capsys=capsys), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _fake_assets(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path_factory.mktemp("assets")))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the bucket of a short play."""
    world = build_interrupted_world()
    world.advance_seconds(200)
    world.scale(9)
    world.advance_seconds(120)
    return unpack_bucket(world.bucket, tmp_path_factory.mktemp("bucket"))


# What is told


def test_report_contains_fleet_cost_decisions_and_blocked_pods(tmp_path: Path, capsys: Out) -> None:
    deletion_entries = (
        make_entry(60, DeleteObject(kind="NodeClaim", name="default-2", message="expired"), function="lifecycle"),
        make_entry(
            61,
            TerminateInstances(instance_ids=("i-2",), message=("its NodeClaim is being deleted")),
            function="lifecycle",
        ),
    )
    command = DecisionNote(kind="Command", name="c1", verdict="DONE", reason="empty", usd_per_hour=0.25)
    sweep = make_entry(
        120,
        function="disrupt",
        notes=(make_node_note(1), command),
        counts={"ManagedNodes": 1.0, "FleetUsdPerHour": 0.05},
    )
    waits = make_entry(
        121, notes=(make_pod_note("a/p1"), make_pod_note("a/p2")), counts={"PendingPods": 2.0, "UnschedulablePods": 2.0}
    )
    report = read_report(
        write_journal(tmp_path, *make_node_entries(1), *make_node_entries(2), *deletion_entries, sweep, waits),
        capsys=capsys,
    )
    assert report["nodePools"] == [
        {
            "name": "default",
            "nodes": 1,
            "byCapacity": {"spot": 1},
            "usdPerHour": 0.05,
            "usd": pytest.approx(0.05 * 121 / 60 + 0.05 * 61 / 60, abs=1e-3),
            "launched": 2,
            "terminated": 1,
        }
    ]
    assert [(node["name"], node["status"], node["reason"]) for node in report["nodes"]] == [
        ("node-1.internal", "blocked", "PDB shop/cart allows none")
    ]
    assert report["instanceTypes"] == [{"name": "m5.large spot", "nodes": 1, "usdPerHour": 0.05}]
    assert report["savingsUsdPerHour"] == 0.25
    assert report["blockedNodes"] == [
        {"status": "blocked", "reasons": ["PDB shop/cart allows none"], "names": ["node-1.internal"]}
    ]
    assert report["blockedPods"] == [
        {
            "status": "NoOffering",
            "reasons": ["NodePool default: no instance type with 512 GiB"],
            "names": ["a/p1", "a/p2"],
        }
    ]
    decision_texts = [decision["message"] for decision in report["decisions"]]
    assert decision_texts == [
        *("command c1 DONE", "i-2 terminated", "NodeClaim default-2 deleted"),
        *("NodeClaim default-2 created for 1 pod", "NodeClaim default-1 created for 1 pod"),
    ]
    assert sum(change["launched"] for change in report["changes"]) == 2
    assert sum(change["terminated"] for change in report["changes"]) == 1


def test_html_report_contains_everything_in_the_json_report(played: Path, capsys: Out) -> None:
    report = read_report(played, capsys=capsys)
    html = render_report(played, capsys=capsys)
    checker = parse_page(html)
    text = " ".join("".join(checker.text).split())
    assert report["nodes"]
    for node in report["nodes"]:
        assert node["name"] in text
        assert node["usdPerHour"] > 0
    for decision in report["decisions"]:
        assert decision["message"] in text
    for part in ("Fleet", "Unschedulable pods and blocked nodes", "Decisions"):
        assert part in text


def test_nodes_older_than_the_journal_are_read_from_snapshots(played: Path, tmp_path: Path, capsys: Out) -> None:
    full_report = read_report(played, capsys=capsys)
    folder = tmp_path / "late"
    shutil.copytree(played, folder)
    keys = sorted((folder / "journal").rglob("*.json"), key=lambda path: path.name)
    first = next(number for number, path in enumerate(keys) if "interrupt" in path.name)
    for path in keys[: first - 1]:
        path.unlink()
    late = read_report(folder, capsys=capsys)
    assert late["nodes"]
    assert {node["name"] for node in late["nodes"]} == {node["name"] for node in full_report["nodes"]}
    assert all(node["usdPerHour"] > 0 and node["instanceType"] and node["nodePool"] for node in late["nodes"])
    assert late["usd"] < full_report["usd"]
    snapshot_keys = [
        msgspec.json.decode(path.read_bytes()).get("snapshot") for path in keys[first - 1 :] if path.exists()
    ]
    [oldest, *newer_keys] = dict.fromkeys(filter(None, snapshot_keys))
    (folder / oldest).unlink()  # the journal stays for longer
    assert newer_keys
    partial_report = read_report(folder, capsys=capsys)
    shutil.rmtree(folder / "snapshot")
    empty_report = read_report(folder, capsys=capsys)
    assert len(empty_report["nodes"]) <= len(partial_report["nodes"]) == len(late["nodes"])
    assert empty_report["usd"] < partial_report["usd"]


def test_live_cluster_determines_current_nodes_and_pending_pods(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_journal(
        tmp_path,
        *make_node_entries(1),
        *make_node_entries(2),
        make_entry(300, notes=(make_pod_note("a/old"), make_pod_note("a/new"))),
    )
    waiting = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    base = build_snapshot_from_documents(
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "new", "namespace": "a"},
                "spec": {"containers": []},
            },
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": "default-2"},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d"},
                    "requirements": [],
                },
            },
        ],
        DEFAULT_START_TIME,
    )
    alive = replace(base, pods=tuple(replace(pod, conditions=(waiting,)) for pod in base.pods))
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: alive)
    report = read_report(folder, "--context", "prod", "--now", "2026-11-21T14:00:00Z", capsys=capsys)
    assert report["live"] is True
    assert [node["nodeClaim"] for node in report["nodes"]] == ["default-2"]
    assert [group["names"] for group in report["blockedPods"]] == [["a/new"]]
    html = render_report(folder, "--context", "prod", "--now", "2026-11-21T14:00:00Z", capsys=capsys)
    assert "current nodes and pending pods: live cluster" in html


def test_minutes_without_a_cycle_have_no_pending_pods(tmp_path: Path, capsys: Out) -> None:
    counts = {"PendingPods": 4.0, "UnschedulablePods": 1.0}
    entries = [make_entry(minute, notes=(make_pod_note("a/p"),), counts=counts) for minute in (0, 1, 10)]
    report = read_report(
        write_journal(tmp_path, *entries, make_entry(60, function="disrupt", notes=(make_node_note(1),))), capsys=capsys
    )
    assert [(sample["at"][11:16], sample["pods"]) for sample in report["pendingPods"]] == [
        *(("08:00", 4.0), ("08:01", 4.0), ("08:02", 0.0), ("08:10", 4.0), ("08:11", 0.0)),
    ]
    assert report["blockedPods"] == []


def test_pods_that_still_run_on_draining_nodes_are_not_pending(tmp_path: Path, capsys: Out) -> None:
    counts = {"PendingPods": 5.0, "UnschedulablePods": 3.0, "ReschedulablePods": 3.0}
    report = read_report(write_journal(tmp_path, make_entry(0, counts=counts)), capsys=capsys)
    assert [(sample["pods"], sample["unschedulable"]) for sample in report["pendingPods"]] == [(2.0, 2.0)]


def test_last_fleet_sample_equals_the_totals(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = make_entry(5, function="disrupt", counts={"ManagedNodes": 1.0, "FleetUsdPerHour": 0.05})
    folder = write_journal(tmp_path, *make_node_entries(1), sweep, *make_node_entries(2, minute=6))
    report = read_report(folder, "--now", "2026-11-21T08:30:00Z", capsys=capsys)
    assert report["fleet"][-1] == {"at": "2026-11-21T08:30:00Z", "nodes": 2.0, "usdPerHour": 0.1}
    assert len(report["nodes"]) == 2
    alive = ClusterSnapshot(taken_at=DEFAULT_START_TIME)
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: alive)
    waits = make_entry(29, counts={"PendingPods": 4.0}, notes=(make_pod_note("a/p"),))
    write_journal(tmp_path / "journal" / "more", waits)
    report = read_report(folder, "--context", "--now", "2026-11-21T08:30:00Z", capsys=capsys)
    assert report["pendingPods"][-1] == {"at": "2026-11-21T08:30:00Z", "pods": 0.0, "unschedulable": 0.0}
    assert report["fleet"][-1]["nodes"] == 0.0


def test_html_report_names_cluster_and_period_without_wrapping_words(played: Path, capsys: Out) -> None:
    html = render_report(played, capsys=capsys)
    assert "<title>Joiner: demo</title>" in html
    assert "<h2>Report: demo</h2>\n<p>2026-11-21 08:01:00 to " in html
    assert '<td><span class="word">provision</span></td>' in html
    assert ".report .word, .report th { white-space: nowrap; }" in html
    assert '<th scope="col">function</th>' in html


def test_fleet_series_is_derived_from_nodes_without_recorded_counts(tmp_path: Path, capsys: Out) -> None:
    end = make_entry(30, TerminateInstances(instance_ids=("i-1",), message="w"), function="lifecycle")
    report = read_report(
        write_journal(tmp_path, *make_node_entries(1), *make_node_entries(2, minute=5), end), capsys=capsys
    )
    assert [(sample["nodes"], sample["usdPerHour"]) for sample in report["fleet"]] == [
        (1.0, 0.05),
        (2.0, 0.1),
        (1.0, 0.05),
        (1.0, 0.05),
    ]


def test_failures_and_problems_are_reported(tmp_path: Path, capsys: Out) -> None:
    failed = ActionResult(
        action=EvictPod(namespace="n", name="p", uid="u", node="x", message="drain"), result="failed", message="later"
    )
    entries = (
        *(make_entry(minute, function="disrupt", error="Throttled: ec2") for minute in range(3)),
        make_entry(
            4, function="lifecycle", results=(failed,), problems=(Problem(kind="NodePool", name="bad", message="no"),)
        ),
    )
    report = read_report(write_journal(tmp_path, *entries), capsys=capsys)
    assert report["failures"] == [{"error": "disrupt: Throttled: ec2", "times": 3, "last": "2026-11-21T08:02:00Z"}]
    assert report["problems"] == [{"kind": "NodePool", "name": "bad", "message": "no"}]
    assert [(decision["message"], decision["failed"]) for decision in report["decisions"]] == [
        ("EvictPod p failed", True),
        ("disrupt failed", True),
    ]
    text = "".join(parse_page(render_report(tmp_path, capsys=capsys)).text)
    for part in ("Problems at the end", "Failed cycles", "Throttled: ec2", "later; reason of the action: drain"):
        assert part in text


def test_repeated_decision_notes_are_listed_once() -> None:
    paused = DecisionNote(kind="NodePool", name="default", verdict="DisruptionPaused", reason="people say so")
    cycles = [Cycle(key=str(n), entry=make_entry(n, function="disrupt", notes=(paused,))) for n in range(4)]
    cycles.insert(2, Cycle(key="other", entry=make_entry(1.5, function="disrupt", notes=(make_node_note(1),))))
    assert [decision.cycle for decision in list_decisions(cycles)] == ["2", "0"]


# Whatever is in it


def test_object_names_are_escaped_everywhere_in_the_html_report(tmp_path: Path, capsys: Out) -> None:
    node_claim = NodeClaim(meta=ObjectMeta(name=EVIL, labels=((NODEPOOL, EVIL),)), node_class=NodeClassRef(name=EVIL))
    labels = ((NODEPOOL, EVIL), (INSTANCE_TYPE, EVIL), (CAPACITY_TYPE, EVIL), (ZONE, EVIL))
    evil = make_entry(
        0,
        CreateNodeClaim(claim=node_claim, pods=(EVIL,), message=EVIL),
        PatchMetadata(kind="NodeClaim", name=EVIL, labels=labels),
        TagInstance(instance_id=EVIL, tags=(("karpenter.sh/nodeclaim", EVIL), ("Name", EVIL))),
        notes=(
            *(
                DecisionNote(kind=kind, name=EVIL, verdict=EVIL.replace("/", ""), reason=EVIL)
                for kind in ("Pod", "Node", "Command")
            ),
            DecisionNote(kind="NodePool", name=EVIL, verdict=EVIL, reason=EVIL),
            DecisionNote(kind="NodeClaim", name=EVIL, verdict=LAUNCHED_VERDICT, reason=EVIL, usd_per_hour=1.0),
        ),
        problems=(Problem(kind=EVIL, name=EVIL, message=EVIL),),
        counts={"PendingPods": 1.0, "UnschedulablePods": 1.0},
    )
    failed = make_entry(1, function="disrupt", error=EVIL)
    folder = write_journal(tmp_path / "<b>", evil, failed)
    html = render_report(folder, capsys=capsys)
    text = "".join(parse_page(html).text)
    assert "<script" not in html
    assert "<b>" not in html
    assert text.count("<script>alert('x')</script>\"&") >= 15


def test_large_journal_produces_a_readable_report(tmp_path: Path, capsys: Out) -> None:
    entries = [entry for number in range(500) for entry in make_node_entries(number, f"pool-{number % 30:02d}", number)]
    entries.append(
        make_entry(
            520, function="disrupt", notes=tuple(make_node_note(number, f"why {number % 5}") for number in range(500))
        )
    )
    waits = make_entry(1999, notes=tuple(make_pod_note(f"a/p{n}", f"pool a: none for p{n}") for n in range(300)))
    entries += [
        make_entry(minute, notes=(make_pod_note("a/p0", "pool a: none for p0"),)) for minute in range(2500 - 501)
    ]
    folder = write_journal(tmp_path, *entries, waits, replace(waits, at=waits.at + timedelta(minutes=1)))
    report = read_report(folder, capsys=capsys)
    assert sum(report["cycles"].values()) == len(entries) + 2 > 3500
    assert len(report["nodes"]) == 500
    assert len(report["nodePools"]) == 30
    assert [len(group["names"]) for group in report["blockedNodes"]] == [100] * 5
    assert [(len(group["names"]), group["reasons"]) for group in report["blockedPods"]] == [
        (300, ["NodePool a: none for <pod>"])
    ]
    html = render_report(folder, capsys=capsys)
    checker = parse_page(html)
    assert checker.tags.count("details") == 30 + 2 + 5 + 1
    assert len(html) < 1_500_000
    assert "earlier decisions omitted (-o json has all)" in html


def test_times_are_converted_to_utc(tmp_path: Path, capsys: Out) -> None:
    ahead = timezone(timedelta(hours=5, minutes=30))
    entries = [replace(entry, at=entry.at.astimezone(ahead)) for entry in make_node_entries(1)]
    report = read_report(write_journal(tmp_path, *entries), capsys=capsys)
    assert report["began"] == "2026-11-21T08:00:00Z"
    assert report["nodes"][0]["launchedAt"] == "2026-11-21T08:00:06Z"
    html = render_report(tmp_path, capsys=capsys)
    assert "2026-11-21 08:00:00 to 2026-11-21 08:01:00 UTC" in html
    assert "13:30" not in html


def test_invalid_journal_files_are_named_and_the_rest_is_reported(tmp_path: Path, capsys: Out) -> None:
    folder = write_journal(tmp_path, *make_node_entries(1))
    (folder / "journal" / "torn.json").write_text('{"function": "prov')
    (folder / "journal" / "foreign.json").write_text("[1]")
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "x.json").write_text("{}")
    assert main(["report", "-", "--journal", str(folder)]) == 1
    captured = capsys.readouterr()
    assert "torn.json: not a journal entry" in captured.err
    assert "catalogue" not in captured.err
    assert "node-1.internal" in captured.out
    assert "not read: journal/torn.json" in captured.out


def test_empty_journal_produces_a_page(tmp_path: Path, capsys: Out) -> None:
    text = "".join(parse_page(render_report(tmp_path, capsys=capsys)).text)
    assert "The journal has no nodes." not in text
    assert text.count("Unknown: the journal has no cycles of this time.") == 2
    assert "None: all pods" not in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [((), "no cycles"), (("--since", "2h"), "no cycles in this period: a longer --since reads more")],
)
def test_empty_report_prints_a_warning(tmp_path: Path, capsys: Out, flags: tuple[str, ...], words: str) -> None:
    assert main(["report", "-", "--journal", str(tmp_path), *flags]) == 0
    assert capsys.readouterr().err == f"joiner report: {tmp_path}: {words}; the report is empty\n"


def test_same_journal_produces_the_same_page(played: Path, capsys: Out) -> None:
    assert render_report(played, capsys=capsys) == render_report(played, capsys=capsys)


# The command


def test_report_is_written_to_the_given_path(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_journal(tmp_path / "j", *make_node_entries(1))
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--journal", str(folder)]) == 0
    assert capsys.readouterr().out == "report: report.html\n"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert main(["report", "no/where.html", "--journal", str(folder)]) == 1
    assert "joiner report: no/where.html: No such file" in capsys.readouterr().err
    assert main(["report", "all.yaml", "-o", "yaml", "--journal", str(folder)]) == 0
    assert yaml.safe_load((tmp_path / "all.yaml").read_text())["nodePools"][0]["name"] == "default"


def test_json_report_has_stable_keys(played: Path, capsys: Out) -> None:
    assert list(read_report(played, capsys=capsys)) == [
        *("apiVersion", "source", "cluster", "began", "ended", "live", "unreadable", "cycles", "failures", "fleet"),
        *("pendingPods", "changes"),
        *(
            "changeSeconds",
            "usd",
            "savingsUsdPerHour",
            "nodePools",
            "instanceTypes",
            "nodes",
            "decisions",
            "blockedNodes",
        ),
        *("blockedPods", "problems", "schedules", "canaries", "commitmentHours"),
    ]


def test_report_without_a_journal_is_rejected(capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as raised:
        main(["report"])
    assert raised.value.code == 2
    assert "no journal: add --journal" in capsys.readouterr().err
    assert main(["report", "--journal", str(tmp_path / "none")]) == 1
    assert "folder not found" in capsys.readouterr().err
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: ClusterSnapshot(taken_at=DEFAULT_START_TIME))
    assert main(["report", "-", "--context", "prod"]) == 0
    assert "no journal" in capsys.readouterr().out


def test_help_has_examples_exit_codes_and_the_shape(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    output = capsys.readouterr().out
    for part in ("examples:", "exit codes:", "docs/reference/output.md"):
        assert part in output


# Pages and plots


def test_a_value_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="report"):
        render_template("report/report.html.jinja")


def test_no_template_trusts_a_text() -> None:
    templates = {path.name: path.read_text(encoding="utf-8") for path in TEMPLATE_FOLDER.rglob("*.jinja")}
    assert sorted(templates) == ["fleet_page.html.jinja", "parts.html.jinja", "report.html.jinja"]
    trusted_values = re.findall(r"{{ (\w+) \| safe }}", templates.pop("fleet_page.html.jinja"))
    assert sorted(trusted_values) == ["document", "script", "style"]
    for text in templates.values():
        assert not re.search(r"\|\s*safe|autoescape|<script", text)


@pytest.mark.parametrize(
    ("hours", "seconds"),
    [(0, 60), (0.8, 60), (24, 1800), (24 * 7, 3 * 3600), (24 * 30, 24 * 3600), (24 * 365, 7 * 24 * 3600)],
)
def test_bar_duration_depends_on_the_period_length(hours: float, seconds: int) -> None:
    assert choose_bar_seconds(timedelta(hours=hours)) == seconds


def test_page_contains_the_fleet_document_of_the_journal(played: Path, capsys: Out) -> None:
    report = read_report(played, capsys=capsys)
    document = read_embedded_document(render_page(played, capsys=capsys))
    assert document.source.kind == "journal"
    assert document.source.cluster == "demo"
    names = {
        document.strings[name] for name, end in zip(document.nodes.name, document.nodes.end, strict=True) if not end
    }
    assert names >= {node["name"] for node in report["nodes"]}
    assert document.totals.cost_usd == pytest.approx(report["usd"], abs=1e-6)
    assert len(document.pods.name) > 0


def test_script_that_is_not_built_is_reported(
    played: Path, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", tmp_path)
    assert main(["report", str(tmp_path / "x.html"), "--journal", str(played)]) == 1
    assert "run `make ui`" in capsys.readouterr().err


def test_schedules_of_the_last_snapshot_are_reported(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_journal(tmp_path, *make_node_entries(1))
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "d"}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "annotations": {"joiner.dev/schedule": "night: 0 20 * * * 11h limits.cpu=0"}},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
    }
    cluster = build_snapshot_from_documents([pool], DEFAULT_START_TIME.replace(hour=21, minute=0))
    monkeypatch.setattr("cli.journal.sources._read_cluster", lambda *_: cluster)
    [schedule] = read_report(folder, "--context", "prod", capsys=capsys)["schedules"]
    assert (schedule["windows"], schedule["values"], schedule["nextWindows"]) == (["night"], "limits.cpu=0", [])
    html = render_report(folder, "--context", "prod", capsys=capsys)
    assert "NodePool default" in html
    assert schedule["changesAt"].replace("T", " ").rstrip("Z") in html
