"""`joiner consolidate`: the page for a reader and the errors about wrong usage."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from shared.decide.disruption.disruption_controller import decide_node_disruption
from tests.support.cli.fleet_files import ARGS, POOL, make_node_manifests, make_pod, write_fleet, write_small_fleet

Out = pytest.CaptureFixture[str]


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    return write_small_fleet(tmp_path)


def test_page_shows_fleet_before_and_after_with_step_reasons(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files]) == 0
    page = capsys.readouterr().out
    assert "NODES NOW" in page
    assert "NODES AFTER" in page
    assert "1. Empty: delete 1 node (empty)" in page
    assert "the lowest cost with all constraints" in page
    assert "BLOCKED" in page
    assert "held" in page


def test_page_fits_a_narrow_terminal(files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["consolidate", *files, "--max-steps", "1"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 60
    assert "there may be more steps" in page


def test_blocked_node_names_the_budget_that_the_steps_of_the_same_run_use_up(capsys: Out) -> None:
    example = ("-f", "examples/cluster", "--instance-types", "examples/catalogue.json")
    assert main(["consolidate", *example, "--steps", "1"]) == 0
    page = capsys.readouterr().out
    assert "NodePool default allows 2 nodes at a time for reason Underutilized, 2 are terminating or not Ready" in page


def test_fleet_without_nodes_has_nothing_to_consolidate(tmp_path: Path, capsys: Out) -> None:
    waiting = make_pod("alone", "", "1") | {"status": {"phase": "Pending"}}
    assert main(["consolidate", *write_fleet(tmp_path, POOL, waiting)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "no NodePool has a node: nothing to consolidate"
    assert len(lines) == 3


def test_fleet_without_possible_savings_is_reported(tmp_path: Path, capsys: Out) -> None:
    assert (
        main(
            [
                "consolidate",
                *write_fleet(tmp_path, POOL, *make_node_manifests("full", 2), make_pod("one", "full", "1900m")),
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "$0.1000/h for 1 node: disruption would change nothing"
    assert lines[1] == (
        "the result is equal to the lowest cost with all constraints ($0.1000/h): "
        "that of rescheduling all movable pods at once"
    )
    assert "KEPT  1 node, $0.1000/h: 1 NoCheaperOffering" in lines


def test_blocked_nodes_are_sorted_by_price(tmp_path: Path, capsys: Out) -> None:
    protection = {"karpenter.sh__do_not_disrupt": "true"}
    nodes = (
        *make_node_manifests("a", 2, **protection),
        *make_node_manifests("b", 16, **protection),
        *make_node_manifests("c", 4, **protection),
    )
    assert main(["consolidate", *write_fleet(tmp_path, POOL, *nodes)]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("BLOCKED  3 nodes, $1.1000/h: 3 DoNotDisrupt")
    assert [line.split()[:2] for line in lines[first + 1 : first + 4]] == [
        ["b", "$0.8000/h"],
        ["c", "$0.2000/h"],
        ["a", "$0.1000/h"],
    ]


def test_long_lists_of_nodepools_and_blocked_nodes_are_truncated_with_a_count(tmp_path: Path, capsys: Out) -> None:
    nodes = [
        manifest
        for number in range(20)
        for manifest in make_node_manifests(f"n{number:02}", 2, **{"karpenter.sh__do_not_disrupt": "true"})
    ]
    for number, node in enumerate(nodes):
        node["metadata"]["labels"]["karpenter.sh/nodepool"] = f"pool-{number:02}"
    assert main(["consolidate", *write_fleet(tmp_path, POOL, *nodes)]) == 0
    page = capsys.readouterr().out
    assert re.search(r"… 5 more rows +5 +0.5000 +5 +0.5000\n", page)
    assert "  … and 5 more nodes (--all shows them)" in page


def test_replacement_offering_is_shown(tmp_path: Path, capsys: Out) -> None:
    assert (
        main(
            [
                "consolidate",
                *write_fleet(tmp_path, POOL, *make_node_manifests("large", 16), make_pod("one", "large", "3")),
            ]
        )
        == 0
    )
    page = capsys.readouterr().out
    assert "     with m.04 on-demand in a ($0.2000/h)\n" in page
    assert "     saves $0.6000/h, remaining cost $0.2000/h: " in page


def test_saving_is_printed_once_per_step(tmp_path: Path, capsys: Out) -> None:
    nodes = (*make_node_manifests("a", 4), *make_node_manifests("b", 4))
    pods = (make_pod("one", "a", "1"), make_pod("two", "b", "1"))
    assert main(["consolidate", *write_fleet(tmp_path, POOL, *nodes, *pods)]) == 0
    page = capsys.readouterr().out
    assert "     saves $0.2000/h, remaining cost $0.2000/h: its pods fit on other nodes\n" in page


def test_long_step_lists_are_truncated_without_the_all_flag(tmp_path: Path, capsys: Out) -> None:
    pool = POOL | {"spec": POOL["spec"] | {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]}}}
    files = write_fleet(
        tmp_path, pool, *(manifest for number in range(20) for manifest in make_node_manifests(f"n{number:02}", 2))
    )
    assert main(["consolidate", *files]) == 0
    page = capsys.readouterr().out
    assert " 15. Empty: delete 1 node" in page
    assert " 16. Empty: delete 1 node" not in page
    assert "  … and 5 more steps, saving $0.5000/h (--all shows them)" in page
    assert main(["consolidate", *files, "--all"]) == 0
    assert " 20. Empty: delete 1 node" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags",
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
def test_invalid_option_values_are_rejected(files: list[str], flags: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["consolidate", *files, *flags])
    assert raised.value.code == 2
    error = capsys.readouterr().err
    assert "consolidate: error: " in error
    assert flags[1] in error


def test_file_input_requires_an_instance_type_catalog(files: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["consolidate", *files[:2]])
    assert "--instance-types" in capsys.readouterr().err


def test_missing_catalog_file_is_reported(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files[:3], "/nowhere.json", *ARGS]) == 1
    assert "/nowhere.json" in capsys.readouterr().err


class Impatient:
    """A sweep function that is interrupted after a number of sweeps."""

    def __init__(self, patience: int) -> None:
        """Interrupt after *patience* sweeps."""
        self._remaining_sweeps, self._sweep = patience, decide_node_disruption

    def __call__(self, *arguments: Any, **keywords: Any) -> object:
        """Sweep, or raise KeyboardInterrupt."""
        if not self._remaining_sweeps:
            raise KeyboardInterrupt
        self._remaining_sweeps -= 1
        return self._sweep(*arguments, **keywords)


def test_interrupt_prints_the_steps_found_so_far(
    files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.consolidate.steps.decide_node_disruption", Impatient(1))
    assert main(["consolidate", *files]) == 130
    page = capsys.readouterr().out
    assert "stopped by an interrupt: there may be more steps" in page
    assert "1. Empty: delete 1 node (empty)" in page


def test_interrupt_before_the_first_step_prints_no_page(
    files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.consolidate.steps.decide_node_disruption", Impatient(0))
    assert main(["consolidate", *files]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "\ninterrupted\n")


class ElapsedTimer:
    """A timer whose time has already elapsed."""

    daemon = True

    def __init__(self, _: float, function: Callable[[], None]) -> None:
        """Keep what the timer calls."""
        self._function = function

    def start(self) -> None:
        self._function()

    def cancel(self) -> None:
        """Do nothing: the timer is never running."""

    join = cancel


def test_progress_is_printed_after_each_disruption_run(
    files: list[str], capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("cli.terminal.stderr.Timer", ElapsedTimer)
    assert main(["consolidate", *files, "--steps", "1"]) == 0
    captured = capsys.readouterr()
    price = re.search(r"-> \$([0-9.]+)/h in (\d+) steps", captured.out)
    assert price is not None
    assert f"joiner: {price[2]} steps, ${price[1]}/h" in captured.err
