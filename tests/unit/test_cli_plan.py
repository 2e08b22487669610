"""`joiner plan`: files in, a table or a document out."""

import importlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

TAKEN = "2026-11-21T08:00:00Z"
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
                "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
            }
        }
    },
}


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    """A bare manifest that tolerates the pool's taint."""
    some = {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": some | {"tolerations": [{"key": "team", "operator": "Exists"}]} | spec,
    }


def sold(name: str, cpu: int, price: float) -> dict[str, Any]:
    """A type in two zones, dearer in the second."""
    return {
        "name": name,
        "labels": {"kubernetes.io/arch": ["amd64"]},
        "capacity": {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"},
        "overhead": {},
        "offerings": [
            {"zone": zone, "zoneId": zone, "capacityType": "on-demand", "price": price * factor, "available": True}
            for zone, factor in (("a", 1), ("b", 2))
        ],
    }


CATALOGUE = {"region": "nowhere", "instanceTypes": [sold("m.02", 2, 0.1), sold("m.04", 4, 0.2)]}
EXISTING = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "here"},
    "spec": {},
    "status": {
        "capacity": {"cpu": "1", "memory": "4Gi", "pods": "10"},
        "allocatable": {"cpu": "1", "memory": "4Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


def write(path: Path, *objects: object) -> str:
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return str(path)


def plan(catalogue: str, *arguments: str) -> int:
    return main(["plan", "--instance-types", catalogue, "--now", TAKEN, *arguments])


def test_the_document_has_each_pending_pod_once_and_the_price(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = write(tmp_path / "cluster.json", POOL, EXISTING, pod("a"), pod("b"), pod("c"), pod("huge", "64"))
    assert plan(catalogue, "-f", cluster, "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    [new], [existing], [left] = told["newNodes"], told["existingNodes"], told["unschedulable"]
    assert existing == {"node": "here", "pods": ["default/a"]}
    assert (new["pods"], new["instanceTypes"]) == (["default/b", "default/c"], ["m.02", "m.04"])
    assert new["cheapest"] == {"instanceType": "m.02", "zone": "a", "capacityType": "on-demand", "price": 0.1}
    assert new["taints"] == [{"key": "team", "effect": "NoSchedule", "value": "a"}]
    assert new["requests"] == {"cpu": "2", "memory": "2Gi", "pods": "2"}
    assert (left["pod"], left["reason"]) == ("default/huge", "NoInstanceTypeFits")
    assert told["totals"] == {"pods": 4, "scheduled": 3, "newNodes": 1, "price": 0.1, "greedyPrice": 0.1}


def test_the_same_input_gives_the_same_bytes_but_for_the_seconds(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = write(tmp_path / "cluster.json", *(pod(f"p{number}") for number in range(9)), POOL)
    told = []
    for _ in range(2):
        assert plan(catalogue, "-f", cluster, "-o", "json") == 0
        told.append(capsys.readouterr().out.partition('"seconds"')[0])
    assert told[0] == told[1]


def test_yaml_says_the_same_as_json(tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([pod("a"), None, [pod("b")]]))
    pool = write(tmp_path / "pool.json", POOL)
    told = {}
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert plan(catalogue, "-f", str(tmp_path / "pods.yaml"), "-f", pool, "-o", form) == 0
        told[form] = read(capsys.readouterr().out) | {"seconds": None}
    assert told["json"] == told["yaml"]
    assert told["json"]["totals"]["scheduled"] == 2


def test_a_table_says_what_is_bought_and_who_is_left_out(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    large = (pod(f"huge-{number}", "64") for number in range(5))
    cluster = write(tmp_path / "cluster.json", POOL, EXISTING, pod("a"), pod("b"), pod("c"), *large)
    assert plan(catalogue, "-f", cluster) == 0
    told = capsys.readouterr().out
    assert told.startswith("8 pods without a node: 2 on 1 new node, 1 on 1 existing node, 5 left out\n")
    row = ["default", "m.02", "a*", "on-demand", "1", "2", "100%", "25%", "2", "0.1000", "0.1000"]
    assert row in [line.split() for line in told.splitlines()]
    assert "  here  1 pod  default/a\n" in told
    assert "  5 pods  NoInstanceTypeFits: default/huge-0, default/huge-1, default/huge-2 and 2 more\n" in told
    assert "    pool default: no instance type has 64 cpu\n" in told
    assert "total $0.1000 per hour, $73.00 per month of 730 hours\n" in told
    assert "* the cheapest of several zones" in told


def test_nothing_to_do_is_said(tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL)) == 0
    assert capsys.readouterr().out.startswith("no pod waits for a node\n")


def test_what_a_greedy_plan_would_have_cost_is_told(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = {"region": "nowhere", "instanceTypes": [sold("m.02", 2, 0.1), sold("m.08", 8, 2.0)]}
    Path(catalogue).write_text(json.dumps(dear))
    cluster = write(tmp_path / "cluster.json", POOL, *(pod(f"p{number}", "500m") for number in range(16)))
    assert plan(catalogue, "-f", cluster) == 0
    assert "the greedy plan: $2.0000 per hour, 400 % more; $1,168.00 per month saved" in capsys.readouterr().out


def test_a_folder_is_read_and_standard_input_may_hold_several_documents(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    write(folder / "pool.json", POOL)
    (folder / "readme.txt").write_text("not an object")
    both = json.dumps(pod("a"), indent=1) + "\n" + json.dumps(pod("b"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(both.encode())))
    assert plan(catalogue, "-f", str(folder), "-f", "-", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 2


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("bad.json", "{", "bad.json: not JSON"),
        ("bad.yaml", "a: [", "bad.yaml: not YAML"),
        ("odd.json", "[7]", "odd.json: holds something that is no object: '7'"),
        ("", "", "holds no file that ends in"),
        ("none.json", None, "none.json: No such file"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_planned(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str], name: str, body: str | None, said: str
) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    path = folder / name
    if body:
        path.write_text(body)
    good = write(tmp_path / "good.json", POOL, pod("a"))
    assert plan(catalogue, "-f", str(path), "-f", good, "-o", "json") == 1
    told = capsys.readouterr()
    assert said in told.err
    assert json.loads(told.out)["totals"]["scheduled"] == 1


def test_a_pod_that_cannot_be_read_is_an_answer_and_a_problem(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = write(tmp_path / "cluster.json", POOL, pod("a"), pod("poison", "many"))
    assert plan(catalogue, "-f", cluster, "-o", "json") == 1
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert "Pod default/poison" in told.err
    assert [(one["pod"], one["reason"]) for one in document["unschedulable"]] == [("default/poison", "InvalidPod")]
    assert [one["name"] for one in document["problems"]] == ["default/poison"]
    assert document["totals"]["pods"] == 2


@pytest.mark.parametrize("body", [None, "{}", "- 1\n- 2\n", "a: b"])
def test_without_a_catalogue_nothing_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str | None
) -> None:
    path = tmp_path / "catalogue.json"
    if body is not None:
        path.write_text(body)
    assert plan(str(path), "-f", write(tmp_path / "cluster.json", POOL)) == 1
    told = capsys.readouterr()
    assert not told.out
    assert "catalogue.json: " in told.err


def test_a_catalogue_may_be_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(yaml.safe_dump(CATALOGUE))
    cluster = write(tmp_path / "cluster.json", POOL, pod("a"))
    assert plan(str(path), "-f", cluster) == 0
    assert "m.02" in capsys.readouterr().out


def test_json_needs_no_yaml_and_yaml_says_what_it_needs(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", missing)
    cluster = write(tmp_path / "cluster.json", POOL, pod("a"))
    assert plan(catalogue, "-f", cluster) == 0
    assert plan(catalogue, "-f", cluster, "-o", "yaml") == 1
    assert "YAML needs PyYAML" in capsys.readouterr().err


def test_flags_win_over_the_environment(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    various = json.loads(json.dumps(POOL))
    asked = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3}
    various["spec"]["template"]["spec"]["requirements"] = [asked]
    cluster = write(tmp_path / "cluster.json", various, pod("a"))
    found = []
    monkeypatch.setenv("MIN_VALUES_POLICY", "BestEffort")
    for flags in ((), ("--min-values-policy", "Strict")):
        assert plan(catalogue, "-f", cluster, "-o", "json", *flags) == 0
        found.append(json.loads(capsys.readouterr().out)["totals"]["scheduled"])
    assert found == [1, 0]


@pytest.mark.parametrize("flags", [(), ("--now", "yesterday"), ("-o", "xml")])
def test_wrong_usage_is_two(
    tmp_path: Path, catalogue: str, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    if not flags:
        monkeypatch.setenv("PREFERENCE_POLICY", "Sometimes")
    with pytest.raises(SystemExit) as left:
        plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL), *flags)
    assert left.value.code == 2


def test_a_pod_without_a_verdict_waits_unless_told_otherwise(
    tmp_path: Path, catalogue: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = write(tmp_path / "cluster.json", POOL, pod("a"))
    assert plan(catalogue, "-f", cluster, "--no-assume-unschedulable") == 0
    assert capsys.readouterr().out.startswith("no pod waits")
