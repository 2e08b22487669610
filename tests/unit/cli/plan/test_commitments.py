"""`joiner plan` with the commitments of a catalog: totals with and without them."""

import json
from pathlib import Path

import pytest

from cli.main import main
from tests.support.cli.cli_objects import CATALOGUE, POOL, make_pod

Out = pytest.CaptureFixture[str]
COMMITMENTS = {"reserved": [{"reservationId": "ri-1", "instanceType": "m.04", "count": 1}]}


@pytest.fixture(name="arguments")
def write_input(tmp_path: Path) -> list[str]:
    catalog, cluster = tmp_path / "catalog.json", tmp_path / "cluster.json"
    catalog.write_text(json.dumps({**CATALOGUE, "commitments": COMMITMENTS}))
    pods = [make_pod(name, "3") for name in "ab"]
    cluster.write_text(json.dumps({"kind": "List", "items": [POOL, *pods]}))
    return ["plan", "--instance-types", str(catalog), "--now", "2026-11-21T08:00:00Z", "-f", str(cluster)]


def test_totals_show_the_price_with_and_without_commitments(arguments: list[str], capsys: Out) -> None:
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "total: $0.2000/h" in page
    assert "without commitments: $0.4000/h; Savings Plans and Reserved Instances pay $0.2000/h" in page


def test_document_names_the_commitments_of_each_node(arguments: list[str], capsys: Out) -> None:
    assert main([*arguments, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"]["listUsdPerHour"] == 0.4
    covered = [node["cheapest"] for node in document["newNodes"] if "commitments" in node["cheapest"]]
    assert [(offering["commitments"], offering["listUsdPerHour"]) for offering in covered] == [(["ri-1"], 0.2)]
