"""Moved pods: do the pods that replace those that a command moved run as well?

The pods that leave are recorded with the command when its nodes begin to drain, by controller: their successors have
other names. For a window after that, pods that the same controllers create are checked. A pod fails if it restarts at
least once in the window, ended with a failure, or is not Ready minutes after its creation. What failed before does not
count. The record ends with the row of the command, so the check is bounded.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_elapsed, join_names
from shared.model.core.labels import SURGE_DRAIN_RESTART
from shared.model.core.metadata import is_condition_true
from shared.model.core.units import format_instant
from shared.model.decisions.command import CommandState, MovedPods, MovedWorkload, Phase
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.model.kubernetes.pod_workload import TEMPLATE_HASH_LABEL, find_controlling_owner
from shared.state.cluster_state import ClusterState

RECORDING_PHASES: Final[frozenset[Phase]] = frozenset(("SURGING", "INITIALIZED"))
"""In the first of these phases, the pods of the nodes are recorded."""
READY_PERIOD: Final = timedelta(minutes=3)
"""How long a new pod may take to become Ready."""
MIN_FAILED_PODS: Final = 3
MAX_FAILED_PERCENT: Final = 20
"""Disruption is paused if at least `MIN_FAILED_PODS` of the moved pods fail, and more than this percentage of them."""
RECOVERY_PERIOD: Final = timedelta(minutes=15)
"""How long moved pods must not have failed until disruption resumes."""
RECORD_INTERVAL: Final = timedelta(minutes=1)
"""How often a failure that lasts is recorded again."""
MAX_WORKLOADS_PER_COMMAND: Final = 200
"""Keeps the row small; the controllers with most moved pods are recorded."""
MAX_NAMES_SHOWN: Final = 1

Controller: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name."""


class FailedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the pods that were moved from a NodePool fail now."""

    failed: int
    moved: int
    names: tuple[str, ...]
    """Failing pods, sorted."""
    command_ids: frozenset[str]
    last_moved_at: datetime
    """When the last of these pods were moved."""

    def describe(self, window: timedelta) -> str:
        """Return what failed."""
        names = join_names(self.names, MAX_NAMES_SHOWN)
        return (
            f"{self.failed} of {format_count(self.moved, 'pod')} moved by disruption are restarting or not Ready, more "
            f"than before ({names}; outcome-check-minutes is {window // timedelta(minutes=1)})"
        )


def record_moved_pods(command_state: CommandState, cluster_state: ClusterState, window: timedelta) -> CommandState:
    """Return *command_state* with the pods that it moves, when it begins to; a *window* of 0 records nothing."""
    if not window or command_state.phase not in RECORDING_PHASES or command_state.moved is not None:
        return command_state
    counts = Counter(
        (target.pool, controller)
        for target in command_state.command.targets
        if (state := cluster_state.node_by_claim.get(target.claim)) is not None
        for pod in state.pods
        if is_reschedulable(pod) and (controller := get_controller(pod)) is not None
    )
    now = cluster_state.taken_at
    failing_counts = Counter(
        get_controller(pod) for pod in cluster_state.snapshot.pods if counts and is_failing(pod, now, window)
    )
    largest_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_WORKLOADS_PER_COMMAND]
    workloads = (
        MovedWorkload(
            pool=pool,
            namespace=controller[0],
            kind=controller[1],
            name=controller[2],
            count=count,
            failing=failing_counts[controller],
        )
        for (pool, controller), count in sorted(largest_first)
    )
    return replace(command_state, moved=MovedPods(at=now, workloads=tuple(workloads)))


class OutcomeCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The commands whose outcome is checked, and what failed."""

    now: datetime
    window: timedelta = timedelta()
    command_states: tuple[CommandState, ...] = ()
    failed_outcomes: Mapping[str, FailedOutcome] = MappingProxyType({})
    """By NodePool."""


def check_outcomes(cluster: ClusterSnapshot, command_states: Iterable[CommandState], window: timedelta) -> OutcomeCheck:
    """Return the outcomes that are worse than allowed; a *window* of 0 checks nothing.

    A command whose pods have failed is checked until they recover, even after its window.
    """
    now = cluster.taken_at
    checked_states = [
        command_state
        for command_state in command_states
        if window
        and command_state.moved is not None
        and (command_state.moved.failed_at is not None or now - command_state.moved.at <= window)
    ]
    if not checked_states:
        return OutcomeCheck(now=now)
    failing_pods = [pod for pod in cluster.pods if pod.meta.created_at is not None and is_failing(pod, now, window)]
    pools = {
        workload.pool
        for command_state in checked_states
        if command_state.moved is not None
        for workload in command_state.moved.workloads
    }
    outcomes = {pool: _check_pool(pool, checked_states, failing_pods, window) for pool in sorted(pools)}
    failed_outcomes = {
        pool: outcome
        for pool, outcome in outcomes.items()
        if outcome.failed >= MIN_FAILED_PODS and outcome.failed * 100 > outcome.moved * MAX_FAILED_PERCENT
    }
    return OutcomeCheck(now=now, window=window, command_states=tuple(checked_states), failed_outcomes=failed_outcomes)


def explain_outcome_pause(pool: str, check: OutcomeCheck, resumed_at: datetime | None) -> str:
    """Return why the disruption of *pool* is paused; "" if it is not.

    The pause lasts while pods fail that were moved after *resumed_at*, and `RECOVERY_PERIOD` longer.
    """
    failure_times = [
        command_state.moved.failed_at
        for command_state in check.command_states
        if command_state.moved is not None
        and command_state.moved.failed_at is not None
        and any(workload.pool == pool for workload in command_state.moved.workloads)
        and (resumed_at is None or command_state.moved.at > resumed_at)
    ]
    outcome = check.failed_outcomes.get(pool)
    if outcome is not None and (resumed_at is None or outcome.last_moved_at > resumed_at):
        cause = outcome.describe(check.window)
    elif failure_times and check.now - max(failure_times) < RECOVERY_PERIOD:
        cause = f"pods that disruption moved were failing until {format_instant(max(failure_times))}"
    else:
        return ""
    return (
        f"{cause}; disruption resumes {format_elapsed(RECOVERY_PERIOD)} after the last failure; to resume now: "
        f"joiner resume --nodepool {pool}"
    )


def with_recorded_failures(check: OutcomeCheck) -> tuple[CommandState, ...]:
    """Return the command states that remember a failed outcome from now on, or that still observe it."""
    now = check.now
    failed_commands = {command_id for outcome in check.failed_outcomes.values() for command_id in outcome.command_ids}
    return tuple(
        replace(command_state, moved=replace(command_state.moved, failed_at=now))
        for command_state in check.command_states
        if command_state.command.command_id in failed_commands
        and command_state.moved is not None
        and (command_state.moved.failed_at is None or now - command_state.moved.failed_at >= RECORD_INTERVAL)
    )


def is_failing(pod: Pod, now: datetime, window: timedelta) -> bool:
    """Return whether *pod* failed, restarts at least once in *window*, or has not become Ready in time."""
    created = pod.meta.created_at
    if created is None or pod.is_terminating() or pod.phase == "Succeeded":
        return False
    age = now - created
    restarts_in_window = pod.restarts > 0 and pod.restarts * window >= age
    is_late = age > READY_PERIOD and not is_condition_true(pod.conditions, "Ready")
    return pod.phase == "Failed" or restarts_in_window or is_late


def get_controller(pod: Pod) -> Controller | None:
    """Return the controller of *pod*, which creates its successor; None if there is none."""
    owner = find_controlling_owner(pod)
    return (pod.meta.namespace, owner.kind, owner.name) if owner is not None else None


def _check_pool(
    pool: str, command_states: Iterable[CommandState], failing_pods: Iterable[Pod], window: timedelta
) -> FailedOutcome:
    """Count the failing successors of the pods of *pool*; a workload that was moved twice is counted from the first."""
    records: dict[Controller, list[tuple[datetime, MovedWorkload, str]]] = {}
    for command_state in command_states:
        if command_state.moved is not None:
            for workload in command_state.moved.workloads:
                if workload.pool == pool:
                    controller = (workload.namespace, workload.kind, workload.name)
                    command_id = command_state.command.command_id
                    records.setdefault(controller, []).append((command_state.moved.at, workload, command_id))
    failed, moved, names, command_ids = 0, 0, list[str](), set[str]()
    pods = tuple(failing_pods)
    for controller, entries in sorted(records.items()):
        entries.sort(key=lambda entry: (entry[0], entry[2]))
        count = sum(workload.count for _, workload, _ in entries)
        first, last = entries[0][0], entries[-1][0]
        successors = sorted(pod.name for pod in pods if _is_successor(pod, controller, first, last + window))
        new_failures = min(count, max(0, len(successors) - entries[0][1].failing))
        moved += count
        failed += new_failures
        if new_failures:
            names += successors
            command_ids.update(command_id for _, _, command_id in entries)
    return FailedOutcome(
        failed=failed,
        moved=moved,
        names=tuple(sorted(names)),
        command_ids=frozenset(command_ids),
        last_moved_at=max(at for entries in records.values() for at, _, _ in entries),
    )


def _is_successor(pod: Pod, controller: Controller, first: datetime, last: datetime) -> bool:
    """Return whether the controller created *pod* in that time; a surge drain creates it with another ReplicaSet."""
    created = pod.meta.created_at
    if created is None or not first <= created <= last:
        return False
    own_controller = get_controller(pod)
    if own_controller == controller or own_controller is None or not pod.meta.get_annotation(SURGE_DRAIN_RESTART):
        return own_controller == controller
    template_hash = pod.meta.get_label(TEMPLATE_HASH_LABEL)
    deployment = own_controller[2].removesuffix(f"-{template_hash}")
    return own_controller[:2] == controller[:2] and controller[2].rpartition("-")[0] == deployment
