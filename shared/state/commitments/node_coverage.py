"""The commitments next to the nodes of a snapshot: what is left, and which nodes are covered.

AWS applies commitments to usage, not to nodes. So of equal instances, those that Joiner did not launch are covered
first, then the nodes in the order of their names. Then the price of any set of nodes is at most what the account saves
without these nodes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, ZONE
from shared.model.ec2.commitments import Commitments, CommitmentUse, OnDemandInstance
from shared.state.commitments.application import apply_commitments
from shared.state.commitments.remaining import RemainingCommitments
from shared.state.state_node import StateNode

InstanceKind = tuple[str, str]
"""Instance type and zone."""


class CommitmentLedger:
    """The active commitments, the instances of others, and the on-demand prices of a catalog."""

    def __init__(self, commitments: Commitments, catalog: Catalog) -> None:
        """Use *commitments*, all active, and the prices of *catalog*."""
        self.commitments = commitments
        self._prices = index_on_demand_prices(catalog)
        self._other_hours: dict[InstanceKind, float] = {}
        for instance in commitments.other_instances:
            kind = (instance.instance_type, instance.zone)
            self._other_hours[kind] = self._other_hours.get(kind, 0.0) + instance.hours
            self._prices.setdefault(instance.instance_type, instance.usd_per_hour)

    def compute_remaining(self, states: Iterable[StateNode]) -> RemainingCommitments:
        """Return what is left next to the nodes in *states* and the instances of others."""
        hours = dict(self._other_hours)
        for kind in (kind for state in states if (kind := self._find_kind(state)) is not None):
            hours[kind] = hours.get(kind, 0.0) + 1.0
        return RemainingCommitments(self.commitments, self._apply(hours))

    def compute_covered_parts(self, states: Iterable[StateNode]) -> dict[str, float]:
        """Return the covered part of each node in *states* that is covered at least partly, by name."""
        nodes_by_kind: dict[InstanceKind, list[str]] = {}
        for state in states:
            kind = _get_instance_kind(state)
            if kind is not None and kind[0] in self._prices:
                nodes_by_kind.setdefault(kind, []).append(state.name)
        hours = dict(self._other_hours)
        for kind, names in nodes_by_kind.items():
            hours[kind] = hours.get(kind, 0.0) + len(names)
        uncovered_usd = dict(self._apply(hours).uncovered_usd_by_instance)
        parts: dict[str, float] = {}
        for kind, names in nodes_by_kind.items():
            uncovered_hours = uncovered_usd[_format_kind(kind)] / self._prices[kind[0]]
            covered_hours = hours[kind] - uncovered_hours - self._other_hours.get(kind, 0.0)
            for name in sorted(names):
                part = round(min(1.0, max(0.0, covered_hours)), 9)
                covered_hours -= part
                parts |= {name: part} if part else {}
        return parts

    def _find_kind(self, state: StateNode) -> InstanceKind | None:
        """Return what *state* counts as; a NodeClaim without an instance counts as its most expensive instance type."""
        if state.claim is not None and not state.claim.is_launched():
            requirements = state.claim.requirements
            if requirements[CAPACITY_TYPE].values != {ON_DEMAND}:
                return None
            types = [name for name in requirements[INSTANCE_TYPE].values if name in self._prices]
            zones = requirements[ZONE].values if not requirements[ZONE].complement else frozenset[str]()
            return (max(types, key=lambda name: (self._prices[name], name)), min(zones, default="")) if types else None
        kind = _get_instance_kind(state)
        return kind if kind is not None and kind[0] in self._prices else None

    def _apply(self, hours: Mapping[InstanceKind, float]) -> CommitmentUse:
        instances = [
            OnDemandInstance(
                instance_id=_format_kind(kind),
                instance_type=kind[0],
                zone=kind[1],
                usd_per_hour=self._prices[kind[0]],
                hours=kind_hours,
            )
            for kind, kind_hours in hours.items()
        ]
        return apply_commitments(instances, self.commitments.reserved, self.commitments.plans)


def build_commitment_ledger(catalog: Catalog | None, at: datetime) -> CommitmentLedger | None:
    """Return the ledger of the commitments in *catalog* that are active *at* a time; None if there are none."""
    if catalog is None or catalog.commitments is None:
        return None
    commitments = catalog.commitments.select_active(at)
    return CommitmentLedger(commitments, catalog) if commitments.reserved or commitments.plans else None


def index_on_demand_prices(catalog: Catalog) -> dict[str, float]:
    """Return the on-demand price by instance type, before NodeOverlays; the highest if zones differ."""
    prices: dict[str, float] = {}
    for types in (catalog.instance_types, *(types for _, types in catalog.by_node_class)):
        for instance_type in types:
            for offering in instance_type.offerings:
                if offering.capacity_type == ON_DEMAND and not offering.is_overlaid:
                    price = max(prices.get(instance_type.name, 0.0), offering.price_usd_per_hour)
                    prices[instance_type.name] = price
    return prices


def _get_instance_kind(state: StateNode) -> InstanceKind | None:
    """Return the kind of an on-demand instance that Joiner launched; None for other nodes."""
    if state.claim is None or not state.claim.is_launched() or state.meta.get_label(CAPACITY_TYPE) != ON_DEMAND:
        return None
    return state.meta.get_label(INSTANCE_TYPE), state.meta.get_label(ZONE)


def _format_kind(kind: InstanceKind) -> str:
    return "/".join(kind)
