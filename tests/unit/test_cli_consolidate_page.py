"""`joiner consolidate`: what a person reads, and what is said of what they wrote."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from shared.disruption.sweep import sweep
from tests.unit.fleet_files import ARGS, POOL, machine, pod, small, written

Out = pytest.CaptureFixture[str]


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    return small(tmp_path)


def test_a_page_has_the_fleet_before_and_after_and_why(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files]) == 0
    page = capsys.readouterr().out
    assert "BEFORE" in page
    assert "AFTER" in page
    assert "1. Empty: 1 node (empty)" in page
    assert "all pods that may be moved, placed anew" in page
    assert "BLOCKED" in page
    assert "held" in page


def test_a_page_may_be_narrow(files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["consolidate", *files, "--max-steps", "1"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 60
    assert "there may be more steps" in page


def test_without_nodes_there_is_nothing_to_do(tmp_path: Path, capsys: Out) -> None:
    waiting = pod("alone", "", "1") | {"status": {"phase": "Pending"}}
    assert main(["consolidate", *written(tmp_path, POOL, waiting)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "no node there belongs to a NodePool: there is nothing to consolidate"
    assert len(lines) == 3


def test_where_nothing_is_saved_that_is_said(tmp_path: Path, capsys: Out) -> None:
    assert main(["consolidate", *written(tmp_path, POOL, *machine("full", 2), pod("one", "full", "1900m"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "$0.1000 per hour for 1 node: disruption would take no step"
    assert lines[1] == "all pods that may be moved, placed anew: $0.1000 per hour, no less than that"
    assert "KEPT  1 node, $0.1000 per hour: 1 NoCheaperOffering" in lines


def test_what_costs_most_is_told_first_of_those_that_stay(tmp_path: Path, capsys: Out) -> None:
    held = {"karpenter.sh__do_not_disrupt": "true"}
    some = (*machine("a", 2, **held), *machine("b", 16, **held), *machine("c", 4, **held))
    assert main(["consolidate", *written(tmp_path, POOL, *some)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("BLOCKED  3 nodes, $1.1000 per hour: 3 DoNotDisrupt")
    assert [line.split()[:2] for line in lines[first + 1 : first + 4]] == [
        ["b", "$0.8000"],
        ["c", "$0.2000"],
        ["a", "$0.1000"],
    ]


def test_many_kinds_and_many_nodes_that_stay_are_counted(tmp_path: Path, capsys: Out) -> None:
    some = [
        one for number in range(20) for one in machine(f"n{number:02}", 2, **{"karpenter.sh__do_not_disrupt": "true"})
    ]
    for number, one in enumerate(some):
        one["metadata"]["labels"]["karpenter.sh/nodepool"] = f"pool-{number:02}"
    assert main(["consolidate", *written(tmp_path, POOL, *some)]) == 0
    page = capsys.readouterr().out
    assert re.search(r"… 5 more kinds +5 +0.5000 +5 +0.5000\n", page)
    assert "  … and 5 more nodes (--all shows them)" in page


def test_what_comes_in_the_place_of_a_node_is_named(tmp_path: Path, capsys: Out) -> None:
    assert main(["consolidate", *written(tmp_path, POOL, *machine("large", 16), pod("one", "large", "3"))]) == 0
    page = capsys.readouterr().out
    assert "     replaced with m.04 on-demand in a $0.2000\n" in page
    assert "     saves $0.6000 per hour, leaves $0.2000: " in page


def test_many_steps_are_counted_unless_all_are_asked_for(tmp_path: Path, capsys: Out) -> None:
    pool = POOL | {"spec": POOL["spec"] | {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]}}}
    files = written(tmp_path, pool, *(one for number in range(20) for one in machine(f"n{number:02}", 2)))
    assert main(["consolidate", *files]) == 0
    page = capsys.readouterr().out
    assert " 15. Empty: 1 node" in page
    assert " 16. Empty: 1 node" not in page
    assert "  … and 5 more steps that save $0.5000 per hour (--all shows them)" in page
    assert main(["consolidate", *files, "--all"]) == 0
    assert " 20. Empty: 1 node" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [
        ["--until", "12"],
        ["--until", "$/h>1"],
        ["--max-steps", "0"],
        ["--reason", "Boredom"],
        ["--feature-gates", "SpotToSpotConsolidation=perhaps"],
        ["--now", "yesterday"],
        ["--now", "2026-11-21"],
    ],
)
def test_wrong_usage_is_told(files: list[str], more: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as left:
        main(["consolidate", *files, *more])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert "consolidate: error: " in error
    assert more[1] in error


def test_files_need_a_catalogue(files: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["consolidate", *files[:2]])
    assert "--instance-types" in capsys.readouterr().err


def test_a_catalogue_that_is_not_there_is_named(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files[:3], "/nowhere.json", *ARGS]) == 1
    assert "/nowhere.json" in capsys.readouterr().err


class Impatient:
    """Sweeps, and someone who interrupts one of them."""

    def __init__(self, patience: int) -> None:
        """Interrupt when *patience* sweeps are done."""
        self._left, self._sweep = patience, sweep

    def __call__(self, *arguments: Any, **named: Any) -> object:
        """Sweep, or be interrupted."""
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return self._sweep(*arguments, **named)


def test_whoever_interrupts_is_told_what_was_found(
    files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.steps.sweep", Impatient(1))
    assert main(["consolidate", *files]) == 130
    page = capsys.readouterr().out
    assert "there may be more steps: interrupted" in page
    assert "1. Empty: 1 node (empty)" in page


def test_whoever_interrupts_at_once_is_told_nothing(
    files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.steps.sweep", Impatient(0))
    assert main(["consolidate", *files]) == 130
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "\ninterrupted\n")


class Elapsed:
    """A timer whose time is up already."""

    def __init__(self, *_: object) -> None:
        """Wait for nothing."""

    def is_alive(self) -> bool:
        """Answer that it is not."""
        return False

    daemon, start, cancel, join = True, __init__, __init__, __init__


def test_how_far_it_is_is_told_after_each_sweep(files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("cli.progress.Timer", Elapsed)
    assert main(["consolidate", *files, "--steps", "1"]) == 0
    shown = capsys.readouterr()
    price = re.search(r"-> \$([0-9.]+) per hour in (\d+) steps", shown.out)
    assert price is not None
    assert shown.err == f"joiner: {price[2]} steps, ${price[1]} per hour\n"
