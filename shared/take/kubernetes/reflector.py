"""The reflector: reads Kubernetes lists, each page by page or as a watch from the cached resourceVersion.

Cached lists are watched from their resourceVersion, all kinds concurrently; lists that are not cached or cannot be
watched are listed. Watches start in the order in which kinds are listed, and each shows at least the objects that
existed at its start. The resulting snapshot is therefore one that lists could have returned: nodes before pods. If
nodes had to be listed after all, the pods are watched once more. A forbidden watch is reported once, and the kind is
listed from then on.
"""

from collections.abc import Callable, Iterable, MutableMapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from shared.errors import Fault, Forbidden, NotFound, Throttled
from shared.model.core.metadata import Problem
from shared.model.karpenter.other_providers import filter_own_objects
from shared.ports.kubernetes import Kube, WatchEvents
from shared.take.kubernetes.informer_cache import (
    CachedList,
    apply_watch_events,
    build_cached_list,
    find_cached_list,
    forbid_watch,
    is_watch_forbidden,
    store_cached_list,
)
from shared.take.kubernetes.paging import ListedPages, list_pages, list_pages_or_replace
from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.take.kubernetes.shared_cache import StoredListReader
from shared.take.kubernetes.unserved_resources import build_unserved_problem

_NODE_LIST_FIELDS: Final = ("nodes", "node_claims")
Values = tuple[Any, ...]
ReadResult = tuple[Values, tuple[Problem, ...]]
PendingRead = Callable[[], ReadResult]


class Reflector:
    """One read of the lists of *kube* at *now*; without a *cache*, everything is listed.

    Large lists that are not cached are loaded from *stored_lists*, if there are any, and then watched.
    """

    def __init__(
        self,
        kube: Kube,
        cache: MutableMapping[str, object] | None,
        now: datetime,
        stored_lists: StoredListReader | None = None,
    ) -> None:
        """Start without reading."""
        self._kube, self._cache, self._now, self._stored_lists = kube, cache, now, stored_lists
        self._nodes_relisted = False
        self._loaded_fields: set[str] = set()
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
            parts[resource_kind.field] = filter_own_objects(resource_kind.field, values)
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
        pages = list_pages(self._kube, resource_kind, is_match)
        problems.extend(pages.problems)
        return pages.values

    def _start_read(self, resource_kind: ResourceKind) -> PendingRead:
        cached_list = find_cached_list(self._cache, resource_kind, self._now)
        if cached_list is None or is_watch_forbidden(self._cache, resource_kind, self._now):
            return self._list_now(resource_kind)
        return self._start_watch(resource_kind, cached_list)

    def _start_watch(self, resource_kind: ResourceKind, cached_list: CachedList) -> PendingRead:
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
            cached_list = apply_watch_events(cached_list, resource_kind, changes(), self._now)
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
            message = f"{fault}; a full list is used instead, which costs the API server more"
            self._watch_problems.append(Problem(kind="Watch", name=resource_kind.path, message=message))
        if resource_kind.field in self._loaded_fields and self._stored_lists is not None:
            self._stored_lists.record_refusal(resource_kind.field, f"{type(fault).__name__}: {fault}")

    def _list_now(self, resource_kind: ResourceKind) -> PendingRead:
        store_cached_list(self._cache, resource_kind, None)  # avoids holding two lists of a kind at once
        try:
            pages = self._list_or_load(resource_kind)
        except NotFound:
            if resource_kind.is_optional:
                return lambda: ((), ())
            if not resource_kind.crd_name:
                raise
            unserved_problem = build_unserved_problem(self._kube, resource_kind)
            return lambda: ((), (unserved_problem,))
        if isinstance(pages, CachedList):
            self._loaded_fields.add(resource_kind.field)
            store_cached_list(self._cache, resource_kind, pages)
            return self._start_watch(resource_kind, pages)
        if self._cache is not None:
            store_cached_list(self._cache, resource_kind, build_cached_list(resource_kind, pages, self._now))
        return lambda: (pages.values, pages.problems)

    def _list_or_load(self, resource_kind: ResourceKind) -> ListedPages | CachedList:
        stored_lists = self._stored_lists
        if stored_lists is None or is_watch_forbidden(self._cache, resource_kind, self._now):
            return list_pages(self._kube, resource_kind)
        return list_pages_or_replace(
            self._kube, resource_kind, lambda progress: stored_lists.load(resource_kind, progress)
        )
