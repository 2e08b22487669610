"""The evidence that `joiner audit` collects, and the assets that it reports."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from cli.facts.model import ReadFailure
from shared.model.decisions.command import CommandState
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.state.cluster_state import ClusterState

_PART_TITLES: Final = {
    "cluster_state": "the cluster",
    "instances": "instances",
    "templates": "launch templates",
    "attached": "volumes and network interfaces",
    "named_resources": "queues and instance profiles",
    "commands": "the DynamoDB table",
}


class AttachedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A volume or a network interface."""

    kind: str
    name: str
    instance_id: str
    """"" if it is not attached."""
    made_for_instance_id: str = ""
    """The instance that it was created for, if a tag names it."""
    size_gib: int = 0
    created_at: datetime | None = None


class NamedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A queue or an instance profile; its name shows that it belongs to the installation."""

    kind: str
    name: str
    created_at: datetime | None = None


class AuditEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Joiner's resources as far as they can be read; a part that cannot be read is a `ReadFailure`."""

    now: datetime
    cluster_name: str
    """Name of the EKS cluster."""
    cluster_state: ClusterState | ReadFailure
    instances: tuple[Instance, ...] | ReadFailure
    templates: tuple[LaunchTemplate, ...] | ReadFailure
    attached: tuple[AttachedResource, ...] | ReadFailure
    named_resources: tuple[NamedResource, ...] | ReadFailure
    commands: tuple[tuple[str, CommandState | None], ...] | ReadFailure
    """Rows of the table; None for a row that cannot be decoded."""
    is_installed: bool | None
    """None if that is unknown."""


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One of Joiner's resources."""

    kind: str
    name: str
    owner: str
    """"" if the resource is leaked: nothing accounts for it."""
    leak_reason: str = ""
    """Why nothing accounts for the resource."""
    fix: str = ""
    age: timedelta | None = None
    usd_per_hour: float = 0.0

    @property
    def is_leaked(self) -> bool:
        """Whether the resource has no owner."""
        return not self.owner


def describe_unseen_parts(evidence: AuditEvidence) -> Iterator[str]:
    """Yield the parts that cannot be read, with the reason; all parts that require a sign-in share one line."""
    unseen_parts = {
        name: part
        for field_name, name in _PART_TITLES.items()
        if isinstance(part := getattr(evidence, field_name), ReadFailure)
    }
    sign_in_parts = [name for name, part in unseen_parts.items() if part.fix]
    for name, part in unseen_parts.items():
        if not part.fix:
            yield f"{name}: {part.reason}"
        elif name == sign_in_parts[0]:
            yield f"{', '.join(sign_in_parts)}: {part.reason}: {part.fix}"


def build_asset_document(asset: Asset) -> dict[str, Any]:
    """Return *asset* as an entry of the JSON and YAML output."""
    return {
        "kind": asset.kind,
        "name": asset.name,
        "leaked": asset.is_leaked,
        "owner": asset.owner or None,
        "reason": asset.leak_reason or None,
        "fix": asset.fix or None,
        "ageSeconds": None if asset.age is None else int(asset.age.total_seconds()),
        "usdPerHour": round(asset.usd_per_hour, 9),
    }
