"""The end of a run as values: opened nodes become new nodes with names, types by price, and requests."""

from collections.abc import Mapping

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, RESERVED
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import PODS, Axes, Resources, Vector, smallest
from shared.scheduling.claims import claim_name, written_down
from shared.scheduling.opened import Opened
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Approximation, Choice, Fit, NewNode, Placement, Reason, Unschedulable
from shared.scheduling.shelf import RESERVATION_ID, Mask, Priced, union
from shared.scheduling.templates import Refusal, Template


class Units(msgspec.Struct, kw_only=True, eq=False):
    """What is left of capacity reservations, by id."""

    left: dict[str, int]

    def hold(self, node: Opened, asked: Requirements) -> tuple[Requirements, Mask]:
        """Answer *asked* and the node's types, for one unit of each reservation open to it; else without reserved.

        No types are left if only reserved capacity would do and none is left.
        """
        shelf, template = node.template.shelf, node.template
        open_ = shelf.reservations(asked, node.mask)
        ids = frozenset(key for key in open_ if self.left.get(key, 0) > 0)
        held = asked & requirements((_in(CAPACITY_TYPE, frozenset((RESERVED,))), _in(RESERVATION_ID, ids)))
        mask = node.mask & shelf.offered(held) if ids else 0
        if mask and template.meets_minima(node.state, mask):
            for key in shelf.reservations(held, mask):
                self.left[key] -= 1
            return held, mask
        if open_:
            asked &= requirements((Requirement(key=CAPACITY_TYPE, complement=True, values=frozenset((RESERVED,))),))
        return asked, node.mask & shelf.offered(asked)


class Ending(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What nodes come to of which the same is known."""

    requirements: Requirements
    written: bytes
    names: tuple[str, ...]
    cheapest: Choice
    daemons: Resources


class Endings:
    """Ends nodes, in their order; those that nothing of a reservation is open to end alike if they are alike."""

    def __init__(self, packing: Packing, cluster: Cluster, pods: Mapping[str, Pod], axes: Axes) -> None:
        """Begin with all that reservations have left."""
        self._units, self._options = units_of(packing, cluster), packing.options
        self._pods, self._axes = pods, axes
        self._taken = frozenset(claim.name for claim in cluster.node_claims)
        self._known: dict[tuple[int, Mask], Ending | Refusal] = {}
        self._requests: dict[tuple[Vector, int], Resources] = {}

    def end(self, node: Opened) -> NewNode | Refusal:
        """Answer the node with the cheapest of its types."""
        ending, pool = self._of(node), node.template.pool.name
        if isinstance(ending, Refusal):
            return ending
        return NewNode(
            name=claim_name(pool, [self._pods[name] for name in node.pods], ending.written, self._taken),
            node_pool=pool,
            requirements=ending.requirements,
            instance_types=ending.names,
            pods=tuple(sorted(node.pods)),
            requests=self._asked(node.used, ending.daemons),
            daemon_pods=ending.daemons[PODS],
            cheapest=ending.cheapest,
            min_values_relaxed=node.is_relaxed,
        )

    def _of(self, node: Opened) -> Ending | Refusal:
        key = (id(node.state), node.mask)
        if key not in self._known:
            asked = node.state.requirements.without((HOSTNAME,))
            if self._units.left and node.template.shelf.reservations(asked, node.mask):
                return self._ending(node, *self._units.hold(node, asked))
            self._known[key] = self._ending(node, asked, node.mask & node.template.shelf.offered(asked))
        return self._known[key]

    def _ending(self, node: Opened, asked: Requirements, mask: Mask) -> Ending | Refusal:
        shelf, template = node.template.shelf, node.template
        priced, most = shelf.cheapest_first(asked, mask), self._options.max_instance_types
        if len(priced) > most:
            priced = priced[:most]
            mask = union(one.bit for one in priced)
        if not mask:
            message = "its capacity reservations are used up: wait, or allow other capacity"
            return _refusal(template, "NoOffering", message)
        if self._options.min_values_policy == "Strict" and not template.meets_minima(node.state, mask):
            message = "its cheapest types alone do not meet minValues: lower minValues"
            return _refusal(template, "MinValuesNotMet", message)
        wanted = asked & requirements((_in(CAPACITY_TYPE, shelf.capacity_types(asked, mask)),))
        return Ending(
            requirements=wanted,
            written=written_down(wanted),
            names=tuple([one.name for one in priced]),
            cheapest=_choice(priced[0]),
            daemons=smallest(group.requests for group in template.overheads if group.mask & mask),
        )

    def _asked(self, used: Vector, daemons: Resources) -> Resources:
        key = (used, id(daemons))
        if key not in self._requests:
            self._requests[key] = self._axes.resources(used) + daemons
        return self._requests[key]


def placement(
    packing: Packing, unschedulable: list[Unschedulable], cluster: Cluster, pods: Mapping[str, Pod], axes: Axes
) -> Placement:
    """Answer the run's result, sorted by name throughout."""
    endings = Endings(packing, cluster, pods, axes)
    new_nodes: list[NewNode] = []
    refused = list(unschedulable)
    for node in (one for one in packing.opened if one.pods):
        made = endings.end(node)
        if isinstance(made, Refusal):
            refused += [Unschedulable(pod=name, reason=made.reason, message=made.message) for name in node.pods]
        else:
            new_nodes.append(made)
    fits = (Fit(node=node.name, pods=tuple(sorted(node.pods))) for node in packing.standing if node.pods)
    return Placement(
        new_nodes=tuple(sorted(new_nodes, key=lambda node: node.name)),
        existing=tuple(sorted(fits, key=lambda fit: fit.node)),
        unschedulable=tuple(sorted(refused, key=lambda one: one.pod)),
        approximations=tuple(sorted(set(_approximations(packing)))),
    )


def _choice(priced: Priced) -> Choice:
    offering = priced.offering
    return Choice(
        instance_type=priced.name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_usd_per_hour=offering.price_usd_per_hour,
        reservation_id=offering.reservation_id,
    )


def _in(key: str, values: frozenset[str]) -> Requirement:
    return Requirement(key=key, values=values)


def _refusal(template: Template, reason: Reason, message: str) -> Refusal:
    return Refusal(reason=reason, message=f"pool {template.pool.name}: {message}")


def units_of(packing: Packing, cluster: Cluster) -> Units:
    """Answer what reservations have left when all claims that wait for their instance have taken theirs."""
    left: dict[str, int] = {}
    for template in packing.templates:
        for key, count in template.shelf.reserved().items():
            left[key] = min(left.get(key, count), count)
    for claim in cluster.node_claims:
        for key in sorted(claim.requirements[RESERVATION_ID].values) if not claim.is_launched() else ():
            left[key] = left.get(key, 0) - 1
    return Units(left=left)


def _approximations(packing: Packing) -> list[Approximation]:
    """Answer who could not be counted, since the domain of the node is not decided before it is launched."""
    return [
        Approximation(pod=pod, constraint=f"{packing.topology.groups[number].rule}: undecided until launch")
        for node in packing.opened
        for number, pod in node.waiting
    ]
