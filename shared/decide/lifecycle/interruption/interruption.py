"""Interruption: the immediate reaction to announcements that AWS will stop, change or reclaim instances.

Duplicates and any order are harmless. The time at which EC2 reclaims the instance is written on the Node together with
the taint: the drain leaves the pods their grace periods before that time, and waits for their new nodes until then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from shared.decide.common.events import build_claim_events
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY, keep_earliest_requeues
from shared.decide.lifecycle.interruption.unavailable_offerings import mark_ended_offering, mark_interrupted_offering
from shared.decide.lifecycle.termination.replacement_wait import find_reclaim_time
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    AT_RISK,
    ENDS_AT,
    EXCLUDE_BALANCERS,
    NODEPOOL,
    REBALANCE_POLICIES,
    REBALANCE_POLICY,
    RESERVED,
    SPOT,
)
from shared.model.core.taints import DISRUPTED, Taint, with_disrupted_taint
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata, TaintNode
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome
from shared.model.decisions.interruption_message import InterruptionKind, InterruptionMessage, UnknownMessage
from shared.model.kubernetes.node import Node
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import NodeClaimState

INTERRUPTION_WARNING_PERIOD: Final = timedelta(minutes=2)
"""How long in advance EC2 announces that it reclaims an instance."""
CORDON_TAINT: Final = Taint(key=AT_RISK, effect="NoSchedule")
_REBALANCE: Final = "rebalance_recommendation"
_CANCELED: Final = "scheduled_change_cancelled"
_LATE_CANCELLATION_SUFFIX: Final = "; its NodeClaim is already being deleted, so the node is terminated anyway"
_KINDS_WITH_WARNING: Final = ("capacity_reservation_interrupted", "spot_interrupted")
_KINDS_ALREADY_ENDED: Final = ("instance_stopped", "instance_terminated")
_EVENT_BY_KIND: Final[dict[InterruptionKind, tuple[str, str]]] = {
    "spot_interrupted": ("SpotInterrupted", "EC2 interrupts the Spot instance in two minutes"),
    "rebalance_recommendation": ("SpotRebalanceRecommendation", "EC2 reports an elevated risk of a Spot interruption"),
    "instance_stopped": ("InstanceStopping", "The instance is stopping"),
    "instance_terminated": ("InstanceTerminating", "The instance is terminating"),
    "scheduled_change": ("InstanceUnhealthy", "AWS has scheduled maintenance of the instance"),
    "scheduled_change_cancelled": (
        "ScheduledChangeCancelled",
        "The scheduled maintenance of the instance was completed or cancelled",
    ),
    "capacity_reservation_interrupted": (
        "CapacityReservationInstanceInterrupted",
        "EC2 interrupts the capacity reservation of the instance",
    ),
}
INTERRUPTION_EVENT_REASONS: Final = frozenset(reason for reason, _ in _EVENT_BY_KIND.values())
"""The reasons of the events about messages."""


def decide_interruptions(cluster_state: ClusterState, messages: Iterable[InterruptionMessage]) -> tuple[Action, ...]:
    """Return the actions for *messages*: each instance's NodeClaim is deleted once, for the alphabetically first kind.

    Instances without a NodeClaim are ignored. For a NodeClaim that is deleting already, only an earlier reclaim
    time is recorded. A message that another message of the same batch cancels is ignored.
    """
    cluster, messages_by_instance = cluster_state.snapshot, defaultdict[str, set[InterruptionMessage]](set)
    for message in messages:
        for instance_id in message.instance_ids:
            messages_by_instance[instance_id].add(message)
    actions: list[Action] = []
    for claim_state in cluster_state.claim_states:
        messages_by_kind = (
            _group_effective_messages(messages_by_instance.get(claim_state.claim.instance_id, ()))
            if claim_state.claim.provider_id
            else {}
        )
        if messages_by_kind and claim_state.claim.is_deleting():
            actions.extend(_shorten_drain(claim_state, messages_by_kind, cluster.taken_at))
        elif messages_by_kind:
            actions.extend(_handle_interruption(claim_state, messages_by_kind, cluster))
    return keep_earliest_requeues(actions)


def _group_effective_messages(
    messages: Iterable[InterruptionMessage],
) -> dict[InterruptionKind, list[InterruptionMessage]]:
    """Return the messages that no other message cancels, by kind; kinds and messages in a fixed order."""
    all_messages = list(messages)
    canceled_events = {candidate.event for candidate in all_messages if candidate.kind == _CANCELED}
    messages_by_kind: dict[InterruptionKind, list[InterruptionMessage]] = defaultdict(list)
    for message in sorted(
        all_messages,
        key=lambda message: (message.kind, format_instant(message.at) if message.at else "", message.event),
    ):
        if message.kind != "scheduled_change" or message.event not in canceled_events:
            messages_by_kind[message.kind].append(message)
    return messages_by_kind


def _shorten_drain(
    claim_state: NodeClaimState, messages_by_kind: Mapping[InterruptionKind, list[InterruptionMessage]], now: datetime
) -> tuple[Action, ...]:
    """Return the actions that record an earlier reclaim time for a drain that has begun.

    Messages about the termination that we requested are ignored. A cancellation comes too late: a deletion cannot be
    undone.
    """
    claim = claim_state.claim
    new_messages = {
        kind: kind_messages for kind, kind_messages in messages_by_kind.items() if kind not in _KINDS_ALREADY_ENDED
    }
    taints = _build_disrupted_taints(
        claim_state, next(iter(sorted(new_messages)), ""), _find_reclaim_time(new_messages, now), anew=False
    )
    reported_kinds = (kind for kind in sorted(new_messages) if taints or kind == _CANCELED)
    events = [
        event
        for kind in reported_kinds
        for event in _build_message_events(
            claim_state, kind, now, _LATE_CANCELLATION_SUFFIX if kind == _CANCELED else ""
        )
    ]
    follow_up = FollowUp(
        function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} has a shorter termination grace period"
    )
    return (*taints, *events, *((follow_up,) if taints else ()))


def _build_message_events(
    claim_state: NodeClaimState, kind: InterruptionKind, now: datetime, suffix: str = ""
) -> list[Action]:
    reason, words = _EVENT_BY_KIND[kind]
    event_type: Literal["Normal", "Warning"] = "Normal" if kind in (_REBALANCE, _CANCELED) else "Warning"
    return list(build_claim_events(claim_state.claim, claim_state.nodes, reason, words + suffix, now, type_=event_type))


def _handle_interruption(
    claim_state: NodeClaimState,
    messages_by_kind: Mapping[InterruptionKind, list[InterruptionMessage]],
    cluster: ClusterSnapshot,
) -> tuple[Action, ...]:
    claim, now = claim_state.claim, cluster.taken_at
    policy = _get_rebalance_policy(claim_state, cluster)
    events: list[Action] = []
    for kind in sorted(messages_by_kind):
        suffix = f"; the interruption policy of its NodePool is {policy}" if kind == _REBALANCE else ""
        events.extend(_build_message_events(claim_state, kind, now, suffix))
    disruptive_kinds = [kind for kind in sorted(messages_by_kind) if kind not in (_REBALANCE, _CANCELED)]
    if _REBALANCE in messages_by_kind and policy != "ignore":
        if not disruptive_kinds and policy in ("cordon", "replace"):
            return (*_cordon_nodes(claim_state), *mark_interrupted_offering(claim, now, SPOT), *events)
        disruptive_kinds = disruptive_kinds or [_REBALANCE]
    if not disruptive_kinds:
        return tuple(events)
    words = f"Deleting {claim.name}: {disruptive_kinds[0]}"
    events.extend(
        build_claim_events(claim, claim_state.nodes, "TerminatingOnInterruption", words, now, type_="Warning")
    )
    return (
        *_build_disrupted_taints(claim_state, disruptive_kinds[0], _find_reclaim_time(messages_by_kind, now)),
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=disruptive_kinds[0]),
        *(
            mark_interrupted_offering(claim, now, SPOT)
            if {"spot_interrupted", _REBALANCE} & set(disruptive_kinds)
            else ()
        ),
        *(
            mark_interrupted_offering(claim, now, RESERVED)
            if "capacity_reservation_interrupted" in disruptive_kinds
            else ()
        ),
        *(mark_ended_offering(claim, now) if set(_KINDS_ALREADY_ENDED) & set(disruptive_kinds) else ()),
        *events,
        FollowUp(function="provision", after=timedelta(), message=f"{claim.name} is interrupted"),
        FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} is interrupted"),
    )


def _get_rebalance_policy(claim_state: NodeClaimState, cluster: ClusterSnapshot) -> str:
    """Return the NodePool's policy for a rebalance recommendation."""
    name = claim_state.claim.meta.get_label(NODEPOOL)
    pool = next((node_pool for node_pool in cluster.node_pools if node_pool.name == name), None)
    policy = pool.meta.get_annotation(REBALANCE_POLICY) if pool is not None else ""
    return policy if policy in REBALANCE_POLICIES else "ignore"


def _find_reclaim_time(
    messages_by_kind: Mapping[InterruptionKind, list[InterruptionMessage]], now: datetime
) -> datetime | None:
    """Return the earliest time at which EC2 reclaims the instance; None if no message has a time."""
    reclaim_times: list[datetime] = []
    for kind, kind_messages in messages_by_kind.items():
        for message in kind_messages:
            sent_at = min(message.at or now, now)
            if kind in _KINDS_WITH_WARNING:
                reclaim_times.append(sent_at + INTERRUPTION_WARNING_PERIOD)
            elif kind in _KINDS_ALREADY_ENDED:
                reclaim_times.append(sent_at)
            elif kind == "scheduled_change" and message.begins_at is not None:
                reclaim_times.append(message.begins_at)
    return min(reclaim_times, default=None)


def _build_disrupted_taints(
    claim_state: NodeClaimState, message: str, end: datetime | None, *, anew: bool = True
) -> tuple[TaintNode, ...]:
    """Return the actions that taint the Nodes and record *end* where it is earlier than before.

    If *anew* is False, only Nodes with a later reclaim time, or none, are changed.
    """
    return tuple(
        TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=with_disrupted_taint(node.taints),
            labels=((EXCLUDE_BALANCERS, "karpenter"),),
            annotations=((ENDS_AT, format_instant(end)),) if end is not None and _is_sooner(end, node) else (),
            message=message,
        )
        for node in claim_state.nodes
        if (anew and DISRUPTED not in node.taints) or (end is not None and _is_sooner(end, node))
    )


def _is_sooner(end: datetime, node: Node) -> bool:
    old_end = find_reclaim_time((node,))
    return old_end is None or format_instant(end) < format_instant(old_end)


def _cordon_nodes(claim_state: NodeClaimState) -> tuple[TaintNode, ...]:
    return tuple(
        TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=(*node.taints, CORDON_TAINT),
            message=_REBALANCE,
        )
        for node in claim_state.nodes
        if not any(CORDON_TAINT.is_same(taint) for taint in node.taints)
    )


def build_annotation_retries(outcomes: Iterable[Outcome]) -> tuple[PatchMetadata, ...]:
    """Return patches that annotate Nodes of ending instances whose taint conflicted; lifecycle adds the taint."""
    return tuple(
        PatchMetadata(
            kind="Node",
            name=outcome.action.name,
            annotations=outcome.action.annotations,
            message=outcome.action.message,
        )
        for outcome in outcomes
        if isinstance(outcome.action, TaintNode) and outcome.result == "skipped" and outcome.action.annotations
    )


def find_unsettled_messages(
    parsed: Sequence[InterruptionMessage | UnknownMessage], outcomes: Iterable[Outcome], cluster: ClusterSnapshot
) -> tuple[int, ...]:
    """Return the indices of the messages that must be delivered again.

    An action for one of their instances failed, or there was no time left for it.
    """
    failed_actions = [
        outcome.action for outcome in outcomes if outcome.result == "failed" or outcome.message == OUT_OF_TIME_MESSAGE
    ]
    names = {action.name for action in failed_actions if isinstance(action, TaintNode | DeleteObject)}
    claim_instance_ids = {claim.instance_id for claim in cluster.node_claims if {claim.name, claim.node_name} & names}
    return tuple(
        index
        for index, message in enumerate(parsed)
        if isinstance(message, InterruptionMessage) and not claim_instance_ids.isdisjoint(message.instance_ids)
    )
