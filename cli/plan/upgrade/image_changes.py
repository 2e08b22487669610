"""Which images an EC2NodeClass selects after an upgrade of the control plane.

The SSM parameters of an alias contain the Kubernetes version, also if the alias names a release. Images that are
selected by id, name, tags or ssmParameter do not depend on it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.decide.launch.ami_families.images import (
    explain_unsupported_alias,
    list_image_parameters,
    select_newest_images,
)
from shared.model.core.formatting import format_count
from shared.model.core.units import format_duration
from shared.model.ec2.account import Image
from shared.model.karpenter.health.canary import parse_canary_settings
from shared.model.karpenter.node_class import EC2NodeClass

Effect: TypeAlias = Literal["Moves", "Stays", "NoImages"]
ImageAnswer: TypeAlias = Sequence[tuple[Image, tuple[str, ...]]]
"""Images of a node class, each with the variants that it is for."""
_OTHER_VERSION: Final = "0.0"


class ImageChange(msgspec.Struct, frozen=True, kw_only=True):
    """The images of an EC2NodeClass before and after the upgrade."""

    before: EC2NodeClass
    after: EC2NodeClass
    """With the images for the new version."""
    effect: Effect
    message: str
    is_resolved: bool = True
    """Whether the new images were read from the account."""

    @property
    def old_image_ids(self) -> tuple[str, ...]:
        """The ids of the current images, sorted."""
        return _list_ids(self.before)

    @property
    def new_image_ids(self) -> tuple[str, ...]:
        """The ids of the images after the upgrade, sorted; empty if they are unknown."""
        return _list_ids(self.after) if self.is_resolved else ()

    @property
    def rollout(self) -> str:
        """What delays the new images: their minimum age and their canary; "" if all nodes get them at once."""
        settings = parse_canary_settings(self.before)
        if self.effect != "Moves":
            return ""
        waits = []
        if settings.minimum_age:
            waits.append(f"not before a minimum age of {format_duration(settings.minimum_age)}")
        if settings.node_count:
            count = format_count(settings.node_count, "node")
            waits.append(f"first {count} for a soak time of {format_duration(settings.soak_time)}")
        return ", ".join(waits)

    def list_selectors(self) -> tuple[str, ...]:
        """Return the terms of spec.amiSelectorTerms as text."""
        return tuple(
            term.alias or term.ssm_parameter or term.id or term.name or "tags" for term in self.before.image_selectors
        )


def needs_images(node_class: EC2NodeClass, version: str) -> bool:
    """Return whether the images of *node_class* depend on the Kubernetes version, and *version* can have some."""
    return _has_version_dependency(node_class, version) and not explain_unsupported_alias(node_class, version)


def find_image_change(node_class: EC2NodeClass, version: str, answer: ImageAnswer | None, now: datetime) -> ImageChange:
    """Return what *version* changes for *node_class*; *answer* is what the account has for it, None: not asked."""
    unsupported = explain_unsupported_alias(node_class, version)
    if unsupported:
        return _build_change(node_class, replace(node_class, resolved_images=()), "NoImages", unsupported)
    if not _has_version_dependency(node_class, version):
        message = f"the images do not depend on the Kubernetes version: check that they support {version}"
        return _build_change(node_class, node_class, "Stays", message)
    if answer is None:
        images = tuple(
            replace(image, image_id=f"image for {version} instead of {image.image_id}")
            for image in node_class.resolved_images
        )
        change = _build_change(node_class, replace(node_class, resolved_images=images), "Moves", "")
        return replace(change, is_resolved=False, message="the new image ids were not read")
    images = select_newest_images(answer, now)
    if not images:
        message = f"no image for Kubernetes {version}: the EC2NodeClass will not be Ready"
        if not any(term.alias.endswith("@latest") for term in node_class.image_selectors):
            message += "; select a release that exists for this version"
        return _build_change(node_class, replace(node_class, resolved_images=()), "NoImages", message)
    changed_class = replace(node_class, resolved_images=images)
    is_equal = _list_ids(changed_class) == _list_ids(node_class)
    return _build_change(node_class, changed_class, "Stays" if is_equal else "Moves", "")


def _has_version_dependency(node_class: EC2NodeClass, version: str) -> bool:
    return list_image_parameters(node_class, version) != list_image_parameters(node_class, _OTHER_VERSION)


def _build_change(before: EC2NodeClass, after: EC2NodeClass, effect: Effect, message: str) -> ImageChange:
    return ImageChange(before=before, after=after, effect=effect, message=message)


def _list_ids(node_class: EC2NodeClass) -> tuple[str, ...]:
    return tuple(sorted({image.image_id for image in node_class.resolved_images}))
