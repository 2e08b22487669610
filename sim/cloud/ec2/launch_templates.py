"""Launch templates, by name; each has one version, which is `$Latest`."""

import re
from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Conflict, Invalid, NotFound
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud import seeded_random

NAME_PATTERN: Final = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
MAX_USER_DATA_CHARACTERS: Final = (16_384 + 2) // 3 * 4
"""The number of base64 characters that encode 16 KiB."""


class LaunchTemplates:
    """The launch templates of one region."""

    def __init__(self, seed: int) -> None:
        """Start without launch templates."""
        self._seed = seed
        self._templates: dict[str, LaunchTemplate] = {}

    def create(self, template: LaunchTemplate, at: datetime) -> LaunchTemplate:
        """Store *template* as created *at* and return the stored template.

        Raises:
            Conflict: the name is taken.
            Invalid: it is malformed, or the user data is too long.
        """
        check_launch_template(template)
        if template.name in self._templates:
            error_text = "InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use"
            raise Conflict(f"{error_text}: {template.name}")
        self._templates[template.name] = msgspec.structs.replace(template, created_at=at)
        return self._templates[template.name]

    def find(self, name: str) -> LaunchTemplate:
        """Return one launch template.

        Raises:
            NotFound: there is no such template.
        """
        if name not in self._templates:
            raise build_template_not_found(name)
        return self._templates[name]

    def delete(self, name: str) -> None:
        """Delete one launch template.

        Raises:
            NotFound: there is no such template.
        """
        del self._templates[self.find(name).name]

    def list_by_tag(self, key: str, value: str) -> tuple[LaunchTemplate, ...]:
        """Return the launch templates with the tag, sorted by name."""
        return tuple(
            template for _, template in sorted(self._templates.items()) if dict(template.tags).get(key) == value
        )

    def build_template_id(self, name: str) -> str:
        """Return the id that EC2 assigns to the template with that name."""
        return seeded_random.build_resource_id("lt", self._seed, name)


def check_launch_template(template: LaunchTemplate) -> None:
    """Check the content of *template*.

    Raises:
        Invalid: it is malformed, or the user data is too long.
    """
    if NAME_PATTERN.fullmatch(template.name) is None:
        raise Invalid(f"The name '{template.name}' is malformed.", code="InvalidLaunchTemplateName.MalformedException")
    if len(template.user_data) > MAX_USER_DATA_CHARACTERS:
        raise Invalid("User data is limited to 16384 bytes", code="InvalidUserData.Malformed")


def build_template_not_found(name: str) -> NotFound:
    """Return the fault of a call that names a launch template that EC2 does not find."""
    return NotFound(
        "InvalidLaunchTemplateName.NotFoundException: At least one of the launch templates specified in the request "
        f"does not exist: {name}"
    )
