"""Expected spec of the next pod of a DaemonSet: that of its newest pod, or the template.

The newest pod includes defaults and resizes. Required node affinity comes from the template if the template has any,
because the DaemonSet controller pins each pod to its node.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.units import EARLIEST_INSTANT
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.workloads import DaemonSet


def with_daemon_representatives(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with DaemonSets that have the requests of their newest active pods."""
    newest_pods = _find_newest_pods(cluster.pods)
    if not newest_pods:
        return cluster
    return replace(
        cluster, daemon_sets=tuple(_with_newest_spec(daemon_set, newest_pods) for daemon_set in cluster.daemon_sets)
    )


def _find_newest_pods(pods: Iterable[Pod]) -> Mapping[str, Pod]:
    """Return the newest active pod of each DaemonSet, by the uid of the DaemonSet."""
    newest_pods: dict[str, Pod] = {}
    for pod in pods:
        for owner in pod.meta.owners if pod.is_active() else ():
            if owner.kind == "DaemonSet" and owner.api_version == "apps/v1" and owner.uid:
                newest_pods[owner.uid] = max(newest_pods.get(owner.uid, pod), pod, key=_get_age_key)
    return newest_pods


def _get_age_key(pod: Pod) -> tuple[datetime, str]:
    return pod.meta.created_at or EARLIEST_INSTANT, pod.name


def _with_newest_spec(daemon_set: DaemonSet, newest_pods: Mapping[str, Pod]) -> DaemonSet:
    pod = newest_pods.get(daemon_set.meta.uid) if daemon_set.meta.uid else None
    if pod is None or pod.meta.namespace != daemon_set.meta.namespace:
        return daemon_set
    return replace(daemon_set, spec=_merge_specs(pod.spec, daemon_set.spec))


def _merge_specs(pod_spec: PodSpec, template_spec: PodSpec) -> PodSpec:
    return replace(
        pod_spec,
        required_terms=template_spec.required_terms or pod_spec.required_terms,
        preferred_terms=(),
        pod_affinity=template_spec.pod_affinity,
        pod_anti_affinity=template_spec.pod_anti_affinity,
        preferred_pod_affinity=(),
        preferred_pod_anti_affinity=(),
        spread=template_spec.spread,
        volume_claims=template_spec.volume_claims,
    )
