"""`joiner consolidate`: what is decided, as a document."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.unit.fleet_files import POOL, claim, machine, pod, small, written

Out = pytest.CaptureFixture[str]


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    return small(tmp_path)


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


def test_yaml_is_the_same(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files, "-o", "yaml", "--max-steps", "1"]) == 0
    assert "reason: Empty" in capsys.readouterr().out


def test_what_cannot_be_read_is_named_and_the_rest_is_decided(files: list[str], tmp_path: Path, capsys: Out) -> None:
    bad = pod("bad", "", "lots")
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    assert main(["consolidate", *files, "-f", str(tmp_path / "bad.json"), "-o", "json"]) == 1
    shown = capsys.readouterr()
    assert "shop/bad" in shown.err
    assert json.loads(shown.out)["steps"]


def test_who_comes_or_goes_already_is_neither_blocked_nor_counted(tmp_path: Path, capsys: Out) -> None:
    leaving = claim("default-1", "old", 4, deletionTimestamp="2026-11-21T08:59:00Z", finalizers=["x/y"])
    (failed,) = machine("failed", 4)
    del failed["metadata"]["labels"]["karpenter.sh/initialized"]
    late = claim("default-3", "failed", 4, deletionTimestamp="2026-11-21T08:59:00Z", finalizers=["x/y"])
    objects = (POOL, *machine("old", 4), leaving, claim("default-2", "", 4), failed, late, *machine("full", 2))
    found = told(written(tmp_path, *objects), capsys)
    assert found["before"] == {"nodes": 1, "price": 0.1}
    assert [(one["node"], one["reason"]) for one in found["underway"]] == [
        ("default-2", "NoNode"),
        ("failed", "NotInitialized"),
        ("old", "Deleting"),
    ]
    assert found["blocked"] == []


def test_a_node_that_has_not_registered_is_called_by_its_own_name(tmp_path: Path, capsys: Out) -> None:
    node, *_ = machine("young", 4)
    del node["metadata"]["labels"]["karpenter.sh/registered"], node["metadata"]["labels"]["karpenter.sh/initialized"]
    found = told(written(tmp_path, POOL, node, claim("default-1", "young", 4)), capsys)
    assert [(one["node"], one["reason"]) for one in found["blocked"]] == [("young", "NotInitialized")]


def test_a_node_without_price_and_a_pool_that_is_missing_are_named(tmp_path: Path, capsys: Out) -> None:
    odd, bare, lost = machine("odd", 4)[0], machine("bare", 4)[0], machine("lost", 4)[0]
    odd["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "x9.huge"
    lost["metadata"]["labels"]["karpenter.sh/nodepool"] = "forgotten"
    del bare["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    work = (pod(name, name, "3500m") for name in ("odd", "bare", "lost"))
    found = told(written(tmp_path, POOL, odd, bare, lost, *work), capsys)
    assert found["notes"] == [
        "NodePool forgotten is not among what was read, 1 node of it stay: read it as well",
        "the catalogue has no price for a node without instance type, it counts as $0: bare",
        "the catalogue has no price for x9.huge in its zone, it counts as $0: odd",
    ]
    assert [one["node"] for one in found["blocked"]] == ["lost"]


def test_pods_that_wait_do_not_count_to_the_distance(tmp_path: Path, capsys: Out) -> None:
    waiting = pod("waiting", "", "7") | {"status": {"phase": "Pending"}}
    objects = (POOL, *machine("large", 16), pod("one", "large", "1500m"))
    found = told(written(tmp_path, *objects, waiting), capsys)
    assert found["ideal"] == {"price": 0.1}


@pytest.mark.parametrize(
    ("more", "why"),
    [(["--max-steps", "1"], "steps"), (["--steps", "1"], "sweeps"), (["--until", "$/h<1.6"], "price"), ([], None)],
)
def test_why_it_stopped_is_told(files: list[str], more: list[str], why: str | None, capsys: Out) -> None:
    assert told(files, capsys, *more)["stopped"] == why


def test_what_has_no_other_place_is_no_distance(tmp_path: Path, capsys: Out) -> None:
    """The limit would be exceeded by any node that holds the pod."""
    limited = POOL | {"spec": POOL["spec"] | {"limits": {"cpu": "4"}}}
    found = told(written(tmp_path, limited, *machine("large", 16), pod("one", "large", "7")), capsys)
    assert found["steps"] == []
    assert found["ideal"]["price"] == found["after"]["price"]
