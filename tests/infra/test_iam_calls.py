"""What IAM is asked for a call: the cases that a short life does not meet."""

from collections.abc import Mapping
from typing import Any

import pytest

from shared.model.ec2 import FleetRequest, LaunchTemplate, LaunchTemplateConfig, Override, Probe
from shared.ports import Fence
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.iam.calls import Account
from sim.iam.values import Request

TAGS = (("eks:eks-cluster-name", "demo"),)
SETTINGS = Settings(
    cluster_name="demo",
    region="us-east-1",
    table_name="rows",
    bucket_name="things",
    report_topic="arn:aws:sns:us-east-1:1:costs",
    queue_prefix="https://sqs.us-east-1.amazonaws.com/1/demo-joiner-",
)


@pytest.fixture
def account() -> Account:
    clock = Clock()
    return Account(cloud=Cloud(clock), settings=SETTINGS, number="1", role_of=lambda profile: f"role of {profile}")


def template(**said: Any) -> LaunchTemplate:
    return LaunchTemplate(name="joiner/demo/a", image_id="ami-1", user_data="", **said)


def pairs(found: tuple[Request, ...]) -> set[tuple[str, str]]:
    return {(one.action, one.resource.removeprefix("arn:aws:ec2:us-east-1:")) for one in found}


def tags_of(found: Request) -> Mapping[str, tuple[str, ...]]:
    return {key: value for key, value in found.context.items() if "tag" in key}


@pytest.mark.parametrize(
    ("call", "arguments", "options", "asked"),
    [
        (
            "parameters.parameter",
            ("/images/a",),
            {},
            [("ssm:GetParameter", "arn:aws:ssm:us-east-1:1:parameter/images/a")],
        ),
        (
            "parameters.parameter",
            ("/aws/service/a",),
            {},
            [("ssm:GetParameter", "arn:aws:ssm:us-east-1::parameter/aws/service/a")],
        ),
        (
            "table.write",
            ("a", "b", "{}"),
            {"version": 0},
            [("dynamodb:PutItem", "arn:aws:dynamodb:us-east-1:1:table/rows")],
        ),
        (
            "table.write",
            ("a", "b", "{}"),
            {"version": 0, "fence": Fence(name="a", version=1)},
            [
                ("dynamodb:PutItem", "arn:aws:dynamodb:us-east-1:1:table/rows"),
                ("dynamodb:ConditionCheckItem", "arn:aws:dynamodb:us-east-1:1:table/rows"),
            ],
        ),
        (
            "table.remove",
            ("a", "b"),
            {"version": 1},
            [("dynamodb:DeleteItem", "arn:aws:dynamodb:us-east-1:1:table/rows")],
        ),
        ("mailbox.send", ("catalog", "{}"), {}, [("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:demo-joiner-catalog")]),
        ("topic.publish", ("subject", "text"), {}, [("sns:Publish", "arn:aws:sns:us-east-1:1:costs")]),
        ("bucket.put", ("journal/a", b""), {}, [("s3:PutObject", "arn:aws:s3:::things/journal/a")]),
        ("ec2.subnets", ((),), {}, [("ec2:DescribeSubnets", "*")]),
    ],
)
def test_a_call_asks(
    call: str, arguments: tuple[Any, ...], options: dict[str, Any], asked: list[tuple[str, str]], account: Account
) -> None:
    found = account.requests(call, arguments, options)
    assert [(one.action, one.resource) for one in found] == asked
    assert {one.context["aws:requestedregion"] for one in found} == {("us-east-1",)}


def test_a_call_that_nobody_knows_is_not_passed_over(account: Account) -> None:
    with pytest.raises(KeyError):
        account.requests("ec2.stop_instances", ("i-1",), {})


def test_what_does_not_exist_has_no_tags(account: Account) -> None:
    for call, argument in (("ec2.terminate_instances", ["i-1"]), ("ec2.delete_launch_template", "joiner/demo/a")):
        [found] = account.requests(call, (argument,), {})
        assert tags_of(found) == {}


def test_a_launch_asks_for_everything_that_it_makes_and_uses(account: Account) -> None:
    made = template(
        tags=TAGS,
        capacity_type="spot",
        instance_profile="nodes",
        security_group_ids=("sg-1",),
        placement_group_id="pg-1",
        reservation_id="cr-1",
    )
    account.cloud.templates.create(made, account.cloud.clock.now())
    override = Override(instance_type="m5.large", zone="us-east-1a", subnet_id="subnet-1", image_id="ami-2")
    config = LaunchTemplateConfig(launch_template_name=made.name, overrides=(override,))
    request = FleetRequest(
        client_token=made.name,
        capacity=1,
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(config,),
        tags=TAGS,
    )
    found = account.requests("ec2.create_fleet", (request,), {})
    lt = account.cloud.templates.template_id(made.name)
    kinds = ("instance", "volume", "network-interface", "spot-instances-request")
    assert pairs(found) == {
        ("ec2:CreateFleet", "1:fleet/*"),
        ("ec2:CreateTags", "1:fleet/*"),
        ("ec2:CreateFleet", f"1:launch-template/{lt}"),
        ("ec2:RunInstances", f"1:launch-template/{lt}"),
        ("ec2:RunInstances", ":image/ami-2"),
        ("ec2:RunInstances", "1:subnet/subnet-1"),
        ("ec2:RunInstances", "1:security-group/sg-1"),
        ("ec2:RunInstances", "1:placement-group/pg-1"),
        ("ec2:RunInstances", "1:capacity-reservation/cr-1"),
        ("iam:PassRole", "role of nodes"),
        *(("ec2:RunInstances", f"1:{kind}/*") for kind in kinds),
        *(("ec2:CreateTags", f"1:{kind}/*") for kind in kinds),
    }
    [used] = [one for one in found if one.action == "ec2:RunInstances" and "launch-template" in one.resource]
    assert tags_of(used)["aws:resourcetag/eks:eks-cluster-name"] == ("demo",)
    by = {
        one.context["ec2:createaction"]
        for one in found
        if one.resource.endswith(":instance/*") and "Tags" in one.action
    }
    assert by == {("CreateFleet",), ("RunInstances",)}


def test_a_rehearsal_asks_for_the_template_too_and_passes_a_role_only_if_there_is_one(account: Account) -> None:
    probe = Probe(template=template(), instance_type="m5.large", subnet_ids=("subnet-1",))
    asked = pairs(account.requests("ec2.refusals", (probe,), {}))
    assert asked >= {("ec2:CreateLaunchTemplate", "1:launch-template/*"), ("ec2:RunInstances", ":image/ami-1")}
    assert not {action for action, _ in asked} & {"iam:PassRole", "ec2:CreateTags"}
