"""What may come in the place of nodes that go: a node that costs less than they do, whichever way it is launched."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from shared.disruption.candidates import Candidate
from shared.disruption.prices import Ladder, Ladders
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE, ZONE_ID
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import PODS, Axes, smallest
from shared.scheduling.claims import claim_name, written_down
from shared.scheduling.opened import Opened
from shared.scheduling.placement import Choice, NewNode
from shared.scheduling.results import Units
from shared.scheduling.shelf import Mask, kind_of, union

LEAST_SPOT: Final = 15
"""So many cheaper types a spot node is replaced with at least, lest it moves each time a price does."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no such node."""

    reason: str
    message: str


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be bought instead."""

    node: Opened
    requirements: Requirements
    mask: Mask
    cheapest: Choice
    worst_usd_per_hour: float


class Exchanges:
    """Judges exchanges; what it agreed to of reservations is gone."""

    def __init__(self, axes: Axes, units: Units, *, spot_to_spot: bool, most_types: int, taken: frozenset[str]) -> None:
        """*units*: what reservations have left; *taken*: names of claims that there are."""
        self._axes, self._units, self._taken = axes, units, taken
        self.spot_to_spot, self._most = spot_to_spot, most_types
        self._ladders = Ladders()

    def units(self) -> Units:
        """Answer what reservations have left, to be used up on trial by several nodes."""
        return Units(left=dict(self._units.left))

    def free(self, node: Opened, units: Units) -> Exchange | Refused:
        """Answer the node at any price (drift)."""
        asked, mask = self._held(node, units)
        return self._made(node, asked, mask)

    def cheaper(
        self, node: Opened, targets: Sequence[Candidate], most: float | None = None, units: Units | None = None
    ) -> Exchange | Refused:
        """Answer the node, if it costs less than *targets* do together; or, as one of several, less than *most*."""
        price = sum(one.price_usd_per_hour for one in targets) if most is None else most
        asked, mask = self._held(node, units or self.units())
        is_spot = all(one.capacity_type == SPOT for one in targets)
        if is_spot and asked[CAPACITY_TYPE].has(SPOT):
            return self._spot_to_spot_exchange(node, asked, targets, price, is_one=most is None)
        asked, mask = self._below(node, asked, mask, price)
        if len(targets) > 1 and most is None:
            mask &= self._unlike(node, asked, mask, targets)
        if not mask:
            return Refused(reason="NoCheaperOffering", message="no cheaper offering")
        if not node.template.meets_minima(node.state, mask):
            return Refused(reason="MinValuesNotMet", message="cheaper types alone do not meet minValues")
        asked, mask = self._narrowed(node, asked, mask, price)
        return self._made(node, asked, mask)

    def least(self, node: Opened) -> float:
        """Answer the price of the node's cheapest offering; infinite if it has none."""
        found = node.template.shelf.cheapest(node.state.requirements.without((HOSTNAME,)), node.mask)
        return inf if found is None else found.offering.price_usd_per_hour

    def agree(self, exchange: Exchange, pods: Mapping[str, Pod]) -> NewNode:
        """Answer the node to be made, and take its reservation off what is left."""
        node, template = exchange.node, exchange.node.template
        self._held(node, self._units)
        priced = template.shelf.cheapest_first(exchange.requirements, exchange.mask)
        daemons = smallest(group.requests for group in template.overheads if group.mask & exchange.mask)
        who = [pods[name] for name in node.pods]
        return NewNode(
            name=claim_name(template.pool.name, who, written_down(exchange.requirements), self._taken),
            node_pool=template.pool.name,
            requirements=exchange.requirements,
            instance_types=tuple(one.name for one in priced),
            pods=tuple(sorted(node.pods)),
            requests=self._axes.resources(node.used) + daemons,
            daemon_pods=daemons[PODS],
            cheapest=exchange.cheapest,
            min_values_relaxed=node.is_relaxed,
        )

    def _held(self, node: Opened, units: Units) -> tuple[Requirements, Mask]:
        asked = node.state.requirements.without((HOSTNAME,))
        shelf = node.template.shelf
        if units.left and shelf.reservations(asked, node.mask):
            return units.hold(node, asked)
        return asked, node.mask & shelf.offered(asked)

    def _ladder(self, node: Opened, asked: Requirements) -> Ladder:
        return self._ladders.of(node.template.shelf, asked)

    def _below(self, node: Opened, asked: Requirements, mask: Mask, price: float) -> tuple[Requirements, Mask]:
        """Leave open what costs less than *price*: in all zones if some type does, else where the cheapest does."""
        found = mask & self._ladder(node, asked).below(price)
        if found or any(item.key in (ZONE, ZONE_ID) for item in node.state.minima):
            return asked, found
        shelf = node.template.shelf
        for kind in (SPOT, ON_DEMAND):
            narrow = asked & _of_kind(kind)
            first = shelf.cheapest(narrow, mask) if asked[CAPACITY_TYPE].has(kind) else None
            if first is None or first.offering.price_usd_per_hour >= price:
                continue
            kinds, offerings = frozenset(shelf.kinds(narrow)), shelf.offerings[first.bit.bit_length() - 1]
            some = (one for one in offerings if kind_of(one) in kinds and one.price_usd_per_hour < price)
            narrow &= Requirements(items=(Requirement(key=ZONE, values=frozenset(one.zone for one in some)),))
            return narrow, mask & shelf.offered(narrow) & self._ladder(node, narrow).below(price)
        return asked, 0

    def _narrowed(self, node: Opened, asked: Requirements, mask: Mask, price: float) -> tuple[Requirements, Mask]:
        """Leave one capacity type open where both are: the dear one must not be what is launched."""
        mine, shelf = asked[CAPACITY_TYPE], node.template.shelf
        if not (mine.has(SPOT) and mine.has(ON_DEMAND)) or RESERVED in shelf.capacity_types(asked, mask):
            return asked, mask
        for name in (SPOT, ON_DEMAND):
            narrow = asked & _of_kind(name)
            left = mask & shelf.offered(narrow) & self._ladder(node, narrow).below(price)
            if left and node.template.meets_minima(node.state, left):
                return narrow, left
        return asked, 0

    def _spot_to_spot_exchange(
        self, node: Opened, asked: Requirements, targets: Sequence[Candidate], price: float, *, is_one: bool
    ) -> Exchange | Refused:
        if not self.spot_to_spot:
            message = "a spot node is replaced with another only if SpotToSpotConsolidation is on"
            return Refused(reason="SpotToSpotDisabled", message=message)
        narrow = asked & _of_kind(SPOT)
        shelf, template = node.template.shelf, node.template
        mask = node.mask & shelf.offered(narrow) & self._ladder(node, narrow).below(price)
        if len(targets) > 1 and is_one:
            mask &= self._unlike(node, narrow, mask, targets)
        if not mask:
            return Refused(reason="NoCheaperOffering", message="no cheaper spot offering")
        if not template.meets_minima(node.state, mask):
            return Refused(reason="MinValuesNotMet", message="cheaper spot types alone do not meet minValues")
        if len(targets) == 1:
            count = mask.bit_count()
            if count < LEAST_SPOT:
                message = f"a spot node is replaced only where {LEAST_SPOT} types are cheaper, here are {count}"
                return Refused(reason="TooFewSpotTypes", message=message)
            mask = self._first(node, narrow, mask)
        return self._made(node, narrow, mask)

    def _first(self, node: Opened, asked: Requirements, mask: Mask) -> Mask:
        """Answer the cheapest types: fifteen, or as many as minValues need."""
        bits = [one.bit for one in node.template.shelf.cheapest_first(asked, mask)]
        count = min(LEAST_SPOT, len(bits))
        while count < len(bits) and not node.template.meets_minima(node.state, union(bits[:count])):
            count += 1
        return union(bits[:count])

    def _unlike(self, node: Opened, asked: Requirements, mask: Mask, targets: Sequence[Candidate]) -> Mask:
        """Answer the types that cost less than each of *targets* whose own type is among them: else it could stay."""
        named = node.template.shelf.named(
            Requirement(key=INSTANCE_TYPE, values=frozenset(one.instance_type for one in targets))
        )
        shared = named & mask
        names = {one.name for one in node.template.shelf.types} if shared else set()
        prices = [
            one.price_usd_per_hour
            for one in targets
            if shared
            and one.price_usd_per_hour > 0
            and one.instance_type in names
            and shared & node.template.shelf.named(_named(one.instance_type))
        ]
        return mask & self._ladder(node, asked).below(min(prices)) if prices else mask

    def _made(self, node: Opened, asked: Requirements, mask: Mask) -> Exchange | Refused:
        shelf, template = node.template.shelf, node.template
        priced = shelf.cheapest_first(asked, mask)
        if len(priced) > self._most:
            priced = priced[: self._most]
            mask = union(one.bit for one in priced)
        if not priced:
            return Refused(reason="NoCheaperOffering", message="no offering is left")
        if not template.meets_minima(node.state, mask):
            return Refused(reason="MinValuesNotMet", message="its cheapest types alone do not meet minValues")
        kinds = shelf.capacity_types(asked, mask)
        wanted = asked & requirements((Requirement(key=CAPACITY_TYPE, values=kinds),))
        worst = self._ladder(node, wanted).worst
        offering = priced[0].offering
        return Exchange(
            node=node,
            requirements=wanted,
            mask=mask,
            cheapest=Choice(
                instance_type=priced[0].name,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
                price_usd_per_hour=offering.price_usd_per_hour,
                reservation_id=offering.reservation_id,
            ),
            worst_usd_per_hour=max(worst[one.bit.bit_length() - 1] for one in priced),
        )


def _of_kind(capacity_type: str) -> Requirements:
    return Requirements(items=(Requirement(key=CAPACITY_TYPE, values=frozenset((capacity_type,))),))


def _named(name: str) -> Requirement:
    return Requirement(key=INSTANCE_TYPE, values=frozenset((name,)))
