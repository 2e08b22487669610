"""What every cycle has around it: a lease where it needs one, its entry in the journal, its metrics, and its faults."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome, apply
from shared.actions.lease import leased
from shared.errors import Fault, Throttled
from shared.model.action import Action, FollowUp, Function
from shared.model.cluster import Cluster
from shared.model.objects import Problem
from shared.ports import Fence, World
from shared.report import fleet
from shared.report.calls import overrun, since, so_far
from shared.report.code import code_digest
from shared.report.counts import of_actions, of_cluster
from shared.report.journal import Done, Entry, Note, record
from shared.report.metrics import emit
from shared.report.observed import untold
from shared.report.snapshots import Given, Made, is_kept, keep
from shared.snapshot.catalogue import key_of
from shared.snapshot.digest import digest_of, stored

BUSY: Final = timedelta(seconds=5)
RETRIED: Final = timedelta(seconds=10)
"""So long after a cycle that could not see or do something the next one tries."""
TICKING: Final[tuple[Function, ...]] = ("disrupt", "lifecycle", "provision")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle saw and did."""

    cluster: Cluster | None = None
    outcomes: tuple[Outcome, ...] = ()
    counts: dict[str, float] = {}
    by_zone: tuple[tuple[str, int], ...] = ()
    """Pods that wait, as `Placement` has them."""
    notes: tuple[Note, ...] = ()
    problems: tuple[Problem, ...] = ()
    unsettled: tuple[int, ...] = ()
    """Of messages, by their place: those that something of what they ask for failed of."""
    quiet: bool = False
    """Nothing happened that is worth an entry in the journal."""
    given: Given | None = None
    """What was decided on besides *cluster*; None: it cannot be decided again from these."""
    before: Cluster | None = None
    """What was decided on, where *cluster* is what became of it."""
    made: Made | None = None


def under(lease: str, function: Function, world: World, cycle: Callable[[Fence], Report]) -> Report:
    """Run *cycle* while holding *lease*; if somebody else holds it, come back in a moment."""
    with leased(world, lease) as fence:
        if fence is not None:
            return cycle(fence)
    again: tuple[Action, ...] = (FollowUp(function=function, after=BUSY, why=f"{lease} is at work"),)
    return Report(outcomes=apply(again, world))


def reported(function: Function, world: World, trigger: str, cycle: Callable[[], Report]) -> Report:
    """Run *cycle* and report it, a fault too.

    Raises:
        Fault: as the cycle did; nothing was concluded from what could not be seen.
    """
    began, called = world.clock(), so_far(world)
    try:
        report = cycle()
    except Fault as fault:
        error, calls = f"{type(fault).__name__}: {fault}", since(called, world)
        record(Entry(function=function, trigger=trigger, at=began, cluster="", error=error, calls=calls), world)
        emit({"Faults": 1.0, "Throttles": float(isinstance(fault, Throttled))}, world)
        if function in TICKING:
            # A message comes back only after several time-outs of the function, and the tick after a minute.
            apply((FollowUp(function=function, after=RETRIED, why=f"it failed: {type(fault).__name__}"),), world)
        raise
    if report.quiet:
        return report
    calls = since(called, world)
    problems = {*report.problems, *overrun(function, calls, len(report.outcomes))}
    done = tuple(Done(action=untold(one.action), result=one.result, message=one.message) for one in report.outcomes)
    entry = Entry(
        function=function,
        trigger=trigger,
        at=began,
        cluster="",
        counts=report.counts | of_cluster(function, trigger, report.cluster, done),
        notes=report.notes,
        problems=tuple(sorted({*problems, *(report.cluster.problems if report.cluster is not None else ())})),
        done=done,
        calls=calls,
    )
    entry, lost = _with_snapshot(entry, report, world)
    record(entry, world, lost)
    emit(entry.counts | of_actions(entry.done, entry.problems), world, report.by_zone)
    if report.cluster is not None and fleet.is_due(function, trigger, report.cluster):
        fleet.tell(report.cluster, world)
    return report


def _with_snapshot(entry: Entry, report: Report, world: World) -> tuple[Entry, str]:
    """Answer *entry* with what stands for its snapshot, and what of that was lost; where a decision was made, keep it.

    Of 20,000 pods that is 50 MB of JSON: it is made only for an entry that lasts.
    """
    cluster = report.before or report.cluster
    if cluster is None or not entry.is_kept:
        return entry, ""
    body = stored(cluster)
    entry = replace(entry, cluster=digest_of(body, cluster))
    is_wanted = is_kept(world, (one.action for one in report.outcomes), report.notes)
    if report.given is None or report.made is None or not is_wanted:
        return entry, ""
    key, lost = keep(body, _catalogue_of(cluster), report.given, report.made, world)
    return (replace(entry, snapshot=key, code=code_digest()), "") if key else (entry, lost)


def _catalogue_of(cluster: Cluster) -> str:
    """Answer where its catalogue lies in the bucket, "" if it has none or that does not say when it was made."""
    known = cluster.catalogue
    return key_of(known) if known is not None and (known.made_at or known.priced_at) else ""
