"""The cool-down of workloads: voluntary disruption evicts pods of one workload at most once in a period.

The commands are the memory: each one is recorded with the workloads that it evicts before it acts, and its row is kept
for the period after its end. The period is counted from the end of the command. A command that was rolled back has
evicted nothing. Several pods of a workload can be evicted by one command.
"""

from collections.abc import Iterable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.model.core.formatting import format_elapsed
from shared.model.decisions.command import CommandState
from shared.model.decisions.disruption_verdict import KeptVerdict
from shared.model.kubernetes.pod_workload import get_workload

COOLDOWN_REASON: Final = "WorkloadCooldown"


class WorkloadCooldown:
    """Tracks which workloads have been disrupted in the period, and which ones the current run disrupts."""

    def __init__(self, period: timedelta, command_states: Iterable[CommandState], now: datetime) -> None:
        """Count the workloads of *command_states*; *period*: 0 turns the cool-down off."""
        self._period = period
        self._end_by_workload: dict[str, str] = {}
        if not period:
            return
        for command_state in sorted(command_states, key=lambda state: (state.phase_since, state.command.command_id)):
            if command_state.is_open:
                self._start(command_state.command.workloads, f"command {command_state.command.command_id}")
            elif command_state.phase == "DONE" and (end := command_state.phase_since + period) > now:
                end_text = f"until {end:%Y-%m-%d %H:%M:%S} UTC"
                self._end_by_workload |= dict.fromkeys(command_state.command.workloads, end_text)

    @classmethod
    def build_disabled(cls, now: datetime) -> "WorkloadCooldown":
        """Return a cool-down that refuses nothing, for commands that respect the cool-down already."""
        return cls(timedelta(), (), now)

    def list_workloads(self, targets: Iterable[Candidate]) -> tuple[str, ...]:
        """Return the workloads that disrupting *targets* evicts pods of, sorted; none if there is no cool-down."""
        if not self._period:
            return ()
        return tuple(sorted({get_workload(pod) for target in targets for pod in target.reschedulable_pods}))

    def explain_refusal(self, targets: Iterable[Candidate]) -> str:
        """Return why *targets* are not disrupted now: the first workload, and until when; "" if they may be."""
        return next(
            (
                f"pods of {workload} were evicted by a recent disruption: waits {self._end_by_workload[workload]}"
                for workload in self.list_workloads(targets)
                if workload in self._end_by_workload
            ),
            "",
        )

    def find_verdict(self, candidate: Candidate) -> KeptVerdict | None:
        """Return why *candidate* is not disrupted now; None if it may be."""
        message = self.explain_refusal((candidate,))
        return KeptVerdict(node=candidate.name, reason=COOLDOWN_REASON, message=message) if message else None

    def fork_cooldown(self) -> "WorkloadCooldown":
        """Return a copy that continues to count independently."""
        return deepcopy(self)

    def reserve(self, targets: Iterable[Candidate]) -> None:
        """Count the workloads of *targets* as disrupted by a command of this run."""
        self._start(self.list_workloads(targets), "another command of this run")

    def _start(self, workloads: Iterable[str], command_text: str) -> None:
        end_text = f"until {format_elapsed(self._period)} after the end of {command_text}"
        self._end_by_workload |= dict.fromkeys(workloads, end_text)
