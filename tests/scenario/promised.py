"""The planned cost: the first plan for each pod with a launched node, to compare with the final cost."""

import pytest

from shared.decide.provisioning import provisioner
from shared.model.decisions.action import Action
from shared.model.decisions.placement import Placement
from shared.state.cluster_state import ClusterState

DECIDE = provisioner.build_placement_actions
MAX_COST_RATIO = 1.03
"""The final cost may be at most this multiple of the first plan's cost."""


class Promise:
    """Records every plan that creates claims; a node counts if no earlier plan covered any of its pods."""

    def __init__(self) -> None:
        """Start with nothing planned."""
        self.usd_per_hour = 0.0
        self._planned_pods: set[str] = set()

    def decide(self, cluster_state: ClusterState, placement: Placement) -> tuple[Action, ...]:
        """Decide as the product does, and record the planned cost."""
        for node in placement.new_nodes:
            if self._planned_pods.isdisjoint(node.pods):
                self.usd_per_hour += node.cheapest.price_usd_per_hour
                self._planned_pods.update(node.pods)
        return DECIDE(cluster_state, placement)


def record_promise(monkeypatch: pytest.MonkeyPatch) -> Promise:
    """Record plans from now on."""
    promise = Promise()
    monkeypatch.setattr(provisioner, "build_placement_actions", promise.decide)
    return promise
