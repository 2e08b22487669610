"""`joiner doctor`: what it gathers of an account, and what becomes of what it may not look at."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.checks.every import examine
from cli.checks.facts import Account, Facts, Unseen
from cli.checks.findings import Finding
from cli.doctor_account import of_account
from cli.doctor_cluster import shipped
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
    some = Facts(now=now, kubernetes=kubernetes(node_claims=()), account=account, shipped=shipped())
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
    gone = seen(ByHeart(eks__DescribeCluster=MISSING))
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
    assert dict(seen(clients).quotas) == {"on-demand": 5.0, "spot": 5.0}


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
    called = {RENAMED.get(call, call) for call in answers()} | {"service-quotas:GetAWSDefaultServiceQuota"}
    spelled = {f"{SPELLED.get(service, service)}:{name}" for service, _, name in (one.partition(":") for one in called)}
    dry_runs = {one for one in spelled if one.partition(":")[2].startswith(("Run", "Create"))}
    assert set(statement["Action"]) == spelled - dry_runs
    assert all(f"`{one}`" in PAGE.read_text() for one in dry_runs)
