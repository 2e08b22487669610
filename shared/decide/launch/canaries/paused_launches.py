"""Launches of EC2NodeClasses whose nodes do not register: none while launches are paused, or one node as a test."""

from collections.abc import Collection
from typing import Final

from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.health.launch_failures import find_launch_pause
from shared.model.karpenter.node_claim import NodeClaim

PAUSED_MESSAGE: Final = (
    "launches are paused: nodes of its EC2NodeClass do not register, and one node at a time is launched as a test"
)


class PausedLaunches:
    """How many nodes of each EC2NodeClass with paused launches may still be launched, while launches are planned."""

    def __init__(self, cluster: ClusterSnapshot, open_claims: Collection[str]) -> None:
        """Find the classes with paused launches; *open_claims*: claims of requests whose result is not applied yet."""
        self._remaining_by_class: dict[str, int] = {}
        for node_class in cluster.node_classes:
            pause = find_launch_pause(node_class, cluster.node_claims, cluster.taken_at)
            if pause is not None:
                has_open_request = any(
                    claim.node_class.name == node_class.name and claim.name in open_claims
                    for claim in cluster.node_claims
                )
                is_allowed = pause.is_test_due(cluster.taken_at) and not has_open_request
                self._remaining_by_class[node_class.name] = int(is_allowed)

    def count_allowed(self, claims: list[NodeClaim]) -> int:
        """Return how many of *claims*, all of one EC2NodeClass, may be launched."""
        return min(self._remaining_by_class.get(claims[0].node_class.name, len(claims)), len(claims))

    def count_launch(self, claims: list[NodeClaim]) -> None:
        """Count the launch of *claims*, all of one EC2NodeClass: claims that something else refuses are no test."""
        name = claims[0].node_class.name
        if name in self._remaining_by_class:
            self._remaining_by_class[name] -= len(claims)
