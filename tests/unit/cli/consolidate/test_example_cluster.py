"""`examples/cluster`: commands about a cluster can be tried offline."""

import json
from typing import Any

import pytest

from cli.main import main

Out = pytest.CaptureFixture[str]
SOURCES = ("-f", "examples/cluster", "--instance-types", "examples/catalogue.json")


def read_document(capsys: Out, *command: str) -> Any:
    assert main([*command, *SOURCES, "-o", "json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_consolidation_removes_the_empty_node_and_replaces_underutilized_nodes(capsys: Out) -> None:
    report = read_document(capsys, "consolidate")
    assert report["before"]["nodes"] == 6
    assert report["steps"][0]["delete"] == ["ip-10-0-1-14.ec2.internal"]
    assert {step["reason"] for step in report["steps"]} == {"Empty", "Underutilized"}
    assert any(step["replaceWith"] for step in report["steps"])
    assert report["after"]["price"] < 0.6 * report["before"]["price"]
    messages = " ".join(verdict["message"] for verdict in report["blocked"])
    assert "shop/cache" in messages, "the PodDisruptionBudget"
    assert "do-not-disrupt" in messages


def test_rebalance_plan_reports_protection_as_a_cost_cause(capsys: Out) -> None:
    report = read_document(capsys, "rebalance", "--plan")
    assert (
        report["lowestWithoutConstraints"]["usdPerHour"]
        < report["after"]["usdPerHour"]
        < report["before"]["usdPerHour"]
    )
    assert {gap["cause"]: gap["usdPerHour"] for gap in report["gap"]}["protection"] > 0


def test_status_and_top_list_both_nodepools_and_all_nodes(capsys: Out) -> None:
    assert [pool["name"] for pool in read_document(capsys, "status")["nodePools"]] == ["default", "gpu"]
    assert main(["top", *SOURCES]) == 0
    assert capsys.readouterr().out.count(".ec2.internal") == 6


def test_drift_reports_one_drifted_node(capsys: Out) -> None:
    drifts = [(entry["node"], entry["reason"]) for entry in read_document(capsys, "drift") if entry["drifted"]]
    assert drifts == [("ip-10-0-2-15.ec2.internal", "RequirementsDrifted")]
