"""How long pods waited: for the call that starts their machine, and until they ran."""

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from shared.model.action import CreateNodeClaim
from shared.model.cluster import Cluster
from shared.model.objects import condition, is_true
from shared.model.pods import Pod
from shared.report.journal import Done

TICK: Final = timedelta(minutes=1)
"""Between two scheduled cycles: each pod that starts is counted by one of them."""


def of_launches(cluster: Cluster, done: Iterable[Done]) -> dict[str, float]:
    """Answer how long the pods had been there for whom claims were made in a cycle; nothing where none were made."""
    asked = {
        pod
        for one in done
        if isinstance(one.action, CreateNodeClaim) and one.result == "done"
        for pod in one.action.pods
    }
    waited = [
        (cluster.taken_at - pod.meta.created_at).total_seconds()
        for pod in cluster.pods
        if pod.name in asked and pod.meta.created_at is not None
    ]
    return _shares("LaunchWaitSeconds", waited)


def of_starts(cluster: Cluster) -> dict[str, float]:
    """Answer how long the pods took to run that began to within the last minute, of those that waited for a machine."""
    made = {node.name: node.meta.created_at for node in cluster.nodes}
    took: list[float] = []
    for pod in cluster.pods:
        ran, created = _ran_after(pod, cluster), made.get(pod.node_name)
        began = pod.meta.created_at
        if ran is not None and began is not None and created is not None and created > began:
            took.append(ran)
    return {"StartedPods": float(len(took)), **_shares("StartSeconds", took)} if took else {}


def _ran_after(pod: Pod, cluster: Cluster) -> float | None:
    ready = condition(pod.conditions, "Ready")
    if ready is None or not is_true(pod.conditions, "Ready") or ready.since is None or pod.meta.created_at is None:
        return None
    is_news = cluster.taken_at - TICK < ready.since <= cluster.taken_at
    return (ready.since - pod.meta.created_at).total_seconds() if is_news else None


def _shares(name: str, some: Sequence[float]) -> dict[str, float]:
    ranked = sorted(some)
    return {f"{name}P{share}": ranked[math.ceil(len(ranked) * share / 100) - 1] for share in (50, 95) if ranked}
