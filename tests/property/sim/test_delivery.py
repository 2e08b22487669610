"""Whatever fails, however often: a message is processed once for each time it was handled well, or it is dead."""

from collections import Counter
from datetime import timedelta
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from shared.ports.world import World
from shared.settings import Settings
from sim.fault_tap import Killed
from sim.lambda_runtime.invocation import Event, HandlerResponse
from sim.lambda_runtime.runtime import LambdaRuntime
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.time.virtual_clock import Clock

MAX_RECEIVES = 3
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Worker": {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "functions.worker.handler.handler"}},
        "Work": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "QueueName": "worker",
                "VisibilityTimeout": 30,
                "RedrivePolicy": {
                    "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]},
                    "maxReceiveCount": MAX_RECEIVES,
                },
            },
        },
        "Dead": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "dead"}},
        "Reads": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "BatchSize": 4,
                "EventSourceArn": {"Fn::GetAtt": ["Work", "Arn"]},
                "FunctionName": {"Ref": "Worker"},
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
                "ScalingConfig": {"MaximumConcurrency": 2},
            },
        },
    }
}
WIRING = StackWiring.parse(TEMPLATE)

fates = st.lists(st.sampled_from(["ok", "refuse", "raise", "die"]), min_size=MAX_RECEIVES, max_size=MAX_RECEIVES)
messages = st.lists(st.tuples(st.integers(0, 120), fates), max_size=12)


def run_delivery(
    sent: list[tuple[int, list[str]]], seed: int, seconds: int, copies: int
) -> tuple[LambdaRuntime, Counter[str], Counter[str]]:
    """Send each message after its delay; what its n-th attempt does is the n-th of its fates, the worst of a batch."""
    successes: Counter[str] = Counter()
    attempts: Counter[str] = Counter()

    def handle(event: Event, world: World) -> HandlerResponse:
        del world
        fate = {}
        for record in event["Records"]:
            index = int(record["attributes"]["ApproximateReceiveCount"]) - 1
            attempts[record["messageId"]] += 1
            fate[record["messageId"]] = sent[int(record["body"])][1][index]
        if "die" in fate.values():
            raise Killed("gone")
        if "raise" in fate.values():
            raise ValueError("broken")
        successes.update(key for key, value in fate.items() if value == "ok")
        return {"batchItemFailures": [{"itemIdentifier": key} for key, value in fate.items() if value == "refuse"]}

    clock = Clock()
    world = World(
        settings=Settings(cluster_name="demo", region="us-east-1"),
        clock=clock.get_time,
        emit=lambda _: None,
        **dict.fromkeys(
            ("kube", "ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket"), cast("Any", None)
        ),
    )
    runtime = LambdaRuntime(
        clock,
        WIRING,
        lambda _name, _environment: world,
        seed,
        load_handle=lambda _: handle,
        get_duration=lambda _name, _event: timedelta(seconds=seconds),
    )
    runtime.count_copies = lambda _queue, _body: copies
    for index, (delay, _) in enumerate(sent):
        runtime.add("worker", str(index), timedelta(seconds=delay))
    clock.advance(timedelta(hours=2))
    return runtime, successes, attempts


@given(messages, st.integers(0, 5), st.integers(0, 2), st.integers(0, 2))
def test_every_message_is_processed_once_or_becomes_a_dead_letter(
    sent: list[tuple[int, list[str]]], seed: int, seconds: int, copies: int
) -> None:
    runtime, successes, _ = run_delivery(sent, seed, seconds, copies)
    dead = Counter(message.id for message in runtime.get_queue("dead").messages)
    assert runtime.get_queue("worker").messages == ()
    assert (successes + dead) == Counter({f"message-{n + 1:06d}": 1 for n in range(copies * len(sent))})


@given(messages, st.integers(0, 5))
def test_no_message_is_received_more_often_than_the_queue_allows(sent: list[tuple[int, list[str]]], seed: int) -> None:
    runtime, successes, attempts = run_delivery(sent, seed, 0, 1)
    assert all(count <= MAX_RECEIVES for count in attempts.values())
    for message in runtime.get_queue("dead").messages:
        assert attempts[message.id] == MAX_RECEIVES
        assert not successes[message.id]


@given(messages, st.integers(0, 5))
def test_same_seed_produces_the_same_invocations(sent: list[tuple[int, list[str]]], seed: int) -> None:
    assert run_delivery(sent, seed, 1, 1)[0].invocations == run_delivery(sent, seed, 1, 1)[0].invocations
