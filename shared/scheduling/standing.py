"""Nodes that are there or on their way, as room for pods.

A node is taken by its labels, strictly. A claim without an instance has no labels of an instance yet: it admits a pod
only if whatever it may still become satisfies the pod, and it has just the room it was asked for.
"""

from collections.abc import Iterable, Mapping
from operator import sub
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL
from shared.model.nodes import NodeClaim
from shared.model.pods import HostPort
from shared.model.requirements import Requirement, Requirements, requirements_from_labels
from shared.model.resources import NONE, Axes, Resources, Vector, smallest
from shared.model.state import StateNode
from shared.model.taints import Taint, first_untolerated
from shared.scheduling.daemons import missing_on, overheads
from shared.scheduling.demand import PodClass
from shared.scheduling.ports import conflict
from shared.scheduling.relaxation import Stage
from shared.scheduling.rules import Place
from shared.scheduling.shelf import Mask, Shelf
from shared.scheduling.templates import described, shelf_for
from shared.scheduling.volumes import Volumes

CORDONED: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Standing(msgspec.Struct, kw_only=True, eq=False):
    """One node, and what is left of it."""

    name: str
    place: Place
    """By its labels, the hostname included; of an unlaunched claim, what it was asked to be."""
    free: Vector
    ports: list[HostPort]
    attached: dict[str, set[str]]
    limits: dict[str, int]
    shelf: Shelf | None = None
    """Of an unlaunched claim: what it may become."""
    mask: Mask = 0
    pods: list[str] = msgspec.field(default_factory=list)

    @property
    def host(self) -> str:
        """Its hostname."""
        return min(self.place.on(HOSTNAME).values, default=self.name)

    def admits(self, stage: Stage) -> bool:
        """Whether taints and labels let a pod in, room aside."""
        tolerated = first_untolerated(self.place.taints, stage.tolerations) is None
        return tolerated and self.satisfies(stage.requirements)

    def satisfies(self, wanted: Requirements) -> bool:
        """Whether the node is, or whatever it becomes will be, what *wanted* says."""
        return all(self._is(item) for item in wanted)

    def room(self, pods: PodClass, count: int) -> int:
        """Answer how many of *count* such pods there is room for."""
        for have, need in zip(self.free, pods.need, strict=True):
            if need > 0:
                if have < need:
                    return 0
                count = min(count, have // need)
        if pods.ports:
            count = 0 if conflict(self.ports, pods.ports) else 1
        return count if not pods.drivers or self._takes(pods) else 0

    def put(self, pods: PodClass, names: list[str]) -> None:
        """Take so many pods in."""
        self.free = tuple(map(sub, self.free, pods.times(len(names), (0,) * len(self.free))))
        self.ports.extend(pods.ports)
        for driver, keys in pods.drivers:
            self.attached.setdefault(driver, set()).update(keys)
        self.pods.extend(names)

    def _takes(self, pods: PodClass) -> bool:
        return all(
            len(self.attached.get(driver, set()) | keys) <= self.limits[driver]
            for driver, keys in pods.drivers
            if driver in self.limits
        )

    def _is(self, item: Requirement) -> bool:
        own = self.place.by_key.get(item.key)
        if own is not None and _within(own, item):
            return True
        if self.shelf is not None and self.shelf.speaks_of(item.key):
            return self.shelf.all_within(item, self.mask)
        return own is None and item.is_tolerant()


def place_of(state: StateNode) -> Place:
    """Answer what is known of where pods on *state* are."""
    if is_unlaunched(state) and state.claim is not None:
        labels = requirements_from_labels(dict(state.claim.meta.labels) | {HOSTNAME: state.name})
        asked = state.claim.requirements.without((HOSTNAME,)) & labels
        return Place(by_key={item.key: item for item in asked}, taints=state.claim.taints, is_fixed=False)
    known = requirements_from_labels(state.labels())
    return Place(by_key={item.key: item for item in known}, taints=_taints(state), is_fixed=True)


def is_unlaunched(state: StateNode) -> bool:
    """Whether there is a claim and no instance yet."""
    return state.node is None and state.claim is not None and not state.claim.is_launched()


def standing(
    states: Iterable[StateNode],
    places: Mapping[str, Place],
    cluster: Cluster,
    axes: Axes,
    shelves: Mapping[str, Shelf],
    volumes: Volumes,
) -> list[Standing]:
    """Answer those of *states* that have no resource overdrawn: initialized first, then by name."""
    found = []
    for state in sorted(states, key=lambda one: (not one.is_initialized(), one.name)):
        if state.claim is not None and is_unlaunched(state):
            one = _unlaunched(state.claim, places[state.name], cluster, axes, shelves)
        else:
            one = _standing(state, places[state.name], cluster, axes, volumes)
        if one is not None:
            found.append(one)
    return found


def _standing(state: StateNode, place: Place, cluster: Cluster, axes: Axes, volumes: Volumes) -> Standing | None:
    labels = Requirements(items=tuple(place.by_key.values()))
    daemons, ports = missing_on(state, labels, cluster.daemon_sets)
    free = state.available() - daemons
    if any(amount < 0 for _, amount in free.amounts):
        return None
    alive = [pod for pod in state.pods if not pod.is_terminal()]
    running = {port for pod in alive for port in pod.spec.host_ports}
    return Standing(
        name=state.name,
        place=place,
        free=axes.vector(free),
        ports=sorted(running | ports),
        attached=volumes.attached(alive),
        limits=volumes.limits.get(state.node.name, {}) if state.node is not None else {},
    )


def _unlaunched(
    claim: NodeClaim, place: Place, cluster: Cluster, axes: Axes, shelves: Mapping[str, Shelf]
) -> Standing | None:
    shelf = shelf_for(shelves, claim.node_class.name, claim.meta.label(NODEPOOL))
    mask = 0 if shelf is None else types_of(claim, shelf)
    daemons, ports = _least_daemons(claim, shelf, mask, cluster, axes)
    free = claim.requests - daemons
    if any(amount < 0 for _, amount in free.amounts):
        return None
    return Standing(
        name=claim.name,
        place=place,
        free=axes.vector(free),
        ports=list(ports),
        attached={},
        limits={},
        shelf=shelf if mask else None,
        mask=mask,
    )


def types_of(claim: NodeClaim, shelf: Shelf) -> Mask:
    """Answer the types that a claim without an instance may become, on sale or not."""
    return shelf.named(claim.requirements[INSTANCE_TYPE])


def _least_daemons(
    claim: NodeClaim, shelf: Shelf | None, mask: Mask, cluster: Cluster, axes: Axes
) -> tuple[Resources, tuple[HostPort, ...]]:
    """Answer what was added to the pods' requests for daemons when the claim was made."""
    pool = next((one for one in cluster.node_pools if one.name == claim.meta.label(NODEPOOL)), None)
    if shelf is None or pool is None:
        return NONE, ()
    some = overheads(claim.taints, described(pool), shelf, cluster.daemon_sets, axes)
    groups = [one for one in some if one.mask & mask]
    ports = tuple(sorted({port for one in groups for port in one.ports}))
    return smallest(one.requests for one in groups), ports


def _taints(state: StateNode) -> tuple[Taint, ...]:
    taints = state.taints()
    cordoned = state.node is not None and state.node.unschedulable
    return (*taints, CORDONED) if cordoned and CORDONED not in taints else taints


def _within(own: Requirement, item: Requirement) -> bool:
    """Whether whatever *own* allows satisfies *item*."""
    if own.complement:
        both = own & item
        return msgspec.structs.replace(both, min_values=own.min_values) == own
    return all(item.has(value) for value in own.values) if own.values else item.is_tolerant()
