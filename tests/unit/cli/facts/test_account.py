"""`joiner doctor`: what it reads of an account, and how it reports missing permissions."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.cluster.fixes import SIGN_IN_HINT
from cli.doctor.checks.all_checks import run_checks
from cli.doctor.checks.finding import CheckResult
from cli.facts.account import read_account_facts
from cli.facts.model import AccountFacts, DoctorFacts, QuotaUsage, ReadFailure
from cli.facts.quota_families import QUOTA_BY_NAME
from shared.crds.definitions import load_shipped_crds
from shared.model.ec2.account import SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.cli.doctor_answers import (
    DENIED,
    MISSING,
    NOT_THERE,
    ByHeart,
    build_cluster_response,
    build_preflight_responses,
    build_responses,
)
from tests.support.cli.doctor_facts import make_kubernetes_facts, make_node_class

TAGGED = (SelectorTerm(tags=(("karpenter.sh/discovery", "prod"),)),)
CLASS = replace(
    make_node_class(),
    image_selectors=(SelectorTerm(alias="al2023@latest"),),
    subnet_selectors=TAGGED,
    security_group_selectors=TAGGED,
    role="nodes",
)
UNTOLD = {"ec2:CreateFleet", "ec2:CreateLaunchTemplate"}
"""Checked with DryRun: EC2 reports a refusal of these in the same way as that of RunInstances."""


PAGE = Path(__file__).parents[4] / "docs" / "guide" / "doctor.md"
SPELLED = {"service-quotas": "servicequotas"}
RENAMED = {"s3:ListObjectsV2": "s3:ListBucket"}


def read_facts(clients: ByHeart, classes: tuple[EC2NodeClass, ...] = (CLASS,)) -> AccountFacts:
    return read_account_facts(clients, "prod", "joiner-prod", classes, datetime.now(UTC))


def check_account(account: AccountFacts) -> list[CheckResult]:
    now = datetime.now(UTC)
    facts = DoctorFacts(
        now=now,
        kubernetes=make_kubernetes_facts(node_claims=(), nodes=()),
        account=account,
        shipped_crds=load_shipped_crds(),
    )
    return [result for _, result in run_checks(facts)]


def test_healthy_account_passes_every_check() -> None:
    clients = ByHeart()
    results = check_account(read_facts(clients))
    assert [result for result in results if result.level != "ok"] == []
    assert set(clients.call_counts) == set(build_responses())


@pytest.mark.parametrize("call", sorted(build_responses()))
def test_denied_aws_call_is_reported_as_unseen_with_the_missing_permission(call: str) -> None:
    clients = ByHeart()
    clients.answers[call] = DENIED
    worse = [result for result in check_account(read_facts(clients)) if result.level != "ok"]
    assert {result.level for result in worse} == {"unseen"}
    assert all("AccessDenied" in result.message and result.fix.startswith("grant yourself ") for result in worse)


def test_account_facts_use_only_read_and_dry_run_calls() -> None:
    reads = ("Describe", "List", "Get")
    assert {call for call in build_responses() if not call.partition(":")[2].startswith(reads)} == UNTOLD | {
        "ec2:RunInstances"
    }


def test_account_without_installation_has_no_stack() -> None:
    account = read_facts(ByHeart(cloudformation__DescribeStacks=NOT_THERE), ())
    assert account.stack is None
    assert account.node_classes == ()
    subnets, groups = account.discoverable if not isinstance(account.discoverable, ReadFailure) else ((), ())
    assert (len(subnets), len(groups)) == (2, 1)


def test_failed_describe_stacks_is_not_treated_as_missing_stack() -> None:
    odd = {"Error": {"Code": "ValidationError", "Message": "something else"}}
    assert isinstance(read_facts(ByHeart(cloudformation__DescribeStacks=odd)).stack, ReadFailure)


def test_missing_eks_cluster_fails_the_cluster_check() -> None:
    account = read_facts(ByHeart(eks__DescribeCluster=MISSING, eks__ListClusters={"clusters": []}))
    assert account.control_plane is None
    assert [result.level for result in check_account(account) if result.check == "cluster"] == ["fail"]


def test_missing_eks_fields_have_defaults_or_are_unknown() -> None:
    cluster_document = build_cluster_response()
    for name in ("accessConfig", "resourcesVpcConfig", "computeConfig", "logging"):
        del cluster_document[name]
    control_plane = read_facts(ByHeart(eks__DescribeCluster={"cluster": cluster_document})).control_plane
    assert control_plane is not None
    assert not isinstance(control_plane, ReadFailure)
    assert (control_plane.authentication_mode, control_plane.is_public, control_plane.public_cidrs) == (
        "",
        True,
        ("0.0.0.0/0",),
    )
    assert (control_plane.has_auto_mode, control_plane.log_types) == (False, ())


def test_unraised_quota_uses_the_aws_default() -> None:
    default = {"Quota": {"Value": 5.0}}
    clients = ByHeart(service_quotas__GetServiceQuota=MISSING, service_quotas__GetAWSDefaultServiceQuota=default)
    assert dict(read_facts(clients).quotas) == {
        f"standard {kind}": QuotaUsage(vcpus=5) for kind in ("on-demand", "spot")
    }


USED = {
    "MetricNamespace": "AWS/Usage",
    "MetricName": "ResourceCount",
    "MetricDimensions": {"Service": "EC2", "Class": "Standard/Spot"},
    "MetricStatisticRecommendation": "Maximum",
}


def test_quota_usage_is_read_from_its_usage_metric() -> None:
    queries: list[dict[str, Any]] = []

    def count(request: dict[str, Any]) -> dict[str, Any]:
        queries.extend(query for query in request["MetricDataQueries"] if query["Id"].startswith("used"))
        samples = {"Values": [7.0, 9.0], "Timestamps": [datetime.now(UTC), datetime(2026, 11, 22, tzinfo=UTC)]}
        return {"MetricDataResults": [{"Id": query["Id"], **samples} for query in request["MetricDataQueries"]]}

    clients = ByHeart(service_quotas__GetServiceQuota={"Quota": {"Value": 8.0, "UsageMetric": USED}})
    clients.answers["cloudwatch:GetMetricData"] = count
    assert set(read_facts(clients).quotas.values()) == {QuotaUsage(vcpus=8, used=7)}
    metric = queries[0]["MetricStat"]["Metric"]
    assert (metric["Namespace"], metric["MetricName"]) == ("AWS/Usage", "ResourceCount")
    assert {"Name": "Class", "Value": "Standard/Spot"} in metric["Dimensions"]
    clients.answers["cloudwatch:GetMetricData"] = DENIED
    assert set(read_facts(clients).quotas.values()) == {QuotaUsage(vcpus=8)}


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        ({"clusters": ["prod-eu", "staging"]}, "did you mean prod-eu? --cluster must be one of prod-eu, staging"),
        ({"clusters": ["a", "b", "c", "d"]}, "--cluster must be one of a, b, c and 1 more"),
        ({"clusters": []}, "the region has no clusters: check --region"),
        (DENIED, "`aws eks list-clusters`"),
    ],
)
def test_missing_eks_cluster_is_reported_with_existing_cluster_names(answer: dict[str, Any], remedy: str) -> None:
    clients = ByHeart(eks__DescribeCluster=MISSING, eks__ListClusters=answer)
    [finding] = [result for result in check_account(read_facts(clients)) if result.check == "cluster"]
    assert finding.message == "us-east-1 has no cluster prod"
    assert finding.fix.startswith(remedy) or remedy in finding.fix


def test_expired_credentials_suggest_signing_in() -> None:
    expired = {"Error": {"Code": "ExpiredTokenException", "Message": "The security token is expired"}}
    clients = ByHeart()
    clients.answers = dict.fromkeys(clients.answers, expired)
    worse = [result for result in check_account(read_facts(clients)) if result.level == "unseen"]
    assert worse
    assert {result.fix for result in worse} == {SIGN_IN_HINT}


def test_only_relevant_quotas_are_read() -> None:
    facts = read_account_facts(ByHeart(), "prod", "joiner-prod", (), datetime.now(UTC), (QUOTA_BY_NAME["P on-demand"],))
    assert list(facts.quotas) == ["P on-demand"]


@pytest.mark.parametrize("answer", [MISSING, {"InstanceProfile": {"Roles": []}}])
def test_missing_instance_profile_has_no_role(answer: dict[str, Any]) -> None:
    [node_class_facts] = read_facts(ByHeart(iam__GetInstanceProfile=answer)).node_classes
    assert node_class_facts.role_arn == ""


def test_node_class_without_images_has_no_snapshots_and_no_dry_run() -> None:
    [node_class_facts] = read_facts(ByHeart(ssm__GetParameter=MISSING)).node_classes
    assert (node_class_facts.snapshots, node_class_facts.refusals) == ((), None)


def test_node_class_without_installation_has_no_profile_and_no_dry_run() -> None:
    [node_class_facts] = read_facts(ByHeart(cloudformation__DescribeStacks=NOT_THERE)).node_classes
    assert (node_class_facts.role_arn, node_class_facts.refusals) == ("", None)


def test_only_schedules_of_the_stack_are_read_from_the_default_group() -> None:
    clients = ByHeart(
        cloudformation__ListStackResources={
            "StackResourceSummaries": [
                {
                    "ResourceType": "AWS::Scheduler::Schedule",
                    "LogicalResourceId": "S",
                    "PhysicalResourceId": "default|tick",
                }
            ]
        },
        scheduler__ListSchedules={
            "Schedules": [{"Name": "tick", "State": "DISABLED"}, {"Name": "other", "State": "ENABLED"}]
        },
    )
    stack = read_facts(clients).stack
    assert stack is not None
    assert not isinstance(stack, ReadFailure)
    assert not isinstance(stack.schedules, ReadFailure)
    assert [(schedule.name, schedule.is_enabled) for schedule in stack.schedules] == [("tick", False)]
    assert (stack.catalog_times, stack.functions, stack.settings) == (None, (), None)


def test_function_without_readable_environment_has_no_settings() -> None:
    bare = {"Handler": "functions.disrupt.handler.handler", "Role": "r"}
    stack = read_facts(ByHeart(lambda__GetFunctionConfiguration=bare)).stack
    assert stack is not None
    assert not isinstance(stack, ReadFailure)
    assert stack.settings is None


def test_documentation_page_lists_the_permissions_for_every_call() -> None:
    [policy] = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [statement] = json.loads(policy)["Statement"]
    seldom = {
        *("service-quotas:GetAWSDefaultServiceQuota", "eks:ListClusters"),
        *("ec2:GetEbsDefaultKmsKeyId", "iam:SimulatePrincipalPolicy"),
    }
    of_settings = {"arc-zonal-shift:GetManagedResource", "dynamodb:GetItem"}
    preflight_calls = {name.replace("__", ":") for name in build_preflight_responses()}
    api_calls = {RENAMED.get(call, call) for call in build_responses().keys() | preflight_calls} | seldom | of_settings
    spelled = {
        f"{SPELLED.get(service, service)}:{name}" for service, _, name in (call.partition(":") for call in api_calls)
    }
    dry_runs = {action for action in spelled if action.partition(":")[2].startswith(("Run", "Create"))}
    assert set(statement["Action"]) == spelled - dry_runs
    assert all(f"`{action}`" in PAGE.read_text() for action in dry_runs)
