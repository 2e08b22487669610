"""`joiner plan`: files in, a table or a document out."""

import io
import json
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from rich.progress import Progress

from cli.main import main
from cli.plan.pod_page import render_pod_verdict
from cli.plan.pod_verdict import PodVerdict
from cli.planning.arguments import get_default_catalog_source
from cli.planning.cluster_source import PlanningInput, read_planning_input
from cli.planning.table import TableOptions
from cli.terminal.stderr import show_progress
from cli.terminal.text import Palette
from tests.support.cli.cli_objects import (
    CATALOGUE,
    EXISTING,
    POOL,
    Object,
    make_instance_type,
    make_node_pool,
    make_pod,
    make_workload,
)

Out = pytest.CaptureFixture[str]
TAKEN_AT = "2026-11-21T08:00:00Z"


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps(CATALOGUE))
    return str(path)


def write(path: Path, *objects: object) -> str:
    path.write_text(json.dumps({"kind": "List", "items": objects}))
    return str(path)


def plan(catalogue: str, *arguments: str) -> int:
    return main(["plan", "--instance-types", catalogue, "--now", TAKEN_AT, *arguments])


def test_plan_document_lists_each_pending_pod_once_with_prices(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    cluster = write(
        tmp_path / "cluster.json", POOL, EXISTING, make_pod("a"), make_pod("b"), make_pod("c"), make_pod("huge", "64")
    )
    assert plan(catalogue, "-f", cluster, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    [new], [existing], [unscheduled] = document["newNodes"], document["existingNodes"], document["unschedulable"]
    assert existing == {"node": "here", "pods": ["default/a"]}
    assert (new["pods"], new["instanceTypes"]) == (["default/b", "default/c"], ["m.02", "m.04"])
    assert new["cheapest"] == {
        "instanceType": "m.02",
        "zone": "a",
        "capacityType": "on-demand",
        "usdPerHour": 0.1,
        "price": 0.1,
    }
    assert new["taints"] == [{"key": "team", "effect": "NoSchedule", "value": "a"}]
    assert new["requests"] == {"cpu": "2", "memory": "2Gi", "pods": "2"}
    assert (unscheduled["pod"], unscheduled["reason"]) == ("default/huge", "NoInstanceTypeFits")
    assert document["totals"] == {
        "pods": 4,
        "scheduled": 3,
        "newNodes": 1,
        "usdPerHour": 0.1,
        "price": 0.1,
        "greedyUsdPerHour": 0.1,
        "otherUsdPerHour": 0.0,
        "secondLaunches": 0,
    }


def test_used_capacity_reservation_is_named(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    document = json.loads(Path(catalogue).read_text())
    reserved_offering = {
        "capacityType": "reserved",
        "reservationId": "cr-1",
        "reservationCapacity": 1,
        "price": 0.0,
        "zone": "a",
    }
    document["instanceTypes"][0]["offerings"].append(reserved_offering)
    Path(catalogue).write_text(json.dumps(document))
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, make_pod("a")), "-o", "json") == 0
    [new] = json.loads(capsys.readouterr().out)["newNodes"]
    assert (new["cheapest"]["capacityType"], new["cheapest"]["reservationId"]) == ("reserved", "cr-1")


def test_same_input_gives_identical_plans(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    cluster = write(tmp_path / "cluster.json", *(make_pod(f"p{number}") for number in range(9)), POOL)
    outputs = []
    for _ in range(2):
        assert plan(catalogue, "-f", cluster, "-o", "json") == 0
        outputs.append(capsys.readouterr().out.partition('"seconds"')[0])
    assert outputs[0] == outputs[1]


def test_yaml_output_equals_json_output(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all([make_pod("a"), None, [make_pod("b")]]))
    pool = write(tmp_path / "pool.json", POOL)
    documents_by_format = {}
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert plan(catalogue, "-f", str(tmp_path / "pods.yaml"), "-f", pool, "-o", form) == 0
        documents_by_format[form] = read(capsys.readouterr().out) | {"seconds": None}
    assert documents_by_format["json"] == documents_by_format["yaml"]
    assert documents_by_format["json"]["totals"]["scheduled"] == 2


def test_table_shows_new_nodes_and_unschedulable_pods(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    large = (make_pod(f"huge-{number}", "64") for number in range(5))
    cluster = write(tmp_path / "cluster.json", POOL, EXISTING, make_pod("a"), make_pod("b"), make_pod("c"), *large)
    assert plan(catalogue, "-f", cluster) == 0
    output = capsys.readouterr().out
    assert output.startswith("8 pending pods: 2 on 1 new node, 1 on 1 existing node, 5 unschedulable\n")
    row = ["default", "m.02", "a*", "on-demand", "1", "2", "100%", "25%", "2", "0.1000", "0.1000"]
    assert row in [line.split() for line in output.splitlines()]
    assert "  here  1 pod  default/a\n" in output
    assert "  5 pods: default/huge-0, default/huge-1, default/huge-2 and 2 more: NoInstanceTypeFits\n" in output
    assert "    NodePool default: no instance type has 64 cpu\n" in output
    assert "total: $0.1000/h, $73.00/month\nfirst-fit packing costs the same\n" in output
    assert "* cheapest of several possible zones" in output


def test_plan_keeps_and_shows_the_limit_in_usd(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = (make_pod(f"p{number}", "2") for number in range(5))
    cluster = write(tmp_path / "cluster.json", POOL, *pods)
    monkeypatch.setenv("JOINER_LIMIT_USD_PER_HOUR", "0.25")
    assert plan(catalogue, "-f", cluster) == 0
    output = capsys.readouterr().out
    assert "limit of the cluster: $0.0000/h of $0.2500/h is used, without the new nodes" in output
    assert "is left of the limit of the cluster of $0.2500/h: increase limit-usd-per-hour" in " ".join(output.split())
    total = float(output.partition("total: $")[2].partition("/h")[0])
    assert 0 < total <= 0.25


def test_plan_without_pending_pods_is_reported(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL)) == 0
    assert capsys.readouterr().out.startswith("no pending pods\n")


def test_savings_over_first_fit_packing_are_reported(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    dear = {
        "region": "nowhere",
        "instanceTypes": [make_instance_type("m.02", 2, 0.1), make_instance_type("m.08", 8, 2.0)],
    }
    Path(catalogue).write_text(json.dumps(dear))
    cluster = write(tmp_path / "cluster.json", POOL, *(make_pod(f"p{number}", "500m") for number in range(16)))
    assert plan(catalogue, "-f", cluster) == 0
    assert "saves $1,168.00/month: first-fit packing costs $2.0000/h (400% more)" in capsys.readouterr().out


def test_folders_and_multi_document_standard_input_are_read(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "objects"
    folder.mkdir()
    write(folder / "pool.json", POOL)
    (folder / "readme.txt").write_text("not an object")
    text = json.dumps(make_pod("a"), indent=1) + "\n" + json.dumps(make_pod("b"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert plan(catalogue, "-f", str(folder), "-f", "-", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["totals"]["scheduled"] == 2


def test_invalid_pod_is_unschedulable_and_reported_as_a_problem(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    cluster = write(tmp_path / "cluster.json", POOL, make_pod("a"), make_pod("poison", "many"))
    assert plan(catalogue, "-f", cluster, "-o", "json") == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert "Pod default/poison" in captured.err
    assert [(entry["pod"], entry["reason"]) for entry in document["unschedulable"]] == [
        ("default/poison", "InvalidPod")
    ]
    assert [problem["name"] for problem in document["problems"]] == ["default/poison"]
    assert document["totals"]["pods"] == 2


def test_flags_override_environment_variables(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    various = json.loads(json.dumps(POOL))
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3}
    various["spec"]["template"]["spec"]["requirements"] = [requirement]
    cluster = write(tmp_path / "cluster.json", various, make_pod("a"))
    scheduled_counts = []
    monkeypatch.setenv("MIN_VALUES_POLICY", "BestEffort")
    for flags in ((), ("--min-values-policy", "Strict")):
        assert plan(catalogue, "-f", cluster, "-o", "json", *flags) == 0
        scheduled_counts.append(json.loads(capsys.readouterr().out)["totals"]["scheduled"])
    assert scheduled_counts == [1, 0]


@pytest.mark.parametrize(
    "flags", [(), ("--now", "yesterday"), ("-o", "xml"), ("--node-cost", "-1"), ("--volume-price", "nan")]
)
def test_invalid_options_exit_with_2(
    tmp_path: Path, catalogue: str, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    if not flags:
        monkeypatch.setenv("PREFERENCE_POLICY", "Sometimes")
    with pytest.raises(SystemExit) as raised:
        plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL), *flags)
    assert raised.value.code == 2


def test_pod_without_unschedulable_condition_is_pending_unless_disabled(
    tmp_path: Path, catalogue: str, capsys: Out
) -> None:
    cluster = write(tmp_path / "cluster.json", POOL, make_pod("a"))
    assert plan(catalogue, "-f", cluster, "--no-assume-unschedulable") == 0
    assert capsys.readouterr().out.startswith("no pending pods")


def test_unschedulable_pods_are_grouped_by_cause_and_owner(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    """Group pods by cause with their owners, and report NodePools with the same message once."""
    pools = [
        make_node_pool("b", taints=[{"key": "x", "effect": "NoSchedule"}]),
        make_node_pool("c"),
        make_node_pool("a"),
    ]
    large = [make_workload("big", 3), make_workload("vast", 2)]
    for workload in large:
        workload["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    volumes: Object = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-@"}}]}
    volume_pods = [
        json.loads(json.dumps(make_pod(name, **volumes)).replace("@", name)) for name in ("cart-0", "cart-1")
    ]
    cluster = write(tmp_path / "cluster.json", *pools, *large, make_pod("huge", "64"), *volume_pods)
    assert plan(catalogue, "-f", cluster) == 0
    output = capsys.readouterr().out
    owners = "3 of Deployment default/big, 2 of Deployment default/vast, 1 without owner"
    assert (
        f"  6 pods: {owners}: NoInstanceTypeFits\n    NodePools c, a: no instance type has 64 cpu\n"
        "    NodePool b: needs toleration x:NoSchedule\n"
    ) in output
    assert "  2 pods: default/cart-0, default/cart-1: VolumeNotUsable\n    PersistentVolumeClaim data-<pod>" in output


def test_single_unschedulable_workload_is_named_in_the_heading(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", make_workload("web", 2))) == 0
    assert (
        "  2 pods of Deployment default/web: NoNodePool\n    no NodePool exists: create one\n"
        in capsys.readouterr().out
    )


def test_replicaset_pod_is_attributed_to_its_deployment(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    replica_pod = make_pod("web-5d4f8-x", labels={"pod-template-hash": "5d4f8"})
    replica_pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f8", "uid": "u", "controller": True}
    ]
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", replica_pod)) == 0
    assert "1 pod of Deployment default/web: NoNodePool" in capsys.readouterr().out


MANY = [make_node_pool(f"p{number:02}", labels={}) for number in range(20)]


@pytest.mark.parametrize("flags", [(), ("--all",)])
def test_long_lists_are_truncated_without_the_all_flag(
    tmp_path: Path, catalogue: str, capsys: Out, flags: tuple[str, ...]
) -> None:
    pods = [make_pod(f"a{number:02}", nodeSelector={"karpenter.sh/nodepool": f"p{number:02}"}) for number in range(20)]
    unplaceable_pods = [
        make_pod(f"z{number:02}", nodeSelector={"place": f"a place {number:02}"}) for number in range(20)
    ]
    nodes = [
        EXISTING | {"metadata": {"name": f"n{number:02}", "labels": {"on": f"n{number:02}"}}} for number in range(20)
    ]
    fits = [make_pod(f"f{number:02}", nodeSelector={"on": f"n{number:02}"}) for number in range(20)]
    assert (
        plan(catalogue, "-f", write(tmp_path / "cluster.json", *MANY, *pods, *unplaceable_pods, *nodes, *fits), *flags)
        == 0
    )
    output = capsys.readouterr().out
    row_count = sum(line.startswith("p") and "m.02" in line for line in output.splitlines())
    phrases = ("… and 5 more rows: 5 nodes, $0.5000/h", "… and 5 pods on 5 more nodes", "for 5 other reasons")
    assert row_count == (20 if flags else 15)
    assert [words in output for words in phrases] == [not flags] * 3
    assert ("default/z19" in output) is bool(flags)


@pytest.mark.parametrize(
    ("columns", "head"),
    [
        (107, "NODEPOOL TYPE ZONE CAPACITY NODES PODS/NODE CPU MEMORY MATCHING TYPES $/H/NODE $/H"),
        (85, "NODEPOOL TYPE ZONE CAPACITY NODES PODS/NODE CPU MEMORY $/H"),
        (75, "NODEPOOL TYPE ZONE CAPACITY NODES PODS/NODE CPU $/H"),
        (50, "NODEPOOL TYPE ZONE CAPACITY NODES $/H"),
        (20, "NODEPOOL TYPE ZONE CAPACITY NODES $/H"),
    ],
)
def test_narrow_terminal_has_fewer_columns_and_shorter_lines(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch, columns: int, head: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    unplaceable = make_workload("lost", 3)
    unplaceable["spec"]["template"]["spec"]["nodeSelector"] = {"a-label": "that-nobody-has"}
    cluster = write(
        tmp_path / "cluster.json",
        make_node_pool("a-rather-long-name"),
        make_pod("a"),
        unplaceable,
        EXISTING,
        make_pod("b"),
    )
    assert plan(catalogue, "-f", cluster) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(next(line for line in lines if line.startswith("NODEPOOL")).split()) == head
    if columns >= 50:
        assert [line for line in lines if len(line) > columns] == []
    assert plan(catalogue, "-f", cluster, "--wide") == 0
    assert "MATCHING TYPES" in capsys.readouterr().out


def test_colors_are_used_only_on_capable_terminals(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    cluster = write(tmp_path / "cluster.json", POOL, make_pod("a"))
    colour_flags = []
    for variables in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with monkeypatch.context() as patch:
            for name, value in ({"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "120"} | variables).items():
                patch.setenv(name, value)
            terminal = Terminal()
            patch.setattr("sys.stdout", terminal)
            assert plan(catalogue, "-f", cluster) == 0
            colour_flags.append("\x1b[" in terminal.getvalue())
    assert colour_flags == [True, False, False]
    assert plan(catalogue, "-f", cluster) == 0
    assert "\x1b[" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("priced_at", "expected"),
    [
        (None, "age of the prices: unknown, because the catalog has no pricedAt\n"),
        ("2026-11-21T05:30:00Z", "prices of 2026-11-21 05:30 UTC (2h30m old)\n"),
        ("2026-11-01T08:00:00Z", "(20d old): spot prices have changed since, build a new catalog\n"),
    ],
)
def test_age_of_the_prices_is_reported(
    tmp_path: Path, catalogue: str, capsys: Out, priced_at: str | None, expected: str
) -> None:
    Path(catalogue).write_text(json.dumps(CATALOGUE | {"pricedAt": priced_at}))
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, make_pod("a"))) == 0
    assert expected in capsys.readouterr().out


def test_estimated_prices_are_reported_as_outdated(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    old = json.loads(json.dumps(CATALOGUE | {"pricedAt": "2026-11-21T05:30:00Z"}))
    for offering in old["instanceTypes"][0]["offerings"]:
        offering["estimated"] = True
    capacity_type = old["instanceTypes"][0]["offerings"][0]["capacityType"]
    Path(catalogue).write_text(json.dumps(old))
    path = write(tmp_path / "cluster.json", POOL, make_pod("a"))
    assert plan(catalogue, "-f", path) == 0
    assert f"(2h30m old); {capacity_type} prices could not be updated since" in capsys.readouterr().out
    assert plan(catalogue, "-f", path, "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["pricesEstimated"] == [capacity_type]


def test_progress_is_shown_on_standard_error(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_slowly(*arguments: Any) -> PlanningInput:
        with show_progress("thinking", delay_seconds=0):
            progress_shown.wait(600)
        return read_planning_input(*arguments)

    def start_and_signal(progress: Progress) -> None:
        start(progress)
        progress_shown.set()

    progress_shown, start = Event(), Progress.start
    monkeypatch.setattr(Progress, "start", start_and_signal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("cli.planning.cluster_source.read_planning_input", read_slowly)
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, make_pod("a")), "-o", "json") == 0
    captured = capsys.readouterr()
    assert "joiner: thinking …" in captured.err
    assert json.loads(captured.out)["totals"]["scheduled"] == 1


def test_progress_is_hidden_without_a_terminal(capsys: Out) -> None:
    with show_progress("thinking", delay_seconds=0):
        pass
    assert not capsys.readouterr().err


def test_volume_and_per_node_costs_are_added_to_instance_prices(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volumes at their price and what each node costs anyhow, as flags say, else the environment."""
    disks = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "73Gi"}}]
    node_class = {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {"blockDeviceMappings": disks, "amiSelectorTerms": [{"alias": "al2023@latest"}]},
    }
    cluster = write(tmp_path / "cluster.json", POOL, node_class, make_pod("a"))
    monkeypatch.setenv("JOINER_VOLUME_USD_PER_GIB_MONTH", "0.1")
    for flags, besides in (((), 0.01), (("--volume-price", "0.2", "--node-cost", "0.3"), 0.32)):
        assert plan(catalogue, "-f", cluster, *flags, "-o", "json") == 0
        assert json.loads(capsys.readouterr().out)["totals"]["otherUsdPerHour"] == pytest.approx(besides)
    assert plan(catalogue, "-f", cluster) == 0
    assert "plus $0.0100/h for EBS volumes and other node costs\n" in capsys.readouterr().out


def test_plan_without_nomination_hints_warns_about_second_launches(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(catalogue).write_text(json.dumps({"region": "nowhere", "instanceTypes": [make_instance_type("m.04", 4, 0.2)]}))
    pods = [make_pod(f"{name}-{number}", cpu) for name, cpu in (("s", "700m"), ("l", "1500m")) for number in range(12)]
    cluster = write(tmp_path / "cluster.json", POOL, *pods)
    monkeypatch.setattr("shared.decide.scheduling.search.plan_search.MAX_SIMULATED_PLANS", 0)
    assert plan(catalogue, "-f", cluster, "--pod-nominations", "Disabled") == 0
    assert "may need a second launch: Joiner nominates no nodes" in capsys.readouterr().out


def test_constraints_decided_at_launch_are_noted(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "karpenter.sh/capacity-type",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    zones = spread | {"topologyKey": "topology.kubernetes.io/zone"}
    pods = [
        make_pod(f"a{number}", labels={"app": "a"}, topologySpreadConstraints=[spread, zones]) for number in range(3)
    ]
    beside = make_pod(
        "b", affinity={"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _build_affinity_term("a")}]}}
    )
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, *pods, beside), "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    undecided = {entry["pod"] for entry in document["approximations"]}
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, *pods, beside)) == 0
    assert ("depends on the zone of the launched node" in capsys.readouterr().out) is bool(undecided)


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _build_affinity_term(app: str) -> dict[str, Any]:
    return {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": app}}}


def test_plan_example_matches_its_comment(capsys: Out) -> None:
    assert plan("examples/catalogue.json", "-f", "examples/plan") == 0
    output = capsys.readouterr().out
    assert "2 pods of Deployment shop/search: NoInstanceTypeFits" in output
    assert "12), Deployment shop/search (2), Job shop/recommend (1)" in output


@pytest.mark.parametrize("name", ["FEATURE_GATES", "SCHEDULER_CONFIG"])
def test_invalid_feature_environment_variable_is_rejected(
    tmp_path: Path, catalogue: str, capsys: Out, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "NodeOverlay=maybe")
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, make_pod("a"))) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"${name}" in captured.err


def test_file_input_without_a_catalog_is_rejected(tmp_path: Path, capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["plan", "-f", write(tmp_path / "cluster.json", POOL)])
    assert raised.value.code == 2
    assert "files have no prices. --instance-types names the catalog" in capsys.readouterr().err


def test_live_cluster_catalog_is_the_deployment_bucket_or_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOINER_BUCKET_NAME", raising=False)
    assert (get_default_catalog_source(is_live=False), get_default_catalog_source(is_live=True)) == ("", "aws")
    monkeypatch.setenv("JOINER_BUCKET_NAME", "prod")
    assert (get_default_catalog_source(is_live=False), get_default_catalog_source(is_live=True)) == ("", "s3://prod")


def test_undecided_constraints_are_the_last_line_of_a_pod_verdict() -> None:
    verdict = PodVerdict(pod="shop/a", workload="", requests={}, kind="NotPending", reason="it runs", undecided=("x",))
    assert render_pod_verdict(verdict, Palette(enabled=False), TableOptions()).splitlines()[-1].split() == [
        "at",
        "launch",
        "x",
    ]


def test_workload_error_is_printed_once(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    bad = make_workload("bad", 3)
    bad["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "lots"
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", POOL, bad)) == 1
    [line] = capsys.readouterr().err.splitlines()
    field = "spec.template.spec.containers[app].resources.requests"
    assert f"cluster.json: Deployment default/bad: {field}: cpu: not a quantity: 'lots'" in line


def test_unsatisfiable_requirement_is_named_with_a_suggestion(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.2"]}
    pool = make_node_pool("default", requirements=[requirement])
    assert plan(catalogue, "-f", write(tmp_path / "cluster.json", pool, make_pod("a")), "-o", "json") == 0
    [failure] = json.loads(capsys.readouterr().out)["unschedulable"]
    hint = "none matches node.kubernetes.io/instance-type In [m.2]; did you mean m.02?"
    assert failure["message"].endswith(hint)


def test_plan_for_a_time_uses_the_schedules_of_this_time(tmp_path: Path, catalogue: str, capsys: Out) -> None:
    annotations = {"joiner.dev/schedule": "night: 0 20 * * * 11h limits.cpu=0"}
    pool = POOL | {"metadata": POOL["metadata"] | {"annotations": annotations}}
    cluster = write(tmp_path / "cluster.json", pool, make_pod("a"))
    documents = []
    for at in ("2026-11-21T12:00:00Z", "2026-11-21T22:00:00Z"):
        assert main(["plan", "--instance-types", catalogue, "-f", cluster, "--at", at, "-o", "json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    counts = [(len(document["newNodes"]), len(document["unschedulable"])) for document in documents]
    assert counts == [(1, 0), (0, 1)]
    assert documents[1]["notes"] == [
        "schedule: NodePool default: night (limits.cpu=0); from 2026-11-22T07:00:00Z: as in its spec"
    ]
