"""What is known of one thing: questions with their answers, and its story. Nothing is guessed."""

from collections.abc import Iterator

from cli.explain_groups import ELSEWHERE, of_command, of_pool
from cli.explain_kinds import KINDS, Kind
from cli.explain_look import Look, found
from cli.explain_machines import Machine, machine_of
from cli.explain_now import now_of
from cli.explain_told import NAMED, Happening, Names, story
from cli.explain_words import (
    Answer,
    Explanation,
    answer,
    bought,
    called,
    cost_of,
    cost_words,
    ended,
    instant,
    made_for,
)
from cli.left_out import by_pool
from cli.text import count, some
from shared.model.action import DeletePod, EvictPod
from shared.report.journal import Note


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
            return of_pool(look, name)
        case "command":
            return of_command(look, name)
        case _:
            return _machine(look, kind, name)


def _pod(look: Look, name: str) -> Explanation:
    said = list(look.notes("Pod", name))
    notes = [note for _, note in said]
    answers = [*answer("now", *now_of(look.live, "pod", name))]
    if notes:
        last = notes[-1]
        kind, _, place = last.verdict.partition("/")
        if place and kind in ("node", "nodeclaim"):
            answers += _place(look, notes, kind, place)
        else:
            against = (
                f"{f'pool {some(pools, NAMED)}: ' if pools else ''}{words}" for pools, words in by_pool(last.why)
            )
            answers += answer("goes nowhere", f"{last.verdict}, as of {instant(said[-1][0])}", *against)
    else:
        answers += answer("placed by", "kube-scheduler alone, as far as the journal goes: it was never planned for")
    answers += answer("moved", *_evictions(look, name))
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
        yield from answer("goes to", f"{kind} {place}: {notes[-1].why}")
        return
    yield from answer("went to" if machine.terminated_at is not None else "goes to", called(machine))
    made = [one for one in notes if one.verdict.startswith("nodeclaim/")]
    own = bool(made) and made[-1].verdict == f"nodeclaim/{machine.claim}"
    yield from answer("why there", f"it was made for it: {machine.asked_why}" if own else notes[-1].why)
    yield from answer("bought as", bought(machine))
    others = len(machine.pods) - 1
    if own and others > 0:
        beside = [one for one in machine.pods if one != notes[-1].name]
        yield from answer("beside", f"{count(others, 'other pod')}: {some(beside, NAMED)}")
    if machine.usd_per_hour:
        yield from answer("costs", f"the node ${machine.usd_per_hour:.4f} per hour{ended(machine)}")


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
        *answer("is", called(machine) if machine.claim else ""),
        *answer("now", *now_of(look.live, "node", machine.node), *now_of(look.live, "nodeclaim", machine.claim)),
        *answer("made for", made_for(machine)),
        *answer("why", machine.asked_why, *_instead_of(look, machine)),
        *answer("bought as", bought(machine)),
        *answer(*_fate(look, machine)),
    ]
    cost = cost_of([machine], look.journal.now)
    answers += answer("cost", cost_words(cost))
    return Explanation(
        kind=kind, name=name, answers=tuple(answers), cost=cost, happened=story(look.cycles, frozenset(names))
    )


def _instead_of(look: Look, machine: Machine) -> Iterator[str]:
    """Say for which machines it came."""
    for _, note in look.notes("Command"):
        if machine.claim and machine.claim in note.replaced_by:
            going = dict.fromkeys(link.partition("/")[2] for link in note.links if link.startswith("Node/"))
            yield f"in place of {some(going, NAMED)}: command {note.name}"
            return


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
    if machine.terminated_at is not None:
        return "removed because", ELSEWHERE, said
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
