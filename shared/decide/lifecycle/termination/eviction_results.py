"""Events about the outcomes of evictions: for the evicted pod, and for the Node that a budget keeps from draining."""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import EvictPod, PublishEvent
from shared.model.decisions.action_outcome import Outcome

_REFUSED_PREFIX: Final = "EvictionRefused: "


def describe_evictions(outcomes: Iterable[Outcome], cluster: ClusterSnapshot) -> Iterator[PublishEvent]:
    """Yield an event for each evicted pod, and one for each Node with the first eviction that a budget refused."""
    uids = {node.name: node.meta.uid for node in cluster.nodes}
    reported_nodes: set[str] = set()
    for outcome in outcomes:
        action = outcome.action
        if not isinstance(action, EvictPod):
            continue
        if outcome.result == "done":
            yield PublishEvent(
                kind="Pod",
                name=action.name,
                namespace=action.namespace,
                uid=action.uid,
                type="Normal",
                reason="Evicted",
                message=f"Evicted pod: {action.message}",
                at=cluster.taken_at,
            )
        elif outcome.message.startswith(_REFUSED_PREFIX) and action.node not in reported_nodes:
            reported_nodes.add(action.node)
            yield PublishEvent(
                kind="Node",
                name=action.node,
                uid=uids.get(action.node, ""),
                type="Warning",
                reason="FailedDraining",
                message=(
                    f"pod {action.namespace}/{action.name} is not evicted: "
                    f"{outcome.message.removeprefix(_REFUSED_PREFIX)}"
                ),
                at=cluster.taken_at,
            )
