"""The answers to the requests of a decision, as stored for a replay.

Never stored: user data. A launch template is named after its whole content, so its name tells whether it changed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias, TypeVar

import msgspec

from shared.model.cloud_provider.cluster_group import GroupUsage
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.ec2.fleet import FleetResult
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_overlay import NodeOverlay


class _Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="answer"):
    """An answer, tagged with its kind."""


class ObservedChanges(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="ObservedChanges"):
    """To `ObserveLaunches`: what changed since the previous observation, the first time since the snapshot."""

    at: datetime
    claims: tuple[NodeClaim, ...] = ()
    """Claims that are new or changed."""
    removed_claims: tuple[str, ...] = msgspec.field(default=(), name="gone")
    unavailable: tuple[UnavailableOffering, ...] | None = None
    """None: the same as in the previous observation."""
    launch_groups: tuple[LaunchGroup, ...] = ()
    books: tuple[LimitReservations, ...] = ()
    addresses: SubnetAddresses | None = None
    group_usage: GroupUsage | None = None


class LimitConflicts(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="LimitConflicts"):
    """To `ReserveLimits`: the launch groups that must not be sent, sorted."""

    launch_groups: tuple[str, ...] = msgspec.field(default=(), name="overtaken")


class FleetResults(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="FleetResults"):
    """To `PerformActions` with launches: EC2's results; the outcomes of all actions are in the journal."""

    fleet_results: tuple[tuple[str, FleetResult], ...] = msgspec.field(default=(), name="answers")
    """By launch group."""
    stored_groups: tuple[LaunchGroup, ...] = msgspec.field(default=(), name="written")
    """Groups that were already stored with other content: the stored content was sent."""


class SparedInstances(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="SparedInstances"):
    """To `FindSparedInstances`: the suspected orphaned instances that may have a claim."""

    instance_ids: tuple[str, ...] = msgspec.field(default=(), name="spared")


class ExistingTemplates(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="ExistingTemplates"):
    """To `ListLaunchTemplates`: name, tags and age of each launch template; None if EC2 did not respond."""

    templates: tuple[LaunchTemplate, ...] | None = None


class CleanupDue(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="CleanupDue"):
    """To `CheckCleanupDue`: whether it is time to search for unused launch templates."""

    is_due: bool = msgspec.field(default=False, name="is_tidying")


class AppliedOverlays(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="AppliedOverlays"):
    """To `ApplyOverlays`: the NodeOverlays, and the bucket key of the catalog on which they were evaluated."""

    overlays: tuple[NodeOverlay, ...] = ()
    overlaid_at: datetime | None = None
    catalog_key: str = msgspec.field(default="", name="catalogue")


class AccountAnswersRecord(_Answer, frozen=True, kw_only=True, omit_defaults=True, tag="AccountAnswers"):
    """To `QueryAccount`: what the account has for each node class, and the instance profile of the deployment."""

    answers: tuple[tuple[str, NodeClassAnswers], ...] = msgspec.field(default=(), name="found")
    profile: str = ""


RecordedAnswer: TypeAlias = (
    ObservedChanges
    | LimitConflicts
    | FleetResults
    | SparedInstances
    | ExistingTemplates
    | CleanupDue
    | AppliedOverlays
    | AccountAnswersRecord
)


AnswerT = TypeVar(
    "AnswerT", LimitConflicts, FleetResults, SparedInstances, ExistingTemplates, CleanupDue, AppliedOverlays
)
"""An answer with a default: it is not recorded, and is assumed for a request that was not made at the time."""
KindT = TypeVar("KindT")


def find_answer(answers: Iterable[RecordedAnswer] | None, kind: type[KindT]) -> KindT | None:
    """Return the first of *answers* that is a *kind*, None if there is none."""
    return next((answer for answer in answers or () if isinstance(answer, kind)), None)
