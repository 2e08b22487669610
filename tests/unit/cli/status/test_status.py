"""`joiner status`."""

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.facts.installation import Installation
from cli.main import build_parser, main
from cli.planning.cluster_source import PlanningInput, PlanningInputReader
from cli.planning.table import TableOptions
from cli.status.page import build_status_document, render_status
from cli.status.screen import INSTALL_HINT, REFRESH_INTERVAL_SECONDS, _are_gangs_shown, draw_status
from cli.status.summary import build_fleet_status
from cli.terminal.refresh import Viewport
from cli.terminal.text import Palette
from shared.model.cluster import ClusterSnapshot
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents
from tests.support.cli.fleet_files import POOL, make_claim, make_instance_type, make_node_manifests, make_pod

Out = pytest.CaptureFixture[str]
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}
CATALOGUE = {"region": "nowhere", "instanceTypes": [make_instance_type(4)]}


def make_ready_pool(pool: dict[str, Any], **limits: str) -> dict[str, Any]:
    return {**pool, "spec": {**pool["spec"], "limits": limits}, "status": {"conditions": [READY]}}


def make_pending_pod(name: str) -> dict[str, Any]:
    pending_pod = make_pod(name, "", "1")
    del pending_pod["spec"]["nodeName"]
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available",
    }
    return {**pending_pod, "status": {"phase": "Pending", "conditions": [condition]}}


def make_unlaunched_claim(name: str) -> dict[str, Any]:
    manifest = make_claim(name, "", 4)
    condition = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "no capacity"}
    return {**manifest, "status": {"conditions": [condition]}}


def make_deleting_claim(name: str, node: str) -> dict[str, Any]:
    return make_claim(name, node, 4, deletionTimestamp="2026-11-21T08:00:00Z", finalizers=["karpenter.sh/termination"])


def make_broken_node(name: str) -> list[dict[str, Any]]:
    [node] = make_node_manifests(name, 4)
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    return [node]


def write_inputs(tmp_path: Path, *objects: dict[str, Any], priced: bool = True) -> list[str]:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    catalogue = ["--instance-types", str(tmp_path / "catalogue.json")] if priced else []
    return ["status", "-f", str(tmp_path / "cluster.json"), *catalogue]


def test_limits_in_usd_are_shown_with_their_usage(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = {**POOL, "metadata": {**POOL["metadata"], "annotations": {"joiner.dev/limit-usd-per-hour": "2"}}}
    arguments = write_inputs(
        tmp_path, make_ready_pool(limited), *make_node_manifests("n1", 4), make_claim("c1", "n1", 4)
    )
    monkeypatch.setenv("JOINER_LIMIT_USD_PER_HOUR", "5")
    assert main([*arguments, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["limitUsdPerHour"] == {"used": "$0.2000/h", "limit": "$5.0000/h"}
    assert document["nodePools"][0]["limits"] == {"usd-per-hour": {"used": "$0.2000/h", "limit": "$2.0000/h"}}
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "$0.2000/h with volumes of the limit of $5.0000/h" in page
    assert "usd-per-hour $0.2000/h of $2.0000/h" in page


def test_spot_share_is_shown_with_its_usage(tmp_path: Path, capsys: Out) -> None:
    annotations = {"joiner.dev/spot-share-percent": "50"}
    shared = {**POOL, "metadata": {**POOL["metadata"], "annotations": annotations}}
    arguments = write_inputs(
        tmp_path, make_ready_pool(shared), *make_node_manifests("n1", 4), make_claim("c1", "n1", 4)
    )
    assert main([*arguments, "-o", "json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)["spotShares"]
    assert (share["spot"], share["total"], share["maxSpot"]) == (0, 1, 0)
    assert main(arguments) == 0
    assert "Spot share of NodePool default: 0 of 1 nodes are Spot, at most 0 may be (50 %)" in capsys.readouterr().out


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    [alone] = make_node_manifests("managed", 4)
    for key in [key for key in alone["metadata"]["labels"] if key.startswith("karpenter.sh/")]:
        del alone["metadata"]["labels"][key]
    return write_inputs(
        tmp_path,
        make_ready_pool(POOL, cpu="16", nodes="8"),
        *make_node_manifests("n1", 4),
        make_claim("c1", "n1", 4),
        *make_node_manifests("n2", 4),
        make_deleting_claim("c2", "n2"),
        *make_broken_node("n3"),
        make_claim("c3", "n3", 4),
        make_unlaunched_claim("c4"),
        alone,
        make_pod("cart", "n1", "1"),
        make_pending_pod("till"),
    )


def test_status_page_shows_nodes_cost_pending_pods_and_problems(fleet: list[str], capsys: Out) -> None:
    assert main(fleet) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4 nodes, $0.6000/h ($438.00/month), and 1 node without NodePool; 1 pod on nodes, 1 pending",
        "",
        "NODEPOOL  READY  IN-FLIGHT  DELETING     CAPACITY       CPU      MEMORY     $/H         LIMIT",
        "default       1          2         1  2 on-demand  12% of 8  0% of 32Gi  0.6000  cpu 12 of 16",
        "",
        "PENDING PODS",
        "  shop/till: 0/2 nodes are available",
        "",
        "PROBLEMS",
        "  Node n3: not Ready: NodeStatusUnknown",
        "  NodeClaim c4: not Launched: LaunchFailed: no capacity",
    ]


def test_json_output_has_all_status_fields(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["usdPerHour"], document["unmanagedNodes"], document["pods"]) == (
        0.6,
        1,
        {"running": 1, "pending": 1},
    )
    [pool] = document["nodePools"]
    assert pool["nodes"] == {"ready": 1, "inFlight": 2, "deleting": 1}
    assert pool["limits"] == {"cpu": {"used": "12", "limit": "16"}, "nodes": {"used": "4", "limit": "8"}}
    assert pool["cpu"] == {"requested": "1", "allocatable": "8"}
    assert document["pendingPods"] == [{"pod": "shop/till", "message": "0/2 nodes are available"}]
    assert [problem["name"] for problem in document["problems"]] == ["n3", "c4"]


def test_status_without_a_catalog_has_no_prices(tmp_path: Path, capsys: Out) -> None:
    arguments = write_inputs(
        tmp_path, make_ready_pool(POOL), *make_node_manifests("n1", 4), make_claim("c1", "n1", 4), priced=False
    )
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("1 node; 0 pods on nodes, 0 pending\n")
    assert main([*arguments, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["usdPerHour"] is None


def test_unready_nodepool_shows_its_reason(tmp_path: Path, capsys: Out) -> None:
    condition = {
        "type": "NodeClassReady",
        "status": "False",
        "reason": "NodeClassNotFound",
        "message": "no EC2NodeClass x",
    }
    broken_pool = {**POOL, "status": {"conditions": [condition, {**READY, "status": "False", "reason": "NotReady"}]}}
    assert main(write_inputs(tmp_path, broken_pool)) == 0
    output = capsys.readouterr().out
    assert "NodePool default: NodeClassReady is False: NodeClassNotFound: no EC2NodeClass x" in output
    assert "Ready is False: NotReady" not in output


def test_nodes_of_a_deleted_nodepool_are_counted(tmp_path: Path, capsys: Out) -> None:
    assert main(write_inputs(tmp_path, *make_node_manifests("n1", 4), make_claim("c1", "n1", 4))) == 0
    assert "default       1" in capsys.readouterr().out


def test_long_pending_pod_lists_are_truncated_without_the_all_flag(tmp_path: Path, capsys: Out) -> None:
    pods = [make_pending_pod(f"p{number:02}") for number in range(20)]
    for number, pending_pod in enumerate(pods[:18]):
        pending_pod["status"]["conditions"][0]["message"] = f"reason {number}"
    arguments = write_inputs(tmp_path, make_ready_pool(POOL), *pods)
    assert main(arguments) == 0
    assert "  … and 4 more pods (--all shows them)" in capsys.readouterr().out
    assert main([*arguments, "--all"]) == 0
    assert "shop/p19" in capsys.readouterr().out


def test_pods_pending_for_the_same_reason_share_a_line(tmp_path: Path, capsys: Out) -> None:
    pods = [make_pending_pod(f"p{number}") for number in range(5)]
    pods[0]["status"]["conditions"][0]["message"] = "another reason"
    arguments = write_inputs(tmp_path, make_ready_pool(POOL), *pods)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.partition("PENDING PODS\n")[2].splitlines()
    assert lines[:2] == [
        "  4 pods: 0/2 nodes are available (shop/p1, shop/p2, shop/p3 and 1 more)",
        "  shop/p0: another reason",
    ]
    assert main([*arguments, "--all"]) == 0
    assert len(capsys.readouterr().out.partition("PENDING PODS\n")[2].splitlines()) == 5


@pytest.mark.parametrize("flags", [["--watch", "-f", "x"], ["--context", "--watch", "-o", "json"]])
def test_incompatible_options_are_rejected(flags: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["status", *flags])
    assert raised.value.code == 2
    assert "joiner status: error" in capsys.readouterr().err


def test_invalid_object_is_reported_and_the_rest_is_shown(tmp_path: Path, capsys: Out) -> None:
    odd = {**POOL, "metadata": {"name": "odd"}, "spec": {"template": 3}}
    assert main(write_inputs(tmp_path, odd, *make_node_manifests("n1", 4), make_claim("c1", "n1", 4))) == 1
    captured = capsys.readouterr()
    assert "1 node" in captured.out
    assert "NodePool odd" in captured.err


def test_watch_continues_until_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    files = write_inputs(tmp_path, make_ready_pool(POOL), *make_node_manifests("n1", 4), make_claim("c1", "n1", 4))
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    from cli.planning import cluster_source  # noqa: PLC0415 - what the command imports when it runs

    original_read = cluster_source.read_priced_input

    def read_from_files(arguments: Any, **options: Any) -> Any:
        arguments.context, arguments.filename = None, files[2:3]
        return original_read(arguments, **{**options, "is_live": False})

    monkeypatch.setattr(cluster_source, "read_priced_input", read_from_files)
    monkeypatch.setattr("cli.status.screen.time.sleep", sleep)
    assert main(["status", "--context", "--watch"]) == 130
    assert looks == [REFRESH_INTERVAL_SECONDS] * 2
    assert capsys.readouterr().out.count("1 node") == 2


def test_user_pauses_are_shown_in_page_and_json(tmp_path: Path, capsys: Out) -> None:
    text = "Drifted,Empty until 2100-01-01T00:00:00Z by anna because Black Friday"
    kube_system = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "kube-system", "annotations": {"joiner.dev/disruption-paused": text}},
    }
    held_pool = {**POOL, "metadata": {"name": "default", "annotations": {"joiner.dev/launches-paused": "true"}}}
    arguments = write_inputs(
        tmp_path, make_ready_pool(held_pool), kube_system, *make_node_manifests("n1", 4), make_claim("c1", "n1", 4)
    )
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "paused: all NodePools: Drifted and Empty disruption for " in output
    assert "(until 2100-01-01T00:00:00Z), by anna: Black Friday" in output
    assert "paused: NodePool default: launches\n" in output
    assert main([*arguments, "-o", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["pauses"]
    assert first == {
        "nodePool": None,
        "reasons": ["Drifted", "Empty"],
        "author": "anna",
        "since": None,
        "until": "2100-01-01T00:00:00Z",
        "because": "Black Friday",
    }
    assert (second["nodePool"], second["reasons"], second["author"]) == ("default", ["Launches"], None)


def test_status_page_fits_the_terminal_and_scrolls(fleet: list[str]) -> None:
    arguments = build_parser("status").parse_args(fleet)
    screen_input = (*PlanningInputReader(arguments)(), None)
    full_page, _ = draw_status(arguments, screen_input, Viewport(columns=40, lines=50))
    lines, last = draw_status(arguments, screen_input, Viewport(columns=40, lines=5, first=99))
    assert (len(lines), last) == (5, len(full_page) - 5)
    assert lines == full_page[-5:]


def test_watched_status_has_bars_and_a_pipe_has_plain_text(fleet: list[str], capsys: Out) -> None:
    arguments = build_parser("status").parse_args(fleet)
    lines, _ = draw_status(arguments, (*PlanningInputReader(arguments)(), None), Viewport(columns=120, lines=50))
    cpu, memory = lines[1:3]
    assert re.fullmatch(r"cpu     [█▏▎▍▌▋▊▉░]{20} +\d+%  \S+ of \S+ requested", cpu)
    assert re.fullmatch(r"memory  [█▏▎▍▌▋▊▉░]{20} +\d+%  \S+ of \S+ requested", memory)
    assert any("default" in line and "░ " in line for line in lines[3:])
    assert main(fleet) == 0
    assert not re.search("[█░]", capsys.readouterr().out)


def test_cluster_without_karpenter_crds_shows_an_install_hint(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    def read_input(*_: object) -> PlanningInput:
        at = ClusterSnapshot(taken_at=datetime(2026, 11, 22, tzinfo=UTC))
        return PlanningInput(
            cluster=at, read_errors=(), notes=("nodepools.karpenter.sh is not installed in prod", "something else")
        )

    monkeypatch.setattr("cli.planning.cluster_source.read_planning_input", read_input)
    assert main(["status", "-f", "x"]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == f"note: nodepools.karpenter.sh is not installed in prod{INSTALL_HINT}"
    assert second == "note: something else"
    assert main(["status", "-f", "x", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["notes"]) == 2


def test_schedules_show_what_is_in_force_and_what_is_next() -> None:
    annotations = {
        "joiner.dev/schedule": "night: 0 20 * * * 11h limits.cpu=0",
        "joiner.dev/schedule-time-zone": "Europe/Berlin",
    }
    scheduled = make_ready_pool({**POOL, "metadata": {**POOL["metadata"], "annotations": annotations}}, cpu="10")
    cluster = build_snapshot_from_documents([scheduled], datetime(2026, 11, 23, 21, tzinfo=UTC))
    status = build_fleet_status(ClusterState(cluster))
    document = build_status_document(status, None)
    assert document["schedules"] == [
        {
            "kind": "NodePool",
            "name": "default",
            "windows": ["night"],
            "values": "limits.cpu=0",
            "changesAt": "2026-11-24T06:00:00Z",
            "nextWindows": [],
            "nextValues": None,
        }
    ]
    assert document["nodePools"][0]["limits"]["cpu"]["limit"] == "0"
    page = render_status(status, None, Palette(enabled=False), TableOptions())
    assert "NodePool default: night (limits.cpu=0); from 2026-11-24T06:00:00Z: as in its spec" in page


def test_schedule_without_an_end_has_no_next_change(tmp_path: Path, capsys: Out) -> None:
    annotations = {"joiner.dev/schedule": "always: @hourly 1h limits.cpu=5"}
    scheduled = {**POOL, "metadata": {**POOL["metadata"], "annotations": annotations}}
    assert main([*write_inputs(tmp_path, make_ready_pool(scheduled)), "--wide"]) == 0
    page = capsys.readouterr().out
    assert "SCHEDULES\n  NodePool default: always (limits.cpu=5)\n" in page


def make_gang_pod(name: str, **labels: str) -> dict[str, Any]:
    pod = make_pending_pod(name)
    annotations = {"joiner.dev/gang": "train", "joiner.dev/gang-size": "3"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations, "labels": labels}}


def test_waiting_gangs_are_shown_if_gangs_are_on(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = write_inputs(tmp_path, make_ready_pool(POOL), make_gang_pod("train-0"), make_gang_pod("train-1"))
    main([*arguments, "-o", "json"])
    assert json.loads(capsys.readouterr().out)["waitingGangs"] == []
    monkeypatch.setenv("JOINER_GANGS", "on")
    main([*arguments, "-o", "json"])
    [gang] = json.loads(capsys.readouterr().out)["waitingGangs"]
    assert (gang["kind"], gang["existingPods"], gang["neededPods"]) == ("gang", 2, 3)
    assert gang["message"] == "2 of its 3 pods exist: waiting for the others"
    main([*arguments, "--wide"])
    page = capsys.readouterr().out
    assert "WAITING GANGS\n  gang " in page
    assert "(2 pods, 3 needed) waits" in page


def test_installation_with_gangs_shows_them_unless_podgroups_have_the_sizes() -> None:
    settings = Settings(cluster_name="prod", region="us-east-1", gangs="on")
    installation = Installation(
        stack="joiner-prod", cluster="prod", region="us-east-1", status="CREATE_COMPLETE", settings=settings
    )
    args = argparse.Namespace()
    group_pod = make_gang_pod("train-0", **{"scheduling.x-k8s.io/pod-group": "train"})
    del group_pod["metadata"]["annotations"]
    for manifest, is_shown in ((make_gang_pod("train-0"), True), (group_pod, False)):
        cluster = build_snapshot_from_documents([manifest], datetime.now(UTC))
        assert _are_gangs_shown(args, cluster, installation) is is_shown
        assert not _are_gangs_shown(args, cluster, None)
