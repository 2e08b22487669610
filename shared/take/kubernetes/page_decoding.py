"""Decoding of list pages and watch events: bytes -> model values and problems.

A page is decoded in one pass. Only if a part of it does not fit, the items are decoded one by one, so that only the
invalid object is named and left out. A changed object is converted to the same value as on a page.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from shared.errors import Unreachable
from shared.model.core.metadata import Condition, Pairs, Problem, build_pairs
from shared.wire.decode.core import parse_conditions
from shared.wire.schema import core
from shared.wire.schema.core import ListMetaJson

_KINDS_WITH_STATUS: Final = ("EC2NodeClass", "NodePool")
_ANNOTATION_PREFIX: Final = "joiner.dev/"
"""Kinds with a status that reports errors in the object."""
_UNQUOTED_PATTERN: Final = re.compile(r"Expected `str`, got `(int|float|bool)`")
"""The types that YAML gives to 4, 3.0 and yes."""
MAX_SMALL_PAGE_BYTES: Final = 8 * 1024
"""Lists of this size are read again in every run (`informer_cache`)."""
WireT = TypeVar("WireT")
ModelT = TypeVar("ModelT")


class ListPage(msgspec.Struct, Generic[WireT], frozen=True, kw_only=True, gc=False):
    """One page of a List response."""

    metadata: ListMetaJson = ListMetaJson()
    items: tuple[WireT, ...] = ()


_RAW_PAGE_DECODER: Final = msgspec.json.Decoder(ListPage[msgspec.Raw])


class WatchEvent(msgspec.Struct, Generic[ModelT], frozen=True, kw_only=True):
    """The state of the object *name* (like ``shop/cart``) at *version*.

    At most one of *value* and *problem* is set; neither is set if the object was deleted.
    """

    name: str
    version: int
    value: ModelT | None = None
    problem: Problem | None = None


class _EventMetadataJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    name: str
    namespace: str = ""
    resource_version: int
    """The revision in etcd: a decimal number as a string."""


class _EventObjectJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    metadata: _EventMetadataJson


class _WatchEventJson(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: msgspec.Raw


class PageDecoder(Generic[WireT, ModelT]):
    """Decoder for the objects of one kind."""

    def __init__(self, kind: str, wire_type: type[WireT], convert: Callable[[WireT], ModelT]) -> None:
        """Configure the decoder with the name of the kind, its wire type, and the conversion to a model value."""
        self.kind = kind
        self._wire_type = wire_type
        self._convert = convert
        self._last_values: dict[bytes, ModelT] = {}
        """The values of the last small page, by their JSON."""
        self._decoder = msgspec.json.Decoder(ListPage[wire_type])  # type: ignore[valid-type] # a type made at run time

    def decode_event(self, event: bytes) -> WatchEvent[ModelT]:
        """Decode a watch event.

        Raises:
            Unreachable: the event does not identify its object.
        """
        try:
            event_json = msgspec.json.decode(event, type=_WatchEventJson)
            meta = msgspec.json.decode(event_json.object, type=_EventObjectJson, strict=False).metadata
            plain_object = None if event_json.type == "DELETED" else msgspec.json.decode(event_json.object)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"a change of {self.kind} cannot be decoded: {error}") from error
        values, problems = self.convert_objects(() if plain_object is None else (plain_object,))
        return WatchEvent(
            name=f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name,
            version=meta.resource_version,
            value=values[0] if values else None,
            problem=problems[0] if problems else None,
        )

    def decode_page(self, body: bytes) -> tuple[list[ModelT], list[Problem], ListMetaJson]:
        """Decode a page to its values, the problems of objects that were left out, and the list metadata.

        Raises:
            Unreachable: *body* is not a List document.
        """
        if len(body) <= MAX_SMALL_PAGE_BYTES:
            return self._decode_small_page(body)
        return self._decode_large_page(body)

    def _decode_large_page(self, body: bytes) -> tuple[list[ModelT], list[Problem], ListMetaJson]:
        try:
            page = self._decoder.decode(body)
        except msgspec.ValidationError:
            return self._decode_page_by_item(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"the list of {self.kind} cannot be decoded: {error}") from error
        values: list[ModelT] = []
        problems: list[Problem] = []
        for item in page.items:
            try:
                values.append(self._convert(item))
            except ValueError as error:
                problems.append(_build_problem(self.kind, _convert_to_builtins(item), error))
        return values, problems, page.metadata

    def _decode_small_page(self, body: bytes) -> tuple[list[ModelT], list[Problem], ListMetaJson]:
        """Decode a page of a list that is too small to be watched: unchanged objects are those of the last page."""
        try:
            page = _RAW_PAGE_DECODER.decode(body)
            texts = [bytes(item) for item in page.items]
            values = {
                text: self._last_values[text]
                if text in self._last_values
                else self._convert(msgspec.json.decode(text, type=self._wire_type))
                for text in texts
            }
        except (ValueError, UnicodeDecodeError):
            return self._decode_large_page(body)  # reports which object is invalid
        self._last_values = values
        return [values[text] for text in texts], [], page.metadata

    def convert_objects(self, objects: Iterable[object]) -> tuple[list[ModelT], list[Problem]]:
        """Convert plain JSON objects to values, and problems of objects that were left out."""
        values: list[ModelT] = []
        problems: list[Problem] = []
        for item in objects:
            plain_object = without_nulls(item)
            try:
                values.append(self._convert(msgspec.convert(plain_object, type=self._wire_type)))
            except ValueError as error:
                problems.append(_build_problem(self.kind, plain_object, error))
        return values, problems

    def _decode_page_by_item(self, body: bytes) -> tuple[list[ModelT], list[Problem], ListMetaJson]:
        page = without_nulls(msgspec.json.decode(body))
        try:
            shell = msgspec.convert(page, type=ListPage[Any])
        except msgspec.ValidationError as error:
            raise Unreachable(f"the list of {self.kind} is not a List: {error}") from error
        return *self.convert_objects(shell.items), shell.metadata


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON *value* without null members, which mean the same as missing members."""
    if isinstance(value, dict):
        return {
            key: without_nulls(part) if isinstance(part, (dict, list)) else part
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [without_nulls(part) if isinstance(part, (dict, list)) else part for part in value]
    return value


def format_missing_name(namespace: str = "") -> str:
    """Return the text that stands for the name of an object without a name, with *namespace* if it is given."""
    return f"without a name in namespace {namespace}" if namespace else "without a name"


def _convert_to_builtins(item: Any) -> object:  # noqa: ANN401 - some wire type
    return msgspec.to_builtins(item)


def _build_problem(kind: str, item: object, error: ValueError) -> Problem:
    meta = _get_section(item, "metadata")
    has_name = bool(_get_texts(meta, "name"))
    name = (
        "/".join(_get_texts(meta, "namespace", "name"))
        if has_name
        else format_missing_name(*_get_texts(meta, "namespace"))
    )
    [uid] = _get_texts(meta, "uid") or ("",)
    [node] = _get_texts(_get_section(item, "spec"), "nodeName") or ("",)
    has_reported_status = kind in _KINDS_WITH_STATUS
    return Problem(
        kind=kind,
        name=name,
        message=_format_message(error),
        uid=uid,
        node=node if kind == "Pod" else "",
        generation=_get_number(meta, "generation") if has_reported_status else 0,
        conditions=_read_conditions(item) if has_reported_status else (),
        annotations=_read_annotations(meta) if kind == "NodePool" else None,
    )


def _read_annotations(meta: Mapping[object, object]) -> Pairs | None:
    """Return the annotations of Joiner in *meta*; None if they cannot be read."""
    annotations = meta.get("annotations", {})
    if not meta or not isinstance(annotations, dict):
        return None
    read_annotations = {key: value for key, value in annotations.items() if str(key).startswith(_ANNOTATION_PREFIX)}
    if not all(isinstance(value, str) for value in read_annotations.values()):
        return None
    return build_pairs(read_annotations)


def _read_conditions(item: object) -> tuple[Condition, ...]:
    try:
        wire_conditions = msgspec.convert(
            _get_section(item, "status").get("conditions", ()), type=tuple[core.ConditionJson, ...]
        )
        return parse_conditions(wire_conditions)
    except ValueError:
        return ()


def _get_number(section: Mapping[object, object], key: str) -> int:
    value = section.get(key)
    return value if isinstance(value, int) else 0


def _format_message(error: ValueError) -> str:
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return text
    description, _, path = text.partition(" - at `$")
    field = path.strip("`").removeprefix(".") or "the object"
    fix = "put it in quotes" if _UNQUOTED_PATTERN.match(description) else "correct the field"
    return f"{field}: {description[:1].lower()}{description[1:]}; {fix}"


def _get_section(item: object, key: str) -> Mapping[object, object]:
    section = item.get(key) if isinstance(item, dict) else None
    return section if isinstance(section, dict) else {}


def _get_texts(section: Mapping[object, object], *keys: str) -> tuple[str, ...]:
    return tuple(value for value in map(section.get, keys) if isinstance(value, str) and value)
