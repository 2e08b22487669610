"""Functions of an account: the event sources that its APIs configure invoke them, with their roles' permissions."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sim.aws_account.account import Account
from sim.cloud.cloud import Cloud
from sim.lambda_processes.account_runtime import AccountRuntime
from sim.lambda_processes.sandboxes import SandboxHost
from sim.lambda_processes.trigger_reader import Unsupported
from sim.time.real_clock import RealTimeClock
from tests.contract.lambda_processes.sandbox_directory import zip_code

pytestmark = pytest.mark.loopback
TRUST = {"lambda.amazonaws.com": "tiny", "scheduler.amazonaws.com": "caller"}
READ_ACTIONS = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
)


class FunctionWorld:
    """An account with a function `tiny`, two queues, and their roles."""

    def __init__(self, account: Account, running: AccountRuntime, folder: Path) -> None:
        """Create them; the function may call *READ_ACTIONS*, and the scheduler may invoke the function."""
        self.account, self.running, self.seen_path = account, running, folder / "seen"
        self._create_roles(TRUST)
        self.allow("tiny", *READ_ACTIONS)
        self.allow("caller", "lambda:InvokeFunction", "sqs:SendMessage")
        account.get_client("logs").create_log_group(logGroupName="/aws/lambda/tiny")
        sqs = account.get_client("sqs")
        hidden = {"VisibilityTimeout": "600"}
        self.work, self.dead = (
            sqs.create_queue(QueueName=name, Attributes=hidden)["QueueUrl"] for name in ("work", "dead")
        )
        account.get_client("lambda").create_function(
            FunctionName="tiny",
            Runtime="python3.13",
            Handler="tiny.handler",
            Role=self.build_arn("iam", "role/tiny", region=""),
            Code={"ZipFile": zip_code()},
            Environment={"Variables": {"SEEN": str(self.seen_path)}},
            Timeout=600,
        )

    def build_arn(self, service: str, name: str, *, region: str = "us-east-1") -> str:
        return f"arn:aws:{service}:{region}:{self.account.account_id}:{name}"

    def allow(self, role: str, *actions: str) -> None:
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        self.account.get_client("iam").put_role_policy(
            RoleName=role, PolicyName="may", PolicyDocument=json.dumps(policy)
        )

    def create_schedule(self, target: str, role: str = "caller", **fields: Any) -> None:
        self.account.get_client("scheduler").create_schedule(
            Name="tick",
            ScheduleExpression="rate(1 hour)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={
                "Arn": target,
                "RoleArn": self.build_arn("iam", f"role/{role}", region=""),
                "Input": "{}",
                **fields,
            },
        )
        self.running.triggers.invalidate()
        self.running.schedules.fire_all()

    def wait_until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 600
        while not condition():
            assert time.monotonic() < end, self.running.list_problems()
            time.sleep(0.05)

    def receive_bodies(self, url: str) -> list[str]:
        response = self.account.get_client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [message["Body"] for message in response.get("Messages", ())]

    def _create_roles(self, trust: dict[str, str]) -> None:
        for service, name in trust.items():
            statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
            document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            self.account.get_client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[FunctionWorld]:
    clock = RealTimeClock(_get_now)
    with Account(Cloud(clock, seed=1), clock) as account:
        machine = SandboxHost(
            python=sys.executable,
            libraries=tmp_path,
            folder=tmp_path,
            region=account.region,
            extra_variables={"AWS_ENDPOINT_URL": account.url},
        )
        with AccountRuntime(account, machine, _get_now, owner=account.account_id) as running:
            account.invoker, account.dispatcher = running.service.invoke_for_api, running.service.invoke_asynchronously
            yield FunctionWorld(account, running, tmp_path)


def test_event_source_mapping_invokes_the_function_which_writes_its_log(world: FunctionWorld) -> None:
    world.account.get_client("lambda").create_event_source_mapping(
        EventSourceArn=world.build_arn("sqs", "work"),
        FunctionName="tiny",
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    world.account.get_client("sqs").send_message(QueueUrl=world.work, MessageBody="a letter")
    world.running.triggers.invalidate()
    world.wait_until(lambda: world.running.invocations)
    assert "a letter" in world.seen_path.read_text()
    world.wait_until(lambda: _read_log_lines(world.account))
    assert any("this module is read" in line for line in _read_log_lines(world.account))
    assert world.running.list_problems() == []


def test_schedule_invokes_the_function_with_its_role(world: FunctionWorld) -> None:
    world.create_schedule(world.build_arn("lambda", "function:tiny"))
    world.wait_until(lambda: world.running.invocations)
    assert world.running.invocations[0].result.status == "success"


def test_schedule_without_invoke_permission_sends_a_dead_letter(world: FunctionWorld) -> None:
    world.allow("caller", "sqs:SendMessage")
    world.create_schedule(
        world.build_arn("lambda", "function:tiny"),
        RetryPolicy={"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
        DeadLetterConfig={"Arn": world.build_arn("sqs", "dead")},
    )
    world.wait_until(lambda: world.receive_bodies(world.dead) == ["{}"])
    assert not world.running.invocations


def test_event_bus_rule_delivers_matching_events_to_its_queue(world: FunctionWorld) -> None:
    events = world.account.get_client("events")
    events.put_rule(Name="spot", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_rule(Name="hourly", ScheduleExpression="rate(1 hour)")
    events.put_targets(Rule="spot", Targets=[{"Id": "queue", "Arn": world.build_arn("sqs", "work")}])
    world.running.triggers.invalidate()
    world.running.bus.put_event({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"})
    world.wait_until(lambda: [item for item in world.receive_bodies(world.work) if "Interruption Warning" in item])
    assert [item.name for item in world.running.triggers.list_schedules()] == ["hourly"]


def test_missing_sqs_permission_of_a_queue_poller_is_reported(world: FunctionWorld) -> None:
    world.allow("tiny", "sqs:GetQueueAttributes")
    world.account.get_client("lambda").create_event_source_mapping(
        EventSourceArn=world.build_arn("sqs", "work"), FunctionName="tiny"
    )
    world.running.triggers.invalidate()
    world.wait_until(lambda: [error for error in world.running.access_errors if "sqs:receivemessage" in error.lower()])


def test_missing_log_permission_of_a_function_is_reported(world: FunctionWorld) -> None:
    world.allow("tiny", "sqs:ReceiveMessage")
    world.account.get_client("lambda").invoke(FunctionName="tiny", Payload=b"{}")
    assert "/aws/lambda/tiny" in world.running.list_problems()[0]
    assert "logs:CreateLogStream" in world.running.list_problems()[0]


def test_function_that_deletes_itself_while_running_reports_no_log_problem(world: FunctionWorld) -> None:
    world.allow("tiny", "lambda:DeleteFunction")
    lambdas = world.account.get_client("lambda")
    code = "import boto3\ndef handler(*_): boto3.client('lambda').delete_function(FunctionName='tiny')\n"
    lambdas.update_function_code(FunctionName="tiny", ZipFile=zip_code(code))
    assert "FunctionError" not in lambdas.invoke(FunctionName="tiny")
    assert len(world.running.invocations) == 1
    assert world.running.list_problems() == []


def test_schedule_with_a_time_zone_is_rejected(world: FunctionWorld) -> None:
    world.account.get_client("scheduler").create_schedule(
        Name="tick",
        ScheduleExpression="rate(1 hour)",
        ScheduleExpressionTimezone="Europe/Berlin",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": world.build_arn("lambda", "function:tiny"),
            "RoleArn": world.build_arn("iam", "role/caller", region=""),
        },
    )
    world.running.triggers.invalidate()
    with pytest.raises(Unsupported, match="Europe/Berlin"):
        world.running.triggers.list_schedules()


def test_failed_asynchronous_invocation_is_sent_to_the_failure_destination(world: FunctionWorld) -> None:
    world.allow("tiny", *READ_ACTIONS, "sqs:SendMessage")
    lambdas = world.account.get_client("lambda")
    lambdas.put_function_event_invoke_config(
        FunctionName="tiny",
        MaximumRetryAttempts=0,
        DestinationConfig={"OnFailure": {"Destination": world.build_arn("sqs", "dead")}},
    )
    lambdas.invoke(FunctionName="tiny", InvocationType="Event", Payload=b'{"do": "raise"}')
    world.wait_until(lambda: world.receive_bodies(world.dead) == ['{"do": "raise"}'])
    assert len(world.running.discarded_invocations) == 1
    answer = lambdas.invoke(FunctionName="tiny", Payload=b'{"do": "raise"}', LogType="Tail")
    assert answer["FunctionError"] == "Unhandled"
    assert b"as asked" in answer["Payload"].read()


def _read_log_lines(account: Account) -> list[str]:
    logs = account.get_client("logs")
    streams = logs.describe_log_streams(logGroupName="/aws/lambda/tiny")["logStreams"]
    pages = [
        logs.get_log_events(logGroupName="/aws/lambda/tiny", logStreamName=stream["logStreamName"])
        for stream in streams
    ]
    return [event["message"] for page in pages for event in page["events"]]


def _get_now() -> datetime:
    return datetime.now(UTC)
