"""Disruption pauses: requested by people, or automatic after recent failures.

People pause with a setting, or without a deployment with an annotation: both are pauses
(`shared.model.karpenter.pause`). Joiner pauses a NodePool when its replacements keep failing or when moved pods fail
more than before, all disruption while more pods are pending for long than before nodes were removed, and drift when
more nodes drift at once than the deployment allows. Automatic pauses end with their cause, or some time after it; an
annotation with a timestamp confirms that the cause of a NodePool's pause is known and intended.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.disruption.budgets.cluster_settings import EVERYTHING
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_elapsed
from shared.model.core.labels import DISRUPTION_PAUSED, DISRUPTION_RESUMED
from shared.model.core.metadata import Problem, find_condition
from shared.model.core.units import parse_instant
from shared.model.decisions.action import Action
from shared.model.decisions.command import CommandState, DisruptionPause, DisruptionPauses, Phase, format_pause
from shared.model.karpenter.expiration import EXPIRED
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.pause import (
    DISRUPTION_REASONS,
    SET_BY_PERSON_TEXT,
    VOLUNTARY_REASONS,
    Pause,
    parse_pauses,
)
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.moved_pods import check_outcomes, explain_outcome_pause
from shared.state.pauses import ActivePause, find_launch_pause_message, list_active_pauses
from shared.state.state_node import StateNode

PAUSED_REASON: Final = "DisruptionPaused"
"""Reason of the event on a paused NodePool."""
SUCCESSFUL_PHASES: Final[frozenset[Phase]] = frozenset(("INITIALIZED", "DRAINING", "DONE"))
"""Phases after which the replacements were ready, and the nodes were removed or are about to be."""
MAX_CONSECUTIVE_FAILED_REPLACEMENTS: Final = 3
"""Number of consecutive failed replacement commands of a NodePool that pauses it."""
FAILURE_MEMORY_PERIOD: Final = timedelta(hours=1)
LONG_PENDING_PERIOD: Final = timedelta(minutes=3)
"""Longer than a node takes to become ready: a pod that is pending for longer may have lost its node to disruption."""
REMOVAL_EFFECT_PERIOD: Final = timedelta(minutes=15)
"""How long after the removal of nodes pending pods are attributed to it."""


class PauseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The pause settings of the deployment."""

    paused: tuple[Pause, ...] = ()
    drift_percent: int = 0
    """Percentage of a NodePool's nodes: if more nodes have drifted, drift is paused; 0: no limit."""
    outcome_window: timedelta = timedelta()
    """How long moved pods are checked; 0: not at all."""


def parse_pause_settings(paused_text: str, drift_percent: int, outcome_minutes: int = 0) -> PauseSettings:
    """Parse the pause settings.

    >>> [one.reasons for one in parse_pause_settings("Drifted, Empty", 30).paused]
    [('Drifted', 'Empty')]

    Raises:
        ValueError: *paused_text* is not a pause of known reasons.
    """
    return PauseSettings(
        paused=parse_pauses(paused_text, DISRUPTION_REASONS),
        drift_percent=drift_percent,
        outcome_window=timedelta(minutes=outcome_minutes),
    )


def find_pauses(
    cluster: ClusterSnapshot,
    states: Iterable[StateNode],
    command_states: Iterable[CommandState],
    settings: PauseSettings,
) -> tuple[DisruptionPauses, tuple[Problem, ...]]:
    """Return the active pauses, and the invalid annotations; an invalid annotation pauses its NodePool completely."""
    annotation_pauses, invalid_annotations = list_active_pauses(cluster)
    problems = list(invalid_annotations)
    sorted_command_states = sorted(
        command_states, key=lambda command_state: (command_state.phase_since, command_state.command.command_id)
    )
    found_pauses = [
        pause
        for setting_pause in settings.paused
        if setting_pause.is_active(cluster.taken_at)
        for pause in _pause_by_setting(setting_pause)
    ]
    found_pauses += [
        pause
        for annotation_pause in annotation_pauses
        if annotation_pause.key == DISRUPTION_PAUSED
        for pause in _pause_by_annotation(annotation_pause)
    ]
    found_pauses += _pause_by_pending_pods(cluster, sorted_command_states)
    drift_by_pool = count_drifted_nodes(states)
    outcome_check = check_outcomes(cluster, sorted_command_states, settings.outcome_window)
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        found_pauses += _pause_by_failures(pool, sorted_command_states, problems, cluster.taken_at)
        found_pauses += list_drift_pauses(
            pool, drift_by_pool.get(pool.name, (0, 0)), settings.drift_percent, cluster.taken_at
        )
        resumed_at = _parse_resume_time(pool, [])
        if message := explain_outcome_pause(pool.name, outcome_check, resumed_at):
            found_pauses += (
                DisruptionPause(pool=pool.name, reason=reason, message=message, pauses_open_commands=True)
                for reason in VOLUNTARY_REASONS
            )
    items = tuple(sorted(found_pauses, key=lambda pause: (pause.pool, pause.reason, pause.message)))
    return DisruptionPauses(items=items), tuple(problems)


def list_paused_reasons(active_pauses: DisruptionPauses) -> frozenset[str]:
    """Return *active_pauses* in the form that a disruption run takes: reasons, ``pool/reason``, or `EVERYTHING`."""
    reasons: set[str] = set()
    for pause in active_pauses.items:
        if not pause.pool:
            reasons.add(pause.reason or EVERYTHING)
        else:
            reasons.update(
                f"{pause.pool}/{reason}" for reason in ([pause.reason] if pause.reason else DISRUPTION_REASONS)
            )
    return frozenset(reasons)


def describe_pauses(active_pauses: DisruptionPauses, cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Return an event for each NodePool with paused disruption or paused launches."""
    return tuple(
        build_event("NodePool", pool.meta, reason, message, cluster.taken_at, type_="Warning")
        for pool in sorted(cluster.node_pools, key=lambda pool: pool.name)
        for reason, message in _list_pool_messages(pool, active_pauses, cluster)
    )


def is_intentional_pause(pause_text: str) -> bool:
    """Return whether *pause_text*, a result of `format_pause`, is about a pause that people requested intentionally."""
    return f" {SET_BY_PERSON_TEXT}: " in pause_text


def _list_pool_messages(
    pool: NodePool, active_pauses: DisruptionPauses, cluster: ClusterSnapshot
) -> Iterator[tuple[str, str]]:
    yield from ((PAUSED_REASON, format_pause(pause)) for pause in active_pauses.items if pause.pool in ("", pool.name))
    if launch_pause_message := find_launch_pause_message(pool, cluster):
        yield "LaunchesPaused", launch_pause_message


def count_long_pending_pods(cluster: ClusterSnapshot) -> int:
    """Return the number of pods that have been pending for a node longer than `LONG_PENDING_PERIOD`."""
    return sum(_is_long_pending(pod, cluster.taken_at) for pod in cluster.pods)


def _is_long_pending(pod: Pod, now: datetime) -> bool:
    created = pod.meta.created_at
    return is_provisionable(pod) and created is not None and now - created > LONG_PENDING_PERIOD


def _pause_by_setting(setting_pause: Pause) -> Iterator[DisruptionPause]:
    pause_text = setting_pause.describe()
    setting_text = f"the setting disruption-paused {SET_BY_PERSON_TEXT}: change it and deploy"
    message = f"{pause_text}; {setting_text}" if pause_text else setting_text
    for pool in setting_pause.pools or ("",):
        yield from (
            DisruptionPause(pool=pool, reason=reason, message=message, pauses_open_commands=True, is_intentional=True)
            for reason in setting_pause.reasons
        )


def _pause_by_annotation(annotation_pause: ActivePause) -> Iterator[DisruptionPause]:
    for reason in (
        [""] if len(annotation_pause.pause.reasons) == len(DISRUPTION_REASONS) else annotation_pause.pause.reasons
    ):
        yield DisruptionPause(
            pool=annotation_pause.pool,
            reason=reason,
            message=annotation_pause.build_message(),
            pauses_open_commands=True,
            is_intentional=annotation_pause.is_intentional,
        )


def _pause_by_failures(
    pool: NodePool, command_states: list[CommandState], problems: list[Problem], now: datetime
) -> Iterator[DisruptionPause]:
    """Yield pauses of disruptions that need replacements, if the pool's last replacements all failed."""
    after = max(_parse_resume_time(pool, problems) or now - FAILURE_MEMORY_PERIOD, now - FAILURE_MEMORY_PERIOD)
    outcomes: list[tuple[datetime, bool, str]] = []
    for command_state in command_states:
        can_fail = command_state.command.replacements or command_state.failures
        if can_fail and any(target.pool == pool.name for target in command_state.command.targets):
            outcomes += [(instant, False, command_state.message) for instant in command_state.failures]
            outcomes += [(command_state.phase_since, True, "")] if command_state.phase in SUCCESSFUL_PHASES else []
    last_outcomes = sorted(end for end in outcomes if end[0] > after)[-MAX_CONSECUTIVE_FAILED_REPLACEMENTS:]
    if len(last_outcomes) < MAX_CONSECUTIVE_FAILED_REPLACEMENTS or any(went_well for _, went_well, _ in last_outcomes):
        return
    message = (
        f"the last {MAX_CONSECUTIVE_FAILED_REPLACEMENTS} replacements failed ({last_outcomes[-1][2]}): "
        "see the events of the NodeClaims; disruption "
        f"resumes after an hour; to resume now: kubectl annotate nodepool {pool.name} --overwrite "
        f"{DISRUPTION_RESUMED}=$(date -u +%FT%TZ)"
    )
    yield from (
        DisruptionPause(pool=pool.name, reason=reason, message=message) for reason in ("Drifted", "Underutilized")
    )


def _parse_resume_time(pool: NodePool, problems: list[Problem]) -> datetime | None:
    text = pool.meta.get_annotation(DISRUPTION_RESUMED)
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        message = f"metadata.annotations[{DISRUPTION_RESUMED}]: {error}; the annotation is ignored"
        problems.append(Problem(kind="NodePool", name=pool.name, message=message))
        return None


def _pause_by_pending_pods(cluster: ClusterSnapshot, command_states: list[CommandState]) -> Iterator[DisruptionPause]:
    """Yield a pause of all disruption while more pods are pending for long than before nodes were removed."""
    now = cluster.taken_at
    recent_commands = [
        command_state
        for command_state in command_states
        if command_state.phase in SUCCESSFUL_PHASES and now - command_state.phase_since <= REMOVAL_EFFECT_PERIOD
    ]
    if not recent_commands:
        return
    count, count_before = (
        count_long_pending_pods(cluster),
        max(command_state.waiting_pod_count for command_state in recent_commands),
    )
    if count > count_before:
        message = (
            f"{format_count(count, 'pod')} pending for more than {format_elapsed(LONG_PENDING_PERIOD)}, "
            f"{count_before} before nodes "
            "were removed; disruption resumes when the pods have nodes"
        )
        yield DisruptionPause(message=message, pauses_open_commands=True, allows_repair=True)


def count_drifted_nodes(states: Iterable[StateNode]) -> dict[str, tuple[int, int]]:
    """Return the number of nodes and the number of drifted nodes, by NodePool.

    Expired nodes do not count: their replacement is no sign of a mistake.
    """
    counts_by_pool: dict[str, tuple[int, int]] = {}
    for state in states:
        if state.claim is not None and state.is_initialized() and not state.is_marked_for_deletion():
            total, drifted = counts_by_pool.get(state.pool, (0, 0))
            condition = find_condition(state.claim.conditions, "Drifted")
            has_changed = condition is not None and condition.status == "True" and condition.reason != EXPIRED
            counts_by_pool[state.pool] = total + 1, drifted + has_changed
    return counts_by_pool


def list_drift_pauses(
    pool: NodePool, node_counts: tuple[int, int], percent: int, now: datetime
) -> Iterator[DisruptionPause]:
    """Yield a pause of drift if more than *percent* of the nodes of *pool* have drifted.

    *node_counts*: number of its nodes, and of its drifted nodes.
    """
    total, drifted = node_counts
    if not percent or drifted * 100 <= total * percent or _was_resumed(pool, now):
        return
    message = (
        f"{drifted} of {total} nodes have drifted, more than the setting drift-pause-percent "
        f"({percent}); to replace them anyway: "
        f"kubectl annotate nodepool {pool.name} --overwrite {DISRUPTION_RESUMED}=$(date -u +%FT%TZ)"
    )
    yield DisruptionPause(pool=pool.name, reason="Drifted", message=message)


def _was_resumed(pool: NodePool, now: datetime) -> bool:
    """Return whether the drift was confirmed as intended within the last day."""
    after = _parse_resume_time(pool, [])
    return after is not None and now - after <= timedelta(days=1)
