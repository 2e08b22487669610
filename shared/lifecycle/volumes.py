"""Which volumes a node still holds that its pods take with them."""

from collections.abc import Iterable
from datetime import datetime

from shared.model.cluster import Cluster
from shared.model.pods import Pod


def attached(cluster: Cluster, nodes: Iterable[str], pods: Iterable[Pod], now: datetime) -> tuple[str, ...]:
    """Answer the persistent volumes attached to *nodes*, sorted; those of *pods* that stay to the end do not count."""
    names = frozenset(nodes)
    held = {one.volume_name for one in cluster.volume_attachments if one.node_name in names and one.volume_name}
    return tuple(sorted(held - _of_staying_pods(cluster, pods, now))) if held else ()


def _of_staying_pods(cluster: Cluster, pods: Iterable[Pod], now: datetime) -> set[str]:
    wanted = {
        (pod.meta.namespace, claim)
        for pod in pods
        if pod.tolerates_disruption() or pod.is_stuck(now) or pod.is_mirror()
        for claim in pod.spec.volume_claims
    }
    return {one.volume_name for one in cluster.volume_claims if (one.meta.namespace, one.meta.name) in wanted}
