"""Spot shares in `joiner plan` and `joiner status`."""

import copy
import json
from pathlib import Path

import pytest

from cli.main import main
from tests.support.cli.cli_objects import CATALOGUE, POOL, make_pod

Out = pytest.CaptureFixture[str]
ANNOTATIONS = {"joiner.dev/spot-share-percent": "50", "joiner.dev/on-demand-base": "1"}


def write_input(folder: Path, annotations: dict[str, str]) -> list[str]:
    catalog, cluster = folder / "catalog.json", folder / "cluster.json"
    instance_types = copy.deepcopy(CATALOGUE["instanceTypes"])
    for instance_type in instance_types:
        instance_type["offerings"] += [
            {**offering, "capacityType": "spot", "price": offering["price"] * 0.4}
            for offering in instance_type["offerings"]
        ]
    catalog.write_text(json.dumps({**CATALOGUE, "instanceTypes": instance_types}))
    pool = {**POOL, "metadata": {**POOL["metadata"], "annotations": annotations}}
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    pods = [make_pod(name, "1") for name in "abcde"]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["spec"]["topologySpreadConstraints"] = spread
    cluster.write_text(json.dumps({"kind": "List", "items": [pool, *pods]}))
    return ["--instance-types", str(catalog), "--now", "2026-11-21T08:00:00Z", "-f", str(cluster)]


def test_plan_shows_the_share_with_the_new_nodes(tmp_path: Path, capsys: Out) -> None:
    arguments = ["plan", *write_input(tmp_path, ANNOTATIONS)]
    assert main(arguments) == 0
    text = " ".join(capsys.readouterr().out.split())
    usage = "2 of 5 nodes are Spot, at most 2 may be (50 % of the nodes above the base of 1)"
    assert f"Spot share of NodePool default: {usage}, with the new nodes" in text
    assert main([*arguments, "-o", "json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)["spotShares"]
    assert share == {
        "nodePool": "default",
        "unit": "nodes",
        "percent": 50,
        "onDemandBase": 1,
        "spot": 2,
        "total": 5,
        "maxSpot": 2,
    }


def test_plan_without_shares_shows_none(tmp_path: Path, capsys: Out) -> None:
    assert main(["plan", *write_input(tmp_path, {}), "-o", "json"]) == 0
    assert "spotShares" not in json.loads(capsys.readouterr().out)
