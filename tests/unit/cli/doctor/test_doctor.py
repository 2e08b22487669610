"""`joiner doctor`: its output and its exit status."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import cli.aws.session
from cli.doctor.checks.all_checks import run_checks
from cli.doctor.checks.finding import CheckResult
from cli.doctor.page import build_findings_document, compute_exit_code, render_findings_page
from cli.facts.model import ReadFailure
from cli.main import main
from cli.terminal.text import Palette
from shared.crds.definitions import load_shipped_crds
from shared.installer.rbac import read_rbac_manifests
from tests.support.cli.doctor_answers import ByHeart
from tests.support.cli.doctor_facts import NOW, make_facts, make_node_pool, make_preflight_facts
from tests.support.cli.fleet_files import POOL, make_claim, make_node_manifests
from tests.unit.cli.planning.test_catalog_source import NODE_CLASS

Out = pytest.CaptureFixture[str]
PAGE = Path(__file__).parents[4] / "docs" / "guide" / "doctor.md"


def test_findings_page_has_groups_fixes_and_a_summary() -> None:
    doctor_facts = make_facts(
        {"has_role_binding": False}, {"caller": ReadFailure(reason="Forbidden: no", is_denied=True)}
    )
    text = render_findings_page(run_checks(doctor_facts), ["the moon"], Palette(enabled=False), 100, is_whole=False)
    assert text.startswith("CONNECTIVITY\n  ok     api-server       https://prod.eks: Kubernetes 1.34.1, in 0.10 s\n")
    assert "  fail   permissions      ClusterRoleBinding joiner-functions is missing\n" in text
    assert f"\n{' ' * 26}To fix: deploy the stack again (docs/installer.md)\n" in text
    assert "  unseen identity " in text
    assert text.endswith("skipped: the moon\n24 ok, 1 unseen, 1 failed\n") or " ok, 1 unseen, 1 failed\n" in text
    assert max(map(len, text.splitlines())) <= 130


def test_repeated_ok_findings_are_truncated_without_the_all_flag() -> None:
    pools = tuple(make_node_pool(meta=replace(make_node_pool().meta, name=f"p{number}")) for number in range(9))
    findings = list(run_checks(make_facts({"node_pools": pools})))
    short = render_findings_page(findings, (), Palette(enabled=False), None, is_whole=False)
    assert ("p2 is ready" in short, "p3 is ready" in short, "… and 6 more (--all shows them)" in short) == (
        True,
        False,
        True,
    )
    assert "p8 is ready" in render_findings_page(findings, (), Palette(enabled=False), None, is_whole=True)


def test_json_document_contains_all_findings() -> None:
    document = build_findings_document(run_checks(make_preflight_facts()), ["the moon"], NOW)
    assert document["at"] == "2026-11-22T09:00:00Z"
    assert document["counts"]["fail"] == 0
    assert document["counts"]["later"] == len(
        [finding for finding in document["findings"] if finding["level"] == "later"]
    )
    assert document["skipped"] == ["the moon"]
    assert {tuple(finding) for finding in document["findings"]} == {("group", "check", "level", "message", "fix")}


@pytest.mark.parametrize(
    ("levels", "code"),
    [((), 0), (("ok", "later"), 0), (("ok", "warn"), 3), (("unseen",), 3), (("warn", "fail", "ok"), 1)],
)
def test_exit_code_reflects_the_worst_finding(levels: tuple[Any, ...], code: int) -> None:
    assert compute_exit_code([("g", CheckResult(check="c", level=level, message="w")) for level in levels]) == code


@pytest.fixture
def by_heart(monkeypatch: pytest.MonkeyPatch) -> ByHeart:
    clients = ByHeart()

    @contextmanager
    def open_canned_clients(region: str) -> Iterator[tuple[ByHeart, datetime]]:
        assert region == "eu-west-1"
        yield clients, NOW

    monkeypatch.setattr(cli.aws.session, "open_clients", open_canned_clients)
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
        *make_node_manifests("n1", 4),
        make_claim("c1", "n1", 4),
        *json.loads(json.dumps([dict(crd) for crd in load_shipped_crds()])),
        bound,
        dict(read_rbac_manifests()[0]),
        karpenter,
    ]
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def run_doctor(*arguments: str) -> int:
    return main(["doctor", *arguments])


def test_files_are_checked_without_an_account(objects: str, capsys: Out) -> None:
    assert run_doctor("-f", objects, "-o", "json") == 1
    document = json.loads(capsys.readouterr().out)
    findings = {finding["check"]: finding for finding in document["findings"]}
    assert document["skipped"] == ["the account: the EKS cluster is unknown; add --cluster NAME"]
    assert (findings["crds"]["level"], findings["permissions"]["level"]) == ("ok", "ok")
    assert "k/karpenter runs Karpenter (1 replica)" in findings["autoscalers"]["message"]
    assert findings["nodepools"]["level"] == "ok"


def test_kinds_missing_from_the_files_are_reported_as_unseen(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "pools.json"
    path.write_text(json.dumps(POOL))
    assert run_doctor("-f", str(path), "-o", "json") == 3
    findings = {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    for check in ("crds", "permissions", "autoscalers"):
        assert (findings[check]["level"], "kubectl get crd" in findings[check]["fix"]) == ("unseen", True)


def test_unreadable_file_is_reported(capsys: Out) -> None:
    assert run_doctor("-f", "/nonexistent.json") == 1
    assert "joiner doctor: /nonexistent.json" in capsys.readouterr().err


@pytest.mark.usefixtures("by_heart")
def test_account_is_checked_in_addition_to_files(objects: str, capsys: Out) -> None:
    assert run_doctor("-f", objects, "--cluster", "prod", "--region", "eu-west-1") == 1
    captured = capsys.readouterr()
    assert "INSTALLATION\n  ok     stack            stack joiner-prod is UPDATE_COMPLETE\n" in captured.out
    assert "skipped" not in captured.out
    assert captured.err == ""


def test_no_account_flag_skips_account_checks(objects: str, by_heart: ByHeart, capsys: Out) -> None:
    run_doctor("-f", objects, "--cluster", "prod", "--no-account")
    assert "skipped: the account\n" in capsys.readouterr().out
    assert not by_heart.call_counts


@pytest.mark.usefixtures("by_heart")
def test_doctor_without_kubeconfig_checks_only_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert run_doctor("--cluster", "prod", "--region", "eu-west-1") == 0
    assert "skipped: the cluster: " in capsys.readouterr().out
    assert run_doctor() == 1
    assert "no such kubeconfig" in capsys.readouterr().err


def test_files_combined_with_a_context_are_rejected(capsys: Out) -> None:
    with pytest.raises(SystemExit) as raised:
        run_doctor("-f", "x", "--context", "y")
    assert raised.value.code == 2
    assert "-f cannot be used with --context or --kubeconfig" in capsys.readouterr().err


def test_documentation_page_lists_exactly_the_implemented_checks() -> None:
    looked_at = PAGE.read_text().partition("## Checks")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|", looked_at, re.MULTILINE)
    source = "".join(path.read_text() for path in sorted((PAGE.parents[2] / "cli" / "doctor").glob("*/*.py")))
    check_names = re.findall(r"(?:CheckReporter\(|_list_class_checks\(facts, )\"([a-z-]+)\"\)", source)
    assert sorted(rows) == sorted(set(check_names))
