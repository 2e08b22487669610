"""The trace of a pod from Pending to Running: its steps, when each was reached, and where the time went."""

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

StepStatus: TypeAlias = Literal["recorded", "not recorded", "not reached"]

CREATED: Final = "pod created"
UNSCHEDULABLE: Final = "unschedulable"
PLANNED: Final = "planned"
CLAIM_CREATED: Final = "NodeClaim created"
FLEET_REQUESTED: Final = "CreateFleet"
LAUNCHED: Final = "instance launched"
NODE_CREATED: Final = "Node created"
REGISTERED: Final = "registered"
INITIALIZED: Final = "initialized"
CLAIM_DELETED: Final = "NodeClaim deleted"
BOUND: Final = "pod bound"
RUNNING: Final = "pod ready"
WAITING: Final = "waiting"


class TraceStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step; the time since the last recorded step before it is the time that this step took."""

    name: str
    at: datetime | None = None
    status: StepStatus = "recorded"
    source: str = ""
    """Where the time is from: journal, NodeClaim, Node or Pod."""
    node_claim: str = ""
    detail: str = ""
    is_failed: bool = False
    elapsed: timedelta | None = None


class PodTrace(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a pod, in order."""

    pod: str
    uid: str = ""
    """Empty if neither the cluster nor the journal has it."""
    node: str = ""
    node_claim: str = ""
    steps: tuple[TraceStep, ...]
    is_waiting: bool = False
    """Whether the pod has not reached its last step yet; then the last recorded step is its wait until now."""

    @property
    def recorded_steps(self) -> tuple[TraceStep, ...]:
        """The steps with a time."""
        return tuple(step for step in self.steps if step.at is not None)

    @property
    def started_at(self) -> datetime | None:
        """The time of the first recorded step."""
        return min((step.at for step in self.steps if step.at is not None), default=None)

    @property
    def ended_at(self) -> datetime | None:
        """The time of the last recorded step."""
        return max((step.at for step in self.steps if step.at is not None), default=None)

    @property
    def total(self) -> timedelta:
        """The time from the first to the last recorded step."""
        if self.started_at is None or self.ended_at is None:
            return timedelta()
        return self.ended_at - self.started_at

    @property
    def longest_step(self) -> TraceStep | None:
        """The step that took the most time; None if no time passed."""
        timed_steps = [step for step in self.steps if step.elapsed]
        return max(timed_steps, key=lambda step: step.elapsed or timedelta(), default=None)


def compute_elapsed_times(steps: tuple[TraceStep, ...]) -> tuple[TraceStep, ...]:
    """Return *steps* with the time that each recorded step took.

    Clocks differ and journal entries have the start of their cycle: a step that seems to precede the last one took 0s.
    """
    timed_steps: list[TraceStep] = []
    last_at: datetime | None = None
    for step in steps:
        if step.at is None:
            timed_steps.append(step)
            continue
        elapsed = max(step.at - last_at, timedelta()) if last_at is not None else timedelta()
        last_at = max(step.at, last_at) if last_at is not None else step.at
        timed_steps.append(msgspec.structs.replace(step, elapsed=elapsed))
    return tuple(timed_steps)
