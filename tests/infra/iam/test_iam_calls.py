"""The IAM requests of a call: the cases that the short life does not cover."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.ports.storage import FencingToken
from shared.settings import Settings
from sim.cloud.cloud import Cloud
from sim.cloud.open_answers import OpenAnswers
from sim.iam.patterns_and_variables import IamRequest
from sim.iam.port_call_requests import PortRequestBuilder
from sim.time.virtual_clock import Clock
from tests.contract.asking import launch_instance
from tests.contract.memory_face import build_memory_face

TAGS = (("eks:eks-cluster-name", "demo"),)
SETTINGS = Settings(
    cluster_name="demo",
    region="us-east-1",
    table_name="rows",
    bucket_name="things",
    event_bus="alerts",
    remote_write_url="https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-0a1b2c3d/api/v1/remote_write",
    report_topic="arn:aws:sns:us-east-1:1:costs",
    queue_prefix="https://sqs.us-east-1.amazonaws.com/1/demo-joiner-",
)


@pytest.fixture
def account() -> PortRequestBuilder:
    clock = Clock()
    return PortRequestBuilder(
        cloud=Cloud(clock), settings=SETTINGS, number="1", get_role_arn=lambda profile: f"role of {profile}"
    )


def make_template(**fields: Any) -> LaunchTemplate:
    return LaunchTemplate(name="joiner/demo/a", image_id="ami-1", user_data="", **fields)


def list_action_pairs(requests: tuple[IamRequest, ...]) -> set[tuple[str, str]]:
    return {(request.action, request.resource.removeprefix("arn:aws:ec2:us-east-1:")) for request in requests}


def get_request_tags(request: IamRequest) -> Mapping[str, tuple[str, ...]]:
    return {key: value for key, value in request.context.items() if "tag" in key}


@pytest.mark.parametrize(
    ("call", "arguments", "options", "expected"),
    [
        (
            "parameters.get_parameter",
            ("/images/a",),
            {},
            [("ssm:GetParameter", "arn:aws:ssm:us-east-1:1:parameter/images/a")],
        ),
        (
            "parameters.get_parameter",
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
            {"version": 0, "fence": FencingToken(name="a", version=1)},
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
        ("mailbox.add", ("catalog", "{}"), {}, [("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:demo-joiner-catalog")]),
        ("event_bus.put", ((),), {}, [("events:PutEvents", "arn:aws:events:us-east-1:1:event-bus/alerts")]),
        (
            "remote_write.write",
            (b"",),
            {},
            [("aps:RemoteWrite", "arn:aws:aps:us-east-1:1:workspace/ws-0a1b2c3d")],
        ),
        ("topic.publish", ("subject", "text"), {}, [("sns:Publish", "arn:aws:sns:us-east-1:1:costs")]),
        ("bucket.put", ("journal/a", b""), {}, [("s3:PutObject", "arn:aws:s3:::things/journal/a")]),
        ("ec2.describe_subnets", ((),), {}, [("ec2:DescribeSubnets", "*")]),
    ],
)
def test_api_call_maps_to_expected_iam_actions_and_resources(
    call: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    expected: list[tuple[str, str]],
    account: PortRequestBuilder,
) -> None:
    requests = account.build_requests(call, arguments, options)
    assert [(request.action, request.resource) for request in requests] == expected
    assert {request.context["aws:requestedregion"] for request in requests} == {("us-east-1",)}


def test_unknown_api_call_raises_key_error(account: PortRequestBuilder) -> None:
    with pytest.raises(KeyError):
        account.build_requests("ec2.stop_instances", ("i-1",), {})


def test_write_to_another_receiver_than_a_workspace_needs_no_permission(account: PortRequestBuilder) -> None:
    settings = msgspec.structs.replace(SETTINGS, remote_write_url="http://prometheus.internal:9090/api/v1/write")
    requests = msgspec.structs.replace(account, settings=settings).build_requests("remote_write.write", (b"",), {})
    assert requests == ()


def test_calls_on_missing_resources_are_answered_before_iam_checks_them(account: PortRequestBuilder) -> None:
    for call, argument in (("ec2.terminate_instances", ["i-1"]), ("ec2.delete_launch_template", "joiner/demo/a")):
        assert account.build_requests(call, (argument,), {}) == ()


def test_unseen_instance_can_be_checked_without_its_tags(account: PortRequestBuilder) -> None:
    instance_id = launch_instance(build_memory_face(account.cloud))
    account.cloud.set_open_answers(OpenAnswers(denies_unseen_instances=True))
    seen_request, unseen_request, gone_request = account.build_requests(
        "ec2.terminate_instances", ([instance_id, "i-1"],), {}
    )
    assert seen_request.is_found
    assert get_request_tags(seen_request)
    for request in (unseen_request, gone_request):
        assert (request.is_found, get_request_tags(request)) == (False, {})
    account.cloud.clock.advance(timedelta(minutes=1))
    [request] = account.build_requests("ec2.create_tags", (instance_id, (("Name", "a"),)), {})
    assert request.is_found


def test_launch_requires_permissions_for_all_created_and_used_resources(account: PortRequestBuilder) -> None:
    launch_template = make_template(
        tags=TAGS,
        capacity_type="spot",
        instance_profile="nodes",
        security_group_ids=("sg-1",),
        placement_group_id="pg-1",
        reservation_id="cr-1",
    )
    account.cloud.templates.create(launch_template, account.cloud.clock.get_time())
    override = Override(instance_type="m5.large", zone="us-east-1a", subnet_id="subnet-1", image_id="ami-2")
    config = LaunchTemplateConfig(launch_template_name=launch_template.name, overrides=(override,))
    request = FleetRequest(
        client_token=launch_template.name,
        capacity=1,
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(config,),
        tags=TAGS,
    )
    iam_requests = account.build_requests("ec2.create_fleet", (request,), {})
    lt = account.cloud.templates.build_template_id(launch_template.name)
    kinds = ("instance", "volume", "network-interface", "spot-instances-request")
    assert list_action_pairs(iam_requests) == {
        ("ec2:CreateFleet", "1:fleet/*"),
        ("ec2:CreateTags", "1:fleet/*"),
        ("ec2:CreateFleet", f"1:launch-template/{lt}"),
        ("ec2:RunInstances", f"1:launch-template/{lt}"),
        *(
            (action, resource)
            for action in ("ec2:CreateFleet", "ec2:RunInstances")
            for resource in (
                ":image/ami-2",
                "1:subnet/subnet-1",
                "1:security-group/sg-1",
                "1:placement-group/pg-1",
                "1:capacity-reservation/cr-1",
                *(f"1:{kind}/*" for kind in kinds),
            )
        ),
        ("iam:PassRole", "role of nodes"),
        *(("ec2:CreateTags", f"1:{kind}/*") for kind in kinds),
    }
    [used] = [
        iam_request
        for iam_request in iam_requests
        if iam_request.action == "ec2:RunInstances" and "launch-template" in iam_request.resource
    ]
    assert get_request_tags(used)["aws:resourcetag/eks:eks-cluster-name"] == ("demo",)
    creating_actions = {
        iam_request.context["ec2:createaction"]
        for iam_request in iam_requests
        if iam_request.resource.endswith(":instance/*") and "Tags" in iam_request.action
    }
    assert creating_actions == {("CreateFleet",), ("RunInstances",)}


def test_launch_dry_run_requires_template_permission_and_pass_role_only_with_a_role(
    account: PortRequestBuilder,
) -> None:
    probe = DryRunRequest(template=make_template(), instance_type="m5.large", subnet_ids=("subnet-1",))
    action_pairs = list_action_pairs(account.build_requests("ec2.dry_run_launch", (probe,), {}))
    assert action_pairs >= {("ec2:CreateLaunchTemplate", "1:launch-template/*"), ("ec2:RunInstances", ":image/ami-1")}
    assert not {action for action, _ in action_pairs} & {"iam:PassRole", "ec2:CreateTags"}
