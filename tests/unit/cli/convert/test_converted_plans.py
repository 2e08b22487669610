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


def test_spot_stays_spot_of_the_categories_that_were_the_default(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [node] = plan_pod("spot-with-inline-provider", capsys, tmp_path)["newNodes"]
    assert node["cheapest"]["capacityType"] == "spot"
    assert {instance_type[0] for instance_type in node["instanceTypes"]} <= {"c", "m", "r"}
    assert not any("g.large" in instance_type for instance_type in node["instanceTypes"]), "arm64 was never the default"


def test_the_first_versions_plan_what_they_did(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    [node] = plan_pod("cluster-in-the-provider", capsys, tmp_path, nodeSelector={"intent": "apps"})["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("first-steps", "spot")
    [unschedulable_pod] = plan_pod("provisioner-of-v1alpha4", capsys, tmp_path)["unschedulable"]
    assert unschedulable_pod["reason"] == "TaintNotTolerated"


def test_a_taint_still_keeps_out_who_does_not_tolerate_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    [unschedulable_pod] = plan_pod("nodepool-of-v1beta1", capsys, tmp_path)["unschedulable"]
    assert unschedulable_pod["reason"] == "TaintNotTolerated"


def test_on_demand_is_on_demand_and_the_taint_is_on_the_node(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [node] = plan_pod("nodepool-of-v1beta1", capsys, tmp_path, **SPECIAL)["newNodes"]
    assert node["cheapest"]["capacityType"] == "on-demand"
    assert [taint["key"] for taint in node["taints"]] == ["example.com/special-taint"]


def test_types_that_are_not_sold_here_are_still_those_that_were_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [unschedulable_pod] = plan_pod("gpu-with-taint", capsys, tmp_path, **GPU)["unschedulable"]
    assert "match no available instance type: none matches" in unschedulable_pod["message"]


def test_a_pool_that_was_selected_by_its_old_label_is_selected_by_its_new_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, out, _ = run_convert("pods-that-say-do-not-evict")
    [job] = [manifest for manifest in yaml.safe_load_all(out) if manifest["kind"] == "CronJob"]
    selector = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["nodeSelector"]
    [node] = plan_pod("when-empty-of-v1beta1", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("batch", "spot")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_what_was_merged_from_an_anchor_still_makes_nodes_of_its_own(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arch: str
) -> None:
    selector = {"kubernetes.io/arch": arch}
    [node] = plan_pod("windows-line-ends-and-anchors", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == (arch[:3], "spot")


def test_only_the_version_of_which_was_changed_plans_as_v1beta1_did(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [node] = plan_pod("v1-with-fields-of-v1beta1", capsys, tmp_path)["newNodes"]
    assert {instance_type[0] for instance_type in node["instanceTypes"]} <= {"c", "m", "r"}


def test_a_pod_gets_the_pool_whose_capacity_it_asks_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    selector = {"karpenter.sh/capacity-type": "on-demand"}
    [node] = plan_pod("pools-that-share-a-class", capsys, tmp_path, nodeSelector=selector)["newNodes"]
    assert (node["nodePool"], node["cheapest"]["capacityType"]) == ("few", "on-demand")
