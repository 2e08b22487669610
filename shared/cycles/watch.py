"""The watch cycle: starts the provision cycle as soon as pods are unschedulable."""

from datetime import timedelta
from typing import Final

from shared.apply.executor import apply_actions
from shared.cycles.setup.run_cycle import CycleReport, run_and_report
from shared.model.core.formatting import format_count
from shared.model.decisions.action import FollowUp
from shared.ports.world import World
from shared.take.newly_pending_pods import find_newly_pending_pods

WATCH_INTERVAL: Final = timedelta(seconds=3)
"""Between two runs of `watch`."""


def run_watch(world: World, trigger: str) -> CycleReport:
    """Wake provision when pods become pending between two ticks; after a fault, the next tick starts watching again."""

    def run_cycle() -> CycleReport:
        pending_pods = find_newly_pending_pods(world)
        next_watch = FollowUp(function="watch", after=WATCH_INTERVAL, message="checks for pending pods")
        outcomes = apply_actions((next_watch,) if world.settings.reaction == "watch" else (), world)
        if not pending_pods:
            return CycleReport(outcomes=outcomes, quiet=True)
        follow_up = FollowUp(
            function="provision",
            after=timedelta(),
            message=f"{format_count(len(pending_pods), 'new pending pod')}, {pending_pods[0]} first",
        )
        return CycleReport(outcomes=outcomes + apply_actions((follow_up,), world))

    return run_and_report("watch", world, trigger, run_cycle)
