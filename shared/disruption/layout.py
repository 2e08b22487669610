"""A snapshot -> the standing state that disruption is tried out on."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from shared.disruption.ground import Ground
from shared.lifecycle.guards import guards_of
from shared.model.cluster import Cluster
from shared.model.pods import Pod
from shared.model.resources import Axes
from shared.model.state import StateNode
from shared.scheduling.demand import PodClass, classes, in_order, is_fully_blocked, stages_of
from shared.scheduling.limits import remaining
from shared.scheduling.placement import Options, Unschedulable
from shared.scheduling.representatives import with_representatives
from shared.scheduling.rules import Place
from shared.scheduling.solve import axes_for, is_discouraged, sound
from shared.scheduling.standing import Standing, place_of, standing
from shared.scheduling.templates import templates
from shared.scheduling.topology import Topology, topology
from shared.scheduling.volumes import volumes_of


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The ground, and what could not be put on it."""

    ground: Ground
    axes: Axes
    faults: Mapping[str, Unschedulable]
    """Movable pods that cannot be planned for, by name."""


def lay_out(
    cluster: Cluster,
    states: Sequence[StateNode],
    gone: Collection[str],
    expected: Mapping[str, str],
    options: Options,
) -> Layout:
    """Answer the ground with *states* in their order: nodes are filled in it.

    *gone*: names of nodes that are as good as gone; their pods, and others that come, are where they are *expected*, by
    pod, or else wherever there is room. Who has none is not reckoned with.
    """
    cluster = with_representatives(cluster)
    volumes = volumes_of(cluster)
    staying = [state for state in states if state.name not in gone and not state.is_marked()]
    movable = _movable(staying, cluster)
    coming = _movable([state for state in states if state.name in gone], cluster)
    coming |= {pod.name: pod for pod in cluster.pods if pod.name in expected} if expected else {}
    queue = in_order((*movable.values(), *coming.values()), cluster.taken_at)
    kinds, faults = sound(queue, volumes)
    axes = axes_for(cluster, kinds)
    used, _, shelves = templates(cluster, axes, options)
    tried = stages_of(kinds, options, cluster.pods, discouraged=is_discouraged(cluster))
    places = {state.name: place_of(state) for state in states}
    batch = ((kind.first, tried[id(kind.shape)][0]) for kind in kinds)
    names = frozenset(state.name for state in staying)
    found = topology(cluster, batch, coming.keys(), places, tuple(states), names, used)
    stands = {one.name: one for one in standing(staying, places, cluster, axes, shelves, volumes)}
    some = [stands.get(state.name) or _full(state, places[state.name], axes) for state in staying]
    ground = Ground(
        standing=some,
        templates=used,
        limits=remaining(cluster.node_pools, staying, shelves),
        topology=found,
        options=options,
        numbers={one.name: number for number, one in enumerate(some)},
        everybody={name: pod for name, pod in (movable | coming).items() if name not in faults},
    )
    _populate(ground, staying, movable, classes(queue, kinds, tried, found, volumes, axes))
    _settle(ground, coming, expected)
    return Layout(ground=ground, axes=axes, faults=faults)


def _movable(states: Iterable[StateNode], cluster: Cluster) -> dict[str, Pod]:
    """Answer, by name, the pods on *states* that need another place if these go."""
    guards, now = guards_of(cluster.budgets), cluster.taken_at
    return {
        pod.name: pod
        for state in states
        for pod in state.pods
        if pod.is_reschedulable() and pod.is_disruptable(now) and not is_fully_blocked(pod, guards.of(pod), now)
    }


def _full(state: StateNode, place: Place, axes: Axes) -> Standing:
    """Answer a node on which something is overdrawn: it takes nothing."""
    nothing = (0,) * len(axes.names)
    return Standing(name=state.name, place=place, free=nothing, ports=[], attached={}, limits={})


def _populate(
    ground: Ground, staying: Iterable[StateNode], movable: Mapping[str, Pod], some: Iterable[PodClass]
) -> None:
    for number, one in enumerate(some):
        for pod in one.pods:
            ground.kinds[pod.name] = (number, one)
    for number, state in enumerate(staying):
        ground.residents[number] = {pod.name: pod for pod in state.pods if pod.name in movable}
        ground.fixtures[number] = list(_fixtures(state, movable, ground.topology))


def _fixtures(state: StateNode, movable: Mapping[str, Pod], found: Topology) -> Iterable[tuple[int, ...]]:
    if found.groups:
        for pod in state.pods:
            if pod.is_active() and pod.name not in movable and (counted := found.counted(pod)):
                yield counted


def _settle(ground: Ground, coming: Mapping[str, Pod], expected: Mapping[str, str]) -> None:
    """Let pods that come be where they are expected, as far as there is room."""
    some = [pod for name, pod in coming.items() if name in ground.kinds]
    homes = {pod: ground.numbers[node] for pod, node in expected.items() if node in ground.numbers}
    ground.house_at([pod for pod in some if pod.name not in expected or pod.name in homes], homes)
