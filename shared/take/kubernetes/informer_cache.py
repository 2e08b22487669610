"""The informer cache of a container: decoded lists of the last read, and the resourceVersion of each collection.

A watch must give the same result as a list. If there is any doubt (an event that cannot be decoded, a count that does
not match, a resourceVersion that is not a number, a clock that went back), Expired is raised and the list is read
again. Only model values are cached, no bytes: the values of the snapshot that the last decision used, and at most one
list of each kind.
"""

from collections.abc import Iterable, MutableMapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.errors import Expired
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import WatchEvents
from shared.take.kubernetes.paging import ListedPages
from shared.take.kubernetes.resource_kinds import ResourceKind, get_sort_key, sort_objects

MIN_CACHED_LIST_BYTES: Final = 8 * 1024
"""Listing a smaller list again is cheaper than watching it: one request, and no separate connection."""
RELIST_INTERVAL: Final = timedelta(minutes=30)
"""After this time, changes that a watch may have missed are seen."""
_FORBIDDEN_KEY_PREFIX: Final = "forbidden "


class CachedList(msgspec.Struct, frozen=True, kw_only=True):
    """One list at the resourceVersion *version*."""

    field: str
    """Its field in a ClusterSnapshot."""
    version: str
    listed_at: datetime
    current_at: datetime
    """When the list was at *version*: the last list or watch."""
    size_bytes: int
    """Size of the list when it was listed."""
    values: dict[str, Any]
    """By name, like ``shop/cart``; never changed in place."""
    problems: dict[str, Problem]
    """By name: the problems of objects that were left out."""
    ordered: tuple[Any, ...]
    """The values in the order of a ClusterSnapshot."""


def find_cached_list(
    cache: MutableMapping[str, object] | None, resource_kind: ResourceKind, now: datetime
) -> CachedList | None:
    """Return the cached list of *resource_kind*, or None if the list must be read again."""
    cached_list = cache.get(_build_cache_key(resource_kind)) if cache is not None else None
    if not isinstance(cached_list, CachedList) or not timedelta() <= now - cached_list.listed_at < RELIST_INTERVAL:
        return None
    return cached_list


def store_cached_list(
    cache: MutableMapping[str, object] | None, resource_kind: ResourceKind, cached_list: CachedList | None
) -> None:
    """Store *cached_list* as the cached list of *resource_kind*; None removes the entry.

    Without a cache, do nothing.
    """
    if cache is None:
        return
    if cached_list is None:
        cache.pop(_build_cache_key(resource_kind), None)
    else:
        cache[_build_cache_key(resource_kind)] = cached_list


def list_cached_lists(cache: MutableMapping[str, object]) -> tuple[CachedList, ...]:
    """Return all cached lists, in the order of their keys."""
    values = (value for _, value in sorted(cache.items(), key=lambda item: item[0]))
    return tuple(value for value in values if isinstance(value, CachedList))


def forbid_watch(cache: MutableMapping[str, object] | None, resource_kind: ResourceKind, now: datetime) -> None:
    """Record that *resource_kind* may not be watched."""
    if cache is not None:
        cache[_FORBIDDEN_KEY_PREFIX + _build_cache_key(resource_kind)] = now


def is_watch_forbidden(cache: MutableMapping[str, object] | None, resource_kind: ResourceKind, now: datetime) -> bool:
    """Return whether a watch of *resource_kind* was forbidden less than `RELIST_INTERVAL` ago."""
    forbidden_at = cache.get(_FORBIDDEN_KEY_PREFIX + _build_cache_key(resource_kind)) if cache is not None else None
    return isinstance(forbidden_at, datetime) and timedelta() <= now - forbidden_at < RELIST_INTERVAL


def build_cached_list(resource_kind: ResourceKind, pages: ListedPages, now: datetime) -> CachedList | None:
    """Return the cached form of the complete list of *resource_kind*, or None if it should not be cached."""
    if pages.size_bytes <= MIN_CACHED_LIST_BYTES:
        return None
    value_by_name = map_by_name(pages.values)
    problem_by_name = {problem.name: problem for problem in pages.problems}
    version, *other_versions = pages.versions
    is_consistent = (
        version.isdecimal() and not other_versions and all(problem.uid for problem in problem_by_name.values())
    )
    if not is_consistent:
        return None
    return CachedList(
        field=resource_kind.field,
        version=version,
        listed_at=now,
        current_at=now,
        size_bytes=pages.size_bytes,
        values=value_by_name,
        problems=problem_by_name,
        ordered=pages.values,
    )


def apply_watch_events(
    cached_list: CachedList, resource_kind: ResourceKind, changes: WatchEvents, now: datetime
) -> CachedList:
    """Return *cached_list* with the events of *changes* applied, which were read at *now*.

    Raises:
        Expired: the events do not match the cached list.
        Unreachable: an event cannot be decoded.
    """
    values, problems = cached_list.values, cached_list.problems
    if changes.events:
        values, problems = dict(values), dict(problems)
    last_version = int(cached_list.version)
    for event in changes.events:
        change = resource_kind.decode_event(event)
        if not last_version < change.version <= int(changes.version):
            raise Expired(f"{resource_kind.path}: {change.name} changed at {change.version}, after {last_version}")
        last_version = change.version
        values.pop(change.name, None)
        problems.pop(change.name, None)
        if change.value is not None:
            values[change.name] = change.value
        elif change.problem is not None:
            problems[change.name] = change.problem
    cached_count = len(values) + len(problems)
    if changes.count not in (None, cached_count) and not resource_kind.selector:
        raise Expired(f"{resource_kind.path}: {changes.count} objects exist, {cached_count} are cached")
    return msgspec.structs.replace(
        cached_list,
        version=changes.version,
        current_at=now,
        values=values,
        problems=problems,
        ordered=sort_objects(values.values()) if changes.events else cached_list.ordered,
    )


def map_by_name(values: Iterable[Any]) -> dict[str, Any]:
    """Return *values* by their names, like ``shop/cart``."""
    return {_get_object_name(value): value for value in values}


def _get_object_name(value: Any) -> str:  # noqa: ANN401 - any of a Cluster's values
    namespace, name = get_sort_key(value)
    return f"{namespace}/{name}" if namespace else name


def _build_cache_key(resource_kind: ResourceKind) -> str:
    return f"{resource_kind.path}?{resource_kind.selector}"
