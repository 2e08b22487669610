"""Findings about the default key of EBS volumes and about IPv6 addresses, from the account's answers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cli.doctor.checks.finding import CheckResult
from cli.doctor.checks.role_permissions import check_default_key, check_ipv6
from cli.facts.account import read_account_facts
from cli.facts.model import AccountFacts, DoctorFacts, ReadFailure, RolePermissions
from tests.support.cli.doctor_answers import DENIED, NOT_THERE, ByHeart, build_cluster_response
from tests.support.cli.doctor_facts import NOW, ROLE, make_account_facts, make_node_class

KEY = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
BY_DEFAULT = {"EbsEncryptionByDefault": True}


def simulate(decision: str) -> Any:
    """Return the simulator's answer that every action has *decision*."""
    return lambda said: {
        "EvaluationResults": [{"EvalActionName": name, "EvalDecision": decision} for name in said["ActionNames"]]
    }


def read_facts(**responses: Any) -> AccountFacts:
    return read_account_facts(ByHeart(**responses), "prod", "joiner-prod", (make_node_class(),), datetime.now(UTC))


def run_checks(account: AccountFacts) -> list[CheckResult]:
    facts = DoctorFacts(now=NOW, kubernetes=None, account=account, shipped_crds=())
    return [*check_default_key(facts), *check_ipv6(facts)]


def read_key_facts(decision: str, key: str = KEY, **responses: Any) -> AccountFacts:
    return read_facts(
        ec2__GetEbsEncryptionByDefault=BY_DEFAULT,
        ec2__GetEbsDefaultKmsKeyId={"KmsKeyId": key},
        iam__SimulatePrincipalPolicy=simulate(decision),
        **responses,
    )


def test_without_encryption_by_default_no_permission_is_needed() -> None:
    [finding] = run_checks(read_facts())
    assert (finding.check, finding.level) == ("ebs-encryption", "ok")


def test_the_key_of_aws_needs_no_permission() -> None:
    [finding] = run_checks(read_key_facts("implicitDeny", "alias/aws/ebs"))
    assert finding.level == "ok"


@pytest.mark.parametrize(("decision", "level"), [("implicitDeny", "fail"), ("allowed", "ok")])
def test_provision_must_be_able_to_use_the_default_key(decision: str, level: str) -> None:
    [finding] = run_checks(read_key_facts(decision))
    assert finding.level == level
    assert KEY in finding.message
    assert (f"kms-keys: {KEY}" in finding.fix) == (level == "fail")


def test_before_an_installation_the_default_key_is_a_warning() -> None:
    [finding] = run_checks(read_key_facts("implicitDeny", cloudformation__DescribeStacks=NOT_THERE))
    assert (finding.level, finding.fix) == ("warn", f"deploy with the setting kms-keys: {KEY}")


def test_a_denied_query_is_no_finding_about_the_key() -> None:
    [finding] = run_checks(read_facts(ec2__GetEbsEncryptionByDefault=DENIED))
    assert finding.level == "unseen"
    assert "ec2:GetEbsEncryptionByDefault" in finding.fix


@pytest.mark.parametrize(("decision", "level"), [("implicitDeny", "warn"), ("allowed", "ok")])
def test_node_roles_of_an_ipv6_cluster_must_be_able_to_assign_addresses(decision: str, level: str) -> None:
    network = {"serviceIpv6Cidr": "fd00::/108", "ipFamily": "ipv6"}
    cluster = {"cluster": build_cluster_response(kubernetesNetworkConfig=network)}
    account = read_facts(eks__DescribeCluster=cluster, iam__SimulatePrincipalPolicy=simulate(decision))
    [_, finding] = run_checks(account)
    assert (finding.check, finding.level) == ("ipv6", level)
    assert ("ip-family: ipv6" in finding.fix) == (level == "warn")


def test_on_an_ipv4_cluster_the_node_roles_are_not_asked() -> None:
    permissions = RolePermissions(roles_without_ipv6=(f"{ROLE}nodes",))
    assert [finding.check for finding in run_checks(make_account_facts(role_permissions=permissions))] == [
        "ebs-encryption"
    ]


def test_unread_permissions_are_reported_for_both_checks() -> None:
    account = read_facts(
        eks__DescribeCluster={"cluster": build_cluster_response(kubernetesNetworkConfig={"ipFamily": "ipv6"})},
        iam__SimulatePrincipalPolicy=DENIED,
    )
    assert isinstance(account.role_permissions, ReadFailure)
    assert [finding.level for finding in run_checks(account)] == ["unseen", "unseen"]
