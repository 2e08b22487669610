"""The watch cycle: starts the provision cycle as soon as pods are unschedulable."""

from datetime import timedelta
from typing import Final

from shared.apply.executor import apply_actions
from shared.apply.follow_up_messages import send_periodic_messages
from shared.cycles.setup.run_cycle import CycleReport, run_and_report
from shared.errors import Fault
from shared.model.core.formatting import format_count
from shared.model.decisions.action import FollowUp
from shared.ports.world import World
from shared.report.log import log
from shared.take.newly_pending_pods import find_newly_pending_pods, is_idle

SCHEDULE_INTERVAL: Final = timedelta(minutes=1)
"""Between two scheduled runs of `watch`."""
WATCH_INTERVAL: Final = timedelta(seconds=2)
"""Between two checks of a cluster in which pods became pending lately."""
IDLE_WATCH_INTERVAL: Final = timedelta(seconds=4)
"""Between two checks of an idle cluster: half the cost."""


def run_watch(world: World, trigger: str) -> CycleReport:
    """Wake provision when pods become pending between two ticks.

    The scheduled run of each minute sends the messages for the checks until the next scheduled run. So a failed check
    stops no other check, and a lost schedule stops the checks for one minute. A check that a message started is not
    repeated when it fails: the next message is due in seconds.

    Raises:
        Fault: a run on the schedule, or for the log of kube-scheduler, failed.
    """

    def run_cycle() -> CycleReport:
        if trigger == "schedule" and world.settings.reaction == "watch":
            delays = list_check_delays(IDLE_WATCH_INTERVAL if is_idle(world) else WATCH_INTERVAL)
            send_periodic_messages("watch", delays, "checks for pending pods", world)
        try:
            pending_pods = find_newly_pending_pods(world)
        except Fault as fault:
            if trigger != "message":
                raise
            log("WARNING", "check for pending pods failed", world, {"error": f"{type(fault).__name__}: {fault}"})
            return CycleReport(quiet=True)
        if not pending_pods:
            return CycleReport(quiet=True)
        follow_up = FollowUp(
            function="provision",
            after=timedelta(),
            message=f"{format_count(len(pending_pods), 'new pending pod')}, {pending_pods[0]} first",
        )
        return CycleReport(outcomes=apply_actions((follow_up,), world))

    return run_and_report("watch", world, trigger, run_cycle)


def list_check_delays(interval: timedelta) -> tuple[timedelta, ...]:
    """Return the delays of the checks between two scheduled runs.

    >>> [delay.total_seconds() for delay in list_check_delays(timedelta(seconds=20))]
    [20.0, 40.0]
    """
    return tuple(interval * number for number in range(1, -(-SCHEDULE_INTERVAL // interval)))
