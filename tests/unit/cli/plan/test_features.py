"""`joiner plan` with features that FEATURE_GATES and SCHEDULER_CONFIG turn on, and with bad pods among many."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from tests.support.poison import POOL, make_node_affinity, make_pod_manifest, make_spread_constraints

ZONAL = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
CONFIG = json.dumps({"podTopologySpread": {"defaultConstraints": [ZONAL]}})


def make_instance_type(name: str, cpu: int, price: float) -> dict[str, Any]:
    offerings = [
        {"zone": zone, "zoneId": zone, "capacityType": "on-demand", "price": price, "available": True} for zone in "ab"
    ]
    capacity = {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"}
    return {"name": name, "labels": {}, "capacity": capacity, "overhead": {}, "offerings": offerings}


def run_plan(folder: Path, capsys: pytest.CaptureFixture[str], *objects: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    catalogue, manifests = folder / "catalogue.json", folder / "objects.json"
    catalogue.write_text(
        json.dumps(
            {"region": "r", "instanceTypes": [make_instance_type("m.02", 2, 0.1), make_instance_type("m.04", 4, 0.2)]}
        )
    )
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POOL, *objects]}))
    code = main(["plan", "-f", str(manifests), "--instance-types", str(catalogue), "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def make_node_overlay(**spec: Any) -> dict[str, Any]:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.02"]}]
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "dear"},
        "spec": {"requirements": requirements} | spec,
    }


def test_node_overlays_apply_only_if_enabled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = (make_node_overlay(price="7"), make_pod_manifest("x"))
    _, off = run_plan(tmp_path, capsys, *objects)
    assert off["newNodes"][0]["cheapest"]["instanceType"] == "m.02"
    monkeypatch.setenv("FEATURE_GATES", "NodeOverlay=true")
    _, on = run_plan(tmp_path, capsys, *objects)
    assert on["newNodes"][0]["cheapest"]["instanceType"] == "m.04"


def test_default_topology_spread_constraints_apply_if_configured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "x"}},
    }
    objects = (service, make_pod_manifest("a", {"app": "x"}), make_pod_manifest("b", {"app": "x"}))
    assert run_plan(tmp_path, capsys, *objects)[1]["totals"]["newNodes"] == 1
    monkeypatch.setenv("SCHEDULER_CONFIG", CONFIG)
    assert run_plan(tmp_path, capsys, *objects)[1]["totals"]["newNodes"] == 2


@pytest.mark.parametrize("variable", ["FEATURE_GATES", "SCHEDULER_CONFIG"])
def test_invalid_feature_setting_is_reported_by_name(
    variable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "perhaps")
    with pytest.raises(json.JSONDecodeError):
        run_plan(tmp_path, capsys, make_pod_manifest("x"))
    path = str(tmp_path / "objects.json")
    assert main(["plan", "-f", path, "--instance-types", str(tmp_path / "catalogue.json")]) == 1
    assert variable in capsys.readouterr().err


def test_invalid_pods_among_ten_thousand_are_reported_and_others_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = [make_pod_manifest(f"p{number:05d}", {"app": f"a{number % 9}"}) for number in range(10_000)]
    bad = {
        "minus": make_pod_manifest("minus", requests={"cpu": "-1"}),
        "operator": make_pod_manifest("operator", affinity=make_node_affinity("a", "Like", "b")),
        "text": make_pod_manifest("text") | {"spec": "later"},
        "rack": make_pod_manifest("rack", {"app": "x"}, topologySpreadConstraints=make_spread_constraints("rack")),
        "huge": make_pod_manifest("huge", requests={"memory": "9" * 60}),
        "digits": make_pod_manifest("digits", nodeSelector={"karpenter.k8s.aws/instance-cpu": "9" * 5000}),
    }
    code, document = run_plan(tmp_path, capsys, *pods[:5000], *bad.values(), *pods[5000:])
    assert code == 1
    assert {entry["pod"] for entry in document["unschedulable"]} == {f"shop/{name}" for name in bad}
    assert document["totals"]["scheduled"] == 10_000


def test_claims_are_planned_only_with_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = make_node_overlay()
    overlay["metadata"]["annotations"] = {"joiner.dev/devices": '[{"driver": "gpu.example.com"}]'}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    pod = make_pod_manifest("x")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": pod["metadata"]["namespace"]},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
    }
    monkeypatch.setenv("FEATURE_GATES", "NodeOverlay=true")
    _, off = run_plan(tmp_path, capsys, overlay, template, device_class, pod)
    assert "only with dynamic-resource-allocation: on" in json.dumps(off["unschedulable"])
    monkeypatch.setenv("JOINER_DYNAMIC_RESOURCE_ALLOCATION", "on")
    _, on = run_plan(tmp_path, capsys, overlay, template, device_class, pod)
    assert [node["cheapest"]["instanceType"] for node in on["newNodes"]] == ["m.02"]
