"""`joiner top`: once, in a terminal, and for programs."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.look import Looking
from cli.main import main, parser_for
from cli.ranked import KEYS
from cli.top import LETTERS, SORTS, _drawn, _order
from cli.top_page import HEAD
from cli.watching import View
from tests.contract.kube_front import create
from tests.unit.fleet_files import CPUS, POOL, claim, kind, machine, pod
from tests.unit.live_cases import live

Out = pytest.CaptureFixture[str]
CHANGED = {"joiner.dev/disruption-paused": "Underutilized by anna because Black Friday"}


def written(tmp_path: Path, *objects: dict[str, Any]) -> list[str]:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    catalogue = {"region": "nowhere", "instanceTypes": [kind(cpu) for cpu in CPUS]}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    return ["top", "-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


def node(name: str, cpu: int, **annotations: str) -> list[dict[str, Any]]:
    return [*machine(name, cpu, **annotations), claim(f"c-{name}", name, cpu)]


def coming() -> dict[str, Any]:
    one = claim("c-new", "", 2)
    return {**one, "status": {"conditions": []}}


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    going = claim("c-old", "old", 2, deletionTimestamp="2026-11-21T08:00:00Z", finalizers=["karpenter.sh/termination"])
    broken, broken_claim = node("lost.internal", 2)
    broken["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return written(
        tmp_path,
        POOL,
        *node("large.internal", 16),
        *node("small.internal", 2),
        *node("held.internal", 4, **{"karpenter.sh__do_not_disrupt": "true"}),
        *machine("old", 2),
        going,
        broken,
        broken_claim,
        coming(),
        pod("one", "large.internal", "6"),
        pod("two", "held.internal", "3"),
    )


def names(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[2:]]


def test_the_dearest_node_is_first_and_the_fleet_stands_on_top(fleet: list[str], capsys: Out) -> None:
    assert main(fleet) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == (
        "6 nodes (3 ready, 1 going, 1 coming, 1 not ready), $1.30/h ($949 a month), cpu 35%, memory 0%"
    )
    assert names(out)[:2] == ["large.internal", "held.internal"]
    assert "DoNotDisrupt: disruption is blocked through the karpenter.sh/do-not-disrupt annotation" in out


@pytest.mark.parametrize(
    ("flags", "first"),
    [
        (("--sort", "cpu"), "held.internal"),
        (("--sort", "cpu", "--reverse"), "c-new"),
        (("--sort", "name"), "c-new"),
        (("--sort", "pods"), "held.internal"),
    ],
)
def test_what_comes_first_can_be_chosen(fleet: list[str], capsys: Out, flags: tuple[str, ...], first: str) -> None:
    assert main([*fleet, *flags]) == 0
    assert names(capsys.readouterr().out)[0] == first


def test_every_order_has_a_key_and_a_flag() -> None:
    assert tuple(KEYS) == SORTS
    assert sorted(LETTERS.values()) == sorted(SORTS)


def test_json_has_every_node(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usdPerHour"] == 1.3
    by_name = {one["node"]: one for one in found["nodes"]}
    large = by_name["large.internal"]
    assert (large["cpu"], large["pods"]) == ({"requested": "6", "allocatable": "16"}, 1)
    assert (large["instanceType"], large["usdPerHour"]) == ("m.16", 0.8)
    assert {name: one["state"] for name, one in by_name.items()} == {
        "large.internal": "ready",
        "small.internal": "ready",
        "held.internal": "ready",
        "old": "going",
        "lost.internal": "not ready",
        "c-new": "coming",
    }
    assert by_name["held.internal"]["keptBy"]["reason"] == "DoNotDisrupt"


def test_a_pause_keeps_what_else_nothing_keeps(tmp_path: Path, capsys: Out) -> None:
    pool = {**POOL, "metadata": {"name": "default", "annotations": CHANGED}}
    arguments = written(tmp_path, pool, *node("a", 4), pod("one", "a", "1"), *node("b", 4))
    assert main([*arguments, "-o", "json"]) == 0
    kept = {one["node"]: one["keptBy"] for one in json.loads(capsys.readouterr().out)["nodes"]}
    assert kept["a"]["reason"] == "Paused"
    assert "by anna: Black Friday" in kept["a"]["message"]
    assert kept["b"] is None
    assert main(arguments) == 0
    assert "paused: NodePool default: Underutilized disruption, by anna: Black Friday" in capsys.readouterr().out


def test_one_nodepool_can_be_looked_at(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "--nodepool", "default"]) == 0
    assert len(names(capsys.readouterr().out)) == 6
    assert main([*fleet, "--nodepool", "elsewhere"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("0 nodes")
    assert "NodePool elsewhere: there is none" in told.err


@pytest.mark.parametrize(("columns", "heads"), [(80, {"NODE", "STATE", "$/H", "CPU", "KEPT"}), (300, set(HEAD[:-1]))])
def test_of_five_hundred_nodes_each_has_a_line_that_fits(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, columns: int, heads: set[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    some = [one for number in range(500) for one in node(f"ip-10-0-{number}-7.eu-west-1.compute.internal", 4)]
    assert main(written(tmp_path, POOL, *some)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 502
    assert max(map(len, lines)) <= columns
    assert heads <= set(lines[1].split())
    assert lines[2].startswith("ip-10-0-0-7 ")


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("", ("price", False)),
        ("c", ("cpu", False)),
        ("cc", ("cpu", True)),
        ("ccc", ("cpu", False)),
        ("ccm", ("memory", False)),
        ("cx", ("cpu", False)),
        ("$", ("price", True)),
    ],
)
def test_the_same_key_once_more_turns_the_order_round(keys: str, order: tuple[str, bool]) -> None:
    chosen: Any = type("Chosen", (), {"sort": "price", "reverse": False})
    assert _order(chosen, tuple(keys)) == order


@pytest.mark.parametrize("every", ["0", "soon", "1e9"])
def test_how_often_has_bounds(every: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["top", "--every", every])
    assert f"{every!r} is not a number of seconds from 1 to 3600" in capsys.readouterr().err


def test_without_a_cluster_that_answers_it_says_so(tmp_path: Path, capsys: Out) -> None:
    assert main(["top", "--kubeconfig", str(tmp_path / "none")]) == 1
    assert "no such kubeconfig" in capsys.readouterr().err


# A terminal


class Terminal:
    """`joiner` in a terminal of 24 lines and 80 columns."""

    def __init__(self, *arguments: str) -> None:
        """Begin it."""
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (24, 80))
        self.before = termios.tcgetattr(self.slave)
        code = "import sys; from cli.main import main; sys.exit(main(sys.argv[1:]))"
        environment = {**os.environ, "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=environment,
            start_new_session=True,
        )
        self.seen = ""

    def until(self, holds: Callable[[str], object]) -> None:
        while not holds(self.seen):
            is_over = self.process.poll() is not None
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
            elif is_over:
                pytest.fail(f"it has ended:\n{self.seen}")

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def left(self) -> int:
        """Answer the exit status; the terminal must be as it was."""
        self.until(lambda seen: "\x1b[?25h\x1b[?1049l" in seen)
        status = self.process.wait(600)
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return status


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    # Who was started in the background ignores SIGINT, and so would all that it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with live(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for number in range(40):
            for one in machine(f"node-{number:02}", 2 + number % 3):
                create(kube, "/api/v1/nodes", one)
        yield config
    signal.signal(signal.SIGINT, before)


def shown(seen: str) -> list[str]:
    """Answer the lines of the last page."""
    page = seen.rpartition("\x1b[H")[2]
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", page).replace("\r", "").split("\n")


@pytest.mark.loopback
def test_in_a_terminal_it_is_sorted_turned_over_and_left_by_keys(config: str) -> None:
    one = Terminal("top", "--kubeconfig", config, "--every", "3600")
    one.until(lambda seen: "1-21 of 40 by price" in seen)
    lines = shown(one.seen)
    assert len(lines) == 24
    assert max(map(len, lines)) <= 80
    one.type("n")
    one.until(lambda seen: "by name" in seen and "".join(shown(seen)[2:3]).startswith("node-00"))
    one.type("\x1b[6~ ")
    one.until(lambda seen: "20-40 of 40 by name" in seen)
    one.type("\x1b[Ak")
    one.until(lambda seen: "18-38 of 40 by name" in seen)
    one.type("q")
    assert one.left() == 0


@pytest.mark.loopback
@pytest.mark.parametrize("command", [("top",), ("status", "--watch")])
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whoever_ends_it_finds_the_terminal_as_it_was(
    config: str, command: tuple[str, ...], sent: signal.Signals, status: int
) -> None:
    one = Terminal(*command, "--kubeconfig", config)
    one.until(lambda seen: "node" in seen)
    one.process.send_signal(sent)
    assert one.left() == status


@pytest.mark.loopback
def test_in_a_terminal_a_cluster_that_is_away_is_named_and_asked_again(config: str) -> None:
    one = Terminal("top", "--kubeconfig", config, "--context", "away", "--every", "1")
    one.until(lambda seen: "away: GET" in seen)
    one.type("q")
    assert one.left() == 0


# The page of a terminal


def page(fleet: list[str], lines: int, keys: str = "", first: int = 0) -> tuple[list[str], int]:
    chosen = parser_for("top").parse_args(fleet)
    return _drawn(Looking(chosen)()[1], None, View(columns=80, lines=lines, first=first, keys=tuple(keys)), chosen)


def test_a_page_has_as_many_lines_as_the_terminal_and_the_keys_last(fleet: list[str]) -> None:
    for lines in (4, 9, 30):
        drawn, last = page(fleet, lines)
        assert len(drawn) == lines
        assert last == max(0, 6 - (lines - 3))
        assert "by price" in drawn[-1]
    assert "1-6 of 6 by name reversed" in page(fleet, 24, "nn")[0][-1]


def test_a_page_begins_where_it_was_moved_to_and_never_beyond_its_end(fleet: list[str]) -> None:
    assert "3-4 of 6" in page(fleet, 5, first=2)[0][-1]
    assert "5-6 of 6" in page(fleet, 5, first=99)[0][-1]


def test_without_nodes_a_page_says_so(tmp_path: Path) -> None:
    drawn, last = page(written(tmp_path, POOL), 10)
    assert (last, drawn[0]) == (0, "0 nodes, $0.00/h ($0 a month)")
    assert drawn[-1].startswith("none by price")


def test_a_node_that_drifted_says_so_and_may_go_whatever_is_on_it(tmp_path: Path, capsys: Out) -> None:
    [one] = machine("a", 4)
    stale = claim("c-a", "a", 4)
    stale["status"]["conditions"].append({"type": "Drifted", "status": "True", "reason": "AMIDrift"})
    assert main([*written(tmp_path, POOL, one, stale, pod("one", "a", "1")), "-o", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["nodes"]
    assert (found["state"], found["keptBy"]) == ("drifted", None)
