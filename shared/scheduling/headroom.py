"""Capacity buffers: room that is kept free, as pods that matter least and are never bound.

They are planned like pods that wait, after all of these. Where one of them has its room on a node that is there, the
node is not empty; where there is no room, a node is made. No pod of the cluster ever lacks a place because of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.action import Action, PatchStatus
from shared.model.cluster import Cluster
from shared.model.conditions import conditions_json, same_conditions, with_condition
from shared.model.labels import BUFFER, BUFFER_NAMESPACE, FAKE_POD
from shared.model.objects import Condition, Meta, pairs
from shared.model.pods import LEAST, Pod
from shared.model.state import state_nodes
from shared.model.workloads import CapacityBuffer, Workload
from shared.scheduling.demand import default_pods
from shared.scheduling.placement import Options, Placement, Unschedulable
from shared.scheduling.solve import DEFAULT, solve

ACTIVE: Final = "buffer.x-k8s.io/active-capacity"
MOST: Final = 2000
"""So many pods of one buffer are planned for: whatever it asks for, a plan is ready in time."""
_WAITING: Final = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
_READY: Final = "ReadyForProvisioning"
_PROVISIONING: Final = "Provisioning"
_Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace, name."""
Fault: TypeAlias = tuple[Literal["", "ScalableRefNotFound", "PodTemplateNotFound", "ResolutionFailed"], str]


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a buffer comes to."""

    buffer: CapacityBuffer
    workload: Workload | None = None
    fault: Fault = ("", "")
    pods: tuple[Pod, ...] = ()


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A placement of pods and headroom."""

    placement: Placement = Placement()
    rooms: tuple[Room, ...] = ()

    @property
    def headroom(self) -> frozenset[str]:
        """Names of the pods that there are not."""
        return frozenset(pod.name for room in self.rooms for pod in room.pods)

    def of_pods(self) -> Placement:
        """Answer the placement as far as pods are concerned: nothing is told or promised to headroom."""
        fits = (replace(fit, pods=self._real(fit.pods)) for fit in self.placement.existing)
        return replace(
            self.placement,
            existing=tuple(fit for fit in fits if fit.pods),
            unschedulable=tuple(one for one in self.placement.unschedulable if one.pod not in self.headroom),
            approximations=tuple(one for one in self.placement.approximations if one.pod not in self.headroom),
        )

    def holding(self) -> frozenset[str]:
        """Answer the names of the nodes on which some headroom has its place."""
        return frozenset(fit.node for fit in self.placement.existing if self.headroom.intersection(fit.pods))

    def _real(self, pods: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in pods if name not in self.headroom)


def plan(
    cluster: Cluster,
    *,
    excluded: frozenset[str] = frozenset(),
    options: Options = DEFAULT,
    is_over: Callable[[], bool] | None = None,
) -> Planned:
    """Answer where pods and headroom can be: as `solve` does, and the same without buffers."""
    rooms = rooms_of(cluster)
    some = tuple(pod for room in rooms for pod in room.pods)
    if not some:
        return Planned(placement=solve(cluster, excluded=excluded, options=options, is_over=is_over), rooms=rooms)
    pods = default_pods(cluster, state_nodes(cluster), excluded)
    together = solve(cluster, pods=(*pods, *some), excluded=excluded, options=options, is_over=is_over)
    planned = Planned(placement=together, rooms=rooms)
    left = planned.of_pods().unschedulable
    if left and not together.goes_on_at:
        alone = solve(cluster, pods=pods, excluded=excluded, options=options, is_over=is_over)
        if len(alone.unschedulable) < len(left):
            refused = [
                Unschedulable(pod=pod.name, reason="LimitExceeded", message="pods need the room themselves")
                for pod in some
            ]
            everyone = tuple(sorted((*alone.unschedulable, *refused), key=lambda one: one.pod))
            return Planned(placement=replace(alone, unschedulable=everyone), rooms=rooms)
    return planned


def rooms_of(cluster: Cluster) -> tuple[Room, ...]:
    """Answer what each buffer comes to, sorted by name."""
    taken = frozenset(pod.name for pod in cluster.pods)
    workloads: dict[_Key, Workload] = {
        (one.kind, one.meta.namespace, one.meta.name): one
        for one in (*cluster.pod_templates, *cluster.deployments, *cluster.replica_sets, *cluster.stateful_sets)
    }
    alive = (one for one in cluster.capacity_buffers if one.meta.deleted_at is None)
    return tuple(_room(one, workloads, taken) for one in sorted(alive, key=lambda one: one.name))


def _room(buffer: CapacityBuffer, workloads: Mapping[_Key, Workload], taken: frozenset[str]) -> Room:
    fault, workload = _resolved(buffer, workloads)
    if workload is None:
        return Room(buffer=buffer, fault=fault)
    pods = (_pod(buffer, workload, number) for number in range(1, min(size(buffer, workload), MOST) + 1))
    return Room(buffer=buffer, workload=workload, pods=tuple(pod for pod in pods if pod.name not in taken))


def _resolved(buffer: CapacityBuffer, workloads: Mapping[_Key, Workload]) -> tuple[Fault, Workload | None]:
    namespace, ref = buffer.meta.namespace, buffer.scalable
    if buffer.strategy != ACTIVE:
        return ("ResolutionFailed", f"spec.provisioningStrategy: {buffer.strategy} is not known; write {ACTIVE}"), None
    if ref is None:
        found = workloads.get(("PodTemplate", namespace, buffer.template))
        missing = f"there is no PodTemplate {namespace}/{buffer.template}: create it or correct spec.podTemplateRef"
        return (("", ""), found) if found is not None else (("PodTemplateNotFound", missing), None)
    if ref.api_group not in ("", "apps"):
        return ("ResolutionFailed", f"spec.scalableRef.apiGroup: {ref.api_group} is not known; write apps"), None
    found = workloads.get((ref.kind, namespace, ref.name)) if ref.kind != "PodTemplate" else None
    missing = f"there is no {ref.kind} {namespace}/{ref.name}: create it or correct spec.scalableRef"
    return (("", ""), found) if found is not None else (("ScalableRefNotFound", missing), None)


def size(buffer: CapacityBuffer, workload: Workload) -> int:
    """Answer for how many pods there is to be room: the larger of both sizes, no more than the limits hold."""
    wanted = [] if buffer.replicas is None else [buffer.replicas]
    if buffer.scalable is not None and buffer.percentage is not None and workload.replicas:
        wanted.append(-(-workload.replicas * buffer.percentage // 100))
    requests = dict(workload.spec.requests.amounts)
    held = [amount // requests[name] for name, amount in buffer.limits.amounts if requests.get(name)]
    if not wanted:
        return max(0, min(held, default=0))
    return max(0, min((max(wanted), *held)))


def _pod(buffer: CapacityBuffer, workload: Workload, number: int) -> Pod:
    namespace, name = buffer.meta.namespace, buffer.meta.name
    return Pod(
        meta=Meta(
            name=f"capacity-buffer-{name}-{number}",
            namespace=namespace,
            uid=f"{buffer.meta.uid}-{number}",
            created_at=buffer.meta.created_at,
            labels=workload.labels,
            annotations=pairs({FAKE_POD: "true", BUFFER: name, BUFFER_NAMESPACE: namespace}),
        ),
        spec=replace(workload.spec, volume_claims=()),
        phase="",
        priority=LEAST,
        conditions=_WAITING,
    )


def describe_buffers(planned: Planned, cluster: Cluster) -> tuple[Action, ...]:
    """Write each buffer's status where it says anything new."""
    housed = {name for fit in planned.placement.existing for name in fit.pods}
    return tuple(action for room in planned.rooms for action in _told(room, housed, cluster))


def _told(room: Room, housed: set[str], cluster: Cluster) -> Iterator[Action]:
    buffer, workload = room.buffer, room.workload
    generation = None if workload is None or buffer.scalable is not None else workload.meta.generation
    conditions = conditions_of(room, housed, cluster)
    told = (buffer.told_replicas, buffer.told_template, buffer.told_generation, buffer.told_strategy)
    if told == (len(room.pods), buffer.template, generation, buffer.strategy) and same_conditions(
        conditions, buffer.conditions
    ):
        return
    status = {
        "replicas": len(room.pods),
        "podTemplateRef": {"name": buffer.template} if buffer.template else None,
        "podTemplateGeneration": generation,
        "provisioningStrategy": buffer.strategy,
        "conditions": conditions_json(conditions),
    }
    yield PatchStatus(
        kind="CapacityBuffer",
        name=buffer.meta.name,
        namespace=buffer.meta.namespace,
        resource_version=buffer.meta.resource_version,
        status=msgspec.json.encode(status).decode(),
        why=f"{len(room.pods)} pods of headroom",
    )


def conditions_of(room: Room, housed: set[str], cluster: Cluster) -> tuple[Condition, ...]:
    """Answer the buffer's conditions as they are to be; *housed*: who has a place on nodes that are there."""
    now, generation = cluster.taken_at, room.buffer.meta.generation
    reason, message = room.fault
    ready = ("False", reason, message) if reason else ("True", "Resolved", "")
    some = with_condition(room.buffer.conditions, _READY, *ready, now, generation)
    return with_condition(some, _PROVISIONING, *_provisioning(room, housed), now, generation)


def _provisioning(room: Room, housed: set[str]) -> tuple[str, str, str]:
    if room.fault[0]:
        return "False", "NotReadyForProvisioning", room.fault[1]
    if not room.pods:
        return "False", "BufferEmpty", "it comes to no pods"
    lacking = sum(pod.name not in housed for pod in room.pods)
    if lacking:
        return (
            "False",
            "RequiresNewCapacity",
            f"{lacking} of {len(room.pods)} pods have no room on nodes that are there",
        )
    return "True", "FitsExistingCapacity", ""
