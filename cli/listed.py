"""Objects of a live cluster that a command reads for itself, page by page."""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from shared.ports import Kube

T = TypeVar("T")

_PAGE: Final = 500


class _More(msgspec.Struct, frozen=True):
    next: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...] = ()
    metadata: _More = _More()


def listed(kube: Kube, path: str, kind: type[T], field_selector: str = "") -> Iterator[T]:
    """Iterate over what the collection at *path* has, read as *kind*.

    Raises:
        Fault: it is not shown.
    """
    token = ""
    while True:
        body = kube.list(path, field_selector=field_selector, limit=_PAGE, continue_token=token)
        page = msgspec.json.decode(body, type=_Page)
        yield from (msgspec.json.decode(one, type=kind) for one in page.items)
        token = page.metadata.next
        if not token:
            return
