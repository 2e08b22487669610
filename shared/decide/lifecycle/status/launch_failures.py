"""The nodes of an EC2NodeClass that did not register, for the pause of its launches, if the user has requested it.

A node counts if it was launched after the history began, and no node of the EC2NodeClass has registered since then.
Nodes that Joiner cannot see, and nodes that test a new image for a canary, do not count.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from shared.decide.common.events import build_event
from shared.decide.lifecycle.node_claim.early_end import NO_CAPACITY_CODE, find_early_end
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import LAUNCH_FAILURES
from shared.model.core.metadata import build_pairs
from shared.model.decisions.action import Action, PatchMetadata
from shared.model.karpenter.health.canary import build_claim_key, parse_canary_settings
from shared.model.karpenter.health.launch_failures import (
    LAUNCHES_PAUSED_REASON,
    MAX_FAILURE_LIMIT,
    MAX_REGISTRATION_TIME,
    LaunchFailures,
    find_failure_limit,
    find_launch_pause,
    find_launch_time,
    find_registration_time,
    parse_launch_failures,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.state.node_claim_state import NodeClaimState

RESUMED_REASON = "LaunchesResumed"


def record_launch_failures(node_class: EC2NodeClass, context: LifecycleContext) -> tuple[Action, ...]:
    """Record the nodes of *node_class* that did not register, and report a pause of its launches and its end."""
    if not find_failure_limit(node_class) or node_class.meta.deleted_at is not None:
        return ()
    claim_states = [
        claim_state
        for claim_state in context.cluster_state.claim_states
        if claim_state.claim.node_class.name == node_class.name
    ]
    old_failures = parse_launch_failures(node_class)
    failures = _compute_failures(node_class, claim_states, context)
    if failures == old_failures:
        return ()
    text = msgspec.json.encode(failures, order="sorted").decode()
    patch = PatchMetadata(
        kind="EC2NodeClass",
        name=node_class.name,
        annotations=((LAUNCH_FAILURES, text),),
        message="its nodes that did not register",
    )
    return (patch, *_build_events(node_class, _with_failures(node_class, text), context))


def _compute_failures(
    node_class: EC2NodeClass, claim_states: Iterable[NodeClaimState], context: LifecycleContext
) -> LaunchFailures:
    old_failures = parse_launch_failures(node_class)
    failures = old_failures or LaunchFailures(generation=node_class.meta.generation, since=context.now)
    claims = [claim_state.claim for claim_state in claim_states]
    times = [failures.registered_at, *(find_registration_time(claim) for claim in claims)]
    registered_at = max((at for at in times if at is not None), default=None)
    starts = [at for claim in claims if not claim.is_registered() and (at := find_launch_time(claim)) is not None]
    failed = dict(failures.failed) | {
        build_claim_key(claim_state.claim): launched_at
        for claim_state in claim_states
        if (launched_at := find_launch_time(claim_state.claim)) is not None
        and launched_at > failures.since
        and _has_failed(claim_state, launched_at, node_class, context)
    }
    recent = {key: at for key, at in failed.items() if registered_at is None or at > registered_at}
    keys = sorted(recent, key=lambda key: (recent[key], key))[-MAX_FAILURE_LIMIT:]
    is_success_needed = bool(failed) or any(registered_at is not None and at <= registered_at for at in starts)
    return msgspec.structs.replace(
        failures,
        failed={key: recent[key] for key in sorted(keys)},
        registered_at=registered_at if is_success_needed else failures.registered_at,
    )


def _has_failed(
    claim_state: NodeClaimState, launched_at: datetime, node_class: EC2NodeClass, context: LifecycleContext
) -> bool:
    claim = claim_state.claim
    if claim.is_registered() or _is_testing_image(claim, node_class):
        return False
    ended = find_early_end(claim, context)
    if ended is not None:
        return not ended.state_reason.startswith(NO_CAPACITY_CODE)
    if context.is_node_possibly_unreadable(claim) or any(node.is_ready() for node in claim_state.nodes):
        return False
    return launched_at + MAX_REGISTRATION_TIME <= (claim.meta.deleted_at or context.now)


def _is_testing_image(claim: NodeClaim, node_class: EC2NodeClass) -> bool:
    """Return whether *claim* has an image that is not one of the good ones: its canary decides about it."""
    good_images = {image.image_id for image in node_class.resolved_images}
    return parse_canary_settings(node_class).node_count > 0 and claim.image_id not in good_images


def _with_failures(node_class: EC2NodeClass, text: str) -> EC2NodeClass:
    annotations = build_pairs(dict(node_class.meta.annotations) | {LAUNCH_FAILURES: text})
    return msgspec.structs.replace(node_class, meta=msgspec.structs.replace(node_class.meta, annotations=annotations))


def _build_events(old: EC2NodeClass, new: EC2NodeClass, context: LifecycleContext) -> Iterator[Action]:
    """Yield an event when launches pause, again for each failed test, and when they resume."""
    claims, now = context.cluster_state.snapshot.node_claims, context.now
    old_pause, pause = (find_launch_pause(node_class, claims, now) for node_class in (old, new))
    if pause is not None and (old_pause is None or old_pause.failure_count != pause.failure_count):
        message = f"launches are paused: {pause.describe(now)}"
        yield build_event("EC2NodeClass", new.meta, LAUNCHES_PAUSED_REASON, message, now, type_="Warning")
    elif old_pause is not None and pause is None:
        message = f"launches have resumed: a node of EC2NodeClass {new.name} has registered"
        yield build_event("EC2NodeClass", new.meta, RESUMED_REASON, message, now)
