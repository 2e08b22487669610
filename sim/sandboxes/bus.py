"""EventBridge's default bus: an event goes to the targets of every rule whose pattern it matches."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import count
from typing import Any

import msgspec

from sim.lambdas.pattern import checked, matches
from sim.sandboxes.deliveries import Deliveries, Target


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that waits for events."""

    name: str
    pattern: str
    """JSON."""
    targets: tuple[Target, ...]


class Bus:
    """Takes events."""

    def __init__(
        self,
        rules: Callable[[], Iterable[Rule]],
        deliveries: Deliveries,
        clock: Callable[[], datetime],
        *,
        account: str,
        region: str,
    ) -> None:
        """Ask *rules* what there is, each time; *account* and *region* are what an envelope says."""
        self._rules, self._deliveries, self._clock = rules, deliveries, clock
        self._account, self._region, self._numbers = account, region, count(1)

    def put(self, event: Mapping[str, Any]) -> None:
        """Put *event*; what every envelope has is filled in where it lacks it.

        Raises:
            UnsupportedTemplateError: a rule's pattern has an operator that is unknown here.
        """
        envelope = {
            "version": "0",
            "id": f"event-{next(self._numbers):06d}",
            "account": self._account,
            "time": f"{self._clock():%Y-%m-%dT%H:%M:%SZ}",
            "region": self._region,
            "resources": [],
            "detail": {},
        }
        text = json.dumps(envelope | dict(event))
        whole = json.loads(text)
        for rule in self._rules():
            if matches(checked(json.loads(rule.pattern)), whole):
                for target in rule.targets:
                    self._deliveries.send(target, text, f"rule {rule.name}")
