"""What was known of the account when a cycle decided: what `catalog` had found last, where that was kept."""

from msgspec.structs import replace

from cli.explain_journals import Cycle, Journal
from cli.files import InputError
from cli.replay_changes import Changed
from cli.replay_cycles import Store
from cli.replay_selectors import Known, refound
from shared.report.observed import Resolved
from shared.report.snapshots import Snapshot


def known_at(journal: Journal, store: Store, cycle: Cycle, snapshot: Snapshot) -> Known:
    """Answer what is known at *cycle*, whose own snapshot is *snapshot*.

    A snapshot of `catalog` that cannot be read says nothing; what statuses say is known anyhow.
    """
    classes, now = snapshot.cluster.node_classes, snapshot.cluster.taken_at
    looked = snapshot if snapshot.given.resolved is not None else _looked(journal, store, cycle)
    if looked is None or looked.given.resolved is None:
        return Known(classes=classes, now=now)
    found = dict(looked.given.resolved.found)
    asked = tuple((one, found[one.name]) for one in looked.cluster.node_classes if one.name in found)
    return Known(classes=classes, asked=asked, now=now)


def _looked(journal: Journal, store: Store, cycle: Cycle) -> Snapshot | None:
    """Answer the last look of `catalog` before *cycle*."""
    before = (
        one.entry
        for one in reversed(journal.cycles)
        if one.entry.function == "catalog" and one.entry.snapshot and one.entry.at <= cycle.entry.at
    )
    last = next(before, None)
    if last is None:
        return None
    try:
        return store.snapshot(last.snapshot)
    except InputError:
        return None


def with_found(snapshot: Snapshot, changes: Changed, known: Known) -> Snapshot:
    """Answer *snapshot*, if it is of `catalog` with what that would have found for classes that are otherwise."""
    asked = snapshot.given.resolved
    if asked is None or not changes.reselected:
        return snapshot
    found = dict(asked.found)
    for one in changes.cluster.node_classes:
        if one.name in changes.reselected:
            found[one.name] = refound(one, found.get(one.name), known)
    resolved = Resolved(found=tuple(sorted(found.items())), profile=asked.profile)
    return replace(snapshot, given=replace(snapshot.given, resolved=resolved))
