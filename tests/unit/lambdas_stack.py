"""A deployed stack of one function and one queue, for tests of the runtime."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from shared.ports import World
from shared.settings import Settings
from sim.clock import Clock
from sim.faults import Killed
from sim.lambdas.intrinsics import Json
from sim.lambdas.invocation import Answer, Event, Handle
from sim.lambdas.runtime import LambdaRuntime
from sim.lambdas.wiring import Wiring

Behave = Callable[[Event, World], Answer]

PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"


def function(name: str, **properties: object) -> dict[str, Any]:
    environment = {"Variables": {"CLUSTER_NAME": "demo", "JOINER_REGION": "here", "JOINER_QUEUE_PREFIX": PREFIX}}
    handler = f"functions.{name}.handler.handler"
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {"Handler": handler, "Timeout": 20, "Environment": environment, **properties},
    }


def rule(target: str, **properties: object) -> dict[str, Any]:
    targets = [{"Arn": {"Fn::GetAtt": [target, "Arn"]}, "Id": "a"}]
    return {"Type": "AWS::Events::Rule", "Properties": {"Targets": targets, **properties}}


def ticks(target: str, expression: str) -> dict[str, Any]:
    called = {"Arn": {"Fn::GetAtt": [target, "Arn"]}}
    said = {"ScheduleExpression": expression, "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": called}
    return {"Type": "AWS::Scheduler::Schedule", "Properties": said}


def reads(**properties: object) -> dict[str, Any]:
    source = {"EventSourceArn": {"Fn::GetAtt": ["Work", "Arn"]}, "FunctionName": {"Ref": "Worker"}}
    reports = {"FunctionResponseTypes": ["ReportBatchItemFailures"], "BatchSize": 3}
    return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {**source, **reports, **properties}}


REDRIVE = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3}
WORK = {"QueueName": "worker", "VisibilityTimeout": 60, "RedrivePolicy": REDRIVE}
BASE: dict[str, Any] = {
    "Worker": function("worker"),
    "Work": {"Type": "AWS::SQS::Queue", "Properties": WORK},
    "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "dead"}},
    "Reads": reads(),
}


class Stack:
    """A deployed stack whose functions do what a test says; remembers what they were handed."""

    def __init__(self, resources: dict[str, Any], behave: Behave, **options: Json) -> None:
        """Deploy *resources* with functions that all *behave*; *options* are the runtime's."""
        self.clock = Clock()
        self.begun = self.clock.now()
        self.seen: list[tuple[float, str, Event]] = []
        self.worlds: list[World] = []
        self.built: list[str] = []
        self._behave = behave
        wiring = Wiring.parse({"Resources": resources})
        self.runtime = LambdaRuntime(self.clock, wiring, self._world, load=self._load, **options)

    def _world(self, name: str, environment: dict[str, str]) -> World:
        self.built.append(name)
        nothing = cast("Any", None)
        return World(
            settings=Settings.from_environment(environment),
            kube=nothing,
            ec2=nothing,
            parameters=nothing,
            prices=nothing,
            eks=nothing,
            mailbox=self.runtime.mailbox(),
            table=nothing,
            bucket=nothing,
            clock=self.clock.now,
            emit=lambda _: None,
            name=environment.get("NAME", ""),
        )

    def _load(self, handler: str) -> Handle:
        def handle(event: Event, world: World) -> Answer:
            self.seen.append((self.seconds(), handler.split(".")[1], event))
            self.worlds.append(world)
            return self._behave(event, world)

        return handle

    def seconds(self) -> float:
        return (self.clock.now() - self.begun).total_seconds()

    def run(self, seconds: float) -> None:
        self.clock.run_until(self.begun + timedelta(seconds=seconds))

    def bodies(self) -> list[tuple[float, list[str]]]:
        return [(at, [record["body"] for record in event["Records"]]) for at, _, event in self.seen]

    def outcomes(self) -> list[str]:
        return [invocation.outcome for invocation in self.runtime.records]


def succeed(event: Event, world: World) -> Answer:
    del event, world
    return None


def fail(event: Event, world: World) -> Answer:
    del event, world
    raise ValueError("broken")


def die(event: Event, world: World) -> Answer:
    del event, world
    raise Killed("out of memory")
