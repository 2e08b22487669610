"""A run of disrupt that found nothing to do: if it took long, scheduled runs do not repeat it while nothing changes.

With thousands of nodes a run takes tens of seconds, in which it holds the planner's lease, so pending pods wait. The
result is valid for ten times as long as the run took, at most five minutes: the period for which Karpenter skips the
consolidation of an unchanged cluster. Runs that a message requested are not skipped: disrupt requests one for the time
at which the next node becomes consolidatable. What else depends on the time alone, such as budgets with schedules and
expected savings, is seen after this period. While a node is unhealthy, a command is open or disruption is paused, no
run is skipped.
"""

from collections.abc import MutableMapping
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.report.journal.decision_record import DecisionInputs
from shared.report.journal.journal_entries import REPORT_INTERVAL

SCHEDULE_TRIGGER: Final = "schedule"
PERIOD_PER_DURATION: Final = 10
"""In an unchanged cluster, runs take at most a tenth of the time."""
MAX_SETTLED_PERIOD: Final = timedelta(minutes=5)
_MEMORY_KEY: Final = "settled run"


class SettledRun(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A run that evaluated all nodes and left nothing to do."""

    cluster: ClusterSnapshot
    inputs: DecisionInputs
    counts: dict[str, float]
    """The metrics of the run."""
    problems: tuple[Problem, ...]
    duration: timedelta
    """How long the evaluation took."""


def find_settled_run(
    memory: MutableMapping[str, object] | None, trigger: str, cluster: ClusterSnapshot, inputs: DecisionInputs
) -> SettledRun | None:
    """Return the last run in *memory* if a run with *cluster* and *inputs* would repeat it; otherwise None."""
    run = memory.get(_MEMORY_KEY) if memory is not None and trigger == SCHEDULE_TRIGGER else None
    if not isinstance(run, SettledRun):
        return None
    period = min(PERIOD_PER_DURATION * run.duration, MAX_SETTLED_PERIOD)
    is_recent = timedelta() <= cluster.taken_at - run.cluster.taken_at < period
    reported = inputs.reported_verdicts
    if not is_recent or reported is None or cluster.taken_at - reported.since >= REPORT_INTERVAL:
        return None
    is_unchanged = replace(inputs, reported_verdicts=None) == replace(run.inputs, reported_verdicts=None) and (
        replace(cluster, taken_at=run.cluster.taken_at) == run.cluster
    )
    return run if is_unchanged else None


def store_settled_run(memory: MutableMapping[str, object] | None, run: SettledRun | None) -> None:
    """Store *run* in *memory*, or forget the earlier one."""
    if memory is None:
        return
    if run is None:
        memory.pop(_MEMORY_KEY, None)
    else:
        memory[_MEMORY_KEY] = run
