"""What was promised: the first plan for each pod that was acted on, to be held against what is paid in the end."""

import pytest

from shared.model.action import Action
from shared.model.cluster import Cluster
from shared.scheduling import decide
from shared.scheduling.placement import Placement

DECIDE = decide.decide
MOST = 1.03
"""Times what was planned first: so much may be paid in the end."""


class Promise:
    """Listens to every plan that makes claims; a node counts if none before was for any of its pods."""

    def __init__(self) -> None:
        """Begin with nothing planned."""
        self.usd_per_hour = 0.0
        self._seen: set[str] = set()

    def decide(self, cluster: Cluster, placement: Placement) -> tuple[Action, ...]:
        """Decide as ever, and remember what it costs."""
        for node in placement.new_nodes:
            if self._seen.isdisjoint(node.pods):
                self.usd_per_hour += node.cheapest.price_usd_per_hour
                self._seen.update(node.pods)
        return DECIDE(cluster, placement)


def promise(monkeypatch: pytest.MonkeyPatch) -> Promise:
    """Listen from now on."""
    made = Promise()
    monkeypatch.setattr(decide, "decide", made.decide)
    return made
