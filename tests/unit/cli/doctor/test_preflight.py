"""`joiner doctor --preflight`: each check for good, bad and unreadable facts, and the command."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

import cli.aws.session
from cli.doctor.checks.finding import CheckResult
from cli.doctor.preflight import runtime_versions
from cli.doctor.preflight.account import read_preflight_facts
from cli.doctor.preflight.deployment import MIN_BOOTSTRAP_VERSION
from cli.doctor.preflight.facts import DeploymentPermissions, PreflightFacts
from cli.doctor.preflight.preflight_checks import run_preflight_checks
from cli.facts.model import ReadFailure
from cli.main import main
from infra.settings.settings import StackOptions
from infra.stack.application import build_application
from tests.support.cli.doctor_answers import (
    DENIED,
    ByHeart,
    build_cluster_response,
    build_preflight_responses,
    build_simulation_response,
    build_zone_response,
)
from tests.support.cli.doctor_facts import NOW
from tests.support.cli.fleet_files import POOL
from tests.unit.cli.doctor.doctor_worse_preflight import UNREAD, WORSE, make_ready_facts

Out = pytest.CaptureFixture[str]

NO_ENTITY: Final = {"Error": {"Code": "NoSuchEntity", "Message": "no such role"}}
NO_PARAMETER: Final = {"Error": {"Code": "ParameterNotFound", "Message": "no such parameter"}}


def list_results(facts: PreflightFacts, check: str) -> list[CheckResult]:
    return [result for _, result in run_preflight_checks(facts) if result.check == check]


def test_a_ready_account_passes_every_check() -> None:
    results = [result for _, result in run_preflight_checks(make_ready_facts())]
    assert {result.level for result in results} == {"ok", "later"}
    assert [result.check for result in results if result.level == "later"] == ["crds"]


@pytest.mark.parametrize(
    ("check", "level", "facts", "message", "fix"), WORSE, ids=[f"{number}-{row[0]}" for number, row in enumerate(WORSE)]
)
def test_each_problem_has_a_level_and_a_fix(
    check: str, level: str, facts: PreflightFacts, message: str, fix: str
) -> None:
    [result] = [result for result in list_results(facts, check) if result.level != "ok"]
    assert result.level == level
    assert message in result.message
    assert fix in result.fix


def test_a_cluster_that_does_not_exist_is_one_failure() -> None:
    facts = make_ready_facts({"control_plane": None, "cluster_names": ("production",)})
    results = [result for group, result in run_preflight_checks(facts) if group == "cluster" and result.level == "fail"]
    assert [result.check for result in results] == ["cluster"]
    assert list_results(facts, "discovery") == []


def test_the_bootstrap_version_is_that_of_the_template(tmp_path: Path) -> None:
    [stack] = (
        build_application(bundle=False, outdir=str(tmp_path), clusters=[StackOptions(cluster="demo")]).synth().stacks
    )
    assert stack.requires_bootstrap_stack_version == MIN_BOOTSTRAP_VERSION


@pytest.mark.parametrize(("stdout", "version"), [("v22.20.0\n", "22.20.0"), ("", ""), (None, "")])
def test_node_version_is_empty_if_node_does_not_run(
    stdout: str | None, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if stdout is None:
            raise FileNotFoundError
        return subprocess.CompletedProcess(command, 0, stdout=stdout)

    monkeypatch.setattr(subprocess, "run", run)
    assert runtime_versions.read_node_version() == version


def read_facts(caller: str | ReadFailure = "arn:aws:iam::111122223333:user/me", **responses: Any) -> PreflightFacts:
    facts = make_ready_facts({"caller": caller})
    return read_preflight_facts(ByHeart(**(build_preflight_responses() | responses)), facts.doctor, facts.account)


def deny_all(request: dict[str, Any]) -> dict[str, Any]:
    return build_simulation_response(request["ActionNames"], "implicitDeny")


def test_denied_actions_are_those_of_the_bootstrap_only_if_it_is_missing() -> None:
    permissions = read_facts(iam__SimulatePrincipalPolicy=deny_all).permissions
    roles = tuple(f"cdk-hnb659fds-{role}-111122223333-us-east-1" for role in ("deploy-role", "file-publishing-role"))
    assert permissions == DeploymentPermissions(unassumable_roles=roles)
    permissions = read_facts(iam__SimulatePrincipalPolicy=deny_all, ssm__GetParameter=NO_PARAMETER).permissions
    assert isinstance(permissions, DeploymentPermissions)
    assert "iam:CreateRole" in permissions.denied_bootstrap_actions


@pytest.mark.parametrize(
    ("caller", "principal"),
    [
        ("arn:aws:iam::1:user/team/me", "arn:aws:iam::1:user/team/me"),
        ("arn:aws:sts::1:assumed-role/Deployer/me", "arn:aws:iam::1:role/Deployer"),
    ],
)
def test_policies_of_the_user_or_of_the_role_behind_the_session_are_simulated(caller: str, principal: str) -> None:
    principals = set()

    def simulate(request: dict[str, Any]) -> dict[str, Any]:
        principals.add(request["PolicySourceArn"])
        return build_simulation_response(request["ActionNames"], "allowed")

    assert read_facts(caller, iam__SimulatePrincipalPolicy=simulate).permissions == DeploymentPermissions()
    assert principals == {principal}


def test_the_root_user_may_deploy_and_a_federated_user_is_unknown() -> None:
    assert read_facts("arn:aws:iam::1:root", iam__SimulatePrincipalPolicy=deny_all).permissions == (
        DeploymentPermissions()
    )
    assert isinstance(read_facts("arn:aws:sts::1:federated-user/me").permissions, ReadFailure)


def test_parts_that_cannot_be_read_do_not_stop_the_others() -> None:
    facts = read_facts(
        iam__SimulatePrincipalPolicy=DENIED,
        iam__GetRole=NO_ENTITY,
        ec2__DescribeAvailabilityZones=DENIED,
        pricing__GetProducts={"PriceList": []},
    )
    assert (facts.has_spot_role, facts.has_prices, facts.bootstrap_version) == (False, False, 28)
    assert isinstance(facts.permissions, ReadFailure)
    assert isinstance(facts.zones, ReadFailure)
    assert read_facts(UNREAD).permissions == UNREAD


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ByHeart:
    clients = ByHeart(**build_preflight_responses())

    @contextmanager
    def open_canned_clients(region: str) -> Iterator[tuple[ByHeart, datetime]]:
        assert region
        yield clients, NOW

    monkeypatch.setattr(cli.aws.session, "open_clients", open_canned_clients)
    monkeypatch.setattr("cli.doctor.preflight.account.read_node_version", lambda: "24.1.0")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return clients


def test_preflight_needs_neither_a_stack_nor_a_kubeconfig_and_only_reads(account: ByHeart, capsys: Out) -> None:
    assert main(["doctor", "--preflight", "--cluster", "prod", "--region", "us-east-1", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {finding["group"] for finding in document["findings"]} == {
        *("this computer", "account", "cluster", "network of the nodes")
    }
    assert document["skipped"][0].startswith("the cluster: ")
    verbs = {re.match("[A-Z][a-z]+", call.partition(":")[2])[0] for call in account.call_counts}  # type: ignore[index]
    assert verbs <= {"Describe", "Get", "List", "Simulate"}


def test_preflight_reports_a_problem_with_the_exit_code_of_doctor(account: ByHeart, capsys: Out) -> None:
    account.answers["eks:DescribeCluster"] = {
        "cluster": build_cluster_response(accessConfig={"authenticationMode": "CONFIG_MAP"})
    }
    account.answers["ec2:DescribeAvailabilityZones"] = {"AvailabilityZones": [build_zone_response("a", "local-zone")]}
    assert main(["doctor", "--preflight", "--cluster", "prod", "--region", "us-east-1"]) == 1
    page = capsys.readouterr().out
    assert "To fix: aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP" in page
    assert "a is a local zone" in page


@pytest.mark.usefixtures("account")
def test_preflight_without_a_cluster_or_an_account_is_rejected(tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POOL]}))
    assert main(["doctor", "--preflight", "-f", str(path)]) == 1
    assert "the EKS cluster is unknown: add --cluster NAME" in capsys.readouterr().err
    with pytest.raises(SystemExit) as raised:
        main(["doctor", "--preflight", "--no-account"])
    assert raised.value.code == 2
