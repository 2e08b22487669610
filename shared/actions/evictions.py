"""What is said of evictions once it is known what became of them: of the pod that leaves, of the node that waits."""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.actions.apply import Outcome
from shared.model.action import EvictPod, PublishEvent
from shared.model.cluster import Cluster

_REFUSED: Final = "EvictionRefused: "


def tell_evictions(done: Iterable[Outcome], cluster: Cluster) -> Iterator[PublishEvent]:
    """Tell each pod that it was evicted and why, and each Node of the first eviction that a budget refuses."""
    uids = {node.name: node.meta.uid for node in cluster.nodes}
    told: set[str] = set()
    for one in done:
        action = one.action
        if not isinstance(action, EvictPod):
            continue
        if one.result == "done":
            yield PublishEvent(
                kind="Pod",
                name=action.name,
                namespace=action.namespace,
                uid=action.uid,
                type="Normal",
                reason="Evicted",
                message=f"Evicted pod: {action.why}",
                at=cluster.taken_at,
            )
        elif one.message.startswith(_REFUSED) and action.node not in told:
            told.add(action.node)
            yield PublishEvent(
                kind="Node",
                name=action.node,
                uid=uids.get(action.node, ""),
                type="Warning",
                reason="FailedDraining",
                message=f"pod {action.namespace}/{action.name} stays: {one.message.removeprefix(_REFUSED)}",
                at=cluster.taken_at,
            )
