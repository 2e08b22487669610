"""Converted manifests lead to the plans that the old manifests meant."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.golden.older import run_convert

CATALOGUE = str(Path(__file__).parents[4] / "examples" / "catalogue.json")
GPU = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
SPECIAL = {"tolerations": [{"key": "example.com/special-taint", "operator": "Exists"}]}


def plan_pod(name: str, capsys: pytest.CaptureFixture[str], folder: Path, **spec: Any) -> dict[str, Any]:
    """Return the plan for one pod with *spec*, made with the converted manifest called *name*."""
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    _, out, _ = run_convert(name)
    folder.joinpath("all.yaml").write_text(
        f"{out}---\n{yaml.safe_dump(pod | {'spec': {'containers': [container]} | spec})}"
    )
    main(["plan", "-f", str(folder), "--instance-types", CATALOGUE, "-o", "json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_converted_spot_provisioner_plans_spot_of_the_default_categories(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [node] = plan_pod("spot-with-inline-provider", capsys, tmp_path)["newNodes"]
    assert node["cheapest"]["capacityType"] == "spot"
    assert {instance_type[0] for instance_type in node["instanceTypes"]} <= {"c", "m", "r"}
    assert not any("g.large" in instance_type for instance_type in node["instanceTypes"]), "arm64 was never the default"


def test_converted_first_api_versions_plan_the_same_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    [node] = plan_pod("cluster-in-the-provider", capsys, tmp_path, nodeSelector={"intent": "apps"})["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("first-steps", "spot")
    [unschedulable_pod] = plan_pod("provisioner-of-v1alpha4", capsys, tmp_path)["unschedulable"]
    assert unschedulable_pod["reason"] == "TaintNotTolerated"


def test_converted_taint_still_excludes_pods_without_toleration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [unschedulable_pod] = plan_pod("nodepool-of-v1beta1", capsys, tmp_path)["unschedulable"]
    assert unschedulable_pod["reason"] == "TaintNotTolerated"


def test_converted_nodepool_plans_on_demand_nodes_with_its_taint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [node] = plan_pod("nodepool-of-v1beta1", capsys, tmp_path, **SPECIAL)["newNodes"]
    assert node["cheapest"]["capacityType"] == "on-demand"
    assert [taint["key"] for taint in node["taints"]] == ["example.com/special-taint"]


def test_converted_requirement_for_unavailable_instance_types_stays_unsatisfied(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [unschedulable_pod] = plan_pod("gpu-with-taint", capsys, tmp_path, **GPU)["unschedulable"]
    assert "match no available instance type: none matches" in unschedulable_pod["message"]


def test_node_selector_on_the_old_provisioner_label_selects_the_converted_nodepool(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, out, _ = run_convert("pods-that-say-do-not-evict")
    [job] = [manifest for manifest in yaml.safe_load_all(out) if manifest["kind"] == "CronJob"]
    selector = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["nodeSelector"]
    [node] = plan_pod("when-empty-of-v1beta1", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("batch", "spot")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_nodepools_from_yaml_anchors_plan_their_own_nodes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arch: str
) -> None:
    selector = {"kubernetes.io/arch": arch}
    [node] = plan_pod("windows-line-ends-and-anchors", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == (arch[:3], "spot")


def test_v1_manifest_with_v1beta1_fields_plans_like_v1beta1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    [node] = plan_pod("v1-with-fields-of-v1beta1", capsys, tmp_path)["newNodes"]
    assert {instance_type[0] for instance_type in node["instanceTypes"]} <= {"c", "m", "r"}


def test_pod_uses_the_converted_nodepool_of_its_capacity_type(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    selector = {"karpenter.sh/capacity-type": "on-demand"}
    [node] = plan_pod("pools-that-share-a-class", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("few", "on-demand")
