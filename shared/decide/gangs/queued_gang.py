"""A gang in the queue of a plan: how many of its pods must be placed, and why it may have to wait."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from shared.decide.gangs.capacity_blocks import explain_block_wait
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.units import format_instant
from shared.state.gangs.gang_retries import GangRetry
from shared.state.gangs.gangs import Gang

_MAX_NAMES_IN_MESSAGE: Final = 3


class QueuedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang of which some pods are to be placed."""

    gang: Gang
    queued_names: frozenset[str]
    """Names of the pods that are to be placed."""
    kind: str = "gang"
    """What it is called in messages."""
    can_launch: bool = True
    """Whether nodes are launched for it; else only existing nodes count."""
    retry: GangRetry | None = None
    """When its nodes may be launched again after they were returned; None: they were not returned."""
    block_wait: str = ""
    """For which Capacity Block it waits; "": it waits for none."""

    @property
    def settled_count(self) -> int:
        """Number of its other pods that have a node, or for which kube-scheduler has nominated a node."""
        return sum(
            pod.name not in self.queued_names and bool(pod.node_name or pod.nominated_node_name)
            for pod in self.gang.pods
        )

    @property
    def needed_count(self) -> int:
        """Number of its pods in the queue that must be placed."""
        return max(0, self.gang.needed_count - self.settled_count)

    def list_untried_pods(self) -> list[str]:
        """Return the names of the pods that kube-scheduler has not tried yet, or that have scheduling gates."""
        return [
            pod.name
            for pod in self.gang.pods
            if pod.name not in self.queued_names and not pod.node_name and not pod.nominated_node_name
        ]

    def explain_wait(self, now: datetime) -> str:
        """Return why no pod of the gang may be placed yet; "" if nothing prevents it."""
        gang = self.gang
        if gang.problem:
            return gang.problem
        if self.retry is not None and self.retry.until > now and not self.block_wait:
            return (
                f"its nodes were returned because not all of them could be launched; next attempt at "
                f"{format_instant(self.retry.until)}"
            )
        if gang.missing_count:
            return f"{len(gang.pods)} of its {format_count(gang.size, 'pod')} exist: waiting for the others"
        if self.needed_count > len(self.queued_names):
            names = join_some_names(self.list_untried_pods())
            return f"kube-scheduler has not tried {names} yet, or scheduling gates keep it from that"
        return self.block_wait


def queue_gang(
    gang: Gang, queued_names: frozenset[str], retries: Mapping[str, GangRetry], cluster: ClusterSnapshot
) -> QueuedGang:
    """Return *gang*, of which the pods *queued_names* are to be placed."""
    block_wait = explain_block_wait(gang, cluster)
    return QueuedGang(gang=gang, queued_names=queued_names, retry=retries.get(gang.name), block_wait=block_wait)


def join_some_names(names: Sequence[str]) -> str:
    """Return the first names of pods, without their namespaces, and the number of the other ones."""
    return join_names((name.partition("/")[2] for name in names), _MAX_NAMES_IN_MESSAGE)
