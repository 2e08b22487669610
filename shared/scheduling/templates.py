"""NodePools as templates of nodes, and narrowing: what is still open about a node while pods are put on it."""

from collections.abc import Iterable, Iterator, Mapping
from operator import add
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.holds import launches_held
from shared.model.labels import HOSTNAME, NODECLASS, NODEPOOL, WELL_KNOWN
from shared.model.nodepools import NodePool
from shared.model.objects import condition
from shared.model.pods import HostPort
from shared.model.requirements import Requirement, Requirements, requirements_from_labels
from shared.model.resources import Axes, Vector
from shared.model.taints import Toleration, first_untolerated
from shared.scheduling.daemons import Overhead, overheads
from shared.scheduling.placement import Options, Reason, WithoutTypes
from shared.scheduling.ports import conflict
from shared.scheduling.rules import Place
from shared.scheduling.shelf import Mask, Shelf

MOST_FITS: Final = 20_000
"""So many answers are remembered."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a NodePool cannot make a node, with the remedy."""

    reason: Reason
    message: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool that takes no part."""

    pool: NodePool
    refusal: Refusal


class Wish(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a pod asks of a node, room and other pods aside; equal wishes have equal numbers."""

    number: int
    requirements: Requirements
    tolerations: tuple[Toleration, ...]
    alternatives: tuple[Requirements, ...]
    """Any one of these besides."""

    @property
    def names_hosts(self) -> bool:
        """Whether it is about hosts, too."""
        return any(HOSTNAME in some for some in (self.requirements, *self.alternatives))


class Narrowed(msgspec.Struct, kw_only=True, eq=False):
    """What is known of a node to be: its requirements, and the types on sale that satisfy them."""

    requirements: Requirements
    mask: Mask
    minima: tuple[Requirement, ...]
    steps: "dict[Requirements, Narrowed | None]" = msgspec.field(default_factory=dict)
    wished: "dict[int, tuple[Narrowed, ...]]" = msgspec.field(default_factory=dict)
    place: Place | None = None
    single: dict[str, str] | None = None
    """Labels of which the value is known."""
    within: "dict[tuple[str, tuple[str, ...]], tuple[Narrowed, ...]]" = msgspec.field(default_factory=dict)
    wide: dict[tuple[Vector, tuple[HostPort, ...]], Mask] = msgspec.field(default_factory=dict)
    """By what is used: the types that a node is bought as."""


class Template(msgspec.Struct, kw_only=True, eq=False):
    """A NodePool that may make nodes."""

    pool: NodePool
    shelf: Shelf
    overheads: tuple[Overhead, ...]
    start: Narrowed
    known: dict[Requirements, Narrowed]
    fits: dict[Vector, Mask] = msgspec.field(default_factory=dict)
    """Types that hold so much, daemons besides."""

    def narrow(self, state: Narrowed, wanted: Requirements) -> Narrowed | None:
        """Answer *state* with *wanted* too, None if it cannot be or no type on sale is left."""
        if not wanted.items:
            return state
        if wanted not in state.steps:
            state.steps[wanted] = self._narrowed(state, wanted)
        return state.steps[wanted]

    def narrow_to(self, state: Narrowed, wish: Wish) -> tuple[Narrowed, ...]:
        """Answer *state* with *wish* too, by where volumes can be; none if that cannot be."""
        found = state.wished.get(wish.number)
        if found is None:
            found = state.wished[wish.number] = tuple(self._wished(state, wish))
        return found

    def narrow_in(self, state: Narrowed, key: str, domains: tuple[str, ...]) -> tuple[Narrowed, ...]:
        """Answer *state* in each of *domains* of the label *key* that it can be in."""
        found = state.within.get((key, domains))
        if found is None:
            wanted = (Requirement(key=key, values=frozenset((domain,))) for domain in domains)
            some = (self.narrow(state, Requirements(items=(item,))) for item in wanted)
            found = state.within[key, domains] = tuple(one for one in some if one is not None)
        return found

    def place(self, state: Narrowed) -> Place:
        """Answer what other pods may know of a node in *state*, its host aside."""
        if state.place is None:
            by_key = {item.key: item for item in state.requirements}
            defined = frozenset(item.key for item in self.start.requirements)
            state.place = Place(by_key=by_key, taints=self.pool.taints, is_fixed=False, defined=defined)
        return state.place

    def single(self, state: Narrowed) -> dict[str, str]:
        """Answer the labels of a node in *state* of which the value is known."""
        if state.single is None:
            state.single = self.place(state).single()
        return state.single

    def holding(self, mask: Mask, needed: Vector, ports: tuple[HostPort, ...] = ()) -> Mask:
        """Answer the types in *mask* that hold *needed* and the daemons of each; none with a daemon on *ports*."""
        if ports and any(conflict(group.ports, ports) for group in self.overheads):
            mask &= sum(group.mask for group in self.overheads if not conflict(group.ports, ports))
        found = self.fits.get(needed)
        if found is None:
            if len(self.fits) >= MOST_FITS:
                self.fits.clear()
            found = self.fits[needed] = self._fitting(needed)
        return mask & found

    def _fitting(self, needed: Vector) -> Mask:
        fitting, found = self.shelf.fitting, 0
        for group in self.overheads:
            found |= fitting(group.mask, tuple(map(add, needed, group.needs)))
        return found

    def _wished(self, state: Narrowed, wish: Wish) -> Iterator[Narrowed]:
        if first_untolerated(self.pool.taints, wish.tolerations) is not None:
            return
        wanted = self.narrow(state, wish.requirements)
        for alternative in wish.alternatives if wanted is not None else ():
            found = None if wanted is None else self.narrow(wanted, alternative)
            if found is not None:
                yield found

    def conflict(self, state: Narrowed, wanted: Requirements) -> str:
        """Answer the first key on which *wanted* cannot be had; only the pool itself can define custom keys."""
        return self.start.requirements.undefined(wanted, WELL_KNOWN) or state.requirements.conflict(wanted)

    def meets_minima(self, state: Narrowed, mask: Mask) -> bool:
        """Whether the types in *mask* are as various as the pool asks."""
        return all(self.shelf.count_values(item, mask) >= (item.min_values or 0) for item in state.minima)

    def with_minima_lowered(self, state: Narrowed, mask: Mask) -> Narrowed:
        """Ask no more variety than the types in *mask* have."""
        lowered = Requirements(items=tuple(self._lowered(item, mask) for item in state.requirements))
        return self._interned(lowered)

    def _lowered(self, item: Requirement, mask: Mask) -> Requirement:
        if item.min_values is None:
            return item
        return msgspec.structs.replace(item, min_values=min(item.min_values, self.shelf.count_values(item, mask)))

    def _narrowed(self, state: Narrowed, wanted: Requirements) -> Narrowed | None:
        if self.conflict(state, wanted):
            return None
        found = self._interned(state.requirements & wanted)
        return found if found.mask else None

    def _interned(self, wanted: Requirements) -> Narrowed:
        if wanted not in self.known:
            self.known[wanted] = narrowed_to(wanted, self.shelf)
        return self.known[wanted]


def narrowed_to(wanted: Requirements, shelf: Shelf) -> Narrowed:
    """Answer what *wanted* leaves of the types on sale."""
    minima = tuple(item for item in wanted if item.min_values is not None)
    mask = shelf.compatible(wanted) & shelf.offered(wanted)
    return Narrowed(requirements=wanted, mask=mask, minima=minima)


def template_labels(pool: NodePool) -> dict[str, str]:
    """Answer the labels that every node of *pool* has from its template."""
    return dict(pool.labels) | {NODEPOOL: pool.name, NODECLASS: pool.node_class.name}


def described(pool: NodePool) -> Requirements:
    """Answer what every node of *pool* is."""
    return pool.requirements & requirements_from_labels(template_labels(pool))


def by_weight(pools: Iterable[NodePool]) -> list[NodePool]:
    """Sort by weight, heaviest first, then by name, last first, as Karpenter does."""
    return sorted(sorted(pools, key=lambda pool: pool.name, reverse=True), key=lambda pool: -pool.weight)


def shelves(cluster: Cluster, axes: Axes) -> dict[str, Shelf]:
    """Sort the catalogue in for each node class that is used, by its name; what is equal is shared."""
    if cluster.catalogue is None:
        return {}
    own = dict(cluster.catalogue.by_node_class)
    common: list[Shelf] = []
    made: dict[str, Shelf] = {}
    used = {pool.node_class.name for pool in cluster.node_pools} | {one.node_class.name for one in cluster.node_claims}
    for name in sorted(used):
        if name in own:
            made[name] = Shelf(own[name], axes, cluster.unavailable, cluster.taken_at)
            continue
        if not common:
            common.append(Shelf(cluster.catalogue.instance_types, axes, cluster.unavailable, cluster.taken_at))
        made[name] = common[0]
    for name, types in cluster.catalogue.by_node_pool:
        made[_of_pool(name)] = Shelf(types, axes, cluster.unavailable, cluster.taken_at)
    return made


def shelf_for(made: Mapping[str, Shelf], node_class: str, node_pool: str) -> Shelf | None:
    """Answer the shelf of the pool, if NodeOverlays made it one of its own, else that of its node class."""
    return made.get(_of_pool(node_pool)) or made.get(node_class)


def _of_pool(name: str) -> str:
    return f"{name}/"  # no node class is called so


def template(pool: NodePool, shelf: Shelf, cluster: Cluster, axes: Axes) -> Template:
    """Make the template of *pool*."""
    wanted = described(pool)
    start = narrowed_to(wanted, shelf)
    some = overheads(pool.taints, wanted, shelf, cluster.daemon_sets, axes)
    return Template(pool=pool, shelf=shelf, overheads=some, start=start, known={wanted: start})


def templates(
    cluster: Cluster, axes: Axes, options: Options
) -> tuple[tuple[Template, ...], tuple[LeftOut, ...], dict[str, Shelf]]:
    """Answer the NodePools that may make nodes, those that may not with the reason, and the shelves; by weight."""
    made = shelves(cluster, axes)
    used: list[Template] = []
    left_out: list[LeftOut] = []
    for pool in by_weight(cluster.node_pools):
        refusal = refused(pool, cluster, options)
        shelf = shelf_for(made, pool.node_class.name, pool.name)
        if refusal is None and shelf is not None:
            one = template(pool, shelf, cluster, axes)
            refusal = _without_types(one, options)
            if refusal is None:
                used.append(one)
        if refusal is not None:
            left_out.append(LeftOut(pool=pool, refusal=refusal))
    return tuple(used), tuple(left_out), made


def without_types(some: Iterable[LeftOut]) -> tuple[WithoutTypes, ...]:
    """Answer those of *some* that are in order, but for which no instance type is left; by name."""
    found = (one for one in some if one.refusal.reason in ("RequirementsNotMet", "MinValuesNotMet"))
    return tuple(
        WithoutTypes(node_pool=one.pool.name, message=one.refusal.message)
        for one in sorted(found, key=lambda one: one.pool.name)
    )


def refused(pool: NodePool, cluster: Cluster, options: Options) -> Refusal | None:
    """Answer why *pool* takes no part, as far as the objects say."""
    message = _unfit(pool) or launches_held(pool, cluster) or _class_unfit(pool, cluster, options)
    if not message and cluster.catalogue is None:
        message = "there is no catalogue of instance types yet: wait for the catalogue function, or run it"
    return Refusal(reason="NoNodePool", message=message) if message else None


def _unfit(pool: NodePool) -> str:
    if pool.meta.deleted_at is not None:
        return "is being deleted"
    if pool.replicas is not None:
        return "is static (spec.replicas): it makes no nodes for pods"
    if not pool.node_class.is_supported():
        kind = f"{pool.node_class.group}/{pool.node_class.kind}"
        return f"node class kind {kind} is not ours: use karpenter.k8s.aws/EC2NodeClass"
    for type_ in ("ValidationSucceeded", "Ready"):
        found = condition(pool.conditions, type_)
        if found is not None and found.status == "False" and found.observed_generation >= pool.meta.generation:
            return f"is not valid or not ready ({type_}): {found.message or found.reason}"
    return ""


def _class_unfit(pool: NodePool, cluster: Cluster, options: Options) -> str:
    if options.readiness == "Assumed":
        return ""
    name = pool.node_class.name
    found = next((one for one in cluster.node_classes if one.name == name), None)
    if found is None:
        return f"node class {name} does not exist: create it or correct spec.template.spec.nodeClassRef"
    if found.meta.deleted_at is not None:
        return f"node class {name} is being deleted: use another in spec.template.spec.nodeClassRef"
    if not found.is_ready():
        ready = condition(found.conditions, "Ready")
        why = "" if ready is None or not ready.message else f" ({ready.message})"
        return f"node class {name} is not ready{why}: see its status.conditions"
    return ""


def _without_types(one: Template, options: Options) -> Refusal | None:
    if not one.start.mask:
        message = "spec.template.spec.requirements leave no instance type that can be bought: widen them"
        return Refusal(reason="RequirementsNotMet", message=message)
    if options.min_values_policy == "Strict" and not one.meets_minima(one.start, one.start.mask):
        message = "fewer kinds of instance type can be bought than minValues asks: lower it or widen the requirements"
        return Refusal(reason="MinValuesNotMet", message=message)
    return None
