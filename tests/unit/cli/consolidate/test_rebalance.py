"""`joiner rebalance --plan`."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.support.cli.fleet_files import (
    POOL,
    make_claim,
    make_node_manifests,
    make_pod,
    write_fleet,
    write_small_fleet,
)

Out = pytest.CaptureFixture[str]
Pool = dict[str, Any]


def run_rebalance(capsys: Out, *arguments: str) -> dict[str, Any]:
    assert main(["rebalance", "--plan", *arguments, "-o", "json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    report["by"] = {gap["cause"]: gap["usdPerHour"] for gap in report["gap"]}
    return report


def make_pool_with_disruption(**disruption: Any) -> Pool:
    return {**POOL, "spec": {**POOL["spec"], "disruption": {**POOL["spec"]["disruption"], **disruption}}}


def make_annotated_pool(**annotations: str) -> Pool:
    return {**POOL, "metadata": {"name": "default", "annotations": annotations}}


def write_wasteful_fleet(tmp_path: Path, pool: Pool, **notes: str) -> list[str]:
    """Write a large node with a small pod that fits a small node; not yet quiet if consolidateAfter is 24h."""
    node_manifests, node_claim = make_node_manifests("large", 16, **notes), make_claim("c1", "large", 16)
    if pool["spec"]["disruption"]["consolidateAfter"] == "24h":
        node_claim["status"]["conditions"].pop()
    return write_fleet(tmp_path, pool, *node_manifests, node_claim, make_pod("one", "large", "1"))


def test_rebalance_without_plan_flag_is_rejected(tmp_path: Path, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rebalance", *write_small_fleet(tmp_path)])
    assert "write --plan: consolidation runs continuously" in capsys.readouterr().err


def test_cost_gap_between_current_and_ideal_is_fully_attributed(tmp_path: Path, capsys: Out) -> None:
    report = run_rebalance(capsys, *write_small_fleet(tmp_path))
    assert report["before"] == {"nodes": 5, "usdPerHour": 1.7}
    saved = sum(step["savings"] for step in report["steps"])
    assert report["after"]["usdPerHour"] == pytest.approx(1.7 - saved)
    assert report["lowestWithoutConstraints"]["usdPerHour"] == pytest.approx(
        report["after"]["usdPerHour"] - sum(report["by"].values())
    )
    assert min(report["by"].values()) >= 0


DO_NOT = {"karpenter.sh__do_not_disrupt": "true"}
PAUSED = {"joiner.dev/disruption-paused": "true by anna"}


@pytest.mark.parametrize(
    ("pool", "notes", "cause"),
    [
        (make_annotated_pool(**PAUSED), {}, "pauses"),
        (make_pool_with_disruption(budgets=[{"nodes": "0"}]), {}, "budgets"),
        (make_annotated_pool(**{"joiner.dev/disruption-windows": "0 0 * * sat 1h"}), {}, "budgets"),
        (make_pool_with_disruption(consolidateAfter="24h"), {}, "consolidateAfter"),
        (POOL, DO_NOT, "protection"),
        (make_pool_with_disruption(consolidationPolicy="WhenEmpty"), {}, "policies"),
        (make_pool_with_disruption(consolidateAfter="Never"), {}, "policies"),
        (make_annotated_pool(**{"joiner.dev/minimum-savings-usd-per-hour": "5"}), {}, "policies"),
        (make_annotated_pool(**{"joiner.dev/eviction-price-usd": "500000"}), {}, "policies"),
    ],
)
def test_cause_of_excess_cost_is_reported(
    tmp_path: Path, capsys: Out, pool: Pool, notes: dict[str, str], cause: str
) -> None:
    report = run_rebalance(capsys, *write_wasteful_fleet(tmp_path, pool, **notes))
    assert report["steps"] == []
    assert report["lowestWithoutConstraints"]["usdPerHour"] < report["before"]["usdPerHour"] == 0.8
    assert {name for name, price in report["by"].items() if price} == {cause}


def test_unblocked_savings_are_reported_as_steps(tmp_path: Path, capsys: Out) -> None:
    report = run_rebalance(capsys, *write_wasteful_fleet(tmp_path, POOL))
    assert [step["delete"] for step in report["steps"]] == [["large"]]
    assert set(report["by"].values()) == {0.0}


def test_page_shows_costs_from_current_to_lowest(tmp_path: Path, capsys: Out) -> None:
    assert (
        main(
            ["rebalance", "--plan", *write_wasteful_fleet(tmp_path, make_pool_with_disruption(consolidateAfter="24h"))]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("$0.8000/h for 1 node: 700% above the lowest cost without constraints")
    first = [line.split()[0] for line in lines[3:]]
    assert first == [
        *("today", "next", "after"),
        *("pauses", "budgets", "consolidateAfter", "protection", "policies", "steps", "limits", "lowest"),
    ]
    assert next(line for line in lines if line.startswith("consolidateAfter")).split()[1] == "-0.7000"


def test_page_lists_steps_within_the_terminal_width(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["rebalance", "--plan", *write_small_fleet(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "STEPS" in lines
    assert max(map(len, lines)) <= 80


def test_file_input_requires_an_instance_type_catalog(tmp_path: Path, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rebalance", "--plan", "-f", str(tmp_path / "none.json")])
    assert "--instance-types" in capsys.readouterr().err


def test_fleet_without_nodepool_nodes_has_nothing_to_rebalance(tmp_path: Path, capsys: Out) -> None:
    assert main(["rebalance", "--plan", *write_fleet(tmp_path, POOL)]) == 0
    assert capsys.readouterr().out == "no NodePool has a node: nothing to rebalance\n"


def test_unreadable_file_is_reported(tmp_path: Path, capsys: Out) -> None:
    files = write_small_fleet(tmp_path)
    assert main(["rebalance", "--plan", *files, "-f", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
    assert main(["rebalance", "--plan", *files[:2], "--instance-types", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
