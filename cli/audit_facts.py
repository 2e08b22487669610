"""What `joiner audit` gathers, and what it says of each thing."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from cli.checks.facts import Unseen
from shared.model.cluster import Cluster
from shared.model.commands import Standing
from shared.model.ec2 import Instance, LaunchTemplate

_PARTS: Final = {
    "cluster": "the cluster",
    "instances": "instances",
    "templates": "launch templates",
    "attached": "volumes and network interfaces",
    "named": "queues and instance profiles",
    "commands": "the table",
}


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """A volume or a network interface."""

    kind: str
    name: str
    instance_id: str
    """"" where it is attached to none."""
    made_for: str = ""
    """The instance that it was made for, where it says so."""
    gib: int = 0
    since: datetime | None = None


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A queue or an instance profile."""

    kind: str
    name: str
    since: datetime | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that could be seen of ours; what could not says why."""

    now: datetime
    name: str
    """The cluster's."""
    cluster: Cluster | Unseen
    instances: tuple[Instance, ...] | Unseen
    templates: tuple[LaunchTemplate, ...] | Unseen
    attached: tuple[Attached, ...] | Unseen
    named: tuple[Named, ...] | Unseen
    commands: tuple[tuple[str, Standing | None], ...] | Unseen
    """Rows of the table, None for one that cannot be read."""
    is_installed: bool | None
    """None: that could not be seen."""


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of ours."""

    kind: str
    name: str
    owner: str
    """"" if nothing accounts for it."""
    why: str = ""
    """Why nothing does."""
    remedy: str = ""
    age: timedelta | None = None
    usd_per_hour: float = 0.0

    @property
    def is_leaked(self) -> bool:
        """Whether nothing accounts for it."""
        return not self.owner


def unseen(seen: Evidence) -> Iterator[str]:
    """Iterate over what could not be seen, and why; what only signing in would help is one line."""
    hidden = {name: part for what, name in _PARTS.items() if isinstance(part := getattr(seen, what), Unseen)}
    unsigned = [name for name, part in hidden.items() if part.remedy]
    for name, part in hidden.items():
        if not part.remedy:
            yield f"{name}: {part.why}"
        elif name == unsigned[0]:
            yield f"{', '.join(unsigned)}: {part.why}: {part.remedy}"


def document(asset: Asset) -> dict[str, Any]:
    """Answer what a program reads."""
    return {
        "kind": asset.kind,
        "name": asset.name,
        "leaked": asset.is_leaked,
        "owner": asset.owner or None,
        "why": asset.why or None,
        "remedy": asset.remedy or None,
        "ageSeconds": None if asset.age is None else int(asset.age.total_seconds()),
        "usdPerHour": round(asset.usd_per_hour, 9),
    }
