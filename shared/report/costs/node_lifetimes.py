"""The nodes of a day: what the journal and the fleet record about each, and when it started and ended."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, TERMINATION_FINALIZER, ZONE
from shared.model.core.metadata import find_condition
from shared.model.decisions.action import Action, CreateNodeClaim, PatchMetadata, PatchStatus, TerminateInstances
from shared.model.karpenter.node_claim import NodeClaim
from shared.report.journal.journal import LAUNCHED_VERDICT, DecisionNote
from shared.state.node_prices import PriceList
from shared.state.state_node import StateNode


class NodeLifetime(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A node of today, and its cost today so far."""

    claim: str
    instance: str = ""
    pool: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    zone: str = ""
    label: str = ""
    """The value of the label that costs are grouped by."""
    launched: datetime | None = None
    """None: the node was requested, and there is no instance yet."""
    ended: datetime | None = None
    missed: datetime | None = None
    """The end of the hour after which the node did not exist any more, though no entry recorded its end."""
    usd_per_hour: float = 0.0
    on_demand_usd_per_hour: float = 0.0
    hours: float = 0.0
    usd: float = 0.0
    on_demand_usd: float = 0.0
    idle_usd: float = 0.0


class NodeLifetimes:
    """The nodes of a day, while an hour is added."""

    def __init__(self, known_lifetimes: Iterable[NodeLifetime], label: str) -> None:
        """Start with *known_lifetimes*; costs are grouped by the node label *label*, "" for none."""
        self._past_lifetimes: list[NodeLifetime] = []
        self._current_by_claim: dict[str, NodeLifetime] = {}
        self._end_by_instance: dict[str, datetime] = {}
        """End times of instances, also of nodes that only the fleet knows."""
        self._label = label
        for lifetime in known_lifetimes:
            self._add(lifetime)

    def _add(self, lifetime: NodeLifetime) -> None:
        """Add *lifetime*; an earlier one with the same claim name is past."""
        previous = self._current_by_claim.get(lifetime.claim)
        if previous is not None:
            self._past_lifetimes.append(previous)
        self._current_by_claim[lifetime.claim] = lifetime

    def sort_lifetimes(self) -> list[NodeLifetime]:
        """Return all lifetimes, also those that have no instance yet, sorted by claim and launch."""
        first = datetime.max.replace(tzinfo=UTC)
        return sorted(
            (*self._past_lifetimes, *self._current_by_claim.values()),
            key=lambda lifetime: (lifetime.claim, lifetime.launched or first),
        )

    def add_action(self, action: Action, at: datetime) -> None:
        """Record *action*, which was performed at *at*."""
        match action:
            case CreateNodeClaim(claim=claim):
                if claim.name not in self._current_by_claim or self._current_by_claim[claim.name].ended is not None:
                    self._add(NodeLifetime(claim=claim.name))
                self._update(claim.name, _extract_facts(claim.meta.labels, self._label))
            case PatchMetadata(kind="NodeClaim", name=name, labels=labels) if INSTANCE_TYPE in dict(labels):
                if name not in self._current_by_claim:
                    self._add(
                        NodeLifetime(claim=name)
                    )  # the function that requested it was killed before it wrote its entry
                self._update(name, {"launched": at, **_extract_facts(labels, self._label)})
            case PatchStatus(kind="NodeClaim", name=name, status=status):
                self._update(name, _decode_instance_id(status))
            case TerminateInstances(instance_ids=ids):
                self._end_instances(ids, at)
            case PatchMetadata(kind="NodeClaim", name=name, finalizers=remaining) if _is_finalized(remaining):
                self._end_lifetime(name, at)
            case _:
                return

    def add_notes(self, notes: Iterable[DecisionNote]) -> None:
        """Record the prices of new nodes."""
        for note in notes:
            if (note.kind, note.verdict) == ("NodeClaim", LAUNCHED_VERDICT):
                self._update(note.name, {"usd_per_hour": note.usd_per_hour})

    def set_prices(self, prices_by_offering: Mapping[tuple[str, str, str], float]) -> None:
        """Set missing prices, and all on-demand prices, by instance type, zone and capacity type."""
        for name, lifetime in self._current_by_claim.items():
            usd = lifetime.usd_per_hour or prices_by_offering.get(
                (lifetime.instance_type, lifetime.zone, lifetime.capacity_type), 0.0
            )
            on_demand = prices_by_offering.get(
                (lifetime.instance_type, lifetime.zone, ON_DEMAND), lifetime.on_demand_usd_per_hour
            )
            self._current_by_claim[name] = replace(lifetime, usd_per_hour=usd, on_demand_usd_per_hour=on_demand or usd)

    def add_fleet(
        self,
        states_by_claim: Mapping[str, StateNode],
        unreadable_claims: frozenset[str],
        prices: PriceList,
        until: datetime,
    ) -> None:
        """Record the existing nodes with today's prices, and mark missing nodes; *unreadable_claims* may exist."""
        for name, state in states_by_claim.items():
            if state.claim is not None and state.claim.is_launched():
                self._add_observed_node(name, state.claim, state, prices)
        for name, lifetime in list(self._current_by_claim.items()):
            if name in states_by_claim or name in unreadable_claims or lifetime.ended is not None:
                continue
            if lifetime.launched is None:
                del self._current_by_claim[name]  # no instance was launched
            elif lifetime.missed is not None:
                self._current_by_claim[name] = replace(lifetime, ended=lifetime.missed)
            else:
                self._current_by_claim[name] = replace(lifetime, missed=until)

    def _add_observed_node(self, name: str, claim: NodeClaim, state: StateNode, prices: PriceList) -> None:
        lifetime = self._current_by_claim.get(name)
        if lifetime is None or (lifetime.instance and lifetime.instance != claim.instance_id):
            self._add(NodeLifetime(claim=name))
        facts = _extract_facts((*claim.meta.labels, *state.meta.labels), self._label)
        lifetime = self._current_by_claim[name]
        self._current_by_claim[name] = replace(
            lifetime,
            **facts,
            instance=claim.instance_id,
            launched=lifetime.launched or _get_launch_time(claim),
            ended=lifetime.ended or self._end_by_instance.get(claim.instance_id),
            missed=None,
            usd_per_hour=prices.get_billed_price(state.meta, claim.node_class.name) or lifetime.usd_per_hour,
        )

    def _update(self, name: str, facts: Mapping[str, object]) -> None:
        if name in self._current_by_claim:
            new_facts = {
                key: value
                for key, value in facts.items()
                if key != "launched" or self._current_by_claim[name].launched is None
            }
            self._current_by_claim[name] = replace(self._current_by_claim[name], **new_facts)

    def _end_instances(self, ids: tuple[str, ...], at: datetime) -> None:
        self._end_by_instance.update((instance, at) for instance in ids if instance not in self._end_by_instance)
        for name, lifetime in self._current_by_claim.items():
            if lifetime.instance in ids:
                self._end_lifetime(name, at)

    def _end_lifetime(self, name: str, at: datetime) -> None:
        lifetime = self._current_by_claim.get(name)
        if lifetime is not None and lifetime.ended is None:
            self._current_by_claim[name] = replace(lifetime, ended=at)


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    provider_id: str | None = msgspec.field(name="providerID", default=None)


def _decode_instance_id(status: str) -> dict[str, str]:
    try:
        provider_id = msgspec.json.decode(status, type=_Status).provider_id
    except msgspec.DecodeError:
        return {}
    return {"instance": provider_id.rpartition("/")[2]} if provider_id else {}


def _extract_facts(labels: Iterable[tuple[str, str]], label: str) -> dict[str, str]:
    label_values = dict(labels)
    keys = {"pool": NODEPOOL, "instance_type": INSTANCE_TYPE, "capacity_type": CAPACITY_TYPE, "zone": ZONE}
    label_keys = keys | ({"label": label} if label else {})
    return {
        part: label_values[key]
        for key, part in ((key, part) for part, key in label_keys.items())
        if label_values.get(key)
    }


def _get_launch_time(claim: NodeClaim) -> datetime | None:
    launched_condition = find_condition(claim.conditions, "Launched")
    return (
        launched_condition.since
        if launched_condition is not None and launched_condition.since is not None
        else claim.meta.created_at
    )


def _is_finalized(finalizers: tuple[str, ...] | None) -> bool:
    """Return whether *finalizers* are those of a claim from which ours was removed."""
    return finalizers is not None and TERMINATION_FINALIZER not in finalizers
