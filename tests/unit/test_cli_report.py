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
from msgspec.structs import replace

from cli.charts import Span, bars, plot
from cli.explain_journals import Cycle
from cli.html import Column, Markup, document, table, tag
from cli.main import main
from cli.report_decisions import decisions
from cli.report_fleet import length_of
from shared.model.action import CreateNodeClaim, DeleteObject, EvictPod, PatchMetadata, TagInstance, TerminateInstances
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Problem
from shared.report.journal import LAUNCHED, Done, Entry, Note, key_of
from shared.snapshot.documents import cluster_from_documents
from sim.clock import START
from tests.unit.journal_plays import interrupted, unpacked

Out = pytest.CaptureFixture[str]
EVIL = "<script>alert('x')</script>\"&"
VOID = frozenset(("meta", "br", "path", "rect", "line"))


class Checker(HTMLParser):
    """Reads a page, and insists that it is well-formed and harmless."""

    def __init__(self) -> None:
        """Begin before the page."""
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.tables: list[dict[str, int]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
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
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert not {"script", "link", "iframe", "img", "object", "embed"} & set(checker.seen)
    assert not re.search(r"https?:|url\(|@import", html)
    return checker


def entry(minute: float, *actions: Any, function: str = "provision", **fields: Any) -> Entry:
    done = tuple(Done(action=action, result="done") for action in actions)
    at = START + timedelta(minutes=minute)
    return Entry(function=function, trigger="schedule", at=at, cluster="abc", **({"done": done} | fields))


def machine(number: int, pool_: str = "default", minute: float = 0.0) -> Iterator[Entry]:
    """Iterate over the entries that make one machine."""
    claim, labels = f"{pool_}-{number}", ((NODEPOOL, pool_),)
    made = NodeClaim(meta=Meta(name=claim, labels=labels), node_class=NodeClassRef(name="default"))
    bought = (*labels, (INSTANCE_TYPE, "m5.large"), (CAPACITY_TYPE, "spot"), (ZONE, "us-east-1a"))
    launched = Note(kind="NodeClaim", name=claim, verdict=LAUNCHED, why="m5.large", usd_per_hour=0.05)
    yield entry(minute, CreateNodeClaim(claim=made, pods=("a/b",), why="1 pod fits no node"))
    yield entry(minute + 0.1, PatchMetadata(kind="NodeClaim", name=claim, labels=bought), notes=(launched,))
    yield entry(
        minute + 1,
        TagInstance(
            instance_id=f"i-{number}", tags=(("karpenter.sh/nodeclaim", claim), ("Name", f"node-{number}.internal"))
        ),
        function="lifecycle",
    )


def kept(number: int, why: str = "PDB shop/cart allows none", verdict: str = "blocked") -> Note:
    return Note(kind="Node", name=f"node-{number}.internal", verdict=verdict, why=why)


def left_out(name: str, why: str = "pool default: no instance type with 512 GiB", reason: str = "NoOffering") -> Note:
    return Note(kind="Pod", name=name, verdict=reason, why=why)


def written(folder: Path, *entries: Entry) -> Path:
    for number, one in enumerate(entries):
        path = folder / key_of(one, f"r{number:05d}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(one))
    return folder


def told(folder: Path, *flags: str, capsys: Out) -> dict[str, Any]:
    assert main(["report", "-o", "json", "--journal", str(folder), *flags]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def page_of(folder: Path, *flags: str, capsys: Out) -> str:
    assert main(["report", "-", "--journal", str(folder), *flags]) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answer a folder with the bucket of a short play."""
    world = interrupted()
    world.seconds(200)
    world.scale(9)
    world.seconds(120)
    return unpacked(world.bucket, tmp_path_factory.mktemp("bucket"))


# What is told


def test_a_report_has_the_fleet_its_cost_the_decisions_and_what_is_blocked(tmp_path: Path, capsys: Out) -> None:
    gone = (
        entry(60, DeleteObject(kind="NodeClaim", name="default-2", why="expired"), function="lifecycle"),
        entry(61, TerminateInstances(instance_ids=("i-2",), why="its claim is deleted"), function="lifecycle"),
    )
    command = Note(kind="Command", name="c1", verdict="DONE", why="empty", usd_per_hour=0.25)
    sweep = entry(
        120, function="disrupt", notes=(kept(1), command), counts={"ManagedNodes": 1.0, "FleetUsdPerHour": 0.05}
    )
    waits = entry(
        121, notes=(left_out("a/p1"), left_out("a/p2")), counts={"PendingPods": 2.0, "UnschedulablePods": 2.0}
    )
    one = told(written(tmp_path, *machine(1), *machine(2), *gone, sweep, waits), capsys=capsys)
    assert one["pools"] == [
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
    assert [(each["name"], each["verdict"], each["why"]) for each in one["nodes"]] == [
        ("node-1.internal", "blocked", "PDB shop/cart allows none")
    ]
    assert one["types"] == [{"name": "m5.large spot", "nodes": 1, "usdPerHour": 0.05}]
    assert one["savedUsdPerHour"] == 0.25
    assert one["blockedNodes"] == [
        {"what": "blocked", "why": ["PDB shop/cart allows none"], "names": ["node-1.internal"]}
    ]
    assert one["blockedPods"] == [
        {"what": "NoOffering", "why": ["NodePool default: no instance type with 512 GiB"], "names": ["a/p1", "a/p2"]}
    ]
    said = [each["what"] for each in one["decisions"]]
    assert said == [
        *("command c1 DONE", "i-2 terminated", "NodeClaim default-2 deleted"),
        *("NodeClaim default-2 for 1 pod", "NodeClaim default-1 for 1 pod"),
    ]
    assert sum(each["launched"] for each in one["changes"]) == 2
    assert sum(each["terminated"] for each in one["changes"]) == 1


def test_the_page_of_a_play_tells_what_its_document_tells(played: Path, capsys: Out) -> None:
    one = told(played, capsys=capsys)
    html = page_of(played, capsys=capsys)
    checker = checked(html)
    text = " ".join("".join(checker.text).split())
    assert one["nodes"]
    for node in one["nodes"]:
        assert node["name"] in text
        assert node["usdPerHour"] > 0
    for each in one["decisions"]:
        assert each["what"] in text
    assert checker.seen.count("svg") == 4
    for part in ("Fleet", "What is blocked, and why", "Decisions", "Launches and terminations"):
        assert part in text


def test_machines_older_than_the_journal_are_known_from_its_snapshots(
    played: Path, tmp_path: Path, capsys: Out
) -> None:
    whole = told(played, capsys=capsys)
    folder = tmp_path / "late"
    shutil.copytree(played, folder)
    keys = sorted((folder / "journal").rglob("*.json"), key=lambda path: path.name)
    first = next(number for number, path in enumerate(keys) if "interrupt" in path.name)
    for path in keys[: first - 1]:
        path.unlink()
    late = told(folder, capsys=capsys)
    assert late["nodes"]
    assert {one["name"] for one in late["nodes"]} == {one["name"] for one in whole["nodes"]}
    assert all(one["usdPerHour"] > 0 and one["instanceType"] and one["pool"] for one in late["nodes"])
    assert late["usd"] < whole["usd"]
    named = [msgspec.json.decode(path.read_bytes()).get("snapshot") for path in keys[first - 1 :] if path.exists()]
    [oldest, *others] = dict.fromkeys(filter(None, named))
    (folder / oldest).unlink()  # the journal stays for longer
    assert others
    some = told(folder, capsys=capsys)
    shutil.rmtree(folder / "snapshot")
    none = told(folder, capsys=capsys)
    assert len(none["nodes"]) <= len(some["nodes"]) == len(late["nodes"])
    assert none["usd"] < some["usd"]


def test_a_live_cluster_says_which_nodes_there_are_and_which_pods_wait(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path, *machine(1), *machine(2), entry(300, notes=(left_out("a/old"), left_out("a/new"))))
    waiting = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    base = cluster_from_documents(
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
                "spec": {"nodeClassRef": {"group": "g", "kind": "EC2NodeClass", "name": "d"}, "requirements": []},
            },
        ],
        START,
    )
    alive = replace(base, pods=tuple(replace(one, conditions=(waiting,)) for one in base.pods))
    monkeypatch.setattr("cli.explain.live_of", lambda *_: alive)
    one = told(folder, "--context", "prod", "--now", "2026-11-21T14:00:00Z", capsys=capsys)
    assert one["isLive"] is True
    assert [node["claim"] for node in one["nodes"]] == ["default-2"]
    assert [group["names"] for group in one["blockedPods"]] == [["a/new"]]
    html = page_of(folder, "--context", "prod", "--now", "2026-11-21T14:00:00Z", capsys=capsys)
    assert "those of the live cluster" in html


def test_where_a_cycle_left_nothing_behind_no_pod_waited(tmp_path: Path, capsys: Out) -> None:
    counts = {"PendingPods": 4.0, "UnschedulablePods": 1.0}
    some = [entry(minute, notes=(left_out("a/p"),), counts=counts) for minute in (0, 1, 10)]
    one = told(written(tmp_path, *some, entry(60, function="disrupt", notes=(kept(1),))), capsys=capsys)
    assert [(each["at"][11:16], each["pods"]) for each in one["waiting"]] == [
        *(("08:00", 4.0), ("08:01", 4.0), ("08:02", 0.0), ("08:10", 4.0), ("08:11", 0.0)),
    ]
    assert one["blockedPods"] == []


def test_without_counts_the_fleet_is_what_its_machines_come_to(tmp_path: Path, capsys: Out) -> None:
    end = entry(30, TerminateInstances(instance_ids=("i-1",), why="w"), function="lifecycle")
    one = told(written(tmp_path, *machine(1), *machine(2, minute=5), end), capsys=capsys)
    assert [(each["nodes"], each["usdPerHour"]) for each in one["fleet"]] == [(1.0, 0.05), (2.0, 0.1), (1.0, 0.05)]


def test_what_fails_and_what_is_wrong_is_told(tmp_path: Path, capsys: Out) -> None:
    failed = Done(
        action=EvictPod(namespace="n", name="p", uid="u", node="x", why="drain"), result="failed", message="later"
    )
    some = (
        *(entry(minute, function="disrupt", error="Throttled: ec2") for minute in range(3)),
        entry(4, function="lifecycle", done=(failed,), problems=(Problem(kind="NodePool", name="bad", message="no"),)),
    )
    one = told(written(tmp_path, *some), capsys=capsys)
    assert one["failures"] == [{"error": "disrupt: Throttled: ec2", "times": 3, "last": "2026-11-21T08:02:00Z"}]
    assert one["problems"] == [{"kind": "NodePool", "name": "bad", "message": "no"}]
    assert [(each["what"], each["isFailed"]) for each in one["decisions"]] == [
        ("EvictPod p failed", True),
        ("disrupt failed", True),
    ]
    text = "".join(checked(page_of(tmp_path, capsys=capsys)).text)
    for part in ("Problems at the end", "Cycles that failed", "Throttled: ec2", "later; it was: drain"):
        assert part in text


def test_what_is_said_again_cycle_after_cycle_is_one_decision() -> None:
    paused = Note(kind="NodePool", name="default", verdict="DisruptionPaused", why="people say so")
    some = [Cycle(key=str(n), entry=entry(n, function="disrupt", notes=(paused,))) for n in range(4)]
    some.insert(2, Cycle(key="other", entry=entry(1.5, function="disrupt", notes=(kept(1),))))
    assert [one.cycle for one in decisions(some)] == ["2", "0"]


# Whatever is in it


def test_names_are_text_wherever_they_stand(tmp_path: Path, capsys: Out) -> None:
    made = NodeClaim(meta=Meta(name=EVIL, labels=((NODEPOOL, EVIL),)), node_class=NodeClassRef(name=EVIL))
    labels = ((NODEPOOL, EVIL), (INSTANCE_TYPE, EVIL), (CAPACITY_TYPE, EVIL), (ZONE, EVIL))
    evil = entry(
        0,
        CreateNodeClaim(claim=made, pods=(EVIL,), why=EVIL),
        PatchMetadata(kind="NodeClaim", name=EVIL, labels=labels),
        TagInstance(instance_id=EVIL, tags=(("karpenter.sh/nodeclaim", EVIL), ("Name", EVIL))),
        notes=(
            *(
                Note(kind=kind, name=EVIL, verdict=EVIL.replace("/", ""), why=EVIL)
                for kind in ("Pod", "Node", "Command")
            ),
            Note(kind="NodePool", name=EVIL, verdict=EVIL, why=EVIL),
            Note(kind="NodeClaim", name=EVIL, verdict=LAUNCHED, why=EVIL, usd_per_hour=1.0),
        ),
        problems=(Problem(kind=EVIL, name=EVIL, message=EVIL),),
        counts={"PendingPods": 1.0, "UnschedulablePods": 1.0},
    )
    failed = entry(1, function="disrupt", error=EVIL)
    folder = written(tmp_path / "<b>", evil, failed)
    html = page_of(folder, capsys=capsys)
    text = "".join(checked(html).text)
    assert "<script" not in html
    assert "<b>" not in html
    assert text.count("<script>alert('x')</script>\"&") >= 15


def test_five_hundred_nodes_of_thirty_pools_and_four_thousand_cycles_are_readable(tmp_path: Path, capsys: Out) -> None:
    some = [one for number in range(500) for one in machine(number, f"pool-{number % 30:02d}", number)]
    some.append(entry(520, function="disrupt", notes=tuple(kept(number, f"why {number % 5}") for number in range(500))))
    waits = entry(1999, notes=tuple(left_out(f"a/p{n}", f"pool a: none for p{n}") for n in range(300)))
    some += [entry(minute, notes=(left_out("a/p0", "pool a: none for p0"),)) for minute in range(2500 - 501)]
    folder = written(tmp_path, *some, waits, replace(waits, at=waits.at + timedelta(minutes=1)))
    one = told(folder, capsys=capsys)
    assert sum(one["cycles"].values()) == len(some) + 2 > 3500
    assert len(one["nodes"]) == 500
    assert len(one["pools"]) == 30
    assert [len(group["names"]) for group in one["blockedNodes"]] == [100] * 5
    assert [(len(group["names"]), group["why"]) for group in one["blockedPods"]] == [
        (300, ["NodePool a: none for <pod>"])
    ]
    html = page_of(folder, capsys=capsys)
    checker = checked(html)
    assert checker.seen.count("details") == 30 + 2 + 5 + 1
    assert len(html) < 1_500_000
    assert "earlier ones are left out (-o json has them)" in html


def test_instants_are_utc_whatever_their_offset(tmp_path: Path, capsys: Out) -> None:
    ahead = timezone(timedelta(hours=5, minutes=30))
    some = [replace(one, at=one.at.astimezone(ahead)) for one in machine(1)]
    one = told(written(tmp_path, *some), capsys=capsys)
    assert one["began"] == "2026-11-21T08:00:00Z"
    assert one["nodes"][0]["launchedAt"] == "2026-11-21T08:00:06Z"
    html = page_of(tmp_path, capsys=capsys)
    assert "2026-11-21 08:00:00 to 2026-11-21 08:01:00 UTC" in html
    assert "13:30" not in html


def test_torn_and_foreign_files_are_named_and_the_rest_is_told(tmp_path: Path, capsys: Out) -> None:
    folder = written(tmp_path, *machine(1))
    (folder / "journal" / "torn.json").write_text('{"function": "prov')
    (folder / "journal" / "foreign.json").write_text("[1]")
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "x.json").write_text("{}")
    assert main(["report", "-", "--journal", str(folder)]) == 1
    said = capsys.readouterr()
    assert "torn.json: no entry of a journal" in said.err
    assert "catalogue" not in said.err
    assert "node-1.internal" in said.out
    assert "not read: journal/torn.json" in said.out


def test_a_journal_of_nothing_has_a_page(tmp_path: Path, capsys: Out) -> None:
    text = "".join(checked(page_of(tmp_path, capsys=capsys)).text)
    assert "The journal tells of no machine." not in text
    assert text.count("Not known: no cycle of this time was read, which is not to say that nothing happened.") == 2
    assert "Nothing: no pod waits" not in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("more", "words"),
    [((), "holds no cycle: "), (("--since", "2h"), "holds no cycle so young (a longer --since sees more): ")],
)
def test_who_makes_a_page_of_nothing_is_told(tmp_path: Path, capsys: Out, more: tuple[str, ...], words: str) -> None:
    assert main(["report", "-", "--journal", str(tmp_path), *more]) == 0
    assert capsys.readouterr().err == f"joiner report: {tmp_path}: {words}the page has nothing to tell\n"


def test_the_same_journal_is_the_same_page(played: Path, capsys: Out) -> None:
    assert page_of(played, capsys=capsys) == page_of(played, capsys=capsys)


# The command


def test_a_page_goes_where_it_is_told_to(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "j", *machine(1))
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--journal", str(folder)]) == 0
    assert capsys.readouterr().out == "report: report.html\n"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert main(["report", "no/where.html", "--journal", str(folder)]) == 1
    assert "joiner report: no/where.html: No such file" in capsys.readouterr().err
    assert main(["report", "all.yaml", "-o", "yaml", "--journal", str(folder)]) == 0
    assert yaml.safe_load((tmp_path / "all.yaml").read_text())["pools"][0]["name"] == "default"


def test_the_document_is_stable(played: Path, capsys: Out) -> None:
    assert list(told(played, capsys=capsys)) == [
        *("source", "began", "ended", "isLive", "unreadable", "cycles", "failures", "fleet", "waiting", "changes"),
        *("changeSeconds", "usd", "savedUsdPerHour", "pools", "types", "nodes", "decisions", "blockedNodes"),
        *("blockedPods", "problems"),
    ]


def test_without_a_journal_there_is_nothing_to_tell(
    capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    with pytest.raises(SystemExit) as left:
        main(["report"])
    assert left.value.code == 2
    assert "where is the journal?" in capsys.readouterr().err
    assert main(["report", "--journal", str(tmp_path / "none")]) == 1
    assert "no such folder" in capsys.readouterr().err
    monkeypatch.setattr("cli.explain.live_of", lambda *_: Cluster(taken_at=START))
    assert main(["report", "-", "--context", "prod"]) == 0
    assert "no journal" in capsys.readouterr().out


def test_help_has_examples_exit_codes_and_the_shape(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    said = capsys.readouterr().out
    for part in ("examples:", "exit codes:", "-o json and yaml have"):
        assert part in said


# Pages and plots


def test_text_is_escaped_and_markup_is_not_escaped_twice() -> None:
    assert tag("p", "<&>", Markup("<b>"), title='"x"') == '<p title="&quot;x&quot;">&lt;&amp;&gt;<b></p>'
    html = document(EVIL, tag("p", EVIL))
    assert EVIL not in html
    assert "default-src 'none'" in html
    rows = table("<c>", [Column(title="<t>", is_number=True)], [["<r>"]])
    assert "<caption>&lt;c&gt;</caption>" in rows
    assert '<td class="n">&lt;r&gt;</td>' in rows


SPAN = Span(began=START, ended=START + timedelta(hours=1), label=lambda at: f"{at:%H:%M}")


def test_a_line_goes_by_steps_from_edge_to_edge() -> None:
    points = [(START, 0.0), (START + timedelta(minutes=30), 2.0), (START + timedelta(minutes=45), 2.0)]
    drawn = plot("Nodes", [("all", points), ("none", [])], SPAN, [(START, EVIL)])
    assert 'd="M44.0 128.0H498.0V18.0H952.0"' in drawn
    assert 'aria-label="Nodes: all 2 at the end"' in drawn
    assert "<script" not in drawn


def test_bars_go_up_and_down_and_stay_within() -> None:
    ups, downs = ("up", [(START, 4.0)]), ("down", [(START + timedelta(minutes=59), 2.0)])
    drawn = bars("Changes", ups, downs, SPAN, 60)
    tall = [float(one) for one in re.findall(r'<rect[^>]* height="([0-9.]+)"', drawn)]
    assert tall[0] == 2 * tall[1] > 0
    assert 'aria-label="Changes: up 4; down 2"' in drawn


def test_a_moment_is_a_span_too() -> None:
    drawn = plot("x", [("a", [(START, 1.0)])], replace(SPAN, ended=START))
    assert "nan" not in drawn
    assert "M44.0 18.0H44.0" in drawn


@pytest.mark.parametrize(
    ("hours", "seconds"),
    [(0, 60), (0.8, 60), (24, 1800), (24 * 7, 3 * 3600), (24 * 30, 24 * 3600), (24 * 365, 7 * 24 * 3600)],
)
def test_a_bar_is_as_long_as_it_has_to_be(hours: float, seconds: int) -> None:
    assert length_of(timedelta(hours=hours)) == seconds


def test_colours_can_be_told_apart_from_the_paper() -> None:
    style = document("x")
    light, dark = re.findall(r":root \{([^}]*--paper[^}]*)\}", style)[:2]
    for block in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
        for name in ("ink", "quiet", "a", "b", "c", "no"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name


def contrast(one: str, other: str) -> float:
    """Answer the contrast of two colours, as WCAG 2 reckons it."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
