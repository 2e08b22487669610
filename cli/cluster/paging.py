"""Objects of a live cluster that a command reads itself, page by page."""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from shared.ports.kubernetes import Kube

T = TypeVar("T")

_PAGE_SIZE: Final = 500


class _PageMetadata(msgspec.Struct, frozen=True):
    next: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()
    metadata: _PageMetadata = _PageMetadata()


def list_objects(kube: Kube, path: str, kind: type[T], field_selector: str = "") -> Iterator[T]:
    """Yield the objects of the collection at *path*, decoded as *kind*.

    Raises:
        Fault: it cannot be listed.
    """
    token = ""
    while True:
        body = kube.list(path, field_selector=field_selector, limit=_PAGE_SIZE, continue_token=token)
        page = msgspec.json.decode(body, type=_Page)
        yield from (msgspec.json.decode(item, type=kind) for item in page.items)
        token = page.metadata.next
        if not token:
            return
