"""The `EventBus` port on EventBridge as moto simulates it, and in memory."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from moto import mock_aws

from shared.aws.clients import Clients
from shared.aws.eventbridge import EventBridgeBus
from shared.errors import Invalid
from shared.ports.messaging import BusEvent, EventBus
from sim.world.memory_ports import MemoryEventBus

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
ReceiveEvents = Callable[[], list[tuple[str, str, dict[str, str]]]]


@pytest.fixture
def clients() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


def make_event(number: int, detail: str = "{}") -> BusEvent:
    return BusEvent(event_id=str(number), detail_type="Node Launched", at=NOW, detail=detail)


def create_bus_with_a_rule(clients: Clients) -> tuple[EventBridgeBus, ReceiveEvents]:
    """Return a bus, and a function that receives what the target of its rule got."""
    events, sqs = clients.get_retrying_client("events"), clients.get_retrying_client("sqs")
    events.create_event_bus(Name="alerts")
    url = sqs.create_queue(QueueName="alerts")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="all", EventBusName="alerts", EventPattern=json.dumps({"source": ["joiner"]}))
    events.put_targets(Rule="all", EventBusName="alerts", Targets=[{"Id": "queue", "Arn": queue}])

    def receive_events() -> list[tuple[str, str, dict[str, str]]]:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        bodies = [json.loads(message["Body"]) for message in messages]
        return sorted((body["source"], body["detail-type"], body["detail"]) for body in bodies)

    return EventBridgeBus(clients, "alerts"), receive_events


def create_memory_bus() -> tuple[MemoryEventBus, ReceiveEvents]:
    bus = MemoryEventBus()
    return bus, lambda: [(event.source, event.detail_type, json.loads(event.detail)) for event in bus.events]


@pytest.fixture(params=["moto", "memory"])
def bus(request: pytest.FixtureRequest, clients: Clients) -> tuple[EventBus, ReceiveEvents]:
    return create_bus_with_a_rule(clients) if request.param == "moto" else create_memory_bus()


def test_event_reaches_the_target_of_a_rule_with_its_detail(bus: tuple[EventBus, ReceiveEvents]) -> None:
    port, receive = bus
    assert port.put([make_event(1, '{"id": "1"}')]) == ((), "")
    assert receive() == [("joiner", "Node Launched", {"id": "1"})]


@pytest.mark.parametrize("count", [0, 11])
def test_other_numbers_of_events_than_1_to_10_are_rejected(count: int, bus: tuple[EventBus, ReceiveEvents]) -> None:
    port, receive = bus
    with pytest.raises((Invalid, ValueError)):
        port.put([make_event(number) for number in range(count)])
    assert receive() == []


def test_refused_entries_are_returned_with_the_first_error_in_one_attempt(clients: Clients) -> None:
    bus = EventBridgeBus(clients, "alerts")
    answer = {
        "FailedEntryCount": 2,
        "Entries": [
            {"EventId": "1"},
            {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"},
            {"ErrorCode": "InternalFailure", "ErrorMessage": "again"},
        ],
    }
    client = clients.get_single_attempt_client("events")
    client.meta.events.register("before-call.events.PutEvents", lambda **_: (FakeResponse(), answer))
    assert bus.put([make_event(number) for number in range(3)]) == ((1, 2), "ThrottlingException: slow down")


class FakeResponse:
    """A successful HTTP response."""

    status_code = 200
