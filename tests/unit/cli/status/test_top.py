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

from cli.main import build_parser, main
from cli.planning.cluster_source import PlanningInputReader
from cli.status.node_rows import SORT_KEYS
from cli.status.order import SORT_BY_KEY, SORTS
from cli.status.screen import compute_order, draw_nodes
from cli.status.top_page import NODES_TABLE
from cli.terminal.refresh import Viewport
from tests.contract.kube_front import create
from tests.support.cli.fleet_files import CPUS, POOL, make_claim, make_instance_type, make_node_manifests, make_pod
from tests.support.cli.live_cases import serve_cluster

Out = pytest.CaptureFixture[str]
CHANGED = {"joiner.dev/disruption-paused": "Underutilized by anna because Black Friday"}


def write_inputs(tmp_path: Path, *objects: dict[str, Any]) -> list[str]:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    catalogue = {"region": "nowhere", "instanceTypes": [make_instance_type(cpu) for cpu in CPUS]}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    return ["top", "-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


def make_node_and_claim(name: str, cpu: int, **annotations: str) -> list[dict[str, Any]]:
    return [*make_node_manifests(name, cpu, **annotations), make_claim(f"c-{name}", name, cpu)]


def make_unlaunched_claim() -> dict[str, Any]:
    manifest = make_claim("c-new", "", 2)
    return {**manifest, "status": {"conditions": []}}


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    going = make_claim(
        "c-old", "old", 2, deletionTimestamp="2026-11-21T08:00:00Z", finalizers=["karpenter.sh/termination"]
    )
    broken, broken_claim = make_node_and_claim("lost.internal", 2)
    broken["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return write_inputs(
        tmp_path,
        POOL,
        *make_node_and_claim("large.internal", 16),
        *make_node_and_claim("small.internal", 2),
        *make_node_and_claim("held.internal", 4, **{"karpenter.sh__do_not_disrupt": "true"}),
        *make_node_manifests("old", 2),
        going,
        broken,
        broken_claim,
        make_unlaunched_claim(),
        make_pod("one", "large.internal", "6"),
        make_pod("two", "held.internal", "3"),
    )


def list_names(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()[2:]]


def test_top_lists_the_fleet_summary_then_the_most_expensive_node(fleet: list[str], capsys: Out) -> None:
    assert main(fleet) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == (
        "6 nodes (3 ready, 1 deleting, 1 in-flight, 1 not ready), $1.3000/h ($949.00/month), cpu 35%, memory 0%"
    )
    assert list_names(out)[:2] == ["large.internal", "held.internal"]
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
def test_sort_options_change_the_node_order(fleet: list[str], capsys: Out, flags: tuple[str, ...], first: str) -> None:
    assert main([*fleet, *flags]) == 0
    assert list_names(capsys.readouterr().out)[0] == first


def test_every_sort_order_has_a_key_and_a_flag() -> None:
    assert tuple(SORT_KEYS) == SORTS
    assert sorted(SORT_BY_KEY.values()) == sorted(SORTS)


def test_json_output_has_every_node(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["usdPerHour"] == 1.3
    by_name = {node["node"]: node for node in document["nodes"]}
    large = by_name["large.internal"]
    assert (large["cpu"], large["pods"]) == ({"requested": "6", "allocatable": "16"}, 1)
    assert (large["instanceType"], large["usdPerHour"]) == ("m.16", 0.8)
    assert {name: node["state"] for name, node in by_name.items()} == {
        "large.internal": "ready",
        "small.internal": "ready",
        "held.internal": "ready",
        "old": "deleting",
        "lost.internal": "not ready",
        "c-new": "in-flight",
    }
    assert by_name["held.internal"]["blockedBy"]["reason"] == "DoNotDisrupt"


def test_pause_is_shown_only_for_nodes_that_no_other_reason_keeps(tmp_path: Path, capsys: Out) -> None:
    pool = {**POOL, "metadata": {"name": "default", "annotations": CHANGED}}
    arguments = write_inputs(
        tmp_path, pool, *make_node_and_claim("a", 4), make_pod("one", "a", "1"), *make_node_and_claim("b", 4)
    )
    assert main([*arguments, "-o", "json"]) == 0
    kept_by = {node["node"]: node["blockedBy"] for node in json.loads(capsys.readouterr().out)["nodes"]}
    assert kept_by["a"]["reason"] == "Paused"
    assert "by anna: Black Friday" in kept_by["a"]["message"]
    assert kept_by["b"] is None
    assert main(arguments) == 0
    assert "paused: NodePool default: Underutilized disruption, by anna: Black Friday" in capsys.readouterr().out


def test_top_can_be_limited_to_a_nodepool(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "--nodepool", "default"]) == 0
    assert len(list_names(capsys.readouterr().out)) == 6
    assert main([*fleet, "--nodepool", "elsewhere"]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("0 nodes")
    assert "NodePool elsewhere not found" in captured.err


@pytest.mark.parametrize(
    ("columns", "heads"), [(80, {"NODE", "STATE", "$/H", "CPU", "BLOCKED"}), (300, set(NODES_TABLE.headings[:-1]))]
)
def test_table_of_five_hundred_nodes_fits_the_terminal_width(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, columns: int, heads: set[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    objects = [
        manifest
        for number in range(500)
        for manifest in make_node_and_claim(f"ip-10-0-{number}-7.eu-west-1.compute.internal", 4)
    ]
    assert main(write_inputs(tmp_path, POOL, *objects)) == 0
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
def test_repeated_sort_key_reverses_the_order(keys: str, order: tuple[str, bool]) -> None:
    arguments: Any = type("Chosen", (), {"sort": "price", "reverse": False})
    assert compute_order(arguments, tuple(keys)) == order


@pytest.mark.parametrize("interval", ["0", "soon", "1e9"])
def test_refresh_interval_outside_its_range_is_rejected(interval: str, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["top", "--every", interval])
    assert f"{interval!r} is not a number of seconds from 1 to 3600" in capsys.readouterr().err


def test_missing_kubeconfig_is_reported(tmp_path: Path, capsys: Out) -> None:
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
        self.output = ""

    def wait_until(self, holds: Callable[[str], object]) -> None:
        while not holds(self.output):
            is_over = self.process.poll() is not None
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536).decode(errors="replace")
            elif is_over:
                pytest.fail(f"it has ended:\n{self.output}")

    def type_keys(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for_exit(self) -> int:
        """Return the exit status; the terminal must be as it was before."""
        self.wait_until(lambda seen: "\x1b[?25h\x1b[?1049l" in seen)
        status = self.process.wait(600)
        assert termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return status


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    # Who was started in the background ignores SIGINT, and so would all that it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with serve_cluster(tmp_path) as (kube, config):
        create(kube, "/apis/karpenter.sh/v1/nodepools", POOL)
        for number in range(40):
            for node in make_node_manifests(f"node-{number:02}", 2 + number % 3):
                create(kube, "/api/v1/nodes", node)
        yield config
    signal.signal(signal.SIGINT, before)


def list_page_lines(output: str) -> list[str]:
    """Return the lines of the last page."""
    page = output.rpartition("\x1b[H")[2]
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", page).replace("\r", "").split("\n")


@pytest.mark.loopback
def test_interactive_keys_sort_scroll_and_quit(config: str) -> None:
    terminal = Terminal("top", "--kubeconfig", config, "--every", "3600")
    terminal.wait_until(lambda seen: "1-19 of 40 by price" in seen)
    lines = list_page_lines(terminal.output)
    assert len(lines) == 24
    assert max(map(len, lines)) <= 80
    terminal.type_keys("n")
    terminal.wait_until(lambda seen: "by name" in seen and "".join(list_page_lines(seen)[4:5]).startswith("node-00"))
    terminal.type_keys("\x1b[6~ ")
    terminal.wait_until(lambda seen: "22-40 of 40 by name" in seen)
    terminal.type_keys("\x1b[Ak")
    terminal.wait_until(lambda seen: "20-38 of 40 by name" in seen)
    terminal.type_keys("/node-0")
    terminal.wait_until(lambda seen: "filter: node-0_  (Enter keeps it" in seen)
    terminal.type_keys("q1\x7f\x7f3\r")
    terminal.wait_until(lambda seen: "1-1 of 1 by name, filter: node-03" in seen)
    terminal.type_keys("\x1b")
    terminal.wait_until(lambda seen: "1-19 of 40 by name · sort" in seen.rpartition("node-03")[2])
    terminal.type_keys("q")
    assert terminal.wait_for_exit() == 0


@pytest.mark.loopback
@pytest.mark.parametrize("command", [("top",), ("status", "--watch")])
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_terminal_is_restored_after_a_signal(
    config: str, command: tuple[str, ...], sent: signal.Signals, status: int
) -> None:
    terminal = Terminal(*command, "--kubeconfig", config)
    terminal.wait_until(lambda seen: "node" in seen)
    terminal.process.send_signal(sent)
    assert terminal.wait_for_exit() == status


@pytest.mark.loopback
def test_unreachable_cluster_is_shown_and_retried_in_interactive_mode(config: str) -> None:
    terminal = Terminal("top", "--kubeconfig", config, "--context", "away", "--every", "1")
    terminal.wait_until(lambda seen: "away: GET" in seen)
    terminal.type_keys("q")
    assert terminal.wait_for_exit() == 0


def test_filter_keeps_nodes_with_all_words(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "-o", "json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    name, state = nodes[0]["node"], nodes[0]["state"]
    assert main([*fleet, "--filter", f"{name.upper()} {state}", "-o", "json"]) == 0
    assert [node["node"] for node in json.loads(capsys.readouterr().out)["nodes"]] == [name]
    assert main([*fleet, "--filter", f"{name} nothing", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == []


def test_terminal_has_bars_and_a_pipe_has_plain_text(
    fleet: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*fleet, "--once"]) == 0
    assert "░" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main([*fleet, "--once"]) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert re.fullmatch(r"cpu +[█▏▎▍▌▋▊▉░]{20} +\d+%  \S+ of \S+ requested", lines[1])
    assert re.fullmatch(r"memory +[█▏▎▍▌▋▊▉░]{20} +\d+%  \S+ of \S+ requested", lines[2])
    assert max(map(len, lines)) <= 80
    assert re.search(r"[█▏▎▍▌▋▊▉░]{5} +\d+%", lines[-1])


# The page of a terminal


def draw_page(fleet: list[str], lines: int, keys: str = "", first: int = 0) -> tuple[list[str], int]:
    arguments = build_parser("top").parse_args(fleet)
    view = Viewport(columns=80, lines=lines, first=first, keys=tuple(keys))
    return draw_nodes(arguments, (*PlanningInputReader(arguments)(), None), view)


def test_top_page_fills_the_terminal_with_key_help_on_the_last_line(fleet: list[str]) -> None:
    for lines in (4, 9, 30):
        page_lines, last = draw_page(fleet, lines)
        assert len(page_lines) == lines
        heading_count = 3 if lines < 12 else 5
        assert last == max(0, 6 - (lines - heading_count))
        assert "by price" in page_lines[-1]
    assert "1-6 of 6 by name reversed" in draw_page(fleet, 24, "nn")[0][-1]


def test_top_page_scrolls_within_its_bounds(fleet: list[str]) -> None:
    assert "3-4 of 6" in draw_page(fleet, 5, first=2)[0][-1]
    assert "5-6 of 6" in draw_page(fleet, 5, first=99)[0][-1]


def test_top_page_without_nodes_shows_zero_nodes(tmp_path: Path) -> None:
    page_lines, last = draw_page(write_inputs(tmp_path, POOL), 10)
    assert (last, page_lines[0]) == (0, "0 nodes, $0.0000/h ($0.00/month)")
    assert page_lines[-1].startswith("none by price")


def test_drifted_node_is_shown_as_drifted_and_removable_despite_its_pods(tmp_path: Path, capsys: Out) -> None:
    [manifest] = make_node_manifests("a", 4)
    stale = make_claim("c-a", "a", 4)
    stale["status"]["conditions"].append({"type": "Drifted", "status": "True", "reason": "AMIDrift"})
    assert main([*write_inputs(tmp_path, POOL, manifest, stale, make_pod("one", "a", "1")), "-o", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["nodes"]
    assert (row["state"], row["blockedBy"]) == ("drifted", None)
