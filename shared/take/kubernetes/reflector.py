"""The reflector: reads Kubernetes lists, each page by page or as a watch from the cached resourceVersion.

Cached lists are watched from their resourceVersion, all kinds concurrently; lists that are not cached or cannot be
watched are listed. Watches start in the order in which kinds are listed, and each shows at least the objects that
existed at its start. The resulting snapshot is therefore one that lists could have returned: nodes before pods. If
nodes had to be listed after all, the pods are watched once more. A forbidden watch is reported once, and the kind is
listed from then on.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.errors import Expired, Fault, Forbidden, NotFound, Throttled
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import Kube, WatchEvents
from shared.take.kubernetes.informer_cache import (
    CachedList,
    apply_watch_events,
    build_cached_list,
    find_cached_list,
    forbid_watch,
    is_watch_forbidden,
    sort_objects,
    store_cached_list,
)
from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.take.kubernetes.unserved_resources import build_unserved_problem

MAX_OBJECTS_PER_PAGE: Final = 500
_NODE_LIST_FIELDS: Final = ("nodes", "node_claims")
Values = tuple[Any, ...]
ReadResult = tuple[Values, tuple[Problem, ...]]
PendingRead = Callable[[], ReadResult]


class Reflector:
    """One read of the lists of *kube* at *now*; without a *cache*, everything is listed."""

    def __init__(self, kube: Kube, cache: MutableMapping[str, object] | None, now: datetime) -> None:
        """Start without reading."""
        self._kube, self._cache, self._now = kube, cache, now
        self._nodes_relisted = False
        self._watch_problems: list[Problem] = []

    def read_lists(self, resource_kinds: Iterable[ResourceKind], problems: list[Problem]) -> dict[str, Values]:
        """Return the values of *resource_kinds* by field; the problems of objects that were left out add to *problems*.

        Raises:
            Fault: a list could not be read.
        """
        parts: dict[str, Values] = {}
        for resource_kind, finish_read in [(listing, self._start_read(listing)) for listing in resource_kinds]:
            values, list_problems = finish_read()
            if resource_kind.field == "pods" and self._nodes_relisted:
                values, list_problems = self._start_read(resource_kind)()
            parts[resource_kind.field] = values
            problems.extend(list_problems)
        problems.extend(self._watch_problems)
        return parts

    def list_until(
        self, resource_kind: ResourceKind, is_match: Callable[[Any], bool], problems: list[Problem]
    ) -> Values:
        """Return the values of *resource_kind* up to the end of the first page with a match; nothing is cached.

        Raises:
            Fault: a page could not be read.
        """
        values, list_problems = _retry_once_if_expired(lambda: self._list_pages_until(resource_kind, is_match))
        problems.extend(list_problems)
        return values

    def _list_pages_until(self, resource_kind: ResourceKind, is_match: Callable[[Any], bool]) -> ReadResult:
        values: list[Any] = []
        problems: list[Problem] = []
        for page_values, page_problems, _, _ in self._iterate_pages(resource_kind):
            values.extend(page_values)
            problems.extend(page_problems)
            if any(map(is_match, page_values)):
                break
        return sort_objects(values), tuple(problems)

    def _start_read(self, resource_kind: ResourceKind) -> PendingRead:
        cached_list = find_cached_list(self._cache, resource_kind, self._now)
        if cached_list is None or is_watch_forbidden(self._cache, resource_kind, self._now):
            return self._list_now(resource_kind)
        try:
            changes = self._kube.watch(
                resource_kind.path, since=cached_list.version, field_selector=resource_kind.selector
            )
        except Throttled:
            raise
        except Fault as fault:
            self._record_watch_fault(resource_kind, fault)
            return self._list_now(resource_kind)
        return partial(self._finish_watch, resource_kind, cached_list, changes)

    def _finish_watch(
        self, resource_kind: ResourceKind, cached_list: CachedList, changes: Callable[[], WatchEvents]
    ) -> ReadResult:
        try:
            cached_list = apply_watch_events(cached_list, resource_kind, changes())
        except Throttled:
            raise
        except Fault as fault:
            self._record_watch_fault(resource_kind, fault)
            self._nodes_relisted |= resource_kind.field in _NODE_LIST_FIELDS
            return self._list_now(resource_kind)()
        store_cached_list(self._cache, resource_kind, cached_list)
        return cached_list.ordered, tuple(cached_list.problems.values())

    def _record_watch_fault(self, resource_kind: ResourceKind, fault: Fault) -> None:
        """Report a forbidden watch and do not try it again; all other faults show in the list that follows."""
        if isinstance(fault, Forbidden):
            forbid_watch(self._cache, resource_kind, self._now)
            message = f"{fault}; it is listed instead, which costs the API server more"
            self._watch_problems.append(Problem(kind="Watch", name=resource_kind.path, message=message))

    def _list_now(self, resource_kind: ResourceKind) -> PendingRead:
        store_cached_list(self._cache, resource_kind, None)  # avoids holding two lists of a kind at once
        try:
            values, list_problems = _retry_once_if_expired(lambda: self._list_all_pages(resource_kind))
        except NotFound:
            if resource_kind.is_optional:
                return lambda: ((), ())
            if not resource_kind.crd_name:
                raise
            unserved_problem = build_unserved_problem(self._kube, resource_kind)
            return lambda: ((), (unserved_problem,))
        return lambda: (values, list_problems)

    def _list_all_pages(self, resource_kind: ResourceKind) -> ReadResult:
        values: list[Any] = []
        problems: list[Problem] = []
        versions: set[str] = set()
        size = 0
        for page_values, page_problems, version, length in self._iterate_pages(resource_kind):
            values.extend(page_values)
            problems.extend(page_problems)
            versions.add(version)
            size += length
        sorted_values = sort_objects(values)
        if self._cache is not None:
            cached_list = build_cached_list(sorted_values, problems, versions=versions, size=size, now=self._now)
            store_cached_list(self._cache, resource_kind, cached_list)
        return sorted_values, tuple(problems)

    def _iterate_pages(self, resource_kind: ResourceKind) -> Iterator[tuple[list[Any], list[Problem], str, int]]:
        """Yield for each page: values, problems of objects that were left out, resourceVersion, size in bytes."""
        token, has_more_pages = "", True
        while has_more_pages:
            body = self._kube.list(
                resource_kind.path,
                field_selector=resource_kind.selector,
                limit=MAX_OBJECTS_PER_PAGE,
                continue_token=token,
            )
            page_values, page_problems, meta = resource_kind.decode_page(body)
            yield page_values, page_problems, meta.resource_version, len(body)
            token = meta.continue_token
            has_more_pages = bool(token)


def _retry_once_if_expired(read: Callable[[], ReadResult]) -> ReadResult:
    """Call *read*, and again from the beginning if the resourceVersion expired between two pages."""
    try:
        return read()
    except Expired:
        return read()
