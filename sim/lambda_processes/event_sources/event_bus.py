"""EventBridge's default event bus: delivers an event to the targets of every rule that matches it."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import count
from typing import Any

import msgspec

from sim.lambda_processes.event_sources.event_deliveries import DeliveryTarget, EventDeliveries
from sim.lambda_runtime.event_pattern import check_pattern, matches_pattern
from sim.lambda_runtime.event_payloads import build_event_envelope


class EventBusRule(msgspec.Struct, frozen=True, kw_only=True):
    """An EventBridge rule with an event pattern."""

    name: str
    pattern: str
    """JSON."""
    targets: tuple[DeliveryTarget, ...]


class DefaultEventBus:
    """The default event bus of an account."""

    def __init__(
        self,
        list_rules: Callable[[], Iterable[EventBusRule]],
        deliveries: EventDeliveries,
        clock: Callable[[], datetime],
        *,
        account: str,
        region: str,
    ) -> None:
        """Read the current rules from *list_rules* for each event; *account* and *region* are used in the envelope."""
        self._list_rules, self._deliveries, self._clock = list_rules, deliveries, clock
        self._account, self._region, self._event_numbers = account, region, count(1)

    def put_event(self, event: Mapping[str, Any]) -> None:
        """Put *event* on the bus; missing fields of the envelope are added.

        Raises:
            UnsupportedTemplateError: a rule's pattern has an unsupported operator.
        """
        number, now = next(self._event_numbers), self._clock()
        event_text = json.dumps(build_event_envelope(event, number, self._account, self._region, now))
        complete_event = json.loads(event_text)
        for rule in self._list_rules():
            if matches_pattern(check_pattern(json.loads(rule.pattern)), complete_event):
                for target in rule.targets:
                    self._deliveries.add(target, event_text, f"rule {rule.name}")
