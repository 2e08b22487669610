"""The end of a run as values: opened nodes become new nodes with names, types by price, and requests."""

from collections.abc import Mapping

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, RESERVED
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import PODS, Axes, smallest
from shared.scheduling.claims import claim_name
from shared.scheduling.opened import Opened
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Approximation, Choice, Fit, NewNode, Options, Placement, Reason, Unschedulable
from shared.scheduling.shelf import RESERVATION_ID, Mask, Priced
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


def placement(
    packing: Packing, unschedulable: list[Unschedulable], cluster: Cluster, pods: Mapping[str, Pod], axes: Axes
) -> Placement:
    """Answer the run's result, sorted by name throughout."""
    taken = frozenset(claim.name for claim in cluster.node_claims)
    units = _units(packing, cluster)
    new_nodes: list[NewNode] = []
    refused = list(unschedulable)
    for node in (one for one in packing.opened if one.pods):
        made = _new_node(node, packing.options, units, axes)
        if isinstance(made, Refusal):
            refused += [Unschedulable(pod=name, reason=made.reason, message=made.message) for name in node.pods]
        else:
            name = claim_name(made.node_pool, (pods[name] for name in node.pods), made.requirements, taken)
            new_nodes.append(msgspec.structs.replace(made, name=name))
    fits = (Fit(node=node.name, pods=tuple(sorted(node.pods))) for node in packing.standing if node.pods)
    return Placement(
        new_nodes=tuple(sorted(new_nodes, key=lambda node: node.name)),
        existing=tuple(sorted(fits, key=lambda fit: fit.node)),
        unschedulable=tuple(sorted(refused, key=lambda one: one.pod)),
        approximations=tuple(sorted(set(_approximations(packing)))),
    )


def _new_node(node: Opened, options: Options, units: Units, axes: Axes) -> NewNode | Refusal:
    """Answer the node, still without name, with the cheapest of its types."""
    shelf, template = node.template.shelf, node.template
    asked, mask = units.hold(node, node.state.requirements.without((HOSTNAME,)))
    priced = shelf.cheapest_first(asked, mask)[: options.max_instance_types]
    mask = sum(one.bit for one in priced)
    if not mask:
        return _refusal(template, "NoOffering", "its capacity reservations are used up: wait, or allow other capacity")
    if options.min_values_policy == "Strict" and not template.meets_minima(node.state, mask):
        return _refusal(template, "MinValuesNotMet", "its cheapest types alone do not meet minValues: lower minValues")
    daemons = smallest(group.requests for group in template.overheads if group.mask & mask)
    return NewNode(
        name="",
        node_pool=template.pool.name,
        requirements=asked & requirements((_in(CAPACITY_TYPE, shelf.capacity_types(asked, mask)),)),
        instance_types=tuple(one.name for one in priced),
        pods=tuple(sorted(node.pods)),
        requests=axes.resources(node.used) + daemons,
        daemon_pods=daemons[PODS],
        cheapest=_choice(priced[0]),
        min_values_relaxed=node.is_relaxed,
    )


def _choice(priced: Priced) -> Choice:
    offering = priced.offering
    return Choice(
        instance_type=priced.name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_usd_per_hour=offering.price_usd_per_hour,
    )


def _in(key: str, values: frozenset[str]) -> Requirement:
    return Requirement(key=key, values=values)


def _refusal(template: Template, reason: Reason, message: str) -> Refusal:
    return Refusal(reason=reason, message=f"pool {template.pool.name}: {message}")


def _units(packing: Packing, cluster: Cluster) -> Units:
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
