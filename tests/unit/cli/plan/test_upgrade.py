"""`joiner plan --upgrade`: images, drifting nodes, budgets and version skew before a control-plane upgrade."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.plan.upgrade.versions import compare_kubelets
from tests.support.cli.fleet_files import POOL, make_claim, make_node_manifests, make_pod, write_fleet

Out = pytest.CaptureFixture[str]


def make_class(*terms: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"role": "node", "amiFamily": "AL2023", "amiSelectorTerms": list(terms)},
        "status": {"amis": [{"id": "ami-1", "name": "old", "requirements": []}]},
    }


def make_fleet(tmp_path: Path, *terms: dict[str, str], kubelet: str = "v1.34.2-eks-1", **meta: str) -> list[str]:
    """Write two nodes, one of them with a pod."""
    nodes = [*make_node_manifests("n1", 4, **meta), *make_node_manifests("n2", 4)]
    for node in nodes:
        node["status"]["nodeInfo"] = {"kubeletVersion": kubelet}
    claims = [make_claim("c1", "n1", 4), make_claim("c2", "n2", 4)]
    for claim in claims:
        claim["status"]["imageID"] = "ami-1"
    return write_fleet(tmp_path, POOL, make_class(*terms), *nodes, *claims, make_pod("web", "n1", "1"))


def plan_upgrade(capsys: Out, version: str, files: list[str], *arguments: str) -> dict[str, Any]:
    assert main(["plan", "--upgrade", version, "-o", "json", *files, *arguments]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("alias", ["al2023@latest", "al2023@v20261101"])
def test_an_alias_moves_all_nodes_those_without_pods_first(alias: str, tmp_path: Path, capsys: Out) -> None:
    document = plan_upgrade(capsys, "1.35", make_fleet(tmp_path, {"alias": alias}))
    assert [item["effect"] for item in document["nodeClasses"]] == ["Moves"]
    assert [(item["node"], item["reason"]) for item in document["nodes"]] == [("n2", "AMIDrift"), ("n1", "AMIDrift")]
    assert document["nodePools"][0]["allowedNow"] == 2
    assert document["nodePools"][0]["durationSeconds"] == 300
    assert document["nodePools"][0]["surgeUsdPerHour"] == pytest.approx(0.4)
    assert document["extraUsd"] == pytest.approx(0.4 / 12)


def test_images_selected_by_id_stay_and_no_node_drifts(tmp_path: Path, capsys: Out) -> None:
    document = plan_upgrade(capsys, "1.35", make_fleet(tmp_path, {"id": "ami-1"}))
    assert [item["effect"] for item in document["nodeClasses"]] == ["Stays"]
    assert (document["nodes"], document["nodePools"], document["extraUsd"]) == ([], [], 0)


def test_new_image_ids_are_read_from_the_account(tmp_path: Path, capsys: Out) -> None:
    document = plan_upgrade(capsys, "1.35", make_fleet(tmp_path, {"alias": "al2023@latest"}), "--images", "embedded")
    assert document["nodeClasses"][0]["oldImages"] == ["ami-1"]
    assert document["nodeClasses"][0]["newImages"]
    assert len(document["nodes"]) == 2


def test_a_removed_ami_family_has_no_images(tmp_path: Path, capsys: Out) -> None:
    files = make_fleet(tmp_path, {"alias": "al2@latest"}, kubelet="v1.32.0-eks-1")
    document = plan_upgrade(capsys, "1.33", files)
    assert document["nodeClasses"][0]["effect"] == "NoImages"
    assert "AL2 does not support Kubernetes 1.33" in document["nodeClasses"][0]["message"]


def test_a_protected_node_is_listed_last_with_the_reason(tmp_path: Path, capsys: Out) -> None:
    files = make_fleet(tmp_path, {"alias": "al2023@latest"}, **{"karpenter.sh__do_not_disrupt": "true"})
    document = plan_upgrade(capsys, "1.35", [*files])
    assert [(item["node"], item["blocked"]) for item in document["nodes"]] == [("n2", False), ("n1", True)]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.34", "the control plane already has 1.34; EKS has no downgrade"),
        ("1.33", "the control plane already has 1.34; EKS has no downgrade"),
        ("1.36", "EKS upgrades one minor version at a time: plan --upgrade 1.35 first"),
    ],
)
def test_a_version_that_is_not_the_next_one_is_refused(version: str, message: str, tmp_path: Path, capsys: Out) -> None:
    files = make_fleet(tmp_path, {"alias": "al2023@latest"})
    assert main(["plan", "--upgrade", version, *files]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--upgrade", "latest"], ["--upgrade", "1.35", "--pod", "a"], ["--images", "aws"]]
)
def test_wrong_arguments_are_a_usage_error(arguments: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["plan", *arguments])
    assert "--upgrade" in capsys.readouterr().err


def test_kubelets_more_than_three_minor_versions_older_are_too_old() -> None:
    kubelets = compare_kubelets({"a": "v1.31.0", "b": "v1.32.1-eks", "c": ""}, ("a", "b", "c"), "1.35")
    assert (kubelets.too_old, kubelets.nodes_by_version) == (("a",), {"1.31": 1, "1.32": 1})
    assert kubelets.unknown_count == 1


def test_the_text_names_versions_order_and_assumptions(tmp_path: Path, capsys: Out) -> None:
    assert main(["plan", "--upgrade", "1.35", *make_fleet(tmp_path, {"alias": "al2023@latest"})]) == 0
    text = capsys.readouterr().out
    assert "upgrade of the control plane: 1.34 -> 1.35\nkubelets: 2 nodes 1.34\n" in text
    assert "2 nodes to replace, in this order:\n  n2 (default, AMIDrift)\n  n1 (default, AMIDrift)\n" in text
    assert "extra cost $0.03, if each replacement takes 5m" in text
