"""Pages of a collection: bytes -> model values and problems.

A page is decoded in one go. Only where something on it does not fit is it taken apart, so that the one bad object is
named and left out, and the others are not.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from shared.errors import Unreachable
from shared.model.objects import Problem
from shared.snapshot.wire_core import ListMeta

W = TypeVar("W")
M = TypeVar("M")


class Page(msgspec.Struct, Generic[W], frozen=True, kw_only=True, gc=False):
    """A List document."""

    metadata: ListMeta = ListMeta()
    items: tuple[W, ...] = ()


class Reader(Generic[W, M]):
    """Reads the objects of one kind."""

    def __init__(self, kind: str, wire: type[W], convert: Callable[[W], M]) -> None:
        """Know the kind's name, the shape of its JSON, and how that becomes a value."""
        self.kind = kind
        self._wire = wire
        self._convert = convert
        self._decoder = msgspec.json.Decoder(Page[wire])  # type: ignore[valid-type] # a type made at run time

    def page(self, body: bytes) -> tuple[list[M], list[Problem], str]:
        """Answer the values of a page, what was left out of it, and where the next page begins ("": there is none).

        Raises:
            Unreachable: *body* is not a List document.
        """
        try:
            page = self._decoder.decode(body)
        except msgspec.ValidationError:
            return self._page_by_item(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"the list of {self.kind} cannot be decoded: {error}") from error
        found: list[M] = []
        problems: list[Problem] = []
        for item in page.items:
            try:
                found.append(self._convert(item))
            except ValueError as error:
                problems.append(_problem(self.kind, _plain(item), error))
        return found, problems, page.metadata.continue_token

    def objects(self, objects: Iterable[object]) -> tuple[list[M], list[Problem]]:
        """Answer the values of plain JSON objects, and what was left out."""
        found: list[M] = []
        problems: list[Problem] = []
        for item in objects:
            some = without_nulls(item)
            try:
                found.append(self._convert(msgspec.convert(some, type=self._wire)))
            except ValueError as error:
                problems.append(_problem(self.kind, some, error))
        return found, problems

    def _page_by_item(self, body: bytes) -> tuple[list[M], list[Problem], str]:
        page = without_nulls(msgspec.json.decode(body))
        try:
            shell = msgspec.convert(page, type=Page[Any])
        except msgspec.ValidationError as error:
            raise Unreachable(f"the list of {self.kind} is not a List: {error}") from error
        return *self.objects(shell.items), shell.metadata.continue_token


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Answer JSON *value* without the members that are null: they say the same as if they were not there."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def _plain(item: Any) -> object:  # noqa: ANN401 - some wire type
    return msgspec.to_builtins(item)


def _problem(kind: str, item: object, error: ValueError) -> Problem:
    meta = _section(item, "metadata")
    name = "/".join(_texts(meta, "namespace", "name")) or "without a name"
    [uid] = _texts(meta, "uid") or ("",)
    [node] = _texts(_section(item, "spec"), "nodeName") or ("",)
    return Problem(kind=kind, name=name, message=_message(error), uid=uid, node=node if kind == "Pod" else "")


def _message(error: ValueError) -> str:
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return text
    what, _, path = text.partition(" - at `$")
    field = path.strip("`").removeprefix(".") or "the object"
    return f"{field}: {what[:1].lower()}{what[1:]}; correct the field"


def _section(item: object, key: str) -> Mapping[object, object]:
    section = item.get(key) if isinstance(item, dict) else None
    return section if isinstance(section, dict) else {}


def _texts(section: Mapping[object, object], *keys: str) -> tuple[str, ...]:
    return tuple(value for value in map(section.get, keys) if isinstance(value, str) and value)
