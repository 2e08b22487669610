"""`joiner consolidate`: the decision as a document."""

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


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> list[str]:
    return write_small_fleet(tmp_path)


def run_consolidate(files: list[str], capsys: Out, *flags: str) -> dict[str, Any]:
    assert main(["consolidate", *files, "-o", "json", *flags]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_consolidation_continues_until_no_step_saves_money(files: list[str], capsys: Out) -> None:
    report = run_consolidate(files, capsys)
    assert report["before"] == {"nodes": 5, "usdPerHour": 1.7, "price": 1.7}
    assert report["steps"][0] == {
        "reason": "Empty",
        "method": "Emptiness",
        "delete": ["empty"],
        "replaceWith": [],
        "existingNodes": [],
        "savingsUsdPerHour": 0.4,
        "savings": 0.4,
        "message": "no pod on the node would have to move",
    }
    saved = sum(step["savings"] for step in report["steps"])
    assert report["after"]["price"] == pytest.approx(1.7 - saved)
    assert report["lowestWithConstraints"]["usdPerHour"] <= report["after"]["price"] + 1e-9


def test_every_moved_pod_fits_and_savings_match_prices(files: list[str], capsys: Out) -> None:
    report = run_consolidate(files, capsys)
    pods_by_node = {
        "large": ["shop/one"],
        "half": ["shop/two"],
        "full": ["shop/three"],
        "held": ["shop/four"],
        "empty": [],
    }
    for step in report["steps"]:
        moved = [pod for entry in step["existingNodes"] for pod in entry["pods"]]
        moved += [pod for entry in step["replaceWith"] for pod in entry["pods"]]
        assert sorted(moved) == sorted(pod for name in step["delete"] for pod in pods_by_node.pop(name))
        pods_by_node |= {entry["name"]: list(entry["pods"]) for entry in step["replaceWith"]}
        for entry in step["existingNodes"]:
            pods_by_node[entry["node"]] += entry["pods"]


def test_blocked_and_kept_nodes_are_reported_separately(files: list[str], capsys: Out) -> None:
    report = run_consolidate(files, capsys)
    assert [(verdict["node"], verdict["reason"]) for verdict in report["blocked"]] == [("held", "DoNotDisrupt")]
    assert all(verdict["reason"] and verdict["message"] for verdict in report["kept"])
    assert len(report["blocked"]) + len(report["kept"]) == report["after"]["nodes"]


def test_steps_are_limited_to_the_given_reason(files: list[str], capsys: Out) -> None:
    assert [step["reason"] for step in run_consolidate(files, capsys, "--reason", "Empty")["steps"]] == ["Empty"]
    assert not run_consolidate(files, capsys, "--reason", "Drifted")["steps"]


def test_step_and_price_limits_are_respected(files: list[str], capsys: Out) -> None:
    assert len(run_consolidate(files, capsys, "--max-steps", "1")["steps"]) == 1
    assert run_consolidate(files, capsys, "--until", "$/h<1.6")["after"]["price"] == pytest.approx(1.3)
    assert run_consolidate(files, capsys, "--until", "$/h<=1.7")["steps"] == []
    assert len(run_consolidate(files, capsys, "--steps", "1")["steps"]) <= len(run_consolidate(files, capsys)["steps"])


def test_steps_show_what_they_save_and_what_their_evictions_cost(files: list[str], capsys: Out) -> None:
    report = run_consolidate(files, capsys, "--eviction-price", "0.02")
    steps = [step for step in report["steps"] if step.get("evictions")]
    assert steps
    assert not any("evictions" in step for step in run_consolidate(files, capsys)["steps"])
    for step in steps:
        assert step["evictionsUsd"] == pytest.approx(0.02 * step["evictions"])
        assert step["expectedSavingsUsd"] == pytest.approx(
            step["savingsUsdPerHour"] * step["expectedSavingsSeconds"] / 3600, abs=0.01
        )
        assert f"costs {step['evictions']} eviction" in step["message"]
    main(["consolidate", *files, "--eviction-price", "0.02", "--all"])
    assert " over an expected 1d, costs " in " ".join(capsys.readouterr().out.split())


def test_same_input_produces_the_same_report(files: list[str], capsys: Out) -> None:
    first, second = run_consolidate(files, capsys), run_consolidate(files, capsys)
    assert first | {"seconds": 0} == second | {"seconds": 0}


def test_yaml_output_contains_the_report(files: list[str], capsys: Out) -> None:
    assert main(["consolidate", *files, "-o", "yaml", "--max-steps", "1"]) == 0
    assert "reason: Empty" in capsys.readouterr().out


def test_invalid_pod_is_reported_and_remaining_nodes_are_consolidated(
    files: list[str], tmp_path: Path, capsys: Out
) -> None:
    bad = make_pod("bad", "", "lots")
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    assert main(["consolidate", *files, "-f", str(tmp_path / "bad.json"), "-o", "json"]) == 1
    captured = capsys.readouterr()
    assert "shop/bad" in captured.err
    assert json.loads(captured.out)["steps"]


def test_starting_and_deleting_nodes_are_neither_blocked_nor_counted(tmp_path: Path, capsys: Out) -> None:
    leaving = make_claim("default-1", "old", 4, deletionTimestamp="2026-11-21T08:59:00Z", finalizers=["x/y"])
    (failed,) = make_node_manifests("failed", 4)
    del failed["metadata"]["labels"]["karpenter.sh/initialized"]
    late = make_claim("default-3", "failed", 4, deletionTimestamp="2026-11-21T08:59:00Z", finalizers=["x/y"])
    objects = (
        POOL,
        *make_node_manifests("old", 4),
        leaving,
        make_claim("default-2", "", 4),
        failed,
        late,
        *make_node_manifests("full", 2),
    )
    report = run_consolidate(write_fleet(tmp_path, *objects), capsys)
    assert report["before"] == {"nodes": 1, "usdPerHour": 0.1, "price": 0.1}
    assert [(verdict["node"], verdict["reason"]) for verdict in report["inProgress"]] == [
        ("default-2", "NoNode"),
        ("failed", "NotInitialized"),
        ("old", "Deleting"),
    ]
    assert report["blocked"] == []


def test_unregistered_node_is_reported_by_its_node_name(tmp_path: Path, capsys: Out) -> None:
    node, *_ = make_node_manifests("young", 4)
    del node["metadata"]["labels"]["karpenter.sh/registered"], node["metadata"]["labels"]["karpenter.sh/initialized"]
    report = run_consolidate(write_fleet(tmp_path, POOL, node, make_claim("default-1", "young", 4)), capsys)
    assert [(verdict["node"], verdict["reason"]) for verdict in report["blocked"]] == [("young", "NotInitialized")]


def test_unpriced_nodes_and_missing_nodepools_are_reported(tmp_path: Path, capsys: Out) -> None:
    odd, bare, unpooled_node = (
        make_node_manifests("odd", 4)[0],
        make_node_manifests("bare", 4)[0],
        make_node_manifests("lost", 4)[0],
    )
    odd["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "x9.huge"
    unpooled_node["metadata"]["labels"]["karpenter.sh/nodepool"] = "forgotten"
    del bare["metadata"]["labels"]["node.kubernetes.io/instance-type"]
    work = (make_pod(name, name, "3500m") for name in ("odd", "bare", "lost"))
    report = run_consolidate(write_fleet(tmp_path, POOL, odd, bare, unpooled_node, *work), capsys)
    assert report["notes"] == [
        "NodePool forgotten is not in the input: 1 node of it cannot change; add it",
        "the catalog has no price for a node without instance type label, counted as $0: bare",
        "the catalog has no price for x9.huge in its zone, counted as $0: odd",
    ]
    assert [verdict["node"] for verdict in report["blocked"]] == ["lost"]


def test_pending_pods_do_not_count_toward_the_ideal_cost(tmp_path: Path, capsys: Out) -> None:
    waiting = make_pod("waiting", "", "7") | {"status": {"phase": "Pending"}}
    objects = (POOL, *make_node_manifests("large", 16), make_pod("one", "large", "1500m"))
    report = run_consolidate(write_fleet(tmp_path, *objects, waiting), capsys)
    assert report["lowestWithConstraints"] == {"usdPerHour": 0.1}


@pytest.mark.parametrize(
    ("flags", "expected_stop"),
    [(["--max-steps", "1"], "steps"), (["--steps", "1"], "runs"), (["--until", "$/h<1.6"], "price"), ([], None)],
)
def test_stop_reason_is_reported(files: list[str], flags: list[str], expected_stop: str | None, capsys: Out) -> None:
    assert run_consolidate(files, capsys, *flags)["stopped"] == expected_stop


def test_unmovable_pods_keep_the_ideal_cost_at_the_current_cost(tmp_path: Path, capsys: Out) -> None:
    """Any node that holds the pod would exceed the limit."""
    limited = POOL | {"spec": POOL["spec"] | {"limits": {"cpu": "4"}}}
    report = run_consolidate(
        write_fleet(tmp_path, limited, *make_node_manifests("large", 16), make_pod("one", "large", "7")), capsys
    )
    assert report["steps"] == []
    assert report["lowestWithConstraints"]["usdPerHour"] == report["after"]["price"]


def test_static_nodepool_without_a_node_class_is_reported_as_blocked(tmp_path: Path, capsys: Out) -> None:
    static = POOL | {"spec": POOL["spec"] | {"replicas": 1}}
    claim = make_claim("c1", "one", 4)
    claim["status"]["conditions"].append({"type": "Drifted", "status": "True", "reason": "NodePoolDrifted"})
    report = run_consolidate(write_fleet(tmp_path, static, *make_node_manifests("one", 4), claim), capsys)
    [verdict] = report["blocked"]
    assert verdict["message"].startswith(
        "NodePool default cannot launch a replacement: node class default does not exist"
    )
