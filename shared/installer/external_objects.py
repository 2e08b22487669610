"""`cluster-objects: external`: another tool applies and removes the cluster objects; they are only compared.

CloudFormation does not say whether an update is the rollback of another update. The other tool does not roll back with
it, so objects of another version must not fail an update: the rollback would fail, too.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.errors import Conflict
from shared.installer.diff import is_within
from shared.installer.installer import Installer
from shared.installer.manifests import (
    Manifest,
    build_manifest_path,
    format_kind_and_name,
    is_being_deleted,
    is_managed_by_joiner,
)
from shared.installer.plan import plan_manifest_install
from shared.wire.paths import CRD_KIND

SYNC_HINT: Final = "To fix: apply the cluster objects of the bundle of this version, then deploy again"


class ObjectComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The live objects next to those that this version needs."""

    refusals: tuple[str, ...] = ()
    """Objects that do not exist, and CRDs of other tools that cannot be used."""
    differences: tuple[str, ...] = ()
    """Objects of another version of Joiner."""
    messages: tuple[str, ...] = ()
    """CRDs of other tools that are used as they are."""


def compare_objects(desired_manifests: Iterable[Manifest], live: Mapping[str, Manifest]) -> ObjectComparison:
    """Compare the objects *live*, by path, with *desired_manifests*.

    A CRD without our label, as of a Karpenter chart, must only be compatible.
    """
    comparisons = [_compare_object(manifest, live.get(build_manifest_path(manifest))) for manifest in desired_manifests]
    return ObjectComparison(
        refusals=tuple(text for comparison in comparisons for text in comparison.refusals),
        differences=tuple(text for comparison in comparisons for text in comparison.differences),
        messages=tuple(text for comparison in comparisons for text in comparison.messages),
    )


def _compare_object(desired: Manifest, live: Manifest | None) -> ObjectComparison:
    if live is None or is_being_deleted(live):
        return ObjectComparison(refusals=(f"{format_kind_and_name(desired)} does not exist",))
    if desired["kind"] == CRD_KIND and not is_managed_by_joiner(live):
        plan = plan_manifest_install(desired, live)
        return ObjectComparison(refusals=plan.refusals, messages=plan.messages)
    content = {key: value for key, value in desired.items() if key != "metadata"}
    if is_within(content, live):
        return ObjectComparison()
    return ObjectComparison(differences=(f"{format_kind_and_name(desired)} is not of this version of Joiner",))


def check_external_objects(installer: Installer, *, is_new: bool) -> tuple[str, ...]:
    """Wait until another tool has applied the manifests; return what the user should know. Nothing is written.

    An update with objects of another version continues at the deadline, and the messages name them. A new stack
    (*is_new*) has no rollout that would stop, and fails.

    Raises:
        Fault: objects are missing at the deadline, or of another version in a new stack; the message names each.
    """

    def compare_live_objects(*, allows_differences: bool) -> tuple[str, ...]:
        comparison = compare_objects(installer.manifests, installer.read_live_objects())
        problems = comparison.refusals + (() if allows_differences else comparison.differences)
        if problems:
            raise Conflict(f"{'; '.join(problems)}. {SYNC_HINT}")
        return comparison.differences + comparison.messages

    try:
        messages = installer.retry_until_deadline(lambda: compare_live_objects(allows_differences=False))
    except Conflict:
        if is_new:
            raise
        messages = compare_live_objects(allows_differences=True)
    installer.retry_until_deadline(installer.check_definitions_served)
    return messages
