"""Minimum age and canary of an EC2NodeClass: from new images to proven or rejected ones.

The good images are those of status.amis. A new image first gets its minimum age, then a trial: as long as it runs,
`joiner.dev/canary` nodes are launched with it, and all others with the good image. If the nodes stay healthy for the
soak time, the new image replaces the good one in status.amis, and other nodes drift. If not, it is rejected: nothing
is launched with it, and its nodes drift back. A new launch configuration has the same states; as the earlier one is
not known any more, only the drift of other nodes waits for it.

Everything follows from a snapshot: a rule here has no memory except the annotation `joiner.dev/canary-state`.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.launch.ami_families.images import select_newest_images
from shared.decide.node_class.canary_health import advance_nodes, find_failure
from shared.decide.node_class.canary_status import (
    choose_images,
    describe_effect,
    is_canary_configured,
    list_rejections,
)
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.labels import CANARY_STATE
from shared.model.core.metadata import build_pairs
from shared.model.core.requirements import Requirements, list_requirement_entries
from shared.model.core.units import format_duration
from shared.model.decisions.action import Action, PatchMetadata
from shared.model.karpenter.health.canary import (
    CanarySettings,
    CanaryState,
    CanaryTrial,
    Verdict,
    encode_canary_state,
    get_launch_hash,
    is_family_unchanged,
    is_moving,
    is_rejected,
    parse_canary_settings,
    parse_canary_state,
)
from shared.model.karpenter.health.rejections import CANARY_REJECTED_REASON, describe_identity, describe_rejection
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage

PROVEN_REASON: Final = "CanaryPassed"


class CanarySteps(msgspec.Struct, frozen=True, kw_only=True):
    """The node classes with the next state of their canaries, and what to write for it."""

    cluster: ClusterSnapshot
    actions: tuple[Action, ...] = ()


class CanaryStep(msgspec.Struct, frozen=True, kw_only=True):
    """A node class with the next state of its canary, and what to write for it."""

    node_class: EC2NodeClass
    actions: tuple[Action, ...] = ()


def needs_fleet(node_classes: Iterable[EC2NodeClass]) -> bool:
    """Return whether a trial runs: only then, the NodeClaims, nodes and pods matter."""
    return any(
        parse_canary_settings(node_class).node_count
        and ((state := parse_canary_state(node_class)).trials or state.configuration_trial is not None)
        for node_class in node_classes
    )


def count_rejections(cluster: ClusterSnapshot) -> dict[str, float]:
    """Return the number of rejected images and launch configurations; empty if no class has a canary."""
    configured = [node_class for node_class in cluster.node_classes if is_canary_configured(node_class)]
    rejections = sum(len(list_rejections(node_class)) for node_class in configured)
    return {"RejectedCanaries": float(rejections)} if configured else {}


def advance_canaries(cluster: ClusterSnapshot, answers_by_class: Iterable[tuple[str, NodeClassAnswers]]) -> CanarySteps:
    """Return *cluster* with the next state of each canary; classes whose images could not be queried keep theirs."""
    answers = dict(answers_by_class)
    steps = []
    for node_class in cluster.node_classes:
        images = answers[node_class.name].images if node_class.name in answers else None
        if images is None or not is_canary_configured(node_class):
            steps.append(CanaryStep(node_class=node_class))
        else:
            steps.append(advance_canary(node_class, select_newest_images(images, cluster.taken_at), cluster))
    return CanarySteps(
        cluster=msgspec.structs.replace(cluster, node_classes=tuple(step.node_class for step in steps)),
        actions=tuple(action for step in steps for action in step.actions),
    )


def advance_canary(node_class: EC2NodeClass, newest: tuple[ResolvedImage, ...], cluster: ClusterSnapshot) -> CanaryStep:
    """Return *node_class* with the next state of its canary; *newest* are the images that its selector terms have now.

    *cluster* has the fleet: NodePools, NodeClaims, nodes and pods.
    """
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    if not settings.is_enabled or settings.problems:
        return CanaryStep(node_class=node_class)
    if not is_family_unchanged(node_class, state) or not node_class.resolved_images:
        state = CanaryState(good_hash=state.good_hash)
    claims = [claim for claim in cluster.node_claims if claim.node_class.name == node_class.name]
    new_state = msgspec.structs.replace(
        _advance_images(node_class, state, newest, claims, cluster), family=node_class.ami_family
    )
    if settings.node_count:
        new_state = _advance_configuration(node_class, new_state, claims, cluster)
    new_class = _with_state(node_class, new_state)
    new_state = _remember_previous_images(new_class, newest)
    new_class = _with_state(node_class, new_state)
    if new_state == parse_canary_state(node_class):
        return CanaryStep(node_class=new_class)
    patch = PatchMetadata(
        kind="EC2NodeClass",
        name=node_class.name,
        annotations=((CANARY_STATE, encode_canary_state(new_state)),),
        message="state of its canary",
    )
    return CanaryStep(node_class=new_class, actions=(patch, *_build_events(node_class, state, new_state, cluster)))


def _advance_images(
    node_class: EC2NodeClass,
    state: CanaryState,
    newest: tuple[ResolvedImage, ...],
    claims: list[NodeClaim],
    cluster: ClusterSnapshot,
) -> CanaryState:
    good_images = {image.requirements: image.image_id for image in node_class.resolved_images}
    settings = parse_canary_settings(node_class)
    trials_by_image = {trial.image.requirements: trial for trial in state.trials if trial.image is not None}
    trials: list[CanaryTrial] = []
    verdicts = dict(state.verdicts)
    for image in newest:
        good_id = good_images.get(image.requirements)
        is_decided = image.image_id in settings.approved or image.image_id in settings.rejected
        if good_id is None or good_id == image.image_id or is_decided or image.image_id in verdicts:
            continue
        trial = trials_by_image.get(image.requirements)
        if trial is None or trial.identity != image.image_id:
            trial = CanaryTrial(identity=image.image_id, image=image, known_since=cluster.taken_at)
        own_claims = [claim for claim in claims if claim.image_id == image.image_id]
        peer_count = len(own_claims) + sum(claim.image_id == good_id for claim in claims)
        trial, verdict = _advance_trial(
            _start_if_old_enough(trial, node_class, cluster.taken_at), own_claims, peer_count, settings, cluster
        )
        if verdict is not None:
            verdicts[image.image_id] = verdict
        else:
            trials.append(trial)
    kept_ids = {image.image_id for image in (*newest, *node_class.resolved_images, *state.previous_images)}
    kept_ids.update((node_class.spec_hash, state.good_hash))
    return msgspec.structs.replace(
        state,
        trials=tuple(trials),
        verdicts={identity: verdict for identity, verdict in sorted(verdicts.items()) if identity in kept_ids},
    )


def _start_if_old_enough(trial: CanaryTrial, node_class: EC2NodeClass, now: datetime) -> CanaryTrial:
    minimum_age = parse_canary_settings(node_class).minimum_age
    if trial.started_at is None and (not is_moving(node_class) or trial.known_since + minimum_age <= now):
        return msgspec.structs.replace(trial, started_at=now)
    return trial


def _advance_configuration(
    node_class: EC2NodeClass, state: CanaryState, claims: list[NodeClaim], cluster: ClusterSnapshot
) -> CanaryState:
    settings, current_hash = parse_canary_settings(node_class), node_class.spec_hash
    verdict = state.verdicts.get(current_hash)
    is_accepted = current_hash in settings.approved or (verdict is not None and not verdict.is_rejected)
    if not state.good_hash or current_hash == state.good_hash or is_accepted:
        return msgspec.structs.replace(state, good_hash=current_hash, configuration_trial=None)
    if verdict is not None or current_hash in settings.rejected:
        return msgspec.structs.replace(state, configuration_trial=None)
    trial = state.configuration_trial
    if trial is None or trial.identity != current_hash:
        trial = CanaryTrial(identity=current_hash, known_since=cluster.taken_at, started_at=cluster.taken_at)
    own_claims = [claim for claim in claims if get_launch_hash(claim) == current_hash and claim.is_launched()]
    trial, verdict = _advance_trial(trial, own_claims, len(claims), settings, cluster)
    if verdict is None:
        return msgspec.structs.replace(state, configuration_trial=trial)
    return msgspec.structs.replace(
        state,
        good_hash=state.good_hash if verdict.is_rejected else current_hash,
        configuration_trial=None,
        verdicts=state.verdicts | {current_hash: verdict},
    )


def _advance_trial(
    trial: CanaryTrial, claims: list[NodeClaim], peer_count: int, settings: CanarySettings, cluster: ClusterSnapshot
) -> tuple[CanaryTrial, Verdict | None]:
    """Return *trial* with its nodes, and its result; *peer_count* is the number of nodes that could use it."""
    now = cluster.taken_at
    if trial.started_at is None:
        return trial, None
    if not settings.node_count:
        return trial, Verdict(is_rejected=False, at=now, because="it has its minimum age")
    if trial.started_at == now:  # the fleet is read from the next cycle on
        return trial, None
    trial = advance_nodes(trial, claims, settings.soak_time, now)
    trial = msgspec.structs.replace(trial, is_unused=not peer_count)
    failure = find_failure(trial, claims, cluster)
    if failure:
        return trial, Verdict(is_rejected=True, at=now, because=failure)
    if len(trial.passed) >= max(1, min(settings.node_count, peer_count)):
        because = f"{format_count(len(trial.passed), 'node')} stayed healthy for {format_duration(settings.soak_time)}"
        return trial, Verdict(is_rejected=False, at=now, because=because)
    return trial, None


def _remember_previous_images(node_class: EC2NodeClass, newest: tuple[ResolvedImage, ...]) -> CanaryState:
    """Return the state of *node_class* with the good images that are replaced now as the previous ones."""
    state = parse_canary_state(node_class)
    next_image_ids = {image.requirements: image.image_id for image in choose_images(node_class, newest)}
    previous: dict[Requirements, ResolvedImage] = {image.requirements: image for image in state.previous_images}
    for image in node_class.resolved_images:
        is_replaced = next_image_ids.get(image.requirements, image.image_id) != image.image_id
        if is_replaced and not is_rejected(node_class, image.image_id):
            previous[image.requirements] = image
    images = sorted(previous.values(), key=lambda image: json.dumps(list_requirement_entries(image.requirements)))
    return msgspec.structs.replace(
        state, previous_images=tuple(image for image in images if image.requirements in next_image_ids)
    )


def _with_state(node_class: EC2NodeClass, state: CanaryState) -> EC2NodeClass:
    annotations = build_pairs(dict(node_class.meta.annotations) | {CANARY_STATE: encode_canary_state(state)})
    return msgspec.structs.replace(node_class, meta=msgspec.structs.replace(node_class.meta, annotations=annotations))


def _build_events(
    node_class: EC2NodeClass, old: CanaryState, new: CanaryState, cluster: ClusterSnapshot
) -> Iterator[Action]:
    """Yield an event for each new result."""
    for identity, verdict in new.verdicts.items():
        if old.verdicts.get(identity) == verdict:
            continue
        if verdict.is_rejected:
            message = f"{describe_rejection(identity, verdict.because)}; {describe_effect(identity)}"
            yield build_event(
                "EC2NodeClass", node_class.meta, CANARY_REJECTED_REASON, message, cluster.taken_at, type_="Warning"
            )
        else:
            message = f"{describe_identity(identity)} is used for all nodes: {verdict.because}"
            yield build_event("EC2NodeClass", node_class.meta, PROVEN_REASON, message, cluster.taken_at)
