"""Launch templates, by name; each has one version, which is `$Latest`."""

import re
from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Conflict, Gone, Invalid
from shared.model.ec2 import LaunchTemplate
from sim.cloud import chance

NAME: Final = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
USER_DATA_LIMIT: Final = (16_384 + 2) // 3 * 4
"""Characters of base64 that 16 KiB become."""


class Templates:
    """The launch templates of one region."""

    def __init__(self, seed: int) -> None:
        """Begin empty."""
        self._seed = seed
        self._templates: dict[str, LaunchTemplate] = {}

    def create(self, template: LaunchTemplate, at: datetime) -> LaunchTemplate:
        """Keep *template* as created *at* and answer it so.

        Raises:
            Conflict: the name is taken.
            Invalid: it is malformed, or the user data too long.
        """
        check_template(template)
        if template.name in self._templates:
            taken = "InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use"
            raise Conflict(f"{taken}: {template.name}")
        self._templates[template.name] = msgspec.structs.replace(template, created_at=at)
        return self._templates[template.name]

    def find(self, name: str) -> LaunchTemplate:
        """Answer one.

        Raises:
            Gone: there is none.
        """
        if name not in self._templates:
            raise Gone(
                "InvalidLaunchTemplateName.NotFoundException: At least one of the launch templates specified in the "
                f"request does not exist: {name}"
            )
        return self._templates[name]

    def delete(self, name: str) -> None:
        """Forget one.

        Raises:
            Gone: there is none.
        """
        del self._templates[self.find(name).name]

    def tagged(self, key: str, value: str) -> tuple[LaunchTemplate, ...]:
        """Answer those that have the tag, sorted by name."""
        return tuple(
            template for _, template in sorted(self._templates.items()) if dict(template.tags).get(key) == value
        )

    def template_id(self, name: str) -> str:
        """Answer the id that EC2 gives the template of that name."""
        return chance.identity("lt", self._seed, name)


def check_template(template: LaunchTemplate) -> None:
    """Judge the content of *template*.

    Raises:
        Invalid: it is malformed, or the user data too long.
    """
    if NAME.fullmatch(template.name) is None:
        raise Invalid(f"The name '{template.name}' is malformed.", code="InvalidLaunchTemplateName.MalformedException")
    if len(template.user_data) > USER_DATA_LIMIT:
        raise Invalid("User data is limited to 16384 bytes", code="InvalidUserData.Malformed")
