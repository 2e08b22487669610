"""A stored decision, made again from its snapshot: nothing is asked, nothing is done."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome
from shared.actions.commands import course_of, outlined
from shared.decided import Bell, disrupted, interrupted, judge_by, provisioned
from shared.model.action import Action
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.report.journal import Done, Entry, Note
from shared.report.notes import memory_with
from shared.report.snapshots import Snapshot
from shared.scheduling.overlays import overlaid

PLANNERS: Final = ("provision", "disrupt", "interrupt")
"""Whose decisions come from a snapshot alone."""
TOLD: Final = {"provision": ("Pod",), "interrupt": ("Pod",), "disrupt": ("Command", "Node", "NodePool")}
"""Of what kinds their notes are that come with the decision; the others tell what EC2 made of it."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle decided."""

    actions: tuple[Action, ...]
    notes: tuple[Note, ...]


def decided_then(entry: Entry, snapshot: Snapshot) -> Decision:
    """Answer what the journal says that was decided from *snapshot*."""
    return Decision(
        actions=tuple(one.action for one in entry.done[: snapshot.made.decided]),
        notes=_told(entry.function, entry.notes),
    )


def cluster_of(snapshot: Snapshot, catalogue: Catalogue | None) -> Cluster:
    """Answer the Cluster that was decided on; *catalogue* is the one that it names."""
    return overlaid(replace(snapshot.cluster, catalogue=catalogue))


def decided_again(entry: Entry, snapshot: Snapshot, cluster: Cluster) -> Decision:
    """Decide about *cluster*, with all else as it was; what was done comes to what it came to then."""
    results = _Results(entry.done)
    given, bell = snapshot.given, Bell()
    match entry.function:
        case "provision":
            found = provisioned(cluster, given, bell)
            return Decision(actions=found.actions, notes=_told(entry.function, found.notes))
        case "interrupt":
            acted = interrupted(cluster, given, results.perform, bell)
            return Decision(actions=_actions(acted.outcomes), notes=_told(entry.function, acted.notes))
        case _:
            standings = {one.command.command_id: one for one in given.standings}
            judge = judge_by(given.settings)
            course = course_of(cluster, standings, given.settings, judge, write=_written, perform=results.perform)
            report, _ = disrupted(cluster, given, course, results.perform, memory_with(given.told), bell)
            return Decision(actions=_actions(report.outcomes), notes=_told(entry.function, report.notes))


def _told(function: str, notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(one for one in notes if one.kind in TOLD[function])


def _actions(outcomes: Iterable[Outcome]) -> tuple[Action, ...]:
    return tuple(one.action for one in outcomes)


def _written(standing: Standing) -> Standing:
    return replace(outlined(standing), version=standing.version + 1)


class _Results:
    """What became of actions, by what they were; of others that all went well."""

    def __init__(self, done: Iterable[Done]) -> None:
        """Know what the journal knows."""
        self._known: dict[bytes, list[Done]] = defaultdict(list)
        for one in done:
            self._known[_key(one.action)].append(one)

    def perform(
        self, actions: Iterable[Action], *, is_guarded: bool = False, is_last: bool = False
    ) -> tuple[Outcome, ...]:
        """Do nothing, and answer what became of each then."""
        del is_guarded, is_last
        return tuple(self._of(one) for one in actions)

    def _of(self, action: Action) -> Outcome:
        known = self._known.get(_key(action))
        if not known:
            return Outcome(action=action, result="done")
        then = known.pop(0)
        return msgspec.convert({"action": action, "result": then.result, "message": then.message}, Outcome)


def _key(action: Action) -> bytes:
    return msgspec.json.encode(action, order="deterministic")
