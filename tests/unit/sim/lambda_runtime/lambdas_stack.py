"""A deployed stack of one function and one queue, for tests of the runtime."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

from shared.ports.world import World
from shared.settings import Settings
from sim.fault_tap import Killed
from sim.lambda_runtime.invocation import Event, HandleFunction, HandlerResponse
from sim.lambda_runtime.runtime import LambdaRuntime
from sim.lambda_runtime.stack_template.intrinsic_functions import Json
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.time.virtual_clock import Clock

Behave = Callable[[Event, World], HandlerResponse]

PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"


def make_function(name: str, **properties: object) -> dict[str, Any]:
    environment = {"Variables": {"CLUSTER_NAME": "demo", "JOINER_REGION": "here", "JOINER_QUEUE_PREFIX": PREFIX}}
    handler = f"functions.{name}.handler.handler"
    return {
        "Type": "AWS::Lambda::Function",
        "Properties": {"Handler": handler, "Timeout": 20, "Environment": environment, **properties},
    }


def make_rule(target: str, **properties: object) -> dict[str, Any]:
    targets = [{"Arn": {"Fn::GetAtt": [target, "Arn"]}, "Id": "a"}]
    return {"Type": "AWS::Events::Rule", "Properties": {"Targets": targets, **properties}}


def make_schedule(target: str, expression: str) -> dict[str, Any]:
    target_fields = {"Arn": {"Fn::GetAtt": [target, "Arn"]}}
    schedule_properties = {
        "ScheduleExpression": expression,
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": target_fields,
    }
    return {"Type": "AWS::Scheduler::Schedule", "Properties": schedule_properties}


def make_event_source_mapping(**properties: object) -> dict[str, Any]:
    source = {"EventSourceArn": {"Fn::GetAtt": ["Work", "Arn"]}, "FunctionName": {"Ref": "Worker"}}
    reports = {"FunctionResponseTypes": ["ReportBatchItemFailures"], "BatchSize": 3}
    return {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {**source, **reports, **properties}}


REDRIVE = {"deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}, "maxReceiveCount": 3}
WORK = {"QueueName": "worker", "VisibilityTimeout": 60, "RedrivePolicy": REDRIVE}
BASE: dict[str, Any] = {
    "Worker": make_function("worker"),
    "Work": {"Type": "AWS::SQS::Queue", "Properties": WORK},
    "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "dead"}},
    "Reads": make_event_source_mapping(),
}


class Stack:
    """A deployed stack whose functions behave as a test defines, with a record of the events they received."""

    def __init__(self, resources: dict[str, Any], behave: Behave, **options: Json) -> None:
        """Deploy *resources*; every function calls *behave*, and *options* are those of the runtime."""
        self.clock = Clock()
        self.started_at = self.clock.get_time()
        self.received_events: list[tuple[float, str, Event]] = []
        self.worlds: list[World] = []
        self.built_function_names: list[str] = []
        self._behave = behave
        wiring = StackWiring.parse({"Resources": resources})
        self.runtime = LambdaRuntime(self.clock, wiring, self._build_world, load_handle=self._load, **options)

    def _build_world(self, name: str, environment: dict[str, str]) -> World:
        self.built_function_names.append(name)
        unused_port = cast("Any", None)
        return World(
            settings=Settings.from_environment(environment),
            kube=unused_port,
            ec2=unused_port,
            parameters=unused_port,
            prices=unused_port,
            eks=unused_port,
            mailbox=self.runtime.build_message_queue(),
            table=unused_port,
            bucket=unused_port,
            clock=self.clock.get_time,
            emit=lambda _: None,
            name=environment.get("NAME", ""),
        )

    def _load(self, handler: str) -> HandleFunction:
        def handle(event: Event, world: World) -> HandlerResponse:
            self.received_events.append((self.get_elapsed_seconds(), handler.split(".")[1], event))
            self.worlds.append(world)
            return self._behave(event, world)

        return handle

    def get_elapsed_seconds(self) -> float:
        return (self.clock.get_time() - self.started_at).total_seconds()

    def run(self, seconds: float) -> None:
        self.clock.run_until(self.started_at + timedelta(seconds=seconds))

    def list_message_bodies(self) -> list[tuple[float, list[str]]]:
        return [(at, [record["body"] for record in event["Records"]]) for at, _, event in self.received_events]

    def list_outcomes(self) -> list[str]:
        return [invocation.outcome for invocation in self.runtime.invocations]


def handle_successfully(event: Event, world: World) -> HandlerResponse:
    del event, world
    return None


def raise_value_error(event: Event, world: World) -> HandlerResponse:
    del event, world
    raise ValueError("broken")


def raise_killed(event: Event, world: World) -> HandlerResponse:
    del event, world
    raise Killed("out of memory")
