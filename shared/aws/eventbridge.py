"""Events through EventBridge."""

from collections.abc import Sequence

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.ports.messaging import BusEvent


class EventBridgeBus:
    """`shared.ports.messaging.EventBus` over boto3."""

    def __init__(self, clients: Clients, name: str) -> None:
        """Put events on the bus *name*, a name or an ARN in the clients' region; no call is made yet."""
        self._clients = clients
        self._name = name

    def put(self, events: Sequence[BusEvent]) -> tuple[tuple[int, ...], str]:
        """Call PutEvents, in one attempt: EventBridge refuses entries one by one.

        Raises:
            Fault: no event was accepted, or it is not known whether they were.
        """
        entries = [
            {
                "EventBusName": self._name,
                "Source": event.source,
                "DetailType": event.detail_type,
                "Time": event.at,
                "Detail": event.detail,
            }
            for event in events
        ]
        with translate_errors(f"events:PutEvents {self._name}"):
            answer = self._clients.get_single_attempt_client("events").put_events(Entries=entries)
        refused = [(index, entry) for index, entry in enumerate(answer["Entries"]) if entry.get("ErrorCode")]
        error = next((f"{entry['ErrorCode']}: {entry.get('ErrorMessage', '')}" for _, entry in refused), "")
        return tuple(index for index, _ in refused), error
