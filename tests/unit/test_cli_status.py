"""`joiner status`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import cli.status
from cli.look import Looked, Looking
from cli.main import main, parser_for
from cli.status import _drawn
from cli.watching import View
from shared.model.cluster import Cluster
from tests.unit.fleet_files import POOL, claim, kind, machine, pod

Out = pytest.CaptureFixture[str]
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}
CATALOGUE = {"region": "nowhere", "instanceTypes": [kind(4)]}


def ready(pool: dict[str, Any], **limits: str) -> dict[str, Any]:
    return {**pool, "spec": {**pool["spec"], "limits": limits}, "status": {"conditions": [READY]}}


def waiting(name: str) -> dict[str, Any]:
    one = pod(name, "", "1")
    del one["spec"]["nodeName"]
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    return {**one, "status": {"phase": "Pending", "conditions": [why]}}


def coming(name: str) -> dict[str, Any]:
    one = claim(name, "", 4)
    why = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "no capacity"}
    return {**one, "status": {"conditions": [why]}}


def going(name: str, node: str) -> dict[str, Any]:
    return claim(name, node, 4, deletionTimestamp="2026-11-21T08:00:00Z", finalizers=["karpenter.sh/termination"])


def broken(name: str) -> list[dict[str, Any]]:
    [one] = machine(name, 4)
    one["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    return [one]


def written(tmp_path: Path, *objects: dict[str, Any], priced: bool = True) -> list[str]:
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (tmp_path / "catalogue.json").write_text(json.dumps(CATALOGUE))
    catalogue = ["--instance-types", str(tmp_path / "catalogue.json")] if priced else []
    return ["status", "-f", str(tmp_path / "cluster.json"), *catalogue]


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    [alone] = machine("managed", 4)
    for key in [key for key in alone["metadata"]["labels"] if key.startswith("karpenter.sh/")]:
        del alone["metadata"]["labels"][key]
    return written(
        tmp_path,
        ready(POOL, cpu="16", nodes="8"),
        *machine("n1", 4),
        claim("c1", "n1", 4),
        *machine("n2", 4),
        going("c2", "n2"),
        *broken("n3"),
        claim("c3", "n3", 4),
        coming("c4"),
        alone,
        pod("cart", "n1", "1"),
        waiting("till"),
    )


def test_a_page_says_what_there_is_what_it_costs_what_waits_and_what_is_wrong(fleet: list[str], capsys: Out) -> None:
    assert main(fleet) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4 nodes, $0.60 per hour, $438 per month and 1 node of no NodePool; 1 pod with a node, 1 without",
        "",
        "POOL     READY  COMING  GOING     CAPACITY       CPU      MEMORY     $/H         LIMIT",
        "default      1       2      1  2 on-demand  12% of 8  0% of 32Gi  0.6000  cpu 12 of 16",
        "",
        "WAITING",
        "  shop/till: 0/2 nodes are available",
        "",
        "TROUBLE",
        "  Node n3: not Ready: NodeStatusUnknown",
        "  NodeClaim c4: not Launched: LaunchFailed: no capacity",
    ]


def test_json_has_every_part(fleet: list[str], capsys: Out) -> None:
    assert main([*fleet, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["usdPerHour"], found["others"], found["pods"]) == (0.6, 1, {"running": 1, "waiting": 1})
    [pool] = found["pools"]
    assert pool["nodes"] == {"ready": 1, "coming": 2, "going": 1}
    assert pool["limits"] == {"cpu": ["12", "16"], "nodes": ["4", "8"]}
    assert pool["cpu"] == {"requested": "1", "allocatable": "8"}
    assert found["waiting"] == [{"pod": "shop/till", "why": "0/2 nodes are available"}]
    assert [one["name"] for one in found["trouble"]] == ["n3", "c4"]


def test_without_a_catalogue_nothing_has_a_price(tmp_path: Path, capsys: Out) -> None:
    arguments = written(tmp_path, ready(POOL), *machine("n1", 4), claim("c1", "n1", 4), priced=False)
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("1 node; 0 pods with a node, none without\n")
    assert main([*arguments, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["usdPerHour"] is None


def test_a_pool_that_is_not_ready_says_why(tmp_path: Path, capsys: Out) -> None:
    why = {"type": "NodeClassReady", "status": "False", "reason": "NodeClassNotFound", "message": "no EC2NodeClass x"}
    broken_pool = {**POOL, "status": {"conditions": [why, {**READY, "status": "False", "reason": "NotReady"}]}}
    assert main(written(tmp_path, broken_pool)) == 0
    shown = capsys.readouterr().out
    assert "NodePool default: NodeClassReady is False: NodeClassNotFound: no EC2NodeClass x" in shown
    assert "Ready is False: NotReady" not in shown


def test_nodes_of_a_pool_that_is_gone_are_still_counted(tmp_path: Path, capsys: Out) -> None:
    assert main(written(tmp_path, *machine("n1", 4), claim("c1", "n1", 4))) == 0
    assert "default      1" in capsys.readouterr().out


def test_many_pods_that_wait_are_cut_unless_all_are_wanted(tmp_path: Path, capsys: Out) -> None:
    every = [waiting(f"p{number:02}") for number in range(20)]
    for number, one in enumerate(every[:18]):
        one["status"]["conditions"][0]["message"] = f"reason {number}"
    arguments = written(tmp_path, ready(POOL), *every)
    assert main(arguments) == 0
    assert "  … and 4 more pods (--all)" in capsys.readouterr().out
    assert main([*arguments, "--all"]) == 0
    assert "shop/p19" in capsys.readouterr().out


def test_pods_that_wait_for_the_same_reason_are_one_line(tmp_path: Path, capsys: Out) -> None:
    some = [waiting(f"p{number}") for number in range(5)]
    some[0]["status"]["conditions"][0]["message"] = "another reason"
    arguments = written(tmp_path, ready(POOL), *some)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.partition("WAITING\n")[2].splitlines()
    assert lines[:2] == [
        "  4 pods: 0/2 nodes are available (shop/p1, shop/p2, shop/p3 and 1 more)",
        "  shop/p0: another reason",
    ]
    assert main([*arguments, "--all"]) == 0
    assert len(capsys.readouterr().out.partition("WAITING\n")[2].splitlines()) == 5


@pytest.mark.parametrize("more", [["--watch", "-f", "x"], ["--context", "--watch", "-o", "json"]])
def test_what_cannot_be_meant_is_refused(more: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as left:
        main(["status", *more])
    assert left.value.code == 2
    assert "joiner status: error" in capsys.readouterr().err


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path, capsys: Out) -> None:
    odd = {**POOL, "metadata": {"name": "odd"}, "spec": {"template": 3}}
    assert main(written(tmp_path, odd, *machine("n1", 4), claim("c1", "n1", 4))) == 1
    shown = capsys.readouterr()
    assert "1 node" in shown.out
    assert "NodePool odd" in shown.err


def test_watching_goes_on_until_it_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    files = written(tmp_path, ready(POOL), *machine("n1", 4), claim("c1", "n1", 4))
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    from cli import look  # noqa: PLC0415 - what the command imports when it runs

    whole = look.look_and_price

    def from_files(chosen: Any, **options: Any) -> Any:
        chosen.context, chosen.filename = None, files[2:3]
        return whole(chosen, **{**options, "is_live": False})

    monkeypatch.setattr(look, "look_and_price", from_files)
    monkeypatch.setattr("cli.status.time.sleep", sleep)
    assert main(["status", "--context", "--watch"]) == 130
    assert looks == [cli.status.EVERY] * 2
    assert capsys.readouterr().out.count("1 node") == 2


def test_what_people_have_paused_is_told_for_people_and_programs(tmp_path: Path, capsys: Out) -> None:
    text = "Drifted,Empty until 2100-01-01T00:00:00Z by anna because Black Friday"
    kube_system = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "kube-system", "annotations": {"joiner.dev/disruption-paused": text}},
    }
    held_pool = {**POOL, "metadata": {"name": "default", "annotations": {"joiner.dev/launches-paused": "true"}}}
    arguments = written(tmp_path, ready(held_pool), kube_system, *machine("n1", 4), claim("c1", "n1", 4))
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "paused: all NodePools: Drifted and Empty disruption for " in told
    assert "(until 2100-01-01T00:00:00Z), by anna: Black Friday" in told
    assert "paused: NodePool default: launches\n" in told
    assert main([*arguments, "-o", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["paused"]
    assert first == {
        "nodePool": None,
        "what": ["Drifted", "Empty"],
        "by": "anna",
        "since": None,
        "until": "2100-01-01T00:00:00Z",
        "because": "Black Friday",
    }
    assert (second["nodePool"], second["what"], second["by"]) == ("default", ["Launches"], None)


def test_a_page_of_a_terminal_fits_and_can_be_turned_over(fleet: list[str]) -> None:
    chosen = parser_for("status").parse_args(fleet)
    found = (*Looking(chosen)(), None)
    whole, _ = _drawn(found, View(columns=40, lines=50), chosen)
    assert max(map(len, whole)) <= 40
    lines, last = _drawn(found, View(columns=40, lines=5, first=99), chosen)
    assert (len(lines), last) == (5, len(whole) - 5)
    assert lines == whole[-5:]


def test_a_cluster_without_our_kinds_says_what_makes_them(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    def look(*_: object) -> Looked:
        at = Cluster(taken_at=datetime(2026, 11, 22, tzinfo=UTC))
        return Looked(cluster=at, told=(), notes=("nodepools.karpenter.sh is not installed in prod", "something else"))

    monkeypatch.setattr("cli.look.look_at", look)
    assert main(["status", "-f", "x"]) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first == f"note: nodepools.karpenter.sh is not installed in prod{cli.status.MADE}"
    assert second == "note: something else"
    assert main(["status", "-f", "x", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["notes"]) == 2
