"""The embedded world rejects what AWS would reject, although its ports make no requests."""

import base64
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Invalid, NotFound
from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.ports.world import World
from shared.settings import Settings
from sim.aws_rules.request_log import RequestKind, RequestLog
from sim.aws_rules.world_ports import RequestChecks
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudEks, CloudParameters, CloudPricing
from sim.time.virtual_clock import Clock
from sim.world.memory_ports import MemoryBucket, MemoryTable, MemoryTopic

QUEUES = "https://sqs.us-east-1.amazonaws.com/123456789012/joiner-"
TOPIC = "arn:aws:sns:us-east-1:123456789012:costs"
TEMPLATE = LaunchTemplate(name="joiner/a", image_id="ami-1", user_data=base64.b64encode(b"#!/bin/sh").decode())


class Mailbox:
    def __init__(self) -> None:
        """Start empty."""
        self.bodies: list[str] = []

    def add(self, function: str, body: str, after: timedelta) -> None:
        del function, after
        self.bodies.append(body)

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        for delay in delays:
            self.add(function, body, delay)


class Stage:
    def __init__(self) -> None:
        """Check the ports of one function on a new cloud."""
        self.cloud, self.checks, self.mailbox = Cloud(Clock()), RequestChecks(), Mailbox()
        self.table, self.bucket, self.topic = MemoryTable(), MemoryBucket(), MemoryTopic()
        self.lines: list[str] = []
        self.world = self.checks.wrap_world(self.build_plain_world(), "provision")

    def build_plain_world(self) -> World:
        kube: Any = None
        return World(
            settings=Settings(
                cluster_name="joiner",
                region="us-east-1",
                bucket_name="joiner",
                table_name="joiner",
                queue_prefix=QUEUES,
                report_topic=TOPIC,
            ),
            kube=kube,
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPricing(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.mailbox,
            table=self.table,
            bucket=self.bucket,
            topic=self.topic,
            clock=self.cloud.clock.get_time,
            emit=self.lines.append,
        )

    def list_rejected_calls(self) -> list[str]:
        return [rejected.call for rejected in self.checks.log.rejections]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_call_that_aws_accepts_reaches_the_port(stage: Stage) -> None:
    world = stage.world
    assert world.topic is not None
    assert world.ec2.describe_offerings() == stage.cloud.offerings
    assert world.eks.describe_cluster("joiner").name == "joiner"
    assert world.prices.get_on_demand_prices("us-east-1") == stage.cloud.prices.on_demand
    world.table.write("lease", "provision", "{}", version=0)
    assert world.table.read("lease", "provision") == stage.table.read("lease", "provision")
    world.bucket.put("journal/a", b"{}")
    assert (world.bucket.list_keys("journal/"), world.bucket.get("journal/a")) == (("journal/a",), b"{}")
    world.mailbox.add("provision", "{}", timedelta(seconds=1))
    assert stage.mailbox.bodies == ["{}"]
    world.topic.publish("Costs", "none")
    assert stage.topic.published_messages == [("Costs", "none")]
    with pytest.raises(NotFound):
        world.parameters.get_parameter("/images/none")
    assert stage.list_rejected_calls() == []


@pytest.mark.parametrize(
    ("user_data", "code"),
    [(b"x" * 16_384, ""), (b"x" * 16_385, "InvalidUserData.Malformed")],
    ids=["fits", "too large"],
)
def test_user_data_is_limited_before_it_is_encoded(stage: Stage, user_data: bytes, code: str) -> None:
    template = msgspec.structs.replace(TEMPLATE, user_data=base64.b64encode(user_data).decode())
    rejected_code = ""
    try:
        stage.world.ec2.ensure_launch_template(template)
    except Invalid as fault:
        rejected_code = fault.code
    assert rejected_code == code


def test_a_rejected_call_does_not_reach_the_port(stage: Stage) -> None:
    with pytest.raises(Invalid, match="shorter than 262144 bytes"):
        stage.world.mailbox.add("provision", "x" * 262_145, timedelta())
    assert stage.mailbox.bodies == []
    assert stage.list_rejected_calls() == ["sqs:SendMessage"]


def test_a_rejection_is_reported_with_its_function_and_rule(stage: Stage) -> None:
    reports: list[str] = []
    stage.checks.log.on_rejection = lambda rejected: reports.append(rejected.describe())
    with pytest.raises(Invalid):
        stage.world.ec2.describe_instance("i-0ofanotheraccount")
    assert reports == [
        'AWS rejects ec2:DescribeInstances of provision: InvalidInstanceID.Malformed: Invalid id: "i-0ofanotheraccount"'
    ]


def test_a_rejected_read_is_checked_again(stage: Stage) -> None:
    for _ in range(2):
        with pytest.raises(Invalid):
            stage.world.ec2.describe_instance("i-0ofanotheraccount")
    assert len(stage.checks.log.rejections) == 2


def test_a_fleet_with_too_many_overrides_is_rejected(stage: Stage) -> None:
    overrides = tuple(
        Override(instance_type=f"m5.{number}xlarge", zone="us-east-1a", subnet_id="subnet-1") for number in range(301)
    )
    request = FleetRequest(
        client_token="token",  # noqa: S106 - identifies a launch
        capacity=1,
        capacity_type="on-demand",
        allocation_strategy="lowest-price",
        configs=(LaunchTemplateConfig(launch_template_name="joiner/a", overrides=overrides),),
        tags=(),
    )
    with pytest.raises(Invalid, match="Number of overrides exceeds the limit of 300"):
        stage.world.ec2.create_fleet(request)


def test_a_dry_run_tells_which_call_aws_would_reject(stage: Stage) -> None:
    request = DryRunRequest(
        template=msgspec.structs.replace(TEMPLATE, name="a name"), instance_type="m5.large", subnet_ids=("subnet-1",)
    )
    assert [(refusal.action, refusal.code) for refusal in stage.world.ec2.dry_run_launch(request)] == [
        ("CreateFleet", "InvalidParameterValue"),
        ("CreateLaunchTemplate", "InvalidLaunchTemplateName.MalformedException"),
    ]


def test_request_that_botocore_refuses_to_send_is_rejected(stage: Stage) -> None:
    with pytest.raises(Invalid) as raised:
        stage.world.ec2.create_tags("i-0123456789abcdef0", (("team", 1),))  # type: ignore[arg-type]
    assert raised.value.code == "ParamValidation"


def test_ids_from_an_iterator_are_checked_and_still_reach_the_port(stage: Stage) -> None:
    stage.world.ec2.terminate_instances(instance_id for instance_id in ("i-0123456789abcdef0",))
    (kind,) = stage.checks.log.use_by_kind
    assert kind == RequestKind(call="ec2:TerminateInstances", selection=("InstanceIds",))


def test_metrics_beyond_the_limits_of_the_embedded_format_are_rejected(stage: Stage) -> None:
    metrics = [{"Name": f"metric-{number}", "Unit": "Count"} for number in range(101)]
    directive = {"Namespace": "Joiner", "Dimensions": [["cluster"]], "Metrics": metrics}
    stage.world.emit(json.dumps({"_aws": {"Timestamp": 0, "CloudWatchMetrics": [directive]}}))
    stage.world.emit('{"message": "no metrics"}')
    assert stage.list_rejected_calls() == ["logs:EmbeddedMetrics"]
    assert len(stage.lines) == 2


def test_a_kind_of_request_has_the_filters_and_all_parameters(stage: Stage) -> None:
    stage.world.ec2.describe_subnets((SelectorTerm(tags=(("team", "shop"),)),))
    stage.world.ec2.describe_subnets((SelectorTerm(tags=(("zone", "a"),)),))
    ((kind, use),) = stage.checks.log.use_by_kind.items()
    assert kind == RequestKind(call="ec2:DescribeSubnets", selection=("tag:<key>",))
    assert use.functions == {"provision"}
    assert use.parameters == {"Filters[].Name", "Filters[].Values", "MaxResults"}


def test_logs_of_several_worlds_are_merged() -> None:
    logs = [RequestLog(), RequestLog()]
    logs[0].check_request("provision", "ec2", "DescribeInstances", {"InstanceIds": ["i-0123456789abcdef0"]})
    logs[1].check_request("lifecycle", "ec2", "DescribeInstances", {"InstanceIds": ["i-1"]})
    logs[0].merge(logs[1])
    ((_, use),) = logs[0].use_by_kind.items()
    assert use.functions == {"provision", "lifecycle"}
    assert len(logs[0].rejections) == 1
