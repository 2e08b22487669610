"""Stack deletion: the nodes are deleted with the stack, or the deletion is refused while nodes use its role.

A function that has read NodePools can act on them until its invocation ends. So after the last NodePool is gone, the
check is repeated once every such invocation is over.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import NotFound
from shared.installer.installer import SHARED_DEFINITIONS, Installer, InstallRefused
from shared.installer.manifests import Manifest, get_manifest_name
from shared.installer.plan import plan_deletion
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import INSTANCE_PROFILE, LAUNCHES_PAUSED
from shared.model.karpenter.pause import CLUSTER_NAMESPACE, LAUNCH_WORDS, Pause, format_pauses, parse_pauses
from shared.wire.paths import COLLECTION_PATHS

POLL_INTERVAL: Final = timedelta(seconds=5)
"""How often the deletion of objects is checked."""
MAX_PLANNING_DURATION: Final = timedelta(seconds=60)
"""Longer than any invocation of a function that reads NodePools."""
FIX_HINT: Final = "to fix: run `joiner uninstall`, or deploy with the setting on-destroy: purge (or abandon) first"
PAUSE_OWNER: Final = "cloudformation"
LAUNCH_PAUSE_TTL: Final = timedelta(hours=1)
"""Launches are paused for this long while a stack is deleted; if the deletion fails, they resume when it has passed."""
NAMESPACE_PATH: Final = f"/api/v1/namespaces/{CLUSTER_NAMESPACE}"


def delete_node_resources(installer: Installer) -> tuple[str, ...]:
    """Delete our NodePools and NodeClaims, and EC2NodeClasses, and wait until they are gone.

    NodePools are deleted first so that no node is created again. The running functions finalize the objects. NodePools
    and NodeClaims of other providers, as EKS Auto Mode, are kept.

    Raises:
        InstallRefused: objects were left at the deadline; deleting the stack again continues.
        Fault: the API server refused or did not respond until the deadline.
    """
    _delete_until_gone(installer, "NodeClaims", COLLECTION_PATHS["NodePool"], COLLECTION_PATHS["NodeClaim"])
    _delete_until_gone(installer, "EC2NodeClasses", COLLECTION_PATHS["EC2NodeClass"])
    return ("all NodePools, NodeClaims and EC2NodeClasses are deleted",)


def check_profiles_unused(installer: Installer, profiles: tuple[str, ...]) -> tuple[str, ...]:
    """Check that no node uses, or is about to use, one of *profiles*: without the role it would lose the cluster.

    If NodePools exist, launches are paused from now on, and the check is repeated when no function can be planning any
    more.

    Raises:
        InstallRefused: nodes use a profile; nothing is paused.
        Fault: the API server refused or did not respond until the deadline.
    """
    _refuse_if_profiles_used(installer, profiles)
    if installer.retry_until_deadline(
        lambda: any(True for _ in installer.list_own_objects(COLLECTION_PATHS["NodePool"]))
    ):
        installer.retry_until_deadline(lambda: _pause_launches(installer))
        installer.wait(MAX_PLANNING_DURATION)
        try:
            _refuse_if_profiles_used(installer, profiles)
        except InstallRefused:
            resume_launches(installer)
            raise
    return ()


def resume_launches(installer: Installer) -> None:
    """Remove the launch pause that `check_profiles_unused` set.

    Raises:
        Fault: the API server refused or did not respond until the deadline.
    """
    installer.retry_until_deadline(lambda: _write_launch_pauses(installer, ()))


def _delete_until_gone(installer: Installer, kinds: str, *collections: str) -> None:
    """Delete all objects in *collections* until the last one, of *kinds*, is empty and the first one is quiet.

    The first of several collections is quiet when no object was seen in it for `MAX_PLANNING_DURATION`.

    Raises:
        InstallRefused: objects were left at the deadline.
    """
    last_seen_at: datetime | None = None
    while True:
        has_first_objects = installer.retry_until_deadline(lambda: _delete_collections(installer, collections))
        last_seen_at = installer.clock() if has_first_objects and len(collections) > 1 else last_seen_at
        names = installer.retry_until_deadline(
            lambda: [get_manifest_name(manifest) for _, manifest in _list_objects(installer, collections[-1])]
        )
        is_quiet = last_seen_at is None or installer.clock() - last_seen_at >= MAX_PLANNING_DURATION
        if not names and is_quiet:
            return
        if installer.clock() + POLL_INTERVAL > installer.deadline:
            remaining = (
                (f"{kinds} are still being deleted: {join_names(names, 5)}")
                if names
                else "NodePools were deleted just now"
            )
            raise InstallRefused(f"{remaining}; to fix: delete the stack again")
        installer.wait(POLL_INTERVAL)


def _delete_collections(installer: Installer, collections: tuple[str, ...]) -> bool:
    """Delete all objects in *collections*; return whether the first collection had objects."""
    objects_by_collection = [tuple(_list_objects(installer, collection)) for collection in collections]
    installer.apply_plan(plan_deletion(*objects_by_collection))
    return bool(objects_by_collection[0])


def _list_objects(installer: Installer, collection: str) -> Iterator[tuple[str, Manifest]]:
    """Yield path and object of everything in *collection* that is Joiner's."""
    is_shared = collection in {COLLECTION_PATHS[kind] for kind in SHARED_DEFINITIONS}
    return installer.list_own_objects(collection) if is_shared else installer.list_objects(collection)


def _refuse_if_profiles_used(installer: Installer, profiles: tuple[str, ...]) -> None:
    claims = installer.retry_until_deadline(
        lambda: [claim for _, claim in installer.list_own_objects(COLLECTION_PATHS["NodeClaim"])]
    )
    names = [get_manifest_name(claim) for claim in claims if _is_bound_to_profile(claim, profiles)]
    if names:
        raise InstallRefused(
            f"{format_count(len(names), 'node')} with the role of the stack: {join_names(names, 5)}; {FIX_HINT}"
        )


def _is_bound_to_profile(claim: Manifest, profiles: tuple[str, ...]) -> bool:
    """Return whether *claim* has one of *profiles* or may get one: before the launch, the profile is not known."""
    profile = (claim["metadata"].get("annotations") or {}).get(INSTANCE_PROFILE)
    is_launched = bool((claim.get("status") or {}).get("providerID"))
    return profile in profiles if profile or is_launched else True


def _pause_launches(installer: Installer) -> None:
    now = installer.clock()
    pause = Pause(
        reasons=LAUNCH_WORDS,
        until=now + LAUNCH_PAUSE_TTL,
        author=PAUSE_OWNER,
        since=now,
        because="the stack of Joiner is being deleted",
    )
    _write_launch_pauses(installer, (pause,))


def _write_launch_pauses(installer: Installer, own_pauses: tuple[Pause, ...]) -> None:
    """Replace Joiner's pauses by *own_pauses* and keep the pauses of other owners.

    An annotation that cannot be parsed is not changed: it already pauses everything.
    """
    with suppress(NotFound, ValueError):
        metadata = msgspec.json.decode(installer.kube.read(NAMESPACE_PATH))["metadata"]
        old_text = (metadata.get("annotations") or {}).get(LAUNCHES_PAUSED, "")
        other_pauses = tuple(pause for pause in parse_pauses(old_text, LAUNCH_WORDS) if pause.author != PAUSE_OWNER)
        new_text = format_pauses((*other_pauses, *own_pauses))
        if new_text != old_text:
            annotations = {LAUNCHES_PAUSED: new_text or None}
            body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
            installer.kube.patch(NAMESPACE_PATH, msgspec.json.encode(body))
