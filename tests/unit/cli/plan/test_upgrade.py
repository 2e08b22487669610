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


def make_fleet(
    tmp_path: Path,
    *terms: dict[str, str],
    kubelet: str = "v1.34.2-eks-1",
    pool: dict[str, Any] = POOL,
    class_annotations: dict[str, str] | None = None,
    node_annotations: dict[str, str] | None = None,
) -> list[str]:
    """Write two nodes, one of them with a pod."""
    nodes = [*make_node_manifests("n1", 4, **(node_annotations or {})), *make_node_manifests("n2", 4)]
    for node in nodes:
        node["status"]["nodeInfo"] = {"kubeletVersion": kubelet}
    claims = [make_claim("c1", "n1", 4), make_claim("c2", "n2", 4)]
    for claim in claims:
        claim["status"]["imageID"] = "ami-1"
    node_class = make_class(*terms)
    node_class["metadata"]["annotations"] = class_annotations or {}
    return write_fleet(tmp_path, pool, node_class, *nodes, *claims, make_pod("web", "n1", "1"))


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
    files = make_fleet(tmp_path, {"alias": "al2023@latest"}, node_annotations={"karpenter.sh__do_not_disrupt": "true"})
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


PAUSE_END = "2026-11-21T10:00:00Z"
LATEST = {"alias": "al2023@latest"}
"""The fleet is planned for Saturday, 2026-11-21 at 09:00 UTC."""


def make_pool(*budgets: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    spec = POOL["spec"] | {"disruption": {"consolidateAfter": "0s", "budgets": list(budgets)}}
    return POOL | {"metadata": {"name": "default", "annotations": annotations or {}}, "spec": spec}


def plan_pool(capsys: Out, tmp_path: Path, pool: dict[str, Any]) -> dict[str, Any]:
    document = plan_upgrade(capsys, "1.35", make_fleet(tmp_path, LATEST, pool=pool))
    [planned_pool] = document["nodePools"]
    return dict(planned_pool)


def test_budget_limits_how_many_nodes_are_replaced_at_a_time(tmp_path: Path, capsys: Out) -> None:
    planned = plan_pool(capsys, tmp_path, make_pool({"nodes": "1"}))
    assert (planned["allowedNow"], planned["maxAtOnce"]) == (1, 1)
    assert (planned["startsAt"], planned["endsAt"]) == ("2026-11-21T09:00:00Z", "2026-11-21T09:10:00Z")
    assert planned["durationSeconds"] == 600


def test_replacement_waits_for_the_end_of_a_budget_with_a_schedule(tmp_path: Path, capsys: Out) -> None:
    pool = make_pool({"nodes": "1"}, {"nodes": "0", "schedule": "0 8 * * *", "duration": "9h30m"})
    planned = plan_pool(capsys, tmp_path, pool)
    assert (planned["allowedNow"], planned["message"]) == (0, "an active budget allows 0 nodes")
    assert (planned["startsAt"], planned["endsAt"]) == ("2026-11-21T17:30:00Z", "2026-11-21T17:40:00Z")


def test_replacement_stops_at_the_end_of_a_window_and_continues_in_the_next_one(tmp_path: Path, capsys: Out) -> None:
    windows = {"joiner.dev/disruption-windows": "0 22 * * mon-fri 5m"}
    pool = make_pool({"nodes": "1"}, annotations=windows)
    planned = plan_pool(capsys, tmp_path, pool)
    assert "now is outside all disruption windows" in planned["message"]
    assert (planned["startsAt"], planned["endsAt"]) == ("2026-11-23T22:00:00Z", "2026-11-24T22:05:00Z")


@pytest.mark.parametrize(
    ("annotations", "starts_at", "message"),
    [
        (
            {"joiner.dev/disruption-paused": "Drifted until 2026-11-21T10:00:00Z"},
            "2026-11-21T10:00:00Z",
            "drift is paused",
        ),
        ({"joiner.dev/disruption-paused": "Empty"}, "2026-11-21T09:00:00Z", ""),
        ({"joiner.dev/schedule": "day: 0 8 * * * 4h paused=Drifted"}, "2026-11-21T12:00:00Z", "schedule window day"),
        ({"joiner.dev/schedule": "day: 0 8 * * * 4h budget=0"}, "2026-11-21T12:00:00Z", "an active budget allows 0"),
        ({"joiner.dev/disruption-paused": "Drifted"}, None, "drift is paused"),
    ],
)
def test_replacement_waits_for_the_end_of_pauses_and_schedules(
    annotations: dict[str, str], starts_at: str | None, message: str, tmp_path: Path, capsys: Out
) -> None:
    planned = plan_pool(capsys, tmp_path, make_pool({"nodes": "100%"}, annotations=annotations))
    assert planned["startsAt"] == starts_at
    assert message in planned["message"]
    assert (planned["durationSeconds"] is None) == (starts_at is None)


@pytest.mark.parametrize(
    ("variables", "starts_at", "max_at_once", "message"),
    [
        ({"JOINER_DISRUPTION_BUDGETS": '[{"nodes": "1"}]'}, "2026-11-21T09:00:00Z", 1, ""),
        (
            {
                "JOINER_DISRUPTION_BUDGETS": '[{"nodes": "0", "schedule": "0 9 * * *", "duration": "2h"}]',
                "JOINER_DISRUPTION_TIME_ZONE": "Europe/Berlin",
            },
            "2026-11-21T10:00:00Z",
            2,
            "the setting disruption-budgets allows 0 nodes",
        ),
        (
            {"JOINER_DISRUPTION_PAUSED": "Drifted in default until 2026-11-21T11:00:00Z by anna"},
            "2026-11-21T11:00:00Z",
            2,
            "by the setting disruption-paused by anna until",
        ),
        ({"JOINER_DISRUPTION_PAUSED": "Drifted in other"}, "2026-11-21T09:00:00Z", 2, ""),
    ],
)
def test_settings_in_the_environment_count(
    variables: dict[str, str],
    starts_at: str,
    max_at_once: int,
    message: str,
    tmp_path: Path,
    capsys: Out,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    planned = plan_pool(capsys, tmp_path, POOL)
    assert (planned["startsAt"], planned["maxAtOnce"]) == (starts_at, max_at_once)
    assert message in planned["message"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("JOINER_DISRUPTION_BUDGETS", '[{"nodes": "many"}]'),
        ("JOINER_DISRUPTION_PAUSED", "Dirfted"),
        ("JOINER_DRIFT_PAUSE_PERCENT", "x"),
    ],
)
def test_invalid_setting_in_the_environment_is_an_error(
    name: str, text: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    assert main(["plan", "--upgrade", "1.35", *make_fleet(tmp_path, LATEST)]) == 1
    assert "settings in the environment: " in capsys.readouterr().err


def test_drift_that_pauses_itself_is_reported_with_the_way_to_continue(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = make_fleet(tmp_path, LATEST)
    monkeypatch.setenv("JOINER_DRIFT_PAUSE_PERCENT", "50")
    [planned] = plan_upgrade(capsys, "1.35", files)["nodePools"]
    assert planned["driftPause"].startswith("2 of 2 nodes have drifted, more than the setting drift-pause-percent (50)")
    assert main(["plan", "--upgrade", "1.35", *files]) == 0
    text = capsys.readouterr().out
    assert "  drift pauses first: 2 of 2 nodes have drifted" in text
    assert "kubectl annotate nodepool default --overwrite joiner.dev/disruption-resumed=" in text
    monkeypatch.setenv("JOINER_DRIFT_PAUSE_PERCENT", "100")
    [planned] = plan_upgrade(capsys, "1.35", files)["nodePools"]
    assert planned["driftPause"] is None


def test_text_has_the_beginning_and_the_end_of_the_replacement(tmp_path: Path, capsys: Out) -> None:
    def render(pool: dict[str, Any]) -> str:
        assert main(["plan", "--upgrade", "1.35", *make_fleet(tmp_path, LATEST, pool=pool)]) == 0
        return capsys.readouterr().out

    evening = {"nodes": "0", "schedule": "0 8 * * *", "duration": "10h"}
    assert "NodePool default: 2 nodes, up to 2 at a time, done in about 5m, up to $0.4000/h more\n" in render(POOL)
    text = render(make_pool({"nodes": "1"}, evening))
    assert "up to 1 at a time from 2026-11-21T18:00:00Z (an active budget allows 0 nodes), done in about 9h10m" in text
    text = render(make_pool({"nodes": "0"}))
    assert "2 nodes, none can be replaced in the next 14 days: an active budget allows 0 nodes\n" in text
    text = render(make_pool({"nodes": "1"}, annotations={"joiner.dev/disruption-windows": "0 9 21 11 * 5m"}))
    assert "2 nodes, up to 1 at a time, 1 of them not in the next 14 days, up to $0.2000/h more\n" in text


def test_minimum_age_and_canary_of_the_class_are_named(tmp_path: Path, capsys: Out) -> None:
    annotations = {"joiner.dev/image-minimum-age": "72h", "joiner.dev/canary": "nodes=2 soak=1h"}
    files = make_fleet(tmp_path, LATEST, class_annotations=annotations)
    rollout = "not before a minimum age of 72h, first 2 nodes for a soak time of 1h"
    assert plan_upgrade(capsys, "1.35", files)["nodeClasses"][0]["rollout"] == rollout
    assert main(["plan", "--upgrade", "1.35", *files]) == 0
    assert f"the new image ids were not read, {rollout}\n" in capsys.readouterr().out
    assert plan_upgrade(capsys, "1.35", make_fleet(tmp_path, {"id": "ami-1"}))["nodeClasses"][0]["rollout"] is None


def test_image_soak_does_not_hide_nodes_that_drift_later(tmp_path: Path, capsys: Out) -> None:
    pool = make_pool({"nodes": "100%"}, annotations={"joiner.dev/image-soak": "24h"})
    document = plan_upgrade(capsys, "1.35", make_fleet(tmp_path, LATEST, pool=pool))
    assert [item["reason"] for item in document["nodes"]] == ["AMIDrift", "AMIDrift"]


def test_text_names_kubelets_that_are_too_old_or_unknown(tmp_path: Path, capsys: Out) -> None:
    node, other_node = make_node_manifests("n1", 4)[0], make_node_manifests("n2", 4)[0]
    newest_node, unknown_node = make_node_manifests("n3", 4)[0], make_node_manifests("n4", 4)[0]
    for manifest, kubelet in ((node, "v1.31.0"), (other_node, "v1.31.4"), (newest_node, "v1.34.0")):
        manifest["status"]["nodeInfo"] = {"kubeletVersion": kubelet}
    nodes = (node, other_node, newest_node, unknown_node)
    assert main(["plan", "--upgrade", "1.35", *write_fleet(tmp_path, POOL, make_class(LATEST), *nodes)]) == 0
    text = capsys.readouterr().out
    assert "too old for 1.35 (more than 3 minor versions): n1, n2: replace these nodes before the upgrade\n" in text
    assert "kubelet version unknown: 1 node\n" in text
    assert "no node drifts\n" in text


def test_blocked_node_is_named_with_the_reason(tmp_path: Path, capsys: Out) -> None:
    files = make_fleet(tmp_path, LATEST, node_annotations={"karpenter.sh__do_not_disrupt": "true"})
    assert main(["plan", "--upgrade", "1.35", *files]) == 0
    assert "  n1 (default, AMIDrift): blocked now: " in capsys.readouterr().out


def test_release_that_does_not_exist_for_the_version_has_no_images(tmp_path: Path, capsys: Out) -> None:
    files = make_fleet(tmp_path, {"alias": "al2023@v20200101"})
    [planned_class] = plan_upgrade(capsys, "1.35", files, "--images", "embedded")["nodeClasses"]
    assert planned_class["effect"] == "NoImages"
    assert "select a release that exists for this version" in planned_class["message"]


def test_node_without_a_known_image_is_listed_as_unknown(tmp_path: Path, capsys: Out) -> None:
    node = make_node_manifests("n1", 4)[0]
    files = write_fleet(tmp_path, POOL, make_class(LATEST), node, make_claim("c1", "n1", 4))
    assert main(["plan", "--upgrade", "1.35", *files]) == 0
    assert "drift unknown: n1\n" in capsys.readouterr().out


def test_version_without_images_of_the_alias_has_no_images(tmp_path: Path, capsys: Out) -> None:
    files = write_fleet(tmp_path, POOL, make_class(LATEST))
    document = plan_upgrade(capsys, "1.99", files, "--images", "embedded")
    assert document["currentVersion"] is None
    [planned_class] = document["nodeClasses"]
    assert planned_class["message"] == "no image for Kubernetes 1.99: the EC2NodeClass will not be Ready"


def test_node_whose_version_cannot_be_read_is_unknown(tmp_path: Path, capsys: Out) -> None:
    node = make_node_manifests("n1", 4)[0]
    node["status"]["nodeInfo"] = {"kubeletVersion": 1.34}
    document = plan_upgrade(capsys, "1.35", write_fleet(tmp_path, POOL, make_class(LATEST), node))
    assert document["kubelets"] == {"nodesByVersion": {}, "tooOld": [], "unknown": 1}
