"""Paging of lists: each page after the first continues from the token of the page before."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from shared.errors import Expired
from shared.model.core.metadata import Problem
from shared.ports.kubernetes import Kube
from shared.take.kubernetes.resource_kinds import ResourceKind, sort_objects

MAX_OBJECTS_PER_PAGE: Final = 500


class ListedPages(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a list, or of its first pages."""

    values: tuple[Any, ...]
    """Sorted as in a ClusterSnapshot."""
    problems: tuple[Problem, ...]
    """The problems of objects that were left out."""
    versions: frozenset[str]
    """The resourceVersions of the pages; more than one if the list changed in between."""
    size_bytes: int


def list_pages(
    kube: Kube, resource_kind: ResourceKind, is_match: Callable[[Any], bool] = lambda _: False
) -> ListedPages:
    """Read the list of *resource_kind* up to the end of the first page with a match, from the beginning if it expires.

    Raises:
        Fault: a page could not be read.
    """
    try:
        return _list_pages_once(kube, resource_kind, is_match)
    except Expired:  # the resourceVersion of the list expired between two pages
        return _list_pages_once(kube, resource_kind, is_match)


def _list_pages_once(kube: Kube, resource_kind: ResourceKind, is_match: Callable[[Any], bool]) -> ListedPages:
    values: list[Any] = []
    problems: list[Problem] = []
    versions: set[str] = set()
    size_bytes = 0
    for page_values, page_problems, version, page_bytes in _iterate_pages(kube, resource_kind):
        values.extend(page_values)
        problems.extend(page_problems)
        versions.add(version)
        size_bytes += page_bytes
        if any(map(is_match, page_values)):
            break
    return ListedPages(
        values=sort_objects(values), problems=tuple(problems), versions=frozenset(versions), size_bytes=size_bytes
    )


def _iterate_pages(kube: Kube, resource_kind: ResourceKind) -> Iterator[tuple[list[Any], list[Problem], str, int]]:
    """Yield for each page: values, problems of objects that were left out, resourceVersion, size in bytes."""
    token, has_more_pages = "", True
    while has_more_pages:
        body = kube.list(
            resource_kind.path, field_selector=resource_kind.selector, limit=MAX_OBJECTS_PER_PAGE, continue_token=token
        )
        page_values, page_problems, meta = resource_kind.decode_page(body)
        yield page_values, page_problems, meta.resource_version, len(body)
        token = meta.continue_token
        has_more_pages = bool(token)
