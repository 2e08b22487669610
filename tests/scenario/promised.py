"""What was promised: the first plan for each pod, to be held against what is paid when all of them run."""

from typing import Any

import pytest

from shared.scheduling import headroom
from shared.scheduling.headroom import Planned

MOST = 1.03
"""Times what was planned first: so much may be paid in the end."""


class Promise:
    """Listens to every plan; a node counts if no plan before was for any of its pods."""

    def __init__(self) -> None:
        """Begin with nothing planned."""
        self.usd_per_hour = 0.0
        self._seen: set[str] = set()

    def plan(self, *arguments: Any, **more: Any) -> Planned:
        """Plan as ever, and remember what it costs."""
        found = headroom.plan(*arguments, **more)
        for node in found.placement.new_nodes:
            if self._seen.isdisjoint(node.pods):
                self.usd_per_hour += node.cheapest.price_usd_per_hour
                self._seen.update(node.pods)
        return found


def promise(monkeypatch: pytest.MonkeyPatch) -> Promise:
    """Listen from now on."""
    made = Promise()
    monkeypatch.setattr("shared.cycle.plan", made.plan)
    return made
