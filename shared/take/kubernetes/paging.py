"""Paging of lists: each page after the first continues from the token of the page before."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from shared.errors import Expired
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import Kube
from shared.take.kubernetes.resource_kinds import ResourceKind, sort_objects
from shared.wire.schema.core import ListMetaJson

MAX_OBJECTS_PER_PAGE: Final = 500
ReplacementT = TypeVar("ReplacementT")


class ListedPages(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a list, or of its first pages."""

    values: tuple[Any, ...]
    """Sorted as in a ClusterSnapshot."""
    problems: tuple[Problem, ...]
    """The problems of objects that were left out."""
    versions: frozenset[str]
    """The resourceVersions of the pages; more than one if the list changed in between."""
    size_bytes: int


class ListProgress(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a list after one of its pages."""

    version: str
    """The resourceVersion of the page."""
    min_size_bytes: int
    """The size of the pages so far; of the whole list, if the server reports how many objects remain."""


def list_pages(
    kube: Kube, resource_kind: ResourceKind, is_match: Callable[[Any], bool] = lambda _: False
) -> ListedPages:
    """Read the list of *resource_kind* up to the end of the first page with a match, from the beginning if it expires.

    Raises:
        Fault: a page could not be read.
    """
    return _retry_once(lambda: _combine_pages(_iterate_pages(kube, resource_kind), is_match))


def list_pages_or_replace(
    kube: Kube, resource_kind: ResourceKind, find_replacement: Callable[[ListProgress], ReplacementT | None]
) -> ListedPages | ReplacementT:
    """Read the list of *resource_kind*, unless *find_replacement* returns something after one of its pages.

    Raises:
        Fault: a page could not be read.
    """
    replacement: ReplacementT | None = None

    def iterate_until_replaced() -> Iterator[_Page]:
        nonlocal replacement
        size_bytes = object_count = 0
        for page in _iterate_pages(kube, resource_kind):
            yield page
            size_bytes += page.size_bytes
            object_count += len(page.values) + len(page.problems)
            if page.meta.continue_token:
                remaining_bytes = size_bytes * (page.meta.remaining_count or 0) // max(object_count, 1)
                progress = ListProgress(version=page.meta.resource_version, min_size_bytes=size_bytes + remaining_bytes)
                replacement = find_replacement(progress)
                if replacement is not None:
                    return

    pages = _retry_once(lambda: _combine_pages(iterate_until_replaced()))
    return pages if replacement is None else replacement


def _retry_once(read_pages: Callable[[], ListedPages]) -> ListedPages:
    try:
        return read_pages()
    except Expired:  # the resourceVersion of the list expired between two pages
        return read_pages()


def _combine_pages(pages: Iterator["_Page"], is_match: Callable[[Any], bool] = lambda _: False) -> ListedPages:
    """Combine *pages* up to the first page with a match."""
    values: list[Any] = []
    problems: list[Problem] = []
    versions: set[str] = set()
    size_bytes = 0
    for page in pages:
        values.extend(page.values)
        problems.extend(page.problems)
        versions.add(page.meta.resource_version)
        size_bytes += page.size_bytes
        if any(map(is_match, page.values)):
            break
    return ListedPages(
        values=sort_objects(values), problems=tuple(problems), versions=frozenset(versions), size_bytes=size_bytes
    )


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    values: list[Any]
    problems: list[Problem]
    meta: ListMetaJson
    size_bytes: int


def _iterate_pages(kube: Kube, resource_kind: ResourceKind) -> Iterator[_Page]:
    token, has_more_pages = "", True
    while has_more_pages:
        body = kube.list(
            resource_kind.path, field_selector=resource_kind.selector, limit=MAX_OBJECTS_PER_PAGE, continue_token=token
        )
        values, problems, meta = resource_kind.decode_page(body)
        yield _Page(values=values, problems=problems, meta=meta, size_bytes=len(body))
        token = meta.continue_token
        has_more_pages = bool(token)
