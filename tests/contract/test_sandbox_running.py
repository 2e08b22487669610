"""Functions of an account: what its APIs were told to wake them does wake them, as whoever may."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sim.account.account import Account
from sim.cloud.cloud import Cloud
from sim.realtime import RealTimeClock
from sim.sandboxes.reading import Unsupported
from sim.sandboxes.running import Running
from sim.sandboxes.sandboxes import Machine
from tests.contract.sandbox_directory import zipped

pytestmark = pytest.mark.loopback
TRUST = {"lambda.amazonaws.com": "tiny", "scheduler.amazonaws.com": "caller"}
READS = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
)


class World:
    """An account with a function `tiny`, two queues, and their roles."""

    def __init__(self, account: Account, running: Running, folder: Path) -> None:
        """Make them; the function may do what *READS* says, and the scheduler may call it."""
        self.account, self.running, self.seen = account, running, folder / "seen"
        self._roles(TRUST)
        self.may("tiny", *READS)
        self.may("caller", "lambda:InvokeFunction", "sqs:SendMessage")
        account.client("logs").create_log_group(logGroupName="/aws/lambda/tiny")
        sqs = account.client("sqs")
        hidden = {"VisibilityTimeout": "600"}
        self.work, self.dead = (
            sqs.create_queue(QueueName=name, Attributes=hidden)["QueueUrl"] for name in ("work", "dead")
        )
        account.client("lambda").create_function(
            FunctionName="tiny",
            Runtime="python3.13",
            Handler="tiny.handler",
            Role=self.arn("iam", "role/tiny", region=""),
            Code={"ZipFile": zipped()},
            Environment={"Variables": {"SEEN": str(self.seen)}},
            Timeout=600,
        )

    def arn(self, service: str, name: str, *, region: str = "us-east-1") -> str:
        return f"arn:aws:{service}:{region}:{self.account.number}:{name}"

    def may(self, role: str, *actions: str) -> None:
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
        self.account.client("iam").put_role_policy(RoleName=role, PolicyName="may", PolicyDocument=json.dumps(policy))

    def schedule(self, target: str, role: str = "caller", **more: Any) -> None:
        self.account.client("scheduler").create_schedule(
            Name="tick",
            ScheduleExpression="rate(1 hour)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": target, "RoleArn": self.arn("iam", f"role/{role}", region=""), "Input": "{}", **more},
        )
        self.running.reading.forget()
        self.running.schedules.ring()

    def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + 600
        while not holds():
            assert time.monotonic() < end, self.running.problems()
            time.sleep(0.05)

    def letters(self, url: str) -> list[str]:
        answer = self.account.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        return [one["Body"] for one in answer.get("Messages", ())]

    def _roles(self, trust: dict[str, str]) -> None:
        for service, name in trust.items():
            statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
            document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            self.account.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = RealTimeClock(_now)
    with Account(Cloud(clock, seed=1), clock) as account:
        machine = Machine(
            python=sys.executable,
            libraries=tmp_path,
            folder=tmp_path,
            region=account.region,
            further={"AWS_ENDPOINT_URL": account.url},
        )
        with Running(account, machine, _now, owner=account.number) as running:
            account.invoker, account.dispatcher = running.service.invoker, running.service.take
            yield World(account, running, tmp_path)


def test_a_queue_wakes_its_function_which_writes_its_log(world: World) -> None:
    world.account.client("lambda").create_event_source_mapping(
        EventSourceArn=world.arn("sqs", "work"), FunctionName="tiny", FunctionResponseTypes=["ReportBatchItemFailures"]
    )
    world.account.client("sqs").send_message(QueueUrl=world.work, MessageBody="a letter")
    world.running.reading.forget()
    world.until(lambda: world.running.calls)
    assert "a letter" in world.seen.read_text()
    world.until(lambda: _lines(world.account))
    assert any("this module is read" in line for line in _lines(world.account))
    assert world.running.problems() == []


def test_a_schedule_calls_as_its_role(world: World) -> None:
    world.schedule(world.arn("lambda", "function:tiny"))
    world.until(lambda: world.running.calls)
    assert world.running.calls[0].how.status == "success"


def test_what_a_schedule_may_not_call_is_a_dead_letter(world: World) -> None:
    world.may("caller", "sqs:SendMessage")
    world.schedule(
        world.arn("lambda", "function:tiny"),
        RetryPolicy={"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
        DeadLetterConfig={"Arn": world.arn("sqs", "dead")},
    )
    world.until(lambda: world.letters(world.dead) == ["{}"])
    assert not world.running.calls


def test_a_rule_carries_an_announcement_to_its_queue(world: World) -> None:
    events = world.account.client("events")
    events.put_rule(Name="spot", EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.put_rule(Name="hourly", ScheduleExpression="rate(1 hour)")
    events.put_targets(Rule="spot", Targets=[{"Id": "queue", "Arn": world.arn("sqs", "work")}])
    world.running.reading.forget()
    world.running.bus.put({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"})
    world.until(lambda: [one for one in world.letters(world.work) if "Interruption Warning" in one])
    assert [one.name for one in world.running.reading.schedules()] == ["hourly"]


def test_a_reader_without_rights_is_told_of(world: World) -> None:
    world.may("tiny", "sqs:GetQueueAttributes")
    world.account.client("lambda").create_event_source_mapping(
        EventSourceArn=world.arn("sqs", "work"), FunctionName="tiny"
    )
    world.running.reading.forget()
    world.until(lambda: [one for one in world.running.refused if "sqs:receivemessage" in one.lower()])


def test_a_function_that_may_not_write_its_log_is_told_of(world: World) -> None:
    world.may("tiny", "sqs:ReceiveMessage")
    world.account.client("lambda").invoke(FunctionName="tiny", Payload=b"{}")
    assert "/aws/lambda/tiny" in world.running.problems()[0]
    assert "logs:CreateLogStream" in world.running.problems()[0]


def test_a_function_that_is_deleted_while_it_works_may_lose_its_log(world: World) -> None:
    world.may("tiny", "lambda:DeleteFunction")
    lambdas = world.account.client("lambda")
    code = "import boto3\ndef handler(*_): boto3.client('lambda').delete_function(FunctionName='tiny')\n"
    lambdas.update_function_code(FunctionName="tiny", ZipFile=zipped(code))
    assert "FunctionError" not in lambdas.invoke(FunctionName="tiny")
    assert len(world.running.calls) == 1
    assert world.running.problems() == []


def test_a_schedule_in_local_time_is_refused(world: World) -> None:
    world.account.client("scheduler").create_schedule(
        Name="tick",
        ScheduleExpression="rate(1 hour)",
        ScheduleExpressionTimezone="Europe/Berlin",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": world.arn("lambda", "function:tiny"), "RoleArn": world.arn("iam", "role/caller", region="")},
    )
    world.running.reading.forget()
    with pytest.raises(Unsupported, match="Europe/Berlin"):
        world.running.reading.schedules()


def test_what_is_given_up_goes_where_the_function_says(world: World) -> None:
    world.may("tiny", *READS, "sqs:SendMessage")
    lambdas = world.account.client("lambda")
    lambdas.put_function_event_invoke_config(
        FunctionName="tiny",
        MaximumRetryAttempts=0,
        DestinationConfig={"OnFailure": {"Destination": world.arn("sqs", "dead")}},
    )
    lambdas.invoke(FunctionName="tiny", InvocationType="Event", Payload=b'{"do": "raise"}')
    world.until(lambda: world.letters(world.dead) == ['{"do": "raise"}'])
    assert len(world.running.given_up) == 1
    answer = lambdas.invoke(FunctionName="tiny", Payload=b'{"do": "raise"}', LogType="Tail")
    assert answer["FunctionError"] == "Unhandled"
    assert b"as asked" in answer["Payload"].read()


def _lines(account: Account) -> list[str]:
    logs = account.client("logs")
    streams = logs.describe_log_streams(logGroupName="/aws/lambda/tiny")["logStreams"]
    pages = [
        logs.get_log_events(logGroupName="/aws/lambda/tiny", logStreamName=one["logStreamName"]) for one in streams
    ]
    return [event["message"] for page in pages for event in page["events"]]


def _now() -> datetime:
    return datetime.now(UTC)
