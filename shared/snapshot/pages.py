"""Pages of a collection, and changes of it: bytes -> model values and problems.

A page is decoded in one go. Only where something on it does not fit is it taken apart, so that the one bad object is
named and left out, and the others are not. An object that changed becomes the very value that a page would have had.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from shared.errors import Unreachable
from shared.model.objects import Condition, Problem
from shared.snapshot import wire_core
from shared.snapshot.core import conditions_from_wire
from shared.snapshot.wire_core import ListMeta

_TOLD: Final = ("EC2NodeClass", "NodePool")
"""Kinds whose status says that they cannot be used."""
_UNQUOTED: Final = re.compile(r"Expected `str`, got `(int|float|bool)`")
"""What YAML makes of a 4, of a 3.0 and of a yes."""
W = TypeVar("W")
M = TypeVar("M")


class Page(msgspec.Struct, Generic[W], frozen=True, kw_only=True, gc=False):
    """A List document."""

    metadata: ListMeta = ListMeta()
    items: tuple[W, ...] = ()


class Change(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What became of the object *name* (``shop/cart``) at *version*: at most one of the two, none if it is gone."""

    name: str
    version: int
    value: M | None = None
    problem: Problem | None = None


class _Named(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    name: str
    namespace: str = ""
    resource_version: int
    """etcd's revision: a decimal number in text."""


class _Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: _Named


class _Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: msgspec.Raw


class Reader(Generic[W, M]):
    """Reads the objects of one kind."""

    def __init__(self, kind: str, wire: type[W], convert: Callable[[W], M]) -> None:
        """Know the kind's name, the shape of its JSON, and how that becomes a value."""
        self.kind = kind
        self._wire = wire
        self._convert = convert
        self._decoder = msgspec.json.Decoder(Page[wire])  # type: ignore[valid-type] # a type made at run time

    def change(self, event: bytes) -> Change[M]:
        """Answer what a WatchEvent says.

        Raises:
            Unreachable: it cannot be said which object it is about.
        """
        try:
            told = msgspec.json.decode(event, type=_Event)
            meta = msgspec.json.decode(told.object, type=_Told, strict=False).metadata
            some = None if told.type == "DELETED" else msgspec.json.decode(told.object)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"a change of {self.kind} cannot be decoded: {error}") from error
        found, problems = self.objects(() if some is None else (some,))
        return Change(
            name=f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name,
            version=meta.resource_version,
            value=found[0] if found else None,
            problem=problems[0] if problems else None,
        )

    def page(self, body: bytes) -> tuple[list[M], list[Problem], ListMeta]:
        """Answer the values of a page, what was left out of it, and where the next page begins.

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
        return found, problems, page.metadata

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

    def _page_by_item(self, body: bytes) -> tuple[list[M], list[Problem], ListMeta]:
        page = without_nulls(msgspec.json.decode(body))
        try:
            shell = msgspec.convert(page, type=Page[Any])
        except msgspec.ValidationError as error:
            raise Unreachable(f"the list of {self.kind} is not a List: {error}") from error
        return *self.objects(shell.items), shell.metadata


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Answer JSON *value* without the members that are null: they say the same as if they were not there."""
    if isinstance(value, dict):
        return {
            key: without_nulls(part) if isinstance(part, (dict, list)) else part
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [without_nulls(part) if isinstance(part, (dict, list)) else part for part in value]
    return value


def nameless(namespace: str = "") -> str:
    """Answer what an object without a name is called, in *namespace* if it says one."""
    return f"without a name in namespace {namespace}" if namespace else "without a name"


def _plain(item: Any) -> object:  # noqa: ANN401 - some wire type
    return msgspec.to_builtins(item)


def _problem(kind: str, item: object, error: ValueError) -> Problem:
    meta = _section(item, "metadata")
    named = bool(_texts(meta, "name"))
    name = "/".join(_texts(meta, "namespace", "name")) if named else nameless(*_texts(meta, "namespace"))
    [uid] = _texts(meta, "uid") or ("",)
    [node] = _texts(_section(item, "spec"), "nodeName") or ("",)
    told = kind in _TOLD
    return Problem(
        kind=kind,
        name=name,
        message=_message(error),
        uid=uid,
        node=node if kind == "Pod" else "",
        generation=_number(meta, "generation") if told else 0,
        conditions=_conditions(item) if told else (),
    )


def _conditions(item: object) -> tuple[Condition, ...]:
    try:
        some = msgspec.convert(_section(item, "status").get("conditions", ()), type=tuple[wire_core.Condition, ...])
        return conditions_from_wire(some)
    except ValueError:
        return ()


def _number(section: Mapping[object, object], key: str) -> int:
    value = section.get(key)
    return value if isinstance(value, int) else 0


def _message(error: ValueError) -> str:
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return text
    what, _, path = text.partition(" - at `$")
    field = path.strip("`").removeprefix(".") or "the object"
    remedy = "put it in quotes" if _UNQUOTED.match(what) else "correct the field"
    return f"{field}: {what[:1].lower()}{what[1:]}; {remedy}"


def _section(item: object, key: str) -> Mapping[object, object]:
    section = item.get(key) if isinstance(item, dict) else None
    return section if isinstance(section, dict) else {}


def _texts(section: Mapping[object, object], *keys: str) -> tuple[str, ...]:
    return tuple(value for value in map(section.get, keys) if isinstance(value, str) and value)
