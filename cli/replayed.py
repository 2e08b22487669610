"""A stored decision, made again from what was kept of it: nothing is asked, nothing is done."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.replay_doors import Rekept, Relaunching, Results, alike
from shared.actions.apply import Outcome
from shared.actions.command_rows import outlined
from shared.actions.commands import course_of
from shared.decided import Bell, bought, disrupted, interrupted, judge_by, provisioned
from shared.model.action import Action, CreateNodeClaim
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.report.journal import Entry, Note
from shared.report.notes import memory_with
from shared.report.observed import Kept
from shared.report.snapshots import Snapshot
from shared.scheduling.overlays import overlaid
from shared.steps import resolved, stepped

DECIDING: Final = ("provision", "disrupt", "interrupt", "lifecycle", "catalog")
"""Whose decisions can be made again."""
TOLD: Final = {"provision": ("Pod",), "interrupt": ("Pod",), "disrupt": ("Command", "Node", "NodePool")}
"""Of what kinds their notes are that come with the decision."""
READS: Final = {"catalog": ("node_classes",)}
"""Of a Cluster: the lists that a function reads, where these are not all."""
_LAUNCHED: Final = ("NodeClaim", "NodePool")
"""Of what kinds those are that tell what came of launches."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle decided."""

    actions: tuple[Action, ...]
    notes: tuple[Note, ...]


def decided_then(entry: Entry, snapshot: Snapshot) -> Decision:
    """Answer what the journal says that was decided from *snapshot*."""
    return Decision(
        actions=tuple(alike(one.action) for one in entry.done[: snapshot.made.decided]),
        notes=_told(entry, snapshot, entry.notes),
    )


def cluster_of(snapshot: Snapshot, catalogue: Catalogue | None) -> Cluster:
    """Answer the Cluster that was decided on; *catalogue* is the one that it names."""
    kept = snapshot.given.kept or Kept()
    return overlaid(replace(snapshot.cluster, catalogue=catalogue, launch_groups=kept.launch_groups))


def decided_again(entry: Entry, snapshot: Snapshot, cluster: Cluster, sold: Catalogue | None = None) -> Decision:
    """Decide about *cluster*, with all else as it was; what was done comes to what it came to then.

    *sold* is the catalogue that `lifecycle` tried NodeOverlays on.
    """
    results = Results(entry.done)
    given, bell = snapshot.given, Bell()
    notes: Iterable[Note] = ()
    match entry.function:
        case "provision":
            outcomes, notes = _provisioned(entry, snapshot, cluster, results)
        case "interrupt":
            acted = interrupted(cluster, given, results.perform, bell)
            outcomes, notes = acted.outcomes, acted.notes
        case "lifecycle":
            outcomes = stepped(cluster, given, Rekept(given.kept or Kept(), sold), results.perform)
        case "catalog":
            outcomes = results.perform(resolved(cluster, given))
        case _:
            standings = {one.command.command_id: one for one in given.standings}
            judge = judge_by(given.settings)
            course = course_of(cluster, standings, given.settings, judge, write=_written, perform=results.perform)
            report, _ = disrupted(cluster, given, course, results.perform, memory_with(given.told), bell)
            outcomes, notes = report.outcomes, report.notes
    return Decision(actions=tuple(alike(one.action) for one in outcomes), notes=_told(entry, snapshot, notes))


def _provisioned(
    entry: Entry, snapshot: Snapshot, cluster: Cluster, results: Results
) -> tuple[tuple[Outcome, ...], tuple[Note, ...]]:
    """Plan again, and launch again, where it was kept what launches saw."""
    given = snapshot.given
    found = provisioned(cluster, given, Bell())
    done = results.perform(found.actions)
    if given.rounds is None:
        return done, found.notes
    then = {one.action.claim.name for one in entry.done if isinstance(one.action, CreateNodeClaim)}
    now = {
        one.action.claim.name: one.action.claim
        for one in done
        if isinstance(one.action, CreateNodeClaim) and one.result == "done"
    }
    made = [claim for name, claim in sorted(now.items()) if name not in then]
    spent = bought(cluster, given, Relaunching(given.rounds, results, made, then - now.keys()))
    return (*done, *spent.outcomes), (*found.notes, *spent.notes)


def _told(entry: Entry, snapshot: Snapshot, notes: Iterable[Note]) -> tuple[Note, ...]:
    kinds = TOLD.get(entry.function, ())
    if entry.function == "provision" and snapshot.given.rounds is not None:
        kinds += _LAUNCHED
    return tuple(one for one in notes if one.kind in kinds)


def _written(standing: Standing) -> Standing:
    return replace(outlined(standing), version=standing.version + 1)
