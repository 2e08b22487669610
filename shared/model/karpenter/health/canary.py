"""The canary of an EC2NodeClass: a few nodes test a new image or launch configuration before other nodes use it.

Three annotations are the settings of the user, one is the state that Joiner writes:

* joiner.dev/image-minimum-age: 72h
* joiner.dev/canary: nodes=2 soak=1h
* joiner.dev/canary-approved, joiner.dev/canary-rejected: image ids and hashes whose result an operator has set
* joiner.dev/canary-state: what `CanaryState` has

The last good images are in status.amis; the state has the new images.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from shared.model.core.labels import (
    CANARY,
    CANARY_APPROVED,
    CANARY_REJECTED,
    CANARY_STATE,
    IMAGE_MINIMUM_AGE,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
)
from shared.model.core.metadata import Pairs
from shared.model.core.units import parse_duration
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage

CANARY_SUCCEEDED: Final = "CanarySucceeded"
"""The condition of an EC2NodeClass with a canary or a minimum age. Ready does not depend on it."""
MAX_CANARY_NODES: Final = 100
DEFAULT_CANARY_NODES: Final = 1
_SETTING_KEYS: Final = frozenset((IMAGE_MINIMUM_AGE, CANARY, CANARY_APPROVED, CANARY_REJECTED))
_CANARY_SYNTAX: Final = "nodes=2 soak=1h"
_KEY_SEPARATOR: Final = "/"
"""Not part of a Kubernetes name."""
_IDENTITY_PATTERN: Final = re.compile(r"ami-[a-z0-9-]+|[0-9a-f]{32}")


class CanarySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The annotations that users set."""

    minimum_age: timedelta = timedelta()
    """How long Joiner must know an image; 0: it is used at once."""
    node_count: int = 0
    """How many nodes test a new image or launch configuration; 0: no canary."""
    soak_time: timedelta = timedelta()
    approved: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    """Image ids and hashes; an operator decides, not the canary."""
    problems: tuple[str, ...] = ()
    """Invalid annotations: the field, the error and the fix."""

    @property
    def is_enabled(self) -> bool:
        """Whether any of the annotations has an effect."""
        return bool(self.minimum_age or self.node_count or self.rejected or self.problems)


class CanaryTrial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new image, or a new launch configuration, that is not proven yet."""

    identity: str = msgspec.field(name="id")
    """The id of the image, or the hash of the launch configuration."""
    image: ResolvedImage | None = None
    """None: the trial is of a launch configuration."""
    known_since: datetime
    started_at: datetime | None = None
    """When its first nodes were allowed; None: it does not have the minimum age yet."""
    is_unused: bool = msgspec.field(default=False, name="unused")
    """No node of the EC2NodeClass has this image, or the good image that it replaces."""
    starting: tuple[str, ...] = ()
    """The NodeClaims that use it and are not initialized, as keys of `build_claim_key`; all keys are sorted."""
    running: tuple[str, ...] = ()
    """The initialized NodeClaims that use it."""
    passed: tuple[str, ...] = ()
    """The NodeClaims that stayed healthy for the soak time; some may not exist any more."""
    lost_claims: tuple[str, ...] = ()
    """The NodeClaims that were deleted before they were initialized."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a trial."""

    is_rejected: bool = msgspec.field(name="rejected")
    at: datetime
    because: str = ""


class CanaryState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of the annotation joiner.dev/canary-state."""

    family: str = ""
    """The AMI family of the good images: images of another family do not fit the user data."""
    good_hash: str = ""
    """The hash of the last good launch configuration."""
    previous_images: tuple[ResolvedImage, ...] = ()
    """The good images before those of status.amis."""
    trials: tuple[CanaryTrial, ...] = ()
    """Of images, in the order in which they are used."""
    configuration_trial: CanaryTrial | None = None
    verdicts: dict[str, Verdict] = {}
    """By identity."""

    def is_proven(self, identity: str) -> bool:
        """Return whether the canary has accepted *identity*."""
        return identity in self.verdicts and not self.verdicts[identity].is_rejected


def parse_canary_settings(node_class: EC2NodeClass) -> CanarySettings:
    """Return the settings of the canary of *node_class*.

    If an annotation is invalid, no new image or launch configuration is used until it is corrected.
    """
    return _parse_settings(tuple(pair for pair in node_class.meta.annotations if pair[0] in _SETTING_KEYS))


def parse_canary_state(node_class: EC2NodeClass) -> CanaryState:
    """Return the state of the canary of *node_class*; an empty one if there is none, or it cannot be read."""
    return _parse_state(node_class.meta.get_annotation(CANARY_STATE))


def encode_canary_state(state: CanaryState) -> str:
    """Return the value of the annotation."""
    return msgspec.json.encode(state, order="sorted").decode()


def list_running_trials(node_class: EC2NodeClass) -> tuple[CanaryTrial, ...]:
    """Return the trials of images whose nodes may be launched now."""
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    if not settings.node_count or settings.problems or not is_family_unchanged(node_class, state):
        return ()
    return tuple(
        trial
        for trial in state.trials
        if trial.started_at is not None and trial.identity not in settings.approved | settings.rejected
    )


def find_running_configuration_trial(node_class: EC2NodeClass) -> CanaryTrial | None:
    """Return the trial of the current launch configuration; None if it is proven, rejected, or not tested."""
    settings, trial = parse_canary_settings(node_class), parse_canary_state(node_class).configuration_trial
    is_running = (
        trial is not None
        and trial.identity == node_class.spec_hash
        and bool(settings.node_count)
        and not settings.problems
        and trial.identity not in settings.approved | settings.rejected
    )
    return trial if is_running else None


def is_rejected(node_class: EC2NodeClass, identity: str) -> bool:
    """Return whether an operator or the canary has rejected *identity*; the operator's word counts more."""
    settings, verdict = parse_canary_settings(node_class), parse_canary_state(node_class).verdicts.get(identity)
    if identity in settings.rejected:
        return True
    has_canary = settings.node_count > 0
    return has_canary and verdict is not None and verdict.is_rejected and identity not in settings.approved


def is_family_unchanged(node_class: EC2NodeClass, state: CanaryState) -> bool:
    """Return whether the good images are of the AMI family of the spec."""
    return state.family in ("", node_class.ami_family)


def is_moving(node_class: EC2NodeClass) -> bool:
    """Return whether new images can appear without a change of the spec: unless each term is an id or a version."""
    return any(
        not term.id and (not term.alias or term.alias.endswith("@latest")) for term in node_class.image_selectors
    )


def build_claim_key(claim: NodeClaim) -> str:
    """Return the name and uid of *claim*: a later NodeClaim may have the same name."""
    return f"{claim.name}{_KEY_SEPARATOR}{claim.meta.uid}"


def get_claim_name(claim_key: str) -> str:
    """Return the name of the NodeClaim with *claim_key*, of `build_claim_key`."""
    return claim_key.partition(_KEY_SEPARATOR)[0]


def get_launch_hash(claim: NodeClaim) -> str:
    """Return the hash of the launch configuration that *claim* was launched with; "" if it cannot be compared."""
    is_comparable = claim.meta.get_annotation(NODECLASS_HASH_VERSION) == NODECLASS_HASH_VERSION_VALUE
    return claim.meta.get_annotation(NODECLASS_HASH) if is_comparable else ""


def is_configuration_held(node_class: EC2NodeClass) -> bool:
    """Return whether nodes with an earlier launch configuration wait for a canary of the current one."""
    settings, state = parse_canary_settings(node_class), parse_canary_state(node_class)
    if not (settings.node_count or settings.problems) or state.good_hash in ("", node_class.spec_hash):
        return False
    return node_class.spec_hash not in settings.approved and not state.is_proven(node_class.spec_hash)


def with_trial_images(node_class: EC2NodeClass, trials: Iterable[CanaryTrial]) -> EC2NodeClass:
    """Return *node_class* with the images of *trials* in the place of the good ones for the same instance types."""
    image_by_requirements = {trial.image.requirements: trial.image for trial in trials if trial.image is not None}
    if not image_by_requirements:
        return node_class
    images = tuple(image_by_requirements.get(image.requirements, image) for image in node_class.resolved_images)
    return msgspec.structs.replace(node_class, resolved_images=images)


def is_identity(text: str) -> bool:
    """Return whether *text* is the id of an image or the hash of a launch configuration."""
    return _IDENTITY_PATTERN.fullmatch(text) is not None


@lru_cache(maxsize=256)
def _parse_settings(annotations: Pairs) -> CanarySettings:
    values: dict[str, object] = {}
    problems: list[str] = []
    for key, text in annotations:
        try:
            if key == CANARY:
                values["node_count"], values["soak_time"] = _parse_canary(text)
            elif key == IMAGE_MINIMUM_AGE:
                values["minimum_age"] = _parse_positive_duration(text)
            else:
                values["approved" if key == CANARY_APPROVED else "rejected"] = _parse_identities(text)
        except ValueError as error:
            problems.append(f"metadata.annotations[{key}]: {error}")
    approved, rejected = (values.get(name, frozenset()) for name in ("approved", "rejected"))
    if (
        isinstance(approved, frozenset)
        and isinstance(rejected, frozenset)
        and (duplicates := sorted(approved & rejected))
    ):
        problems.append(
            f"metadata.annotations[{CANARY_REJECTED}]: {duplicates[0]} is approved as well: "
            f"remove it from this annotation or from {CANARY_APPROVED}"
        )
    return msgspec.structs.replace(msgspec.convert(values, CanarySettings), problems=tuple(problems))


@lru_cache(maxsize=256)
def _parse_state(text: str) -> CanaryState:
    try:
        return msgspec.json.decode(text, type=CanaryState)
    except (msgspec.DecodeError, ValueError):
        return CanaryState()


def _parse_canary(text: str) -> tuple[int, timedelta]:
    words = [word.partition("=") for word in text.split()]
    values = {name: value for name, _, value in words}
    if not values or len(values) != len(words) or not set(values) <= {"nodes", "soak"}:
        raise ValueError(f"{text!r} is not a canary: write {_CANARY_SYNTAX}")
    if "soak" not in values:
        raise ValueError(f"{text!r} has no soak time: write {_CANARY_SYNTAX}")
    node_text = values.get("nodes", str(DEFAULT_CANARY_NODES))
    if not node_text.isdecimal() or not 1 <= int(node_text) <= MAX_CANARY_NODES:
        raise ValueError(f"nodes={node_text} is not a number from 1 to {MAX_CANARY_NODES}: write {_CANARY_SYNTAX}")
    return int(node_text), _parse_positive_duration(values["soak"])


def _parse_positive_duration(text: str) -> timedelta:
    try:
        duration = parse_duration(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a duration: write one like 1h or 72h") from None
    if duration <= timedelta():
        raise ValueError(f"{text!r} is not longer than 0: write a duration like 1h, or remove the annotation")
    return duration


def _parse_identities(text: str) -> frozenset[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if not is_identity(word):
            raise ValueError(f"{word!r} is neither an image id nor the hash of a launch configuration: remove it")
    return frozenset(words)
