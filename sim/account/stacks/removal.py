"""How resources go: those that need others first, and what cannot go keeps what it needs."""

from collections.abc import Iterable
from typing import Final

from botocore.exceptions import ClientError

from sim.account.stacks.site import REFUSALS, Site, reason_of
from sim.account.stacks.stack import Resource
from sim.account.stacks.template import ordered

_GONE: Final = ("NoSuch", "NotFound", "NonExistent", "DoesNotExist", "Unknown")
_RETAINED: Final = frozenset({"Retain", "Snapshot"})


def remove(
    site: Site, resources: Iterable[Resource], *, is_rollback: bool = False, is_replaced: Iterable[int] = ()
) -> str:
    """Take *resources* away, last first; answer what is left and why, empty if nothing is.

    *is_replaced* holds the `id` of each that another has taken the place of: another policy says if it is retained.
    """
    found, replaced = list(resources), frozenset(is_replaced)
    by_name: dict[str, list[Resource]] = {}
    for one in found:
        by_name.setdefault(one.logical_id, []).append(one)
    order = ordered({name: {need for one in some for need in one.needs} for name, some in by_name.items()})
    stuck: set[str] = set()
    failed = []
    for one in (one for name in reversed(order) for one in by_name[name]):
        policy = one.replacement if id(one) in replaced else one.deletion
        if one.logical_id in stuck:
            stuck.update(one.needs)
        elif not _goes(site, one, policy, is_rollback=is_rollback):
            failed.append(one.logical_id)
            stuck.update(one.needs)
    return f"The following resource(s) failed to delete: [{', '.join(failed)}]." if failed else ""


def _goes(site: Site, one: Resource, policy: str, *, is_rollback: bool) -> bool:
    """Take *one* away, or leave it to itself if *policy* says so; answer whether the stack is rid of it."""
    if policy in _RETAINED or (policy == "RetainExceptOnCreate" and not is_rollback):
        site.tell(one, "DELETE_SKIPPED")
    else:
        site.tell(one, "DELETE_IN_PROGRESS")
        try:
            _delete(site, one)
        except REFUSALS as error:
            site.tell(one, "DELETE_FAILED", reason_of(error))
            site.mark(one, "DELETE_FAILED", reason_of(error))
            return False
        site.tell(one, "DELETE_COMPLETE")
    site.forget(one)
    return True


def _delete(site: Site, one: Resource) -> None:
    try:
        site.kinds(one.type).delete(site.place(one, {}), one.made, one.properties)
    except ClientError as error:
        if not any(word in error.response["Error"]["Code"] for word in _GONE):
            raise
