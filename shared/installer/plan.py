"""Plan of an installation, given what exists. Pure: a plan can be read before it is applied.

CRDs that are managed by others (a Karpenter installation, for example) are used as they are and never written. All
other names are ours: an object with one of them but without our label was applied by hand, and becomes ours. A second
installation of the same manifests does nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from shared.crds.compatibility import find_incompatibilities
from shared.installer.diff import build_merge_patch, describe_unmanaged_definition, is_within
from shared.installer.manifests import (
    MANIFEST_PATHS,
    Manifest,
    build_collection_path,
    build_manifest_path,
    format_kind_and_name,
    get_manifest_digest,
    get_manifest_name,
    is_being_deleted,
    is_managed_by_joiner,
)
from shared.model.core.formatting import format_count
from shared.model.core.labels import NODECLASS_FINALIZER, TERMINATION_FINALIZER
from shared.model.karpenter.node_class import NODE_CLASS_CRD
from shared.wire.paths import CRD_KIND

REQUIRED_DEFINITIONS: Final = (NODE_CLASS_CRD, "nodeclaims.karpenter.sh", "nodepools.karpenter.sh")
"""CRDs that Joiner needs; the others belong to features that are off by default."""
FINALIZERS: Final = (NODECLASS_FINALIZER, TERMINATION_FINALIZER)
"""Our finalizers: after Joiner is removed, no controller removes them."""
KARPENTER_RUNNING_MESSAGE: Final = "Karpenter is running: finalizers are kept"
IMMUTABLE_FIELDS: Final = ("roleRef",)
"""Fields that cannot be changed in an object: it is deleted and created again."""


class CreateManifest(msgspec.Struct, frozen=True, kw_only=True, tag="CreateManifest"):
    """POST *body* to the collection *path*."""

    path: str
    body: Manifest


class PatchManifest(msgspec.Struct, frozen=True, kw_only=True, tag="PatchManifest"):
    """Merge-patch the object at *path*."""

    path: str
    body: Manifest


class DeleteManifest(msgspec.Struct, frozen=True, kw_only=True, tag="DeleteManifest"):
    """Delete the object at *path* if it still has *uid*."""

    path: str
    uid: str = ""


InstallStep: TypeAlias = CreateManifest | PatchManifest | DeleteManifest


class InstallPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in their order, messages for the user, and the reasons to refuse the whole plan, if any."""

    steps: tuple[InstallStep, ...] = ()
    messages: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


class InstalledState(msgspec.Struct, frozen=True, kw_only=True):
    """What exists in the cluster."""

    live: Mapping[str, Manifest]
    """Installed objects by path."""
    object_counts: Mapping[str, int] = {}
    """Number of objects of each of our CRDs, by CRD name; only needed for a removal."""
    foreign_counts: Mapping[str, int] = {}
    """Number of those objects that belong to other providers, as EKS Auto Mode."""
    finalized_objects: tuple[tuple[str, Manifest], ...] = ()
    """Path and object of everything that may have one of our finalizers; only needed for a removal."""
    is_karpenter_running: bool = False
    """A Karpenter controller is running, which uses the same finalizers."""


def plan_install(desired_manifests: Iterable[Manifest], installed_state: InstalledState) -> InstallPlan:
    """Plan the steps that make the cluster contain *desired_manifests*, in their order."""
    plan = InstallPlan()
    for manifest in desired_manifests:
        plan = _merge_plans(
            plan, plan_manifest_install(manifest, installed_state.live.get(build_manifest_path(manifest)))
        )
    return InstallPlan(refusals=plan.refusals, messages=plan.messages) if plan.refusals else plan


def plan_removal(desired_manifests: Iterable[Manifest], installed_state: InstalledState, *, purge: bool) -> InstallPlan:
    """Plan the removal of what `plan_install` created from *desired_manifests*, last first, and of our finalizers.

    Finalizers stay while a Karpenter controller is running: without them it would terminate nodes before their pods are
    drained. A CRD that has objects stays, unless *purge*: its objects would be deleted with it. A CRD with objects of
    another provider always stays.
    """
    plan = (
        InstallPlan(messages=(KARPENTER_RUNNING_MESSAGE,))
        if installed_state.is_karpenter_running
        else _plan_finalizer_removal(installed_state.finalized_objects)
    )
    for manifest in reversed(tuple(desired_manifests)):
        live, name = installed_state.live.get(build_manifest_path(manifest)), get_manifest_name(manifest)
        if live is not None:
            counts = installed_state.foreign_counts if purge else installed_state.object_counts
            plan = _merge_plans(plan, _plan_manifest_removal(manifest, live, counts.get(name, 0)))
    return plan


def plan_deletion(*collections: Iterable[tuple[str, Manifest]]) -> InstallPlan:
    """Plan the deletion of the objects in *collections*, in order.

    Objects that are already being deleted are skipped.
    """
    objects = ((path, manifest) for collection in collections for path, manifest in collection)
    steps = tuple(
        DeleteManifest(path=path, uid=manifest["metadata"]["uid"])
        for path, manifest in objects
        if not is_being_deleted(manifest)
    )
    return InstallPlan(steps=steps)


def plan_manifest_install(desired: Manifest, live: Manifest | None) -> InstallPlan:
    """Plan the steps that make *live*, or nothing, contain *desired*."""
    path = build_manifest_path(desired)
    create_step = CreateManifest(path=MANIFEST_PATHS[desired["kind"]], body=desired)
    if live is None:
        return InstallPlan(steps=(create_step,), messages=(f"{format_kind_and_name(desired)} created",))
    if desired["kind"] == CRD_KIND and not is_managed_by_joiner(live):
        reasons = tuple(
            f"{format_kind_and_name(desired)} was not created by Joiner, and {problem}"
            for problem in find_incompatibilities(desired, live)
        )
        if reasons and get_manifest_name(desired) in REQUIRED_DEFINITIONS:
            return InstallPlan(refusals=reasons)
        return InstallPlan(messages=reasons or (describe_unmanaged_definition(desired, live),))
    if get_manifest_digest(live) == get_manifest_digest(desired) and is_within(desired, live):
        return InstallPlan()
    if any(desired.get(key) != live.get(key) for key in IMMUTABLE_FIELDS):
        delete_step = DeleteManifest(path=path, uid=live["metadata"]["uid"])
        return InstallPlan(steps=(delete_step, create_step), messages=(f"{format_kind_and_name(desired)} recreated",))
    return InstallPlan(
        steps=(PatchManifest(path=path, body=build_merge_patch(live, desired)),),
        messages=(f"{format_kind_and_name(desired)} updated",),
    )


def _plan_manifest_removal(desired: Manifest, live: Manifest, count: int) -> InstallPlan:
    """Plan the removal of *live*, unless it is a CRD that stays because of *count* objects."""
    if is_being_deleted(live):
        return InstallPlan()
    if not is_managed_by_joiner(live):
        return InstallPlan(messages=(f"{format_kind_and_name(desired)} was not created by Joiner and is kept",))
    if count:
        return InstallPlan(
            messages=(
                (
                    f"{format_kind_and_name(desired)} kept: it has {format_count(count, 'object')} "
                    f"({build_collection_path(desired)})"
                ),
            )
        )
    delete_step = DeleteManifest(path=build_manifest_path(desired), uid=live["metadata"]["uid"])
    return InstallPlan(steps=(delete_step,), messages=(f"{format_kind_and_name(desired)} deleted",))


def _plan_finalizer_removal(finalized_objects: Iterable[tuple[str, Manifest]]) -> InstallPlan:
    plan = InstallPlan()
    for path, manifest in finalized_objects:
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or []
        remaining_finalizers = [finalizer for finalizer in finalizers if finalizer not in FINALIZERS]
        if remaining_finalizers == finalizers:
            continue
        # With the resourceVersion: a finalizer that another controller has added since must not be lost.
        metadata_patch: dict[str, Any] = {
            "finalizers": remaining_finalizers or None,
            "resourceVersion": metadata["resourceVersion"],
        }
        plan = _merge_plans(
            plan,
            InstallPlan(
                steps=(PatchManifest(path=path, body={"metadata": metadata_patch}),),
                messages=_describe_orphan(manifest),
            ),
        )
    return plan


def _describe_orphan(manifest: Manifest) -> tuple[str, ...]:
    """Return the message that the instance of a deleted NodeClaim may still run once its finalizer is removed."""
    instance = (manifest.get("status") or {}).get("providerID", "")
    if not instance or not is_being_deleted(manifest):
        return ()
    return (f"NodeClaim {get_manifest_name(manifest)} was being deleted, its instance may still run: {instance}",)


def _merge_plans(first: InstallPlan, second: InstallPlan) -> InstallPlan:
    return InstallPlan(
        steps=first.steps + second.steps,
        messages=first.messages + second.messages,
        refusals=first.refusals + second.refusals,
    )
