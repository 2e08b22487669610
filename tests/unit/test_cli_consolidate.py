"""`joiner consolidate`."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main

Out = pytest.CaptureFixture[str]
CPUS = (2, 4, 8, 16)
NODECLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
STAGES = ("Launched", "Registered", "Initialized", "Consolidatable")


def kind(cpu: int) -> dict[str, Any]:
    return {
        "name": f"m.{cpu:02d}",
        "labels": {"kubernetes.io/arch": ["amd64"], "kubernetes.io/os": ["linux"]},
        "capacity": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
        "overhead": {},
        "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.05 * cpu, "available": True}],
    }


def machine(name: str, cpu: int, **annotations: str) -> list[dict[str, Any]]:
    labels = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": f"m.{cpu:02d}",
        "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "a",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    room = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    notes = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    meta = {"name": name, "labels": labels, "annotations": notes}
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"providerID": f"x/{name}"}, "status": status}
    ]


def pod(name: str, node: str, cpu: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": containers},
        "status": {"phase": "Running"},
    }


POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {"spec": {"nodeClassRef": NODECLASS, "requirements": []}},
        "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
    },
}


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    held = {"karpenter.sh__do_not_disrupt": "true"}
    objects = [
        POOL,
        *machine("empty", 8),
        *machine("large", 16),
        *machine("half", 4),
        *machine("full", 4),
        *machine("held", 2, **held),
        pod("one", "large", "6"),
        pod("two", "half", "500m"),
        pod("three", "full", "3"),
        pod("four", "held", "1900m"),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    catalogue = {"region": "nowhere", "instanceTypes": [kind(cpu) for cpu in CPUS]}
    (tmp_path / "catalogue.json").write_text(json.dumps(catalogue))
    return ["-f", str(tmp_path / "cluster.json"), "--instance-types", str(tmp_path / "catalogue.json")]


def told(files: list[str], capsys: Out, *more: str) -> dict[str, Any]:
    assert main(["consolidate", *files, "-o", "json", *more]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_steps_are_taken_until_there_are_none(files: list[str], capsys: Out) -> None:
    found = told(files, capsys)
    assert found["before"] == {"nodes": 5, "price": 1.7}
    assert found["steps"][0] == {
        "reason": "Empty",
        "method": "Emptiness",
        "delete": ["empty"],
        "replaceWith": [],
        "existingNodes": [],
        "savings": 0.4,
        "why": "no pod on it would need another place",
    }
    saved = sum(step["savings"] for step in found["steps"])
    assert found["after"]["price"] == pytest.approx(1.7 - saved)
    assert found["ideal"]["price"] <= found["after"]["price"] + 1e-9


def test_every_moved_pod_has_a_place_and_savings_are_real(files: list[str], capsys: Out) -> None:
    found = told(files, capsys)
    there = {"large": ["shop/one"], "half": ["shop/two"], "full": ["shop/three"], "held": ["shop/four"], "empty": []}
    for step in found["steps"]:
        moved = [pod for entry in step["existingNodes"] for pod in entry["pods"]]
        moved += [pod for entry in step["replaceWith"] for pod in entry["pods"]]
        assert sorted(moved) == sorted(pod for name in step["delete"] for pod in there.pop(name))
        there |= {entry["name"]: list(entry["pods"]) for entry in step["replaceWith"]}
        for entry in step["existingNodes"]:
            there[entry["node"]] += entry["pods"]


def test_who_is_blocked_and_who_is_kept_is_told_apart(files: list[str], capsys: Out) -> None:
    found = told(files, capsys)
    assert [(one["node"], one["reason"]) for one in found["blocked"]] == [("held", "DoNotDisrupt")]
    assert all(one["reason"] and one["message"] for one in found["kept"])
    assert len(found["blocked"]) + len(found["kept"]) == found["after"]["nodes"]


def test_one_reason_only(files: list[str], capsys: Out) -> None:
    assert [step["reason"] for step in told(files, capsys, "--reason", "Empty")["steps"]] == ["Empty"]
    assert not told(files, capsys, "--reason", "Drifted")["steps"]


def test_bounds_are_heeded(files: list[str], capsys: Out) -> None:
    assert len(told(files, capsys, "--max-steps", "1")["steps"]) == 1
    assert told(files, capsys, "--until", "$/h<1.6")["after"]["price"] == pytest.approx(1.3)
    assert told(files, capsys, "--until", "$/h<=1.7")["steps"] == []
    assert len(told(files, capsys, "--steps", "1")["steps"]) <= len(told(files, capsys)["steps"])


def test_the_same_input_is_the_same_bytes(files: list[str], capsys: Out) -> None:
    first, second = told(files, capsys), told(files, capsys)
    assert first | {"seconds": 0} == second | {"seconds": 0}


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


def test_yaml_is_the_same(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files, "-o", "yaml", "--max-steps", "1"]) == 0
    assert "reason: Empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [
        ["--until", "12"],
        ["--until", "$/h>1"],
        ["--max-steps", "0"],
        ["--reason", "Boredom"],
        ["--feature-gates", "SpotToSpotConsolidation=perhaps"],
    ],
)
def test_wrong_usage_is_told(files: list[str], more: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as left:
        main(["consolidate", *files, *more])
    assert left.value.code == 2
    assert "consolidate" in capsys.readouterr().err


def test_without_anything_to_read_it_says_so(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["consolidate"])
    assert "what is to be consolidated?" in capsys.readouterr().err


def test_files_need_a_catalogue(files: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["consolidate", *files[:2]])
    assert "--instance-types" in capsys.readouterr().err


def test_a_catalogue_that_is_not_there_is_named(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files[:3], "/nowhere.json"]) == 1
    assert "/nowhere.json" in capsys.readouterr().err


def test_what_cannot_be_read_is_named_and_the_rest_is_decided(files: list[str], tmp_path: Path, capsys: Out) -> None:
    bad = pod("bad", "", "lots")
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    assert main(["consolidate", *files, "-f", str(tmp_path / "bad.json"), "-o", "json"]) == 1
    shown = capsys.readouterr()
    assert "shop/bad" in shown.err
    assert json.loads(shown.out)["steps"]
