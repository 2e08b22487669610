"""What a DaemonSet's next pod will ask for: what its newest pod does, which saw defaults and resizes, or its template.

Its place is that of the template, where the template has one: the DaemonSet controller pins each pod to its node.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.pods import DaemonSet, Pod, PodSpec

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def with_representatives(cluster: Cluster) -> Cluster:
    """Answer *cluster* with DaemonSets that ask for what their newest living pods do."""
    newest = _newest(cluster.pods)
    if not newest:
        return cluster
    return replace(cluster, daemon_sets=tuple(_represented(one, newest) for one in cluster.daemon_sets))


def _newest(pods: Iterable[Pod]) -> Mapping[str, Pod]:
    """Answer the newest pod by the uid of its DaemonSet."""
    found: dict[str, Pod] = {}
    for pod in pods:
        for owner in pod.meta.owners if pod.is_active() else ():
            if owner.kind == "DaemonSet" and owner.api_version == "apps/v1" and owner.uid:
                found[owner.uid] = max(found.get(owner.uid, pod), pod, key=_age)
    return found


def _age(pod: Pod) -> tuple[datetime, str]:
    return pod.meta.created_at or _LONG_AGO, pod.name


def _represented(one: DaemonSet, newest: Mapping[str, Pod]) -> DaemonSet:
    pod = newest.get(one.meta.uid) if one.meta.uid else None
    if pod is None or pod.meta.namespace != one.meta.namespace:
        return one
    return replace(one, spec=_spec(pod.spec, one.spec))


def _spec(living: PodSpec, template: PodSpec) -> PodSpec:
    return replace(
        living,
        required_terms=template.required_terms or living.required_terms,
        preferred_terms=(),
        pod_affinity=template.pod_affinity,
        pod_anti_affinity=template.pod_anti_affinity,
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=template.spread,
        volume_claims=template.volume_claims,
    )
