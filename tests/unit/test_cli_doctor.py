"""`joiner doctor`: what it prints, and how it ends."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import cli.clouds
from cli.checks.every import examine
from cli.checks.facts import Unseen
from cli.checks.findings import Finding
from cli.doctor_cluster import shipped
from cli.doctor_page import document, page, status
from cli.main import main
from cli.text import Palette
from tests.unit.doctor_answers import ByHeart
from tests.unit.doctor_facts import NOW, facts, pool, preflight
from tests.unit.fleet_files import POOL, claim, machine
from tests.unit.test_cli_catalogues import NODE_CLASS

Out = pytest.CaptureFixture[str]
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "doctor.md"


def test_the_list_has_groups_remedies_and_a_sum() -> None:
    some = facts({"is_bound": False}, {"caller": Unseen(why="Forbidden: no", is_denied=True)})
    text = page(examine(some), ["the moon"], Palette(enabled=False), 100, is_whole=False)
    assert text.startswith("REACH\n  ok     api-server       https://prod.eks: Kubernetes 1.34.1, in 0.10 s\n")
    assert "  fail   rights           there is no ClusterRoleBinding joiner-functions\n" in text
    assert f"\n{' ' * 26}-> deploy the stack again; docs/installer.md\n" in text
    assert "  unseen identity " in text
    assert text.endswith("not asked: the moon\n24 ok, 1 not seen, 1 wrong\n") or " ok, 1 not seen, 1 wrong\n" in text
    assert max(map(len, text.splitlines())) <= 130


def test_what_is_well_many_times_is_cut_unless_all_is_wanted() -> None:
    pools = tuple(pool(meta=replace(pool().meta, name=f"p{number}")) for number in range(9))
    some = list(examine(facts({"node_pools": pools})))
    short = page(some, (), Palette(enabled=False), None, is_whole=False)
    assert ("p2 is ready" in short, "p3 is ready" in short, "… and 6 more that are well (--all)" in short) == (
        True,
        False,
        True,
    )
    assert "p8 is ready" in page(some, (), Palette(enabled=False), None, is_whole=True)


def test_a_program_reads_the_same() -> None:
    said = document(examine(preflight()), ["the moon"], NOW)
    assert said["at"] == "2026-11-22T09:00:00Z"
    assert said["counts"]["fail"] == 0
    assert said["counts"]["later"] == len([one for one in said["findings"] if one["level"] == "later"])
    assert said["notAsked"] == ["the moon"]
    assert {tuple(one) for one in said["findings"]} == {("group", "check", "level", "what", "remedy")}


@pytest.mark.parametrize(
    ("levels", "code"),
    [((), 0), (("ok", "later"), 0), (("ok", "warn"), 3), (("unseen",), 3), (("warn", "fail", "ok"), 1)],
)
def test_the_exit_status_says_the_worst(levels: tuple[Any, ...], code: int) -> None:
    assert status([("g", Finding(check="c", level=level, what="w")) for level in levels]) == code


@pytest.fixture
def by_heart(monkeypatch: pytest.MonkeyPatch) -> ByHeart:
    clients = ByHeart()

    @contextmanager
    def opened(region: str, *, embedded: bool) -> Iterator[tuple[ByHeart, datetime]]:
        assert (region, embedded) == ("eu-west-1", False)
        yield clients, NOW

    monkeypatch.setattr(cli.clouds, "opened", opened)
    return clients


@pytest.fixture
def objects(tmp_path: Path) -> str:
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}]
    bound = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    bound["metadata"] = {"name": "joiner-functions"}  # type: ignore[assignment]  # JSON
    karpenter = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter", "namespace": "k"}}
    items = [
        {**POOL, "status": {"conditions": ready}},
        {**NODE_CLASS, "status": {"conditions": ready}},
        *machine("n1", 4),
        claim("c1", "n1", 4),
        *json.loads(json.dumps([dict(one) for one in shipped()])),
        bound,
        karpenter,
    ]
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def doctor(*arguments: str) -> int:
    return main(["doctor", *arguments])


def test_files_are_looked_at_without_an_account(objects: str, capsys: Out) -> None:
    assert doctor("-f", objects, "-o", "json") == 1
    said = json.loads(capsys.readouterr().out)
    found = {one["check"]: one for one in said["findings"]}
    assert said["notAsked"] == ["the account: which cluster is it there? --cluster NAME"]
    assert (found["definitions"]["level"], found["rights"]["level"]) == ("ok", "ok")
    assert "k/karpenter is a Karpenter with 1 replicas" in found["autoscalers"]["what"]
    assert found["nodepools"]["level"] == "ok"


def test_of_what_is_in_no_file_nothing_is_concluded(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "pools.json"
    path.write_text(json.dumps(POOL))
    assert doctor("-f", str(path), "-o", "json") == 3
    found = {one["check"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    for check in ("definitions", "rights", "autoscalers"):
        assert (found[check]["level"], "kubectl get crd" in found[check]["remedy"]) == ("unseen", True)


def test_a_file_that_cannot_be_read_is_told(capsys: Out) -> None:
    assert doctor("-f", "/nonexistent.json") == 1
    assert "joiner doctor: /nonexistent.json" in capsys.readouterr().err


@pytest.mark.usefixtures("by_heart")
def test_an_account_is_asked_beside_files(objects: str, capsys: Out) -> None:
    assert doctor("-f", objects, "--cluster", "prod", "--region", "eu-west-1") == 1
    told = capsys.readouterr()
    assert "INSTALLATION\n  ok     stack            stack joiner-prod is UPDATE_COMPLETE\n" in told.out
    assert "not asked" not in told.out
    assert told.err == ""


def test_with_no_account_none_is_asked(objects: str, by_heart: ByHeart, capsys: Out) -> None:
    doctor("-f", objects, "--cluster", "prod", "--no-account")
    assert "not asked: the account\n" in capsys.readouterr().out
    assert not by_heart.asked


@pytest.mark.usefixtures("by_heart")
def test_a_cluster_without_kubeconfig_is_looked_at_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert doctor("--cluster", "prod", "--region", "eu-west-1") == 0
    assert "not asked: the cluster: " in capsys.readouterr().out
    assert doctor() == 1
    assert "no such kubeconfig" in capsys.readouterr().err


def test_files_and_a_live_cluster_do_not_go_together(capsys: Out) -> None:
    with pytest.raises(SystemExit) as left:
        doctor("-f", "x", "--context", "y")
    assert left.value.code == 2
    assert "files or a live cluster" in capsys.readouterr().err


def test_the_page_has_every_check_and_no_other() -> None:
    looked_at = PAGE.read_text().partition("## What is looked at")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|", looked_at, re.MULTILINE)
    source = "".join(path.read_text() for path in sorted((PAGE.parents[2] / "cli" / "checks").glob("*.py")))
    known = re.findall(r"(?:Findings\(|_each\(facts, )\"([a-z-]+)\"\)", source)
    assert sorted(rows) == sorted(set(known))
