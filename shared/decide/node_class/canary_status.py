"""What the state of a canary means: the images that are used, and the condition CanarySucceeded."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import with_condition, without_condition
from shared.model.core.formatting import format_count, join_names
from shared.model.core.metadata import Condition, find_condition
from shared.model.core.units import format_duration, format_instant
from shared.model.karpenter.health.canary import (
    CANARY_SUCCEEDED,
    CanarySettings,
    CanaryTrial,
    is_family_unchanged,
    is_rejected,
    parse_canary_settings,
    parse_canary_state,
)
from shared.model.karpenter.health.rejections import (
    CANARY_REJECTED_REASON,
    describe_identity,
    describe_rejection,
    is_image,
)
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage

_MAX_LISTED_IMAGES: Final = 2


class CanarySummary(msgspec.Struct, frozen=True, kw_only=True):
    """The condition CanarySucceeded of one EC2NodeClass, as its annotations have it now."""

    node_class: str
    status: str
    reason: str
    message: str

    def describe(self) -> str:
        """Return the state as a sentence."""
        return f"EC2NodeClass {self.node_class}: {self.message or 'no new image or launch configuration is tested'}"


def list_canaries(cluster: ClusterSnapshot) -> tuple[CanarySummary, ...]:
    """Return the state of each EC2NodeClass with a canary or a minimum age, by name."""
    return tuple(
        CanarySummary(node_class=node_class.name, status=status, reason=reason, message=message)
        for node_class in sorted(cluster.node_classes, key=lambda node_class: node_class.name)
        if is_canary_configured(node_class)
        for status, reason, message in (_describe_state(node_class),)
    )


def is_canary_configured(node_class: EC2NodeClass) -> bool:
    """Return whether new images or launch configurations of *node_class* wait for anything."""
    return parse_canary_settings(node_class).is_enabled


def choose_images(node_class: EC2NodeClass, newest: tuple[ResolvedImage, ...]) -> tuple[ResolvedImage, ...]:
    """Return the images for status.amis: of *newest* those that may be used, and otherwise the last good ones."""
    if not is_canary_configured(node_class) or not is_family_unchanged(node_class, parse_canary_state(node_class)):
        return newest
    good_images = {image.requirements: image for image in node_class.resolved_images}
    previous = {image.requirements: image for image in parse_canary_state(node_class).previous_images}
    return tuple(
        _choose_image(node_class, image, good_images.get(image.requirements), previous.get(image.requirements))
        for image in newest
    )


def _choose_image(
    node_class: EC2NodeClass, newest: ResolvedImage, good: ResolvedImage | None, previous: ResolvedImage | None
) -> ResolvedImage:
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    if not is_rejected(node_class, newest.image_id):
        is_accepted = newest.image_id in settings.approved or state.is_proven(newest.image_id)
        if good is None or good.image_id == newest.image_id or is_accepted:
            return newest
    for image in (good, previous):
        if image is not None and not is_rejected(node_class, image.image_id):
            return image
    return newest


def with_canary_condition(
    conditions: tuple[Condition, ...], node_class: EC2NodeClass, now: datetime
) -> tuple[Condition, ...]:
    """Set the condition CanarySucceeded among *conditions*; remove it if nothing is configured."""
    if not is_canary_configured(node_class):
        has_condition = find_condition(conditions, CANARY_SUCCEEDED) is not None
        return without_condition(conditions, CANARY_SUCCEEDED) if has_condition else conditions
    status, reason, message = _describe_state(node_class)
    return with_condition(conditions, CANARY_SUCCEEDED, status, reason, message, now, node_class.meta.generation)


def list_rejections(node_class: EC2NodeClass) -> tuple[tuple[str, str], ...]:
    """Return the identities that the canary has rejected and no operator approved, with the reason; sorted."""
    return tuple(
        (identity, verdict.because)
        for identity, verdict in sorted(parse_canary_state(node_class).verdicts.items())
        if verdict.is_rejected and is_rejected(node_class, identity)
    )


def _describe_state(node_class: EC2NodeClass) -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    if settings.problems:
        return "False", "InvalidAnnotation", f"{'; '.join(settings.problems)}; no new image is used"
    all_trials = [trial for trial in (*state.trials, state.configuration_trial) if trial is not None]
    trials = [trial for trial in all_trials if not trial.is_unused]
    rejections = [
        f"{describe_rejection(identity, because)}; {describe_effect(identity)}"
        for identity, because in list_rejections(node_class)
    ]
    if rejections:
        return "False", CANARY_REJECTED_REASON, "; ".join((*rejections, *_list_trial_texts(trials, settings)))
    if not trials:
        return "True", "", "; ".join(_list_trial_texts(all_trials, settings))
    reason = "CanaryRunning" if any(trial.started_at is not None for trial in trials) else "MinimumAge"
    return "Unknown", reason, "; ".join(_list_trial_texts(trials, settings))


def _list_trial_texts(trials: Iterable[CanaryTrial], settings: CanarySettings) -> Iterator[str]:
    """Yield the state of *trials*: images that wait until the same time, and images without nodes, together."""
    running_trials: list[CanaryTrial] = []
    unused_images: list[str] = []
    waiting_images = defaultdict[datetime, list[str]](list)
    for trial in trials:
        if trial.started_at is None:
            waiting_images[trial.known_since].append(trial.identity)
        elif trial.is_unused:
            unused_images.append(trial.identity)
        else:
            running_trials.append(trial)
    age = format_duration(settings.minimum_age)
    for known_since, images in sorted(waiting_images.items()):
        until = format_instant(known_since + settings.minimum_age)
        verb = "waits for its" if len(images) == 1 else "wait for their"
        yield f"{_join_images(images)} {verb} minimum age of {age} until {until}"
    yield from (_describe_running_trial(trial, settings) for trial in running_trials)
    if unused_images:
        yield f"{_join_images(unused_images)}: not tested, no node of this EC2NodeClass has this type of image"


def _join_images(images: list[str]) -> str:
    return f"{'image' if len(images) == 1 else 'images'} {join_names(images, _MAX_LISTED_IMAGES)}"


def _describe_running_trial(trial: CanaryTrial, settings: CanarySettings) -> str:
    running = len(set(trial.running) - set(trial.passed))
    return (
        f"canary of {describe_identity(trial.identity)}: "
        f"{len(trial.passed)} of {format_count(settings.node_count, 'node')} passed, "
        f"{running} running, {len(trial.starting)} starting; soak time {format_duration(settings.soak_time)}"
    )


def describe_effect(identity: str) -> str:
    """Return what a rejection of *identity* means, and how to override it."""
    if is_image(identity):
        effect = "nodes are launched with the last good image, and nodes with this image drift"
    else:
        effect = "nodes with the earlier configuration do not drift; to fix: revert or correct the EC2NodeClass"
    return f"{effect}; to override: joiner nodeclass approve {identity}"
