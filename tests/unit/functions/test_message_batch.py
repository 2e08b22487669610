"""Partial failures of a batch of queue messages."""

import pytest

from functions.events import list_messages
from functions.interrupt import handler
from functions.message_batch import build_batch_response
from shared.cycles import interrupt
from shared.cycles.setup.run_cycle import CycleReport
from tests.support.actions_world import Outside

EVENT: dict[str, object] = {
    "Records": [{"messageId": "a", "body": "1"}, {"messageId": "b", "body": "2"}, {"messageId": "c", "body": "2"}]
}


@pytest.mark.parametrize(
    ("unsettled", "returned_ids"), [((), []), ((1,), ["b"]), ((2, 0), ["a", "c"]), ((0, 1, 2), ["a", "b", "c"])]
)
def test_only_unsettled_messages_are_delivered_again(unsettled: tuple[int, ...], returned_ids: list[str]) -> None:
    response = build_batch_response(list_messages(EVENT), unsettled)
    assert response == {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned_ids]}


def test_an_unsettled_message_without_id_makes_sqs_deliver_the_whole_batch_again() -> None:
    messages = list_messages({"Records": [{"body": "1"}, {"messageId": "b"}]})
    assert build_batch_response(messages, (0,)) == {"batchItemFailures": [{"itemIdentifier": ""}]}


def test_one_cycle_handles_all_messages_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[tuple[str, list[str]]] = []

    def run_interrupt(_world: object, trigger: str, bodies: list[str]) -> CycleReport:
        batches.append((trigger, bodies))
        return CycleReport(unsettled=(2,))

    monkeypatch.setattr(interrupt, "run_interrupt", run_interrupt)
    response = handler.handle(EVENT, Outside().build_world())
    assert batches == [("message", ["1", "2", "2"])]
    assert response == {"actions": 0, "batchItemFailures": [{"itemIdentifier": "c"}]}
