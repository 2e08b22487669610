"""What is known of one thing: questions with their answers, and its story. Nothing is guessed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from cli.explain_kinds import KINDS, Kind
from cli.explain_look import Look, found
from cli.explain_machines import Machine, machine_of
from cli.explain_now import now_of
from cli.explain_told import NAMED, Happening, Names, story
from cli.left_out import by_pool
from cli.text import clock_text, count, some
from shared.model.action import DeletePod, EvictPod
from shared.report.journal import Note


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What something cost in the time that is covered."""

    usd: float
    usd_per_hour: float
    """Of what is there at its end."""
    hours: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and what is said to it."""

    question: str
    words: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one thing."""

    kind: Kind
    name: str
    answers: tuple[Answer, ...]
    cost: Cost | None = None
    happened: tuple[Happening, ...] = ()


def explained(look: Look, kind: Kind, wanted: str) -> Explanation:
    """Answer all that is known of *wanted*.

    Raises:
        Unknown: nothing is.
    """
    name = found(look, kind, wanted)
    match kind:
        case "pod":
            return _pod(look, name)
        case "nodepool":
            return _pool(look, name)
        case "command":
            return _command(look, name)
        case _:
            return _machine(look, kind, name)


def _answer(question: str, *words: str) -> Iterator[Answer]:
    said = tuple(one for one in words if one)
    if said:
        yield Answer(question=question, words=said)


def _pod(look: Look, name: str) -> Explanation:
    said = list(look.notes("Pod", name))
    notes = [note for _, note in said]
    answers = [*_answer("now", *now_of(look.live, "pod", name))]
    if notes:
        last = notes[-1]
        kind, _, place = last.verdict.partition("/")
        if place and kind in ("node", "nodeclaim"):
            answers += _place(look, notes, kind, place)
        else:
            against = (
                f"{f'pool {some(pools, NAMED)}: ' if pools else ''}{words}" for pools, words in by_pool(last.why)
            )
            answers += _answer("goes nowhere", f"{last.verdict}, as of {instant(said[-1][0])}", *against)
    else:
        answers += _answer("placed by", "kube-scheduler alone, as far as the journal goes: it was never planned for")
    answers += _answer("moved", *_evictions(look, name))
    return Explanation(kind="pod", name=name, answers=tuple(answers), happened=_told_of(look, name))


def _told_of(look: Look, pod: str) -> tuple[Happening, ...]:
    """Answer the story of *pod*, and what became of the claims that were made for it."""
    own = story(look.cycles, frozenset((("Pod", pod),)))
    claims: Names = frozenset(("NodeClaim", one.claim) for one in look.machines if pod in one.pods)
    made = (one for one in story(look.cycles, claims) if one.is_failed or one.what.startswith("NodeClaim "))
    order = {cycle.key: place for place, cycle in enumerate(look.cycles)}
    return tuple(sorted(dict.fromkeys((*made, *own)), key=lambda one: order[one.cycle]))


def _place(look: Look, notes: list[Note], kind: str, place: str) -> Iterator[Answer]:
    machine = machine_of(look.machines, place)
    if machine is None:
        yield from _answer("goes to", f"{kind} {place}: {notes[-1].why}")
        return
    yield from _answer("went to" if machine.terminated_at is not None else "goes to", _called(machine))
    made = [one for one in notes if one.verdict.startswith("nodeclaim/")]
    own = bool(made) and made[-1].verdict == f"nodeclaim/{machine.claim}"
    yield from _answer("why there", f"it was made for it: {machine.asked_why}" if own else notes[-1].why)
    yield from _answer("bought as", _bought(machine))
    others = len(machine.pods) - 1
    if own and others > 0:
        beside = [one for one in machine.pods if one != notes[-1].name]
        yield from _answer("beside", f"{count(others, 'other pod')}: {some(beside, NAMED)}")
    if machine.usd_per_hour:
        yield from _answer("costs", f"the node ${machine.usd_per_hour:.4f} per hour{_ended(machine)}")


def _evictions(look: Look, name: str) -> Iterator[str]:
    for cycle in look.cycles:
        for done in cycle.entry.done:
            one = done.action
            if (
                isinstance(one, EvictPod | DeletePod)
                and f"{one.namespace}/{one.name}" == name
                and done.result == "done"
            ):
                yield f"{instant(cycle.entry.at)}: from {one.node}: {one.why}{_reason(look, one.node)}"


def _reason(look: Look, node: str) -> str:
    machine = machine_of(look.machines, node)
    return f" ({machine.claim}: {machine.deleted_why})" if machine is not None and machine.deleted_why else ""


def _machine(look: Look, kind: Kind, name: str) -> Explanation:
    machine = machine_of(look.machines, name) or Machine(claim="", node=name)
    names = machine.names() | {(KINDS[kind], name)}
    answers = [
        *_answer("is", _called(machine) if machine.claim else ""),
        *_answer("now", *now_of(look.live, "node", machine.node), *now_of(look.live, "nodeclaim", machine.claim)),
        *_answer("made for", _made_for(machine)),
        *_answer("why", machine.asked_why),
        *_answer("bought as", _bought(machine)),
        *_answer(*_fate(look, machine)),
    ]
    cost = cost_of([machine], look.journal.now)
    answers += _answer("cost", _cost(cost))
    return Explanation(
        kind=kind, name=name, answers=tuple(answers), cost=cost, happened=story(look.cycles, frozenset(names))
    )


def _called(machine: Machine) -> str:
    parts = (
        f"node {machine.node}" if machine.node else "a node that has not joined yet",
        f"NodeClaim {machine.claim}",
        machine.instance,
        f"of NodePool {machine.pool}" if machine.pool else "",
    )
    return ", ".join(one for one in parts if one) + _ended(machine)


def _ended(machine: Machine) -> str:
    if machine.terminated_at is not None:
        return f", gone since {instant(machine.terminated_at)}"
    return f", leaving since {instant(machine.deleted_at)}" if machine.deleted_at is not None else ""


def _made_for(machine: Machine) -> str:
    return f"{count(len(machine.pods), 'pod')}: {some(machine.pods, NAMED)}" if machine.pods else ""


def _bought(machine: Machine) -> str:
    if not machine.instance_type:
        return "nothing yet" if machine.asked_at is not None else ""
    offering = f"{machine.instance_type}, {machine.capacity_type}, in {machine.zone}"
    price = f", ${machine.usd_per_hour:.4f} per hour" if machine.usd_per_hour else ""
    choice = f": EC2's choice among {count(machine.offerings, 'offering')}" if machine.offerings else ""
    return f"{offering}{price}{choice}"


def _fate(look: Look, machine: Machine) -> tuple[str, str, str]:
    """Say why it goes, or why it does not."""
    told = look.notes("Node", machine.node) if machine.node else ()
    verdicts = [(at, note) for at, note in told if machine.asked_at is None or at >= machine.asked_at]
    commands = [(at, note) for at, note in verdicts if note.links]
    said = ""
    if commands:
        at, note = commands[-1]
        said = f"command {note.why.partition(': ')[0]} is {note.verdict} since {instant(at)}"
    if machine.deleted_at is not None:
        return "removed because", machine.deleted_why, said
    verdicts = [(at, note) for at, note in verdicts if not note.links]
    if not verdicts:
        return "why not removed", "", said
    last = verdicts[-1][1]
    since = verdicts[-1][0]
    for at, note in reversed(verdicts):
        if (note.verdict, note.why) != (last.verdict, last.why):
            break
        since = at
    question = "goes because" if last.verdict == "disrupted" else "why not removed"
    return question, f"{last.verdict}: {last.why} (so since {instant(since)})", said


def cost_of(some: Iterable[Machine], now: datetime) -> Cost | None:
    """Answer what machines cost until *now*; None if no price is known."""
    priced = [one for one in some if one.usd_per_hour and one.launched_at is not None]
    if not priced:
        return None
    lived = [_hours(one, now) for one in priced]
    return Cost(
        usd=sum(one.usd_per_hour * hours for one, hours in zip(priced, lived, strict=True)),
        usd_per_hour=sum(one.usd_per_hour for one in priced if one.terminated_at is None),
        hours=sum(lived),
    )


def _hours(machine: Machine, now: datetime) -> float:
    began = machine.launched_at or now
    return max((machine.terminated_at or now) - began, timedelta()) / timedelta(hours=1)


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return ""
    return f"${cost.usd:.4f} for {clock_text(timedelta(hours=cost.hours))} of instance time, without volumes"


def _pool(look: Look, name: str) -> Explanation:
    mine = [one for one in look.machines if one.pool == name]
    alive = [one for one in mine if one.terminated_at is None and one.deleted_at is None]
    cost = cost_of(mine, look.journal.now)
    ends = Counter(one.deleted_why for one in mine if one.deleted_why)
    answers = [
        *_answer("now", *now_of(look.live, "nodepool", name)),
        *_answer("machines", f"{len(mine)} known, {len(alive)} there at the end" if mine else ""),
        *_answer("bought as", *_tally(Counter(_offering(one) for one in mine if one.instance_type))),
        *_answer("removed because", *_tally(ends)),
        *_answer("why not removed", *_verdicts(look, alive)),
        *_answer("turned down", *_turned_down(look, name)),
        *_answer("cost", _cost(cost), f"${cost.usd_per_hour:.4f} per hour at the end" if cost is not None else ""),
    ]
    names: Names = frozenset((("NodePool", name), *(("NodeClaim", one.claim) for one in mine)))
    lines = tuple(
        one
        for one in story(look.cycles, names)
        if one.what.startswith(("NodeClaim ", "NodePool ", "problem ")) or one.is_failed
    )
    return Explanation(kind="nodepool", name=name, answers=tuple(answers), cost=cost, happened=lines)


def _offering(machine: Machine) -> str:
    return f"{machine.instance_type}, {machine.capacity_type}, in {machine.zone}"


def _tally(counted: Counter[str]) -> Iterator[str]:
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    yield from (f"{number} x {what}" for what, number in ranked[:NAMED])
    if len(ranked) > NAMED:
        yield f"… and {count(len(ranked) - NAMED, 'other')}"


def _verdicts(look: Look, alive: Iterable[Machine]) -> Iterator[str]:
    nodes = {one.node for one in alive}
    last = {note.name: note for _, note in look.notes("Node") if note.name in nodes and not note.links}
    yield from _tally(Counter(f"{note.verdict}: {note.why}" for note in last.values()))


def _turned_down(look: Look, name: str) -> Iterator[str]:
    """Say what keeps pods off the pool that wait still."""
    last = {note.name: note for _, note in look.notes("Pod")}
    said = Counter(
        words
        for note in last.values()
        if "/" not in note.verdict
        for pools, words in by_pool(note.why)
        if name in pools
    )
    yield from _tally(said)


def _command(look: Look, name: str) -> Explanation:
    notes = list(look.notes("Command", name))
    began, first = notes[0]
    ended, last = notes[-1]
    going = [link.partition("/")[2] for link in first.links]
    mine = list(dict.fromkeys(one for one in (machine_of(look.machines, name) for name in going) if one))
    coming = [one for one in (machine_of(look.machines, claim) for claim in first.replaced_by) if one]
    answers = [
        *_answer("is", f"{last.verdict} since {instant(ended)}, {clock_text(ended - began)} after it was proposed"),
        *_answer("why", first.why, _without(last.why, first.why) if last is not first else ""),
        *_answer("nodes that go", *(_called(one) for one in mine), "" if mine else some(going, None)),
        *_answer("in their place", *(f"{_called(one)}: {_bought(one)}" for one in coming)),
        *_answer("saves", f"${last.usd_per_hour:.4f} per hour" if last.usd_per_hour else ""),
        *_answer("steps", ", ".join(f"{note.verdict} {instant(at)}" for at, note in notes)),
    ]
    names = frozenset((("Command", name),)).union(*(one.names() for one in (*mine, *coming)))
    during = [one for one in look.cycles if began <= one.entry.at <= ended]
    lines = (msgspec.structs.replace(one, why=_without(one.why, first.why)) for one in story(during, names))
    return Explanation(kind="command", name=name, answers=tuple(answers), happened=tuple(lines))


def _without(words: str, summary: str) -> str:
    """Answer *words* without what every step of a command says again."""
    return words.removesuffix(f"; {summary}")


def instant(at: datetime) -> str:
    """Answer *at* in words, UTC.

    >>> from datetime import UTC
    >>> instant(datetime(2026, 11, 21, 8, 5, tzinfo=UTC))
    '2026-11-21 08:05:00'
    """
    return f"{at:%Y-%m-%d %H:%M:%S}"
