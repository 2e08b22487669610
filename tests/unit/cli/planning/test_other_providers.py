"""Files with NodePools of other providers, as EKS Auto Mode: plans leave them out, as in a live cluster, and say so."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.support.cli.cli_objects import CATALOGUE, POOL, make_pod

AUTO_MODE = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
NOTES = [
    "left out 1 NodeClaim of other providers: theirs-1",
    "left out 2 NodePools of other providers: general-purpose, system",
]


def make_foreign_object(kind: str, name: str) -> dict[str, Any]:
    node_spec = {"nodeClassRef": AUTO_MODE, "requirements": []}
    spec = node_spec if kind == "NodeClaim" else {"template": {"spec": node_spec}}
    return {"apiVersion": "karpenter.sh/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return the arguments that select a file with objects of both providers, and a catalog."""
    (tmp_path / "catalog.json").write_text(json.dumps(CATALOGUE))
    foreign_objects = [make_foreign_object("NodePool", name) for name in ("system", "general-purpose")]
    objects = [POOL, make_pod("a"), *foreign_objects, make_foreign_object("NodeClaim", "theirs-1")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    return ["--instance-types", str(tmp_path / "catalog.json"), "-f", str(tmp_path / "cluster.json"), "-o", "json"]


@pytest.mark.parametrize("command", ["plan", "consolidate"])
def test_objects_of_other_providers_in_files_are_left_out_with_a_note(
    command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [note for note in document["notes"] if "other providers" in note] == NOTES


def test_plan_gives_pods_to_own_node_pools_only(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 0
    [node] = json.loads(capsys.readouterr().out)["newNodes"]
    assert node["nodePool"] == POOL["metadata"]["name"]
