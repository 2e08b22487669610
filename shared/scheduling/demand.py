"""Which pods need a place, which of them can have none, and which are alike."""

from collections.abc import Iterable
from datetime import datetime
from operator import add

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import NODEPOOL, is_restricted
from shared.model.objects import condition
from shared.model.pods import HostPort, Pod, PodDisruptionBudget, PodSpec, strict_requirements
from shared.model.requirements import Requirements
from shared.model.resources import CPU, MEMORY, NONE, Axes, Vector
from shared.model.state import StateNode
from shared.scheduling.placement import Options, Reason, Unschedulable
from shared.scheduling.relaxation import Stage, stages
from shared.scheduling.topology import Topology
from shared.scheduling.volumes import Volumes


class PodClass(msgspec.Struct, kw_only=True, eq=False):
    """Pods that are alike, in the order of the queue."""

    spec: PodSpec
    stages: tuple[Stage, ...]
    bound: tuple[tuple[int, ...], ...]
    """By stage: the groups whose rules bind it."""
    counted: tuple[int, ...]
    """The groups in which it counts."""
    selecting: tuple[int, ...]
    need: Vector
    alternatives: tuple[Requirements, ...]
    """Where its volumes can be: any one of these."""
    drivers: tuple[tuple[str, frozenset[str]], ...] = ()
    """Volumes that count against a limit, by CSI driver; a class of one pod if there are any."""
    pods: list[Pod]

    @property
    def ports(self) -> tuple[HostPort, ...]:
        """Ports of the node that each pod takes."""
        return self.spec.host_ports

    def times(self, count: int, more: Vector) -> Vector:
        """Answer what *count* pods need, and *more*."""
        return tuple(map(add, more, (count * amount for amount in self.need)))


def default_pods(cluster: Cluster, states: Iterable[StateNode], excluded: frozenset[str]) -> tuple[Pod, ...]:
    """Answer the pods that wait, and those that have to leave nodes that are going."""
    waiting = [pod for pod in cluster.pods if pod.is_provisionable()]
    leaving = [
        pod
        for state in states
        if state.is_marked() or state.name in excluded
        for pod in state.pods
        if is_currently_reschedulable(pod, cluster)
    ]
    return (*waiting, *leaving)


def is_currently_reschedulable(pod: Pod, cluster: Cluster) -> bool:
    """Whether it needs another place now: it may be moved and no budget forbids that for good."""
    now = cluster.taken_at
    return pod.is_reschedulable() and pod.is_disruptable(now) and not is_fully_blocked(pod, cluster.budgets, now)


def is_fully_blocked(pod: Pod, budgets: Iterable[PodDisruptionBudget], now: datetime) -> bool:
    """Whether no eviction of *pod* can ever succeed."""
    if not pod.is_evictable(now):
        return False
    mine = [budget for budget in budgets if budget.selects(pod)]
    ready = condition(pod.conditions, "Ready")
    unhealthy = ready is not None and ready.status == "False"
    return len(mine) > 1 or any(
        budget.is_fully_blocking() and not (budget.always_allows_unhealthy and unhealthy) for budget in mine
    )


def in_order(pods: Iterable[Pod], taken_at: datetime) -> list[Pod]:
    """Sort the queue: most cpu, most memory, oldest, by uid, by name."""

    def key(pod: Pod) -> tuple[int, int, datetime, str, str]:
        requests = pod.spec.requests
        return (-requests[CPU], -requests[MEMORY], pod.meta.created_at or taken_at, pod.meta.uid, pod.name)

    return sorted(pods, key=key)


def verdict(pod: Pod, volumes: Volumes) -> Unschedulable | None:
    """Answer why *pod* cannot be planned for at all, None if it can."""
    found = _fault(pod, volumes)
    return None if found is None else Unschedulable(pod=pod.name, reason=found[0], message=found[1])


def _fault(pod: Pod, volumes: Volumes) -> tuple[Reason, str] | None:
    spec = pod.spec
    if spec.has_resource_claims:
        return "ResourceClaimsIgnored", "spec.resourceClaims: dynamic resource allocation is not supported"
    if pod.node_name:
        return None
    first = strict_requirements(spec)
    if NODEPOOL in first and first[NODEPOOL].operator == "DoesNotExist":
        return "OptedOut", f"its requirements want no node with {NODEPOOL}: nothing is made for it"
    if spec.has_match_fields:
        return "InvalidPod", "required node affinity uses matchFields: use matchExpressions on a label"
    wanted = [strict_requirements(spec, term) for term in range(max(1, len(spec.required_terms)))]
    restricted = sorted({item.key for term in wanted for item in term if is_restricted(item.key)})
    if restricted:
        return "InvalidPod", f"requires {', '.join(restricted)}, which is restricted: select on another label"
    fault = volumes.fault(pod)
    return ("VolumeNotUsable", fault) if fault else None


def stages_of(pods: Iterable[Pod], options: Options, *, discouraged: bool) -> dict[PodSpec, tuple[Stage, ...]]:
    """Answer what is tried for each kind of pod, by its spec without requests."""
    return {
        shape: stages(shape, options.preference_policy, discouraged=discouraged)
        for shape in dict.fromkeys(shape_of(pod) for pod in pods)
    }


def shape_of(pod: Pod) -> PodSpec:
    """Answer what decides where *pod* may be, room aside."""
    return msgspec.structs.replace(pod.spec, requests=NONE)


def classes(
    pods: Iterable[Pod], tried: dict[PodSpec, tuple[Stage, ...]], found: Topology, volumes: Volumes, axes: Axes
) -> list[PodClass]:
    """Put pods that are alike together, in the order of *pods*."""
    made: dict[tuple[object, ...], PodClass] = {}
    for pod in pods:
        some = tried[shape_of(pod)]
        key = _likeness(pod, some[0], found, volumes)
        if key in made:
            made[key].pods.append(pod)
        else:
            made[key] = _class(pod, some, found, volumes, axes)
    return list(made.values())


def _likeness(pod: Pod, stage: Stage, found: Topology, volumes: Volumes) -> tuple[object, ...]:
    groups = (found.rules(pod, stage), found.counted(pod)) if found.groups else ()
    if not pod.spec.volume_claims:
        return (pod.spec, groups)
    one = pod.name if volumes.attached((pod,)) else ""
    return (pod.spec, groups, pod.meta.namespace, one)


def _class(pod: Pod, some: tuple[Stage, ...], found: Topology, volumes: Volumes, axes: Axes) -> PodClass:
    attached = volumes.attached((pod,)) if pod.spec.volume_claims else {}
    return PodClass(
        spec=pod.spec,
        stages=some,
        bound=tuple(found.rules(pod, stage) for stage in some) if found.groups else ((),) * len(some),
        counted=found.counted(pod) if found.groups else (),
        selecting=found.selecting(pod) if found.groups else (),
        need=axes.vector(pod.spec.requests),
        alternatives=volumes.alternatives(pod),
        drivers=tuple((driver, frozenset(keys)) for driver, keys in sorted(attached.items())),
        pods=[pod],
    )
