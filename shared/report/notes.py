"""Decisions as notes of the journal: in words, and each once until it changes."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.disruption.events import MOST as MOST_MACHINES
from shared.disruption.events import SILENT
from shared.disruption.pauses import words
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.model.action import Action, PatchMetadata
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.commands import Command, Pauses, Standing, Target
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, NODEPOOL, RESERVATION_ID, ZONE
from shared.report.journal import LAUNCHED, Note
from shared.scheduling.placement import Placement

TOLD_AGAIN: Final = timedelta(hours=1)
"""So far back the journal has to be read for a verdict that still stands."""
MOST: Final = 5000
"""Verdicts that one entry has room for."""
LAGS: Final = timedelta(minutes=15)
"""A machine is not told more often why it stays: that changes with every pod."""
SETTLES: Final = timedelta(minutes=2)
"""Nor, more often, what forbids that it goes."""
_KEY: Final = "verdicts"


class Told(msgspec.Struct, kw_only=True):
    """What this container has told of nodes since all was told last."""

    since: datetime
    verdicts: dict[str, tuple[str, str]] = {}
    events: dict[str, tuple[str, datetime]] = {}
    """By machine, what an event said of it last, and when."""


def told_by(memory: MutableMapping[str, object] | None) -> Told | None:
    """Answer a copy of what *memory* has told."""
    known = memory.get(_KEY) if memory is not None else None
    return _copied(known) if isinstance(known, Told) else None


def memory_with(told: Told | None) -> dict[str, object]:
    """Answer the memory of which `told_by` answered *told*."""
    return {} if told is None else {_KEY: _copied(told)}


def news(verdicts: Iterable[Verdict], memory: MutableMapping[str, object] | None, now: datetime) -> tuple[Verdict, ...]:
    """Answer the verdicts that were not told yet, and all once an hour; sorted by node, no more than `MOST`.

    Without a *memory* all are new.
    """
    told = _remembered(memory, now)
    fresh: list[Verdict] = []
    for one in sorted(verdicts, key=lambda one: one.node):
        said = (one.verdict, one.why)
        if told.verdicts.get(one.node) != said and len(fresh) < MOST:
            told.verdicts[one.node] = said
            fresh.append(one)
    return tuple(fresh)


def voiced(
    fresh: Iterable[Verdict], every: Iterable[Verdict], memory: MutableMapping[str, object] | None, now: datetime
) -> tuple[Verdict, ...]:
    """Answer those of *every* that events are to say now: all that go, and what is *fresh* and lasts; sorted by node.

    A machine of which something was said lately is left alone for a while; what is true of it then is said then.
    """
    told, some = _remembered(memory, now), {one.node for one in fresh}
    found: list[Verdict] = []
    machines = 0
    for one in sorted(every, key=lambda one: one.node):
        is_going = isinstance(one, Disrupted)
        if is_going and one.node in some:
            found.append(one)
        if is_going or one.reason in SILENT or machines == MOST_MACHINES:
            continue
        last = told.events.get(one.node)
        if one.node not in some and (last is None or last[0] == one.why):
            continue
        if last is None or now - last[1] >= (LAGS if isinstance(one, Kept) else SETTLES):
            told.events[one.node] = (one.why, now)
            found.append(one)
            machines += 1
    return tuple(found)


def of_nodes(verdicts: Iterable[Verdict]) -> Iterator[Note]:
    """Answer a note of each verdict."""
    for one in verdicts:
        yield Note(kind="Node", name=one.node, verdict=one.verdict, why=one.why)


def of_commands(moved: Iterable[Standing]) -> Iterator[Note]:
    """Answer a note of each command that came further, and one of each of its nodes."""
    for one in moved:
        command = one.command
        why = f"{one.why}; {_summary(command)}" if one.why != command.why else _summary(command)
        yield Note(
            kind="Command",
            name=command.command_id,
            verdict=one.phase,
            why=why,
            links=tuple(link for target in command.targets for link in _machine(target)),
            replaced_by=tuple(by.claim.name for by in command.replacements),
            usd_per_hour=command.savings_usd_per_hour,
        )
        for target in command.targets:
            why = f"{command.command_id}: {one.why}"
            links = (f"Command/{command.command_id}",)
            yield Note(kind="Node", name=target.node, verdict=one.phase, why=why, links=links)


def _machine(target: Target) -> tuple[str, str]:
    return f"Node/{target.node}", f"NodeClaim/{target.claim}"


def of_launches(done: Iterable[Action], cluster: Cluster) -> Iterator[Note]:
    """Answer a note of each claim that has an instance by what was *done*: what was bought, and for how much."""
    for action in done:
        if not isinstance(action, PatchMetadata) or action.kind != "NodeClaim":
            continue
        labels = dict(action.labels)
        if INSTANCE_TYPE in labels:
            price = _price(labels, cluster)
            bought = ", ".join((labels[INSTANCE_TYPE], labels[CAPACITY_TYPE], f"in {labels[ZONE]}"))
            why = f"{bought}, ${price:.4f} per hour" if price else bought
            yield Note(kind="NodeClaim", name=action.name, verdict=LAUNCHED, why=why, usd_per_hour=price)


def _price(labels: Mapping[str, str], cluster: Cluster) -> float:
    """Answer what the offering costs that *labels* describe, 0 if it is not sold any more."""
    sold = cluster.catalogue
    types = sold.types_for(labels.get(NODECLASS, ""), labels.get(NODEPOOL, "")) if sold is not None else ()
    wanted = (labels[INSTANCE_TYPE], labels[ZONE], labels[CAPACITY_TYPE], labels.get(RESERVATION_ID, ""))
    for kind in types:
        for one in kind.offerings:
            if (kind.name, one.zone, one.capacity_type, one.reservation_id) == wanted:
                return one.price_usd_per_hour
    return 0.0


def of_pauses(paused: Pauses) -> Iterator[Note]:
    """Answer a note of each pause."""
    for one in paused.items:
        yield Note(kind="NodePool", name=one.pool or "*", verdict="DisruptionPaused", why=words(one))


def of_places(placement: Placement) -> Iterator[Note]:
    """Answer a note of each pod that was planned for."""
    for node in placement.new_nodes:
        why = f"new {node.cheapest.instance_type} or like it"
        yield from (Note(kind="Pod", name=pod, verdict=f"nodeclaim/{node.name}", why=why) for pod in node.pods)
    for fit in placement.existing:
        yield from (
            Note(kind="Pod", name=pod, verdict=f"node/{fit.node}", why="fits what is there") for pod in fit.pods
        )
    for verdict in placement.unschedulable:
        yield Note(kind="Pod", name=verdict.pod, verdict=verdict.reason, why=verdict.message)


def _summary(command: Command) -> str:
    names = ", ".join(target.node for target in command.targets)
    by = ", ".join(one.claim.name for one in command.replacements)
    saved = f", saves ${command.savings_usd_per_hour:.4f}/h" if command.savings_usd_per_hour else ""
    said = f"{command.method} ({command.reason}) of {names}{f' by {by}' if by else ''}{saved}"
    return f"{said}: {command.why}" if command.why else said


def _remembered(memory: MutableMapping[str, object] | None, now: datetime) -> Told:
    known = memory.get(_KEY) if memory is not None else None
    if not isinstance(known, Told) or now - known.since >= TOLD_AGAIN:
        before = known.events if isinstance(known, Told) else {}
        late = {name: one for name, one in before.items() if now - one[1] < TOLD_AGAIN}
        known = Told(since=now, verdicts={}, events=late)
        if memory is not None:
            memory[_KEY] = known
    return known


def _copied(told: Told) -> Told:
    return msgspec.structs.replace(told, verdicts=dict(told.verdicts), events=dict(told.events))


def of_catalogue(made: Catalogue, key: str) -> Note:
    """Answer the note of a catalogue that was made."""
    sold = ", ".join(f"{len(types)} types for {name}" for name, types in made.by_node_class)
    priced = f", prices of {made.priced_at:%Y-%m-%d %H:%M}" if made.priced_at is not None else ""
    return Note(kind="Catalogue", name=key, verdict="made", why=f"{sold}{priced}")
