"""`joiner doctor`: what it gathers of an account, and what becomes of what it may not look at."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.checks.every import examine
from cli.checks.facts import Account, Allowed, Facts, Unseen
from cli.checks.families import BY_NAME
from cli.checks.findings import Finding
from cli.doctor_account import of_account
from cli.doctor_cluster import shipped
from cli.remedies import SIGN_IN
from shared.model.ec2 import Selector
from shared.model.nodeclasses import EC2NodeClass
from tests.unit.doctor_answers import DENIED, MISSING, NOT_THERE, ByHeart, answers, plane
from tests.unit.doctor_facts import kubernetes, node_class

TAGGED = (Selector(tags=(("karpenter.sh/discovery", "prod"),)),)
CLASS = replace(
    node_class(),
    image_selectors=(Selector(alias="al2023@latest"),),
    subnet_selectors=TAGGED,
    security_group_selectors=TAGGED,
    role="nodes",
)
UNTOLD = {"ec2:CreateFleet", "ec2:CreateLaunchTemplate"}
"""Asked with DryRun: a refusal of one is told in the same way as that of RunInstances."""


PAGE = Path(__file__).parents[2] / "docs" / "guide" / "doctor.md"
SPELLED = {"service-quotas": "servicequotas"}
RENAMED = {"s3:ListObjectsV2": "s3:ListBucket"}


def seen(clients: ByHeart, classes: tuple[EC2NodeClass, ...] = (CLASS,)) -> Account:
    return of_account(clients, "prod", "joiner-prod", classes, datetime.now(UTC))


def examined(account: Account) -> list[Finding]:
    now = datetime.now(UTC)
    some = Facts(now=now, kubernetes=kubernetes(node_claims=(), nodes=()), account=account, shipped=shipped())
    return [one for _, one in examine(some)]


def test_a_healthy_account_is_well() -> None:
    clients = ByHeart()
    every = examined(seen(clients))
    assert [one for one in every if one.level != "ok"] == []
    assert set(clients.asked) == set(answers())


@pytest.mark.parametrize("call", sorted(answers()))
def test_what_may_not_be_looked_at_is_said_and_nothing_is_concluded_from_it(call: str) -> None:
    clients = ByHeart()
    clients.answers[call] = DENIED
    worse = [one for one in examined(seen(clients)) if one.level != "ok"]
    assert {one.level for one in worse} == {"unseen"}
    assert all("AccessDenied" in one.what and one.remedy.startswith("let yourself have ") for one in worse)


def test_nothing_but_dry_runs_and_reads_is_asked_for() -> None:
    reads = ("Describe", "List", "Get")
    assert {call for call in answers() if not call.partition(":")[2].startswith(reads)} == UNTOLD | {"ec2:RunInstances"}


def test_an_account_without_an_installation_has_no_stack() -> None:
    account = seen(ByHeart(cloudformation__DescribeStacks=NOT_THERE), ())
    assert account.stack is None
    assert account.classes == ()
    subnets, groups = account.discovered if not isinstance(account.discovered, Unseen) else ((), ())
    assert (len(subnets), len(groups)) == (2, 1)


def test_a_stack_that_cannot_be_described_is_not_taken_for_none() -> None:
    odd = {"Error": {"Code": "ValidationError", "Message": "something else"}}
    assert isinstance(seen(ByHeart(cloudformation__DescribeStacks=odd)).stack, Unseen)


def test_a_cluster_that_is_not_there_is_none() -> None:
    gone = seen(ByHeart(eks__DescribeCluster=MISSING, eks__ListClusters={"clusters": []}))
    assert gone.plane is None
    assert [one.level for one in examined(gone) if one.check == "cluster"] == ["fail"]


def test_what_eks_does_not_say_has_its_default_or_is_unknown() -> None:
    said = plane()
    for name in ("accessConfig", "resourcesVpcConfig", "computeConfig", "logging"):
        del said[name]
    found = seen(ByHeart(eks__DescribeCluster={"cluster": said})).plane
    assert found is not None
    assert not isinstance(found, Unseen)
    assert (found.authentication, found.is_public, found.public_cidrs) == ("", True, ("0.0.0.0/0",))
    assert (found.has_auto_mode, found.logs) == (False, ())


def test_a_quota_that_nobody_raised_is_that_of_all() -> None:
    default = {"Quota": {"Value": 5.0}}
    clients = ByHeart(service_quotas__GetServiceQuota=MISSING, service_quotas__GetAWSDefaultServiceQuota=default)
    assert dict(seen(clients).quotas) == {f"standard {kind}": Allowed(vcpus=5) for kind in ("on-demand", "spot")}


USED = {
    "MetricNamespace": "AWS/Usage",
    "MetricName": "ResourceCount",
    "MetricDimensions": {"Service": "EC2", "Class": "Standard/Spot"},
    "MetricStatisticRecommendation": "Maximum",
}


def test_what_everybody_runs_is_asked_of_the_metric_that_the_quota_names() -> None:
    asked: list[dict[str, Any]] = []

    def count(said: dict[str, Any]) -> dict[str, Any]:
        asked.extend(one for one in said["MetricDataQueries"] if one["Id"].startswith("used"))
        counted = {"Values": [7.0, 9.0], "Timestamps": [datetime.now(UTC), datetime(2026, 11, 22, tzinfo=UTC)]}
        return {"MetricDataResults": [{"Id": one["Id"], **counted} for one in said["MetricDataQueries"]]}

    clients = ByHeart(service_quotas__GetServiceQuota={"Quota": {"Value": 8.0, "UsageMetric": USED}})
    clients.answers["cloudwatch:GetMetricData"] = count
    assert set(seen(clients).quotas.values()) == {Allowed(vcpus=8, used=7)}
    metric = asked[0]["MetricStat"]["Metric"]
    assert (metric["Namespace"], metric["MetricName"]) == ("AWS/Usage", "ResourceCount")
    assert {"Name": "Class", "Value": "Standard/Spot"} in metric["Dimensions"]
    clients.answers["cloudwatch:GetMetricData"] = DENIED
    assert set(seen(clients).quotas.values()) == {Allowed(vcpus=8)}


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        ({"clusters": ["prod-eu", "staging"]}, "did you mean prod-eu? --cluster is one of prod-eu, staging"),
        ({"clusters": ["a", "b", "c", "d"]}, "--cluster is one of a, b, c and 1 more"),
        ({"clusters": []}, "it has none at all: check --region"),
        (DENIED, "`aws eks list-clusters`"),
    ],
)
def test_where_there_is_no_such_cluster_those_that_there_are_are_named(answer: dict[str, Any], remedy: str) -> None:
    clients = ByHeart(eks__DescribeCluster=MISSING, eks__ListClusters=answer)
    [one] = [one for one in examined(seen(clients)) if one.check == "cluster"]
    assert one.what == "us-east-1 has no cluster prod"
    assert one.remedy.startswith(remedy) or remedy in one.remedy


def test_who_has_not_signed_in_is_told_to_and_not_which_right_is_missing() -> None:
    expired = {"Error": {"Code": "ExpiredTokenException", "Message": "The security token is expired"}}
    clients = ByHeart()
    clients.answers = dict.fromkeys(clients.answers, expired)
    worse = [one for one in examined(seen(clients)) if one.level == "unseen"]
    assert worse
    assert {one.remedy for one in worse} == {SIGN_IN}


def test_only_the_quotas_that_matter_are_asked() -> None:
    found = of_account(ByHeart(), "prod", "joiner-prod", (), datetime.now(UTC), (BY_NAME["P on-demand"],))
    assert list(found.quotas) == ["P on-demand"]


@pytest.mark.parametrize("answer", [MISSING, {"InstanceProfile": {"Roles": []}}])
def test_a_profile_that_is_not_there_has_no_role(answer: dict[str, Any]) -> None:
    [one] = seen(ByHeart(iam__GetInstanceProfile=answer)).classes
    assert one.role_arn == ""


def test_where_no_image_is_found_there_is_no_snapshot_and_no_launch_to_ask_about() -> None:
    [one] = seen(ByHeart(ssm__GetParameter=MISSING)).classes
    assert (one.snapshots, one.refusals) == ((), None)


def test_without_an_installation_there_is_no_profile_to_launch_with() -> None:
    [one] = seen(ByHeart(cloudformation__DescribeStacks=NOT_THERE)).classes
    assert (one.role_arn, one.refusals) == ("", None)


def test_schedules_of_the_default_group_are_the_stacks_own_only() -> None:
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
    stack = seen(clients).stack
    assert stack is not None
    assert not isinstance(stack, Unseen)
    assert not isinstance(stack.schedules, Unseen)
    assert [(one.name, one.is_enabled) for one in stack.schedules] == [("tick", False)]
    assert (stack.catalogue, stack.functions, stack.settings) == (None, (), None)


def test_a_function_whose_variables_cannot_be_read_tells_no_settings() -> None:
    bare = {"Handler": "functions.disrupt.handler.handler", "Role": "r"}
    stack = seen(ByHeart(lambda__GetFunctionConfiguration=bare)).stack
    assert stack is not None
    assert not isinstance(stack, Unseen)
    assert stack.settings is None


def test_the_page_has_the_rights_for_every_call() -> None:
    [policy] = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [statement] = json.loads(policy)["Statement"]
    seldom = {"service-quotas:GetAWSDefaultServiceQuota", "eks:ListClusters"}
    called = {RENAMED.get(call, call) for call in answers()} | seldom
    spelled = {f"{SPELLED.get(service, service)}:{name}" for service, _, name in (one.partition(":") for one in called)}
    dry_runs = {one for one in spelled if one.partition(":")[2].startswith(("Run", "Create"))}
    assert set(statement["Action"]) == spelled - dry_runs
    assert all(f"`{one}`" in PAGE.read_text() for one in dry_runs)
