"""`joiner rebalance --plan`."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.unit.fleet_files import POOL, claim, machine, pod, small, written

Out = pytest.CaptureFixture[str]
Pool = dict[str, Any]


def gaps(capsys: Out, *arguments: str) -> dict[str, Any]:
    assert main(["rebalance", "--plan", *arguments, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    found["by"] = {one["cause"]: one["usdPerHour"] for one in found["gap"]}
    return found


def changed(**disruption: Any) -> Pool:
    return {**POOL, "spec": {**POOL["spec"], "disruption": {**POOL["spec"]["disruption"], **disruption}}}


def annotated(**annotations: str) -> Pool:
    return {**POOL, "metadata": {"name": "default", "annotations": annotations}}


def wasteful(tmp_path: Path, pool: Pool, **notes: str) -> list[str]:
    """Write a large node with a small pod: it might be a small one; not quiet yet where consolidateAfter is long."""
    one, two = machine("large", 16, **notes), claim("c1", "large", 16)
    if pool["spec"]["disruption"]["consolidateAfter"] == "24h":
        two["status"]["conditions"].pop()
    return written(tmp_path, pool, *one, two, pod("one", "large", "1"))


def test_without_plan_it_says_that_joiner_does_it_by_itself(tmp_path: Path, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rebalance", *small(tmp_path)])
    assert "Joiner rebalances by itself, by consolidation" in capsys.readouterr().err


def test_from_today_to_the_best_every_dollar_is_accounted_for(tmp_path: Path, capsys: Out) -> None:
    found = gaps(capsys, *small(tmp_path))
    assert found["today"] == {"nodes": 5, "usdPerHour": 1.7}
    saved = sum(one["savings"] for one in found["steps"])
    assert found["after"]["usdPerHour"] == pytest.approx(1.7 - saved)
    assert found["ideal"]["usdPerHour"] == pytest.approx(found["after"]["usdPerHour"] - sum(found["by"].values()))
    assert min(found["by"].values()) >= 0


DO_NOT = {"karpenter.sh__do_not_disrupt": "true"}
PAUSED = {"joiner.dev/disruption-paused": "true by anna"}


@pytest.mark.parametrize(
    ("pool", "notes", "cause"),
    [
        (annotated(**PAUSED), {}, "pauses"),
        (changed(budgets=[{"nodes": "0"}]), {}, "budgets"),
        (annotated(**{"joiner.dev/disruption-windows": "0 0 * * sat 1h"}), {}, "budgets"),
        (changed(consolidateAfter="24h"), {}, "consolidateAfter"),
        (POOL, DO_NOT, "protection"),
        (changed(consolidationPolicy="WhenEmpty"), {}, "policies"),
        (changed(consolidateAfter="Never"), {}, "policies"),
        (annotated(**{"joiner.dev/minimum-savings-usd-per-hour": "5"}), {}, "policies"),
    ],
)
def test_what_keeps_the_fleet_from_being_cheaper_is_named(
    tmp_path: Path, capsys: Out, pool: Pool, notes: dict[str, str], cause: str
) -> None:
    found = gaps(capsys, *wasteful(tmp_path, pool, **notes))
    assert found["steps"] == []
    assert found["ideal"]["usdPerHour"] < found["today"]["usdPerHour"] == 0.8
    assert {name for name, price in found["by"].items() if price} == {cause}


def test_what_nothing_keeps_is_done_by_steps(tmp_path: Path, capsys: Out) -> None:
    found = gaps(capsys, *wasteful(tmp_path, POOL))
    assert [one["delete"] for one in found["steps"]] == [["large"]]
    assert set(found["by"].values()) == {0.0}


def test_a_page_goes_from_today_to_the_best(tmp_path: Path, capsys: Out) -> None:
    assert main(["rebalance", "--plan", *wasteful(tmp_path, changed(consolidateAfter="24h"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("$0.8000 per hour for 1 node, 700 % above the best")
    first = [line.split()[0] for line in lines[3:]]
    assert first == [
        *("today", "steps", "after"),
        *("pauses", "budgets", "consolidateAfter", "protection", "policies", "steps", "limits", "best"),
    ]
    assert next(line for line in lines if line.startswith("consolidateAfter")).split()[1] == "-0.7000"


def test_steps_are_told_on_the_page_and_lines_fit(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["rebalance", "--plan", *small(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "STEPS" in lines
    assert max(map(len, lines)) <= 80


def test_files_need_a_catalogue(tmp_path: Path, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rebalance", "--plan", "-f", str(tmp_path / "none.json")])
    assert "--instance-types" in capsys.readouterr().err


def test_where_no_node_is_of_a_nodepool_it_says_so(tmp_path: Path, capsys: Out) -> None:
    assert main(["rebalance", "--plan", *written(tmp_path, POOL)]) == 0
    assert capsys.readouterr().out == "no node there belongs to a NodePool: there is nothing to rebalance\n"


def test_what_cannot_be_read_is_named(tmp_path: Path, capsys: Out) -> None:
    files = small(tmp_path)
    assert main(["rebalance", "--plan", *files, "-f", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
    assert main(["rebalance", "--plan", *files[:2], "--instance-types", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err
