"""Resources that the account has for a node class, findings of its validation, and dry-run results."""

from datetime import datetime

import msgspec

from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup, SecurityGroup, Subnet
from shared.model.ec2.dry_run import DryRunRefusal


class NodeClassFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that makes a node class unusable."""

    reason: str
    """Reason of the condition ValidationSucceeded."""
    message: str


class NodeClassAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """AWS's answers about one node class; None: the call could not be made, so no conclusion is drawn."""

    subnets: tuple[Subnet, ...] | None
    security_groups: tuple[SecurityGroup, ...] | None
    images: tuple[tuple[Image, tuple[str, ...]], ...] | None
    """Images with their variants; a user's own term has none, which means any type of the architecture."""
    capacity_reservations: tuple[CapacityReservation, ...] | None = ()
    scheduled_blocks: tuple[CapacityReservation, ...] | None = None
    """Capacity Blocks that start later, sorted by id; None: not queried, or the query failed."""
    placement_groups: tuple[PlacementGroup, ...] | None = ()
    """At most one placement group."""
    findings: tuple[NodeClassFinding, ...] = ()
    """Problems of the spec that do not depend on the account."""
    refusals: tuple[DryRunRefusal, ...] | None = ()
    """The refusals of EC2's dry run."""
    kubernetes_version: str = ""


class DryRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded dry run: the key of its input, the refusals, and when to run it again."""

    key: str
    refusals: tuple[DryRunRefusal, ...]
    again_at: datetime
