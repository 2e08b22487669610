"""What is known of a NodePool, and of a command: of several machines together."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from cli.explain_look import Look
from cli.explain_machines import Machine, machine_of
from cli.explain_now import now_of
from cli.explain_told import NAMED, Names, story
from cli.explain_words import Explanation, answer, bought, called, cost_of, cost_words, instant
from cli.left_out import by_pool
from cli.text import clock_text, count, some

ELSEWHERE = "its NodeClaim was deleted, by whom the journal does not say"
"""Why a machine is gone that no function has ended for a reason of its own."""


def of_pool(look: Look, name: str) -> Explanation:
    """Answer all that is known of the NodePool *name*."""
    mine = [one for one in look.machines if one.pool == name]
    alive = [one for one in mine if one.terminated_at is None and one.deleted_at is None]
    cost = cost_of(mine, look.journal.now)
    ends = Counter(one.deleted_why or ELSEWHERE for one in mine if one.deleted_why or one.terminated_at is not None)
    answers = [
        *answer("now", *now_of(look.live, "nodepool", name)),
        *answer("machines", f"{len(mine)} known, {len(alive)} there at the end" if mine else ""),
        *answer("bought as", *_tally(Counter(_offering(one) for one in mine if one.instance_type))),
        *answer("removed because", *_tally(ends)),
        *answer("why not removed", *_verdicts(look, alive)),
        *answer("turned down", *_turned_down(look, name)),
        *answer("cost", cost_words(cost), f"${cost.usd_per_hour:.4f} per hour at the end" if cost is not None else ""),
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


def of_command(look: Look, name: str) -> Explanation:
    """Answer all that is known of the command *name*."""
    notes = list(look.notes("Command", name))
    began, first = notes[0]
    ended, last = notes[-1]
    going = [link.partition("/")[2] for link in first.links]
    mine = list(dict.fromkeys(one for one in (machine_of(look.machines, name) for name in going) if one))
    coming = [one for one in (machine_of(look.machines, claim) for claim in first.replaced_by) if one]
    answers = [
        *answer("is", f"{last.verdict} since {instant(ended)}, {clock_text(ended - began)} after it was proposed"),
        *answer("why", first.why, _without(last.why, first.why) if last is not first else ""),
        *answer("nodes that go", *(called(one) for one in mine), "" if mine else some(going, None)),
        *answer("in their place", *(f"{called(one)}: {bought(one)}" for one in coming)),
        *answer("saves", f"${last.usd_per_hour:.4f} per hour" if last.usd_per_hour else ""),
        *answer("steps", ", ".join(f"{note.verdict} {instant(at)}" for at, note in notes)),
    ]
    names = frozenset((("Command", name),)).union(*(one.names() for one in (*mine, *coming)))
    during = [one for one in look.cycles if began <= one.entry.at <= ended]
    lines = (msgspec.structs.replace(one, why=_without(one.why, first.why)) for one in story(during, names))
    return Explanation(kind="command", name=name, answers=tuple(answers), happened=tuple(lines))


def _without(words: str, summary: str) -> str:
    """Answer *words* without what every step of a command says again."""
    return words.removesuffix(f"; {summary}")
