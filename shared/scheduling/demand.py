"""Which pods need a place, which of them can have none, and which are alike."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from operator import add, attrgetter
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import NODEPOOL
from shared.model.objects import Pairs, condition
from shared.model.pods import HostPort, Pod, PodDisruptionBudget, PodSpec, strict_requirements
from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import CPU, MEMORY, NONE, Axes, Vector
from shared.model.selectors import LabelSelector
from shared.model.state import StateNode
from shared.scheduling.aims import Aim, Register
from shared.scheduling.homes import hints_of
from shared.scheduling.invalid import fault_of
from shared.scheduling.placement import Options, Reason, Unschedulable
from shared.scheduling.relaxation import Stage, stages, without_the_impossible
from shared.scheduling.topology import Topology
from shared.scheduling.volumes import Volumes

ANYWHERE: Final = (ANYTHING,)
"""Where a pod without volumes can be."""


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
    aims: tuple[Aim, ...]
    """By stage: the same in numbers."""
    pods: list[Pod]

    @property
    def ports(self) -> tuple[HostPort, ...]:
        """Ports of the node that each pod takes."""
        return self.spec.host_ports

    def times(self, count: int, more: Vector) -> Vector:
        """Answer what *count* pods need, and *more*."""
        if count == 1:
            return tuple(map(add, more, self.need))
        return tuple(map(add, more, (count * amount for amount in self.need)))


def default_pods(cluster: Cluster, states: Iterable[StateNode], excluded: frozenset[str]) -> tuple[Pod, ...]:
    """Answer the pods that wait, and those that have to leave nodes that are going."""
    hints = hints_of(cluster)
    waiting = [pod for pod in cluster.pods if pod.is_provisionable() or hints.has(pod)]
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
    """Sort the queue: most cpu, most memory, oldest, by uid, by name; headroom behind all pods."""
    sizes: dict[int, tuple[int, int]] = {}

    def size(pod: Pod) -> tuple[int, int]:
        found = sizes.get(id(pod.spec))
        if found is None:
            requests = pod.spec.requests
            found = sizes[id(pod.spec)] = (-requests[CPU], -requests[MEMORY])
        return found

    some = sorted(pods, key=attrgetter("meta.uid", "meta.namespace", "meta.name"))
    some.sort(key=lambda pod: pod.meta.created_at or taken_at)
    some.sort(key=size)
    some.sort(key=Pod.is_headroom)
    return some


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
    invalid = fault_of(spec)
    if invalid:
        return "InvalidPod", invalid
    fault = volumes.fault(pod)
    return ("VolumeNotUsable", fault) if fault else None


class Kind(msgspec.Struct, kw_only=True, eq=False):
    """Pods that differ in no more than their names and ages."""

    first: Pod
    """It stands for all of them."""
    shape: PodSpec
    """What decides where they may be, room aside."""
    places: list[int]
    """In the queue."""


def kinds(queue: Iterable[Pod]) -> list[Kind]:
    """Part the *queue* by kind, in order of their first.

    Specs that are one object are not compared; others are, once for each object.
    """
    numbers: dict[int, int] = {}
    by_value: dict[PodSpec, int] = {}
    made: dict[tuple[int, Pairs, str, str, bool], Kind] = {}
    shapes: dict[PodSpec, PodSpec] = {}
    for place, pod in enumerate(queue):
        spec, meta = pod.spec, pod.meta
        number = numbers.get(id(spec))
        if number is None:
            number = numbers[id(spec)] = by_value.setdefault(spec, len(by_value))
        key = (number, meta.labels, meta.namespace, pod.node_name, pod.is_headroom())
        kind = made.get(key)
        if kind is None:
            shape = msgspec.structs.replace(spec, requests=NONE)
            made[key] = Kind(first=pod, shape=shapes.setdefault(shape, shape), places=[place])
        else:
            kind.places.append(place)
    return list(made.values())


def stages_of(
    some: Iterable[Kind], options: Options, pods: Iterable[Pod], *, discouraged: bool
) -> dict[int, tuple[Stage, ...]]:
    """Answer what is tried for each kind of pod, by the id of its shape; *pods* are all that there are."""
    found: dict[int, tuple[Stage, ...]] = {}
    is_anybody = _somebody_among(pods)
    for kind in some:
        if id(kind.shape) not in found:
            shape = without_the_impossible(kind.shape, is_anybody)
            found[id(kind.shape)] = stages(shape, options.preference_policy, discouraged=discouraged)
    return found


def _somebody_among(pods: Iterable[Pod]) -> Callable[[LabelSelector], bool]:
    """Answer what says whether a selector means any of *pods*, which are looked at only when it is asked."""
    labels: list[dict[str, str]] = []
    known: dict[LabelSelector, bool] = {}

    def is_anybody(selector: LabelSelector) -> bool:
        if not labels:
            labels.extend(dict(one) for one in {pod.meta.labels for pod in pods})
        if selector not in known:
            known[selector] = any(selector.matches(some) for some in labels)
        return known[selector]

    return is_anybody


def classes(
    queue: Sequence[Pod],
    some: Iterable[Kind],
    tried: dict[int, tuple[Stage, ...]],
    found: Topology,
    volumes: Volumes,
    axes: Axes,
) -> list[PodClass]:
    """Put pods that are alike together, in the order of the *queue*; *some*: its kinds."""
    made: dict[tuple[object, ...], PodClass] = {}
    places: dict[tuple[object, ...], list[int]] = {}
    register, specs = Register(found), dict[PodSpec, int]()
    for kind in some:
        stage, spec = tried[id(kind.shape)], kind.first.spec
        number = specs.setdefault(spec, len(specs))
        alone = bool(spec.volume_claims and volumes.attached((kind.first,)))
        for part in [[place] for place in kind.places] if alone else [kind.places]:
            pod = queue[part[0]]
            groups = _groups(pod, stage[0], found)
            key = (number, *_likeness(pod, alone=alone), *groups)
            if key not in made:
                made[key] = _class(pod, stage, found, groups, (volumes, axes, register))
            places.setdefault(key, []).extend(part)
    for key, one in made.items():
        one.pods = [queue[place] for place in sorted(places[key])]
    return list(made.values())


def _likeness(pod: Pod, *, alone: bool) -> tuple[object, ...]:
    namespace = pod.meta.namespace if pod.spec.volume_claims else ""
    return (pod.is_headroom(), namespace, pod.name if alone else "")


def _groups(pod: Pod, stage: Stage, found: Topology) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Answer the groups that bind *pod* at its first stage, and those in which it counts."""
    return (found.rules(pod, stage), found.counted(pod)) if found.groups else ((), ())


def _class(
    pod: Pod,
    some: tuple[Stage, ...],
    found: Topology,
    groups: tuple[tuple[int, ...], tuple[int, ...]],
    tools: tuple[Volumes, Axes, Register],
) -> PodClass:
    volumes, axes, register = tools
    first, counted = groups
    attached = volumes.attached((pod,)) if pod.spec.volume_claims else {}
    later = (found.rules(pod, stage) if found.groups else () for stage in some[1:])
    bound = (first, *later)
    selecting = found.selecting(pod) if found.groups else ()
    need = axes.vector(pod.spec.requests)
    alternatives = volumes.alternatives(pod) if pod.spec.volume_claims else ANYWHERE
    room = (need, pod.spec.host_ports, alternatives)
    return PodClass(
        spec=pod.spec,
        stages=some,
        bound=bound,
        counted=counted,
        selecting=selecting,
        need=need,
        alternatives=alternatives,
        drivers=tuple((driver, frozenset(keys)) for driver, keys in sorted(attached.items())),
        aims=tuple(
            register.aim(stage, numbers, (selecting, counted), room) for stage, numbers in zip(some, bound, strict=True)
        ),
        pods=[],
    )
