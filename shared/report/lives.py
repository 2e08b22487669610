"""The machines of a day: what the journal and the fleet say of each, and when it began and ended."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from shared.disruption.prices import PriceList
from shared.model.action import Action, CreateNodeClaim, PatchMetadata, PatchStatus, TerminateInstances
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ON_DEMAND, TERMINATION_FINALIZER, ZONE
from shared.model.nodes import NodeClaim
from shared.model.objects import condition
from shared.model.state import StateNode
from shared.report.journal import LAUNCHED, Note


class Life(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A machine of today, and what it has cost of today so far."""

    claim: str
    instance: str = ""
    pool: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    zone: str = ""
    label: str = ""
    """The value of the label that costs are told apart by."""
    launched: datetime | None = None
    """None: it was asked for, and there is no instance yet."""
    ended: datetime | None = None
    missed: datetime | None = None
    """The end of the hour after which it was not there any more, though nothing said that it ended."""
    usd_per_hour: float = 0.0
    on_demand_usd_per_hour: float = 0.0
    hours: float = 0.0
    usd: float = 0.0
    on_demand_usd: float = 0.0
    idle_usd: float = 0.0


class Lives:
    """The machines of a day, while an hour is added."""

    def __init__(self, known: Iterable[Life], label: str) -> None:
        """Begin with those that are *known*; *label* is the one that costs are told apart by, "" for none."""
        self._past: list[Life] = []
        self._now: dict[str, Life] = {}
        self._ends: dict[str, datetime] = {}
        """When instances were ended, also those of machines that only the fleet tells of."""
        self._label = label
        for one in known:
            self._take(one)

    def _take(self, one: Life) -> None:
        """Take *one* in; what had its name before is past."""
        before = self._now.get(one.claim)
        if before is not None:
            self._past.append(before)
        self._now[one.claim] = one

    def sorted(self) -> list[Life]:
        """Answer all that are or were machines, and those that may become one."""
        first = datetime.max.replace(tzinfo=UTC)
        return sorted((*self._past, *self._now.values()), key=lambda one: (one.claim, one.launched or first))

    def hear(self, action: Action, at: datetime) -> None:
        """Take in what was done at *at*."""
        match action:
            case CreateNodeClaim(claim=claim):
                if claim.name not in self._now or self._now[claim.name].ended is not None:
                    self._take(Life(claim=claim.name))
                self._update(claim.name, _facts(claim.meta.labels, self._label))
            case PatchMetadata(kind="NodeClaim", name=name, labels=labels) if INSTANCE_TYPE in dict(labels):
                if name not in self._now:
                    self._take(Life(claim=name))  # who asked for it did not live to say so
                self._update(name, {"launched": at, **_facts(labels, self._label)})
            case PatchStatus(kind="NodeClaim", name=name, status=status):
                self._update(name, _instance_in(status))
            case TerminateInstances(instance_ids=ids):
                self._end_instances(ids, at)
            case PatchMetadata(kind="NodeClaim", name=name, finalizers=left) if _is_let_go(left):
                self._end(name, at)
            case _:
                return

    def read(self, notes: Iterable[Note]) -> None:
        """Take in what was paid for new machines."""
        for note in notes:
            if (note.kind, note.verdict) == ("NodeClaim", LAUNCHED):
                self._update(note.name, {"usd_per_hour": note.usd_per_hour})

    def price(self, sold: Mapping[tuple[str, str, str], float]) -> None:
        """Give those a price that have none, by type, zone and capacity type; and to all what they cost on demand."""
        for name, one in self._now.items():
            usd = one.usd_per_hour or sold.get((one.instance_type, one.zone, one.capacity_type), 0.0)
            on_demand = sold.get((one.instance_type, one.zone, ON_DEMAND), one.on_demand_usd_per_hour)
            self._now[name] = replace(one, usd_per_hour=usd, on_demand_usd_per_hour=on_demand or usd)

    def look(
        self, machines: Mapping[str, StateNode], unread: frozenset[str], prices: PriceList, until: datetime
    ) -> None:
        """Take in what is there, with today's prices, and miss what is not; what is *unread* may be there."""
        for name, state in machines.items():
            if state.claim is not None and state.claim.is_launched():
                self._see(name, state.claim, state, prices)
        for name, one in list(self._now.items()):
            if name in machines or name in unread or one.ended is not None:
                continue
            if one.launched is None:
                del self._now[name]  # it came to nothing
            elif one.missed is not None:
                self._now[name] = replace(one, ended=one.missed)
            else:
                self._now[name] = replace(one, missed=until)

    def _see(self, name: str, claim: NodeClaim, state: StateNode, prices: PriceList) -> None:
        known = self._now.get(name)
        if known is None or (known.instance and known.instance != claim.instance_id):
            self._take(Life(claim=name))
        facts = _facts((*claim.meta.labels, *state.meta.labels), self._label)
        known = self._now[name]
        self._now[name] = replace(
            known,
            **facts,
            instance=claim.instance_id,
            launched=known.launched or _launched(claim),
            ended=known.ended or self._ends.get(claim.instance_id),
            missed=None,
            usd_per_hour=prices.price(state.meta, claim.node_class.name) or known.usd_per_hour,
        )

    def _update(self, name: str, facts: Mapping[str, object]) -> None:
        if name in self._now:
            same = {key: value for key, value in facts.items() if key != "launched" or self._now[name].launched is None}
            self._now[name] = replace(self._now[name], **same)

    def _end_instances(self, ids: tuple[str, ...], at: datetime) -> None:
        self._ends.update((instance, at) for instance in ids if instance not in self._ends)
        for name, one in self._now.items():
            if one.instance in ids:
                self._end(name, at)

    def _end(self, name: str, at: datetime) -> None:
        known = self._now.get(name)
        if known is not None and known.ended is None:
            self._now[name] = replace(known, ended=at)


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    provider_id: str | None = msgspec.field(name="providerID", default=None)


def _instance_in(status: str) -> dict[str, str]:
    try:
        said = msgspec.json.decode(status, type=_Status).provider_id
    except msgspec.DecodeError:
        return {}
    return {"instance": said.rpartition("/")[2]} if said else {}


def _facts(labels: Iterable[tuple[str, str]], label: str) -> dict[str, str]:
    said = dict(labels)
    keys = {"pool": NODEPOOL, "instance_type": INSTANCE_TYPE, "capacity_type": CAPACITY_TYPE, "zone": ZONE}
    wanted = keys | ({"label": label} if label else {})
    return {part: said[key] for key, part in ((key, part) for part, key in wanted.items()) if said.get(key)}


def _launched(claim: NodeClaim) -> datetime | None:
    known = condition(claim.conditions, "Launched")
    return known.since if known is not None and known.since is not None else claim.meta.created_at


def _is_let_go(left: tuple[str, ...] | None) -> bool:
    """Whether *left* are the finalizers of a claim that ours was taken off."""
    return left is not None and TERMINATION_FINALIZER not in left
