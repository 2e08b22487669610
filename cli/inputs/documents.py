"""JSON and YAML: bytes -> documents, each with its location.

Input that cannot be parsed is reported with its location and a fix, and left out; the rest is processed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cli.inputs.files import JSON_HINT, JSON_PREFIXES, MAX_YAML_BYTES, ErrorReporter, list_files, read_utf8
from cli.terminal.errors import InputError

_NON_SPACE: Final = re.compile(r"\S")
_BYTE_OFFSET: Final = re.compile(r" \(byte (\d+)\)$")


class InputDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document and where it begins: a file, with a line if the file contains several documents."""

    location: str
    value: Any
    body: msgspec.Raw | None = None
    """The complete document as JSON if *value* has only a part of it: there can be many pods."""

    @property
    def source(self) -> Any:  # noqa: ANN401 - JSON, or what it decodes to
        """The complete document."""
        return self.value if self.body is None else self.body

    def is_same_as(self, other_document: "InputDocument") -> bool:
        """Return whether both are equal; JSON is compared byte by byte."""
        if self.body is None or other_document.body is None:
            return bool(self.value == other_document.value)
        return bytes(self.body) == bytes(other_document.body)


class _ObjectList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A List whose items are undecoded: decoding them one by one takes a fraction of the time and memory."""

    api_version: str
    kind: str
    items: list[msgspec.Raw]


class _Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class _Phase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    phase: str = ""


class _PodPreview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a Pod that are read before the full conversion."""

    api_version: str
    kind: Literal["Pod"]
    metadata: _Meta
    status: _Phase = _Phase()


_POD_PREVIEW_DECODER: Final = msgspec.json.Decoder(_PodPreview)


def read_documents(sources: Iterable[str], report_error: ErrorReporter) -> Iterator[InputDocument]:
    """Yield the documents in *sources*: files, folders (sorted, without subfolders), or ``-`` for standard input.

    Errors are passed to *report_error*, and the input is left out.
    """
    for source in sources:
        for name, path in list_files(source, report_error):
            try:
                yield from parse_documents(name, read_utf8(name, path), report_error)
            except InputError as error:
                report_error(str(error))


def parse_documents(name: str, body: bytes, report_error: ErrorReporter) -> Iterator[InputDocument]:
    """Yield the documents in *body*, which is JSON or YAML.

    Raises:
        InputError: nothing in it can be parsed.
    """
    try:
        if body.lstrip()[:1] in JSON_PREFIXES and not _is_template(body):
            yield from _parse_json(name, body, report_error)
        else:
            yield from _parse_yaml(name, body, report_error)
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply: no Kubernetes object is; remove it") from None


def _parse_json(name: str, body: bytes, report_error: ErrorReporter) -> Iterator[InputDocument]:
    try:
        object_list = msgspec.json.decode(body, type=_ObjectList)
    except msgspec.ValidationError:
        try:
            yield InputDocument(location=name, value=msgspec.json.decode(body))
        except msgspec.DecodeError as error:
            yield from _parse_json_stream(name, body, str(error), report_error)
    except msgspec.DecodeError as error:
        yield from _parse_json_stream(name, body, str(error), report_error)
    else:
        for item in object_list.items:
            yield _preview_pod(name, item) or InputDocument(
                location=name, value=_add_defaults(msgspec.json.decode(item), _build_item_defaults(object_list))
            )


def _preview_pod(name: str, item: msgspec.Raw) -> InputDocument | None:
    try:
        preview = _POD_PREVIEW_DECODER.decode(item)
    except msgspec.ValidationError:
        return None
    return InputDocument(location=name, value=msgspec.to_builtins(preview), body=item)


def _build_item_defaults(object_list: _ObjectList) -> dict[str, str]:
    """Return the fields that the items of a PodList lack: apiVersion and kind."""
    kind = object_list.kind.removesuffix("List")
    return {"apiVersion": object_list.api_version, "kind": kind} if kind else {}


def _add_defaults(item: Any, defaults: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return {**defaults, **item} if isinstance(item, dict) else item


def _parse_json_stream(name: str, body: bytes, reason: str, report_error: ErrorReporter) -> Iterator[InputDocument]:
    """Yield JSON documents that follow each other, as several commands print them; those before an error are kept."""
    decoder, text, position, line = json.JSONDecoder(), body.decode(), 0, 1
    while (match := _NON_SPACE.search(text, position)) is not None:
        line += text.count("\n", position, match.start())
        position = match.start()
        try:
            document, end = decoder.raw_decode(text, position)
        except ValueError as error:
            if Path(name).suffix in (".yaml", ".yml") and not position:
                yield from _parse_yaml(name, body, report_error)
            else:
                report_error(_describe_json_error(name, text, error, reason))
            return
        yield InputDocument(location=f"{name}:{line}", value=document)
        line += text.count("\n", position, end)
        position = end


def _describe_json_error(name: str, text: str, error: ValueError, reason: str) -> str:
    if "truncated" in reason or getattr(error, "pos", 0) >= len(text.rstrip()):
        return f"{name}: not JSON: it ends in the middle of an object: fetch it again, it was cut off"
    line = getattr(error, "lineno", 1)
    description = _BYTE_OFFSET.sub("", reason).removeprefix("JSON is malformed: ")
    if "trailing characters" in description:
        description = str(getattr(error, "msg", description))
    return f"{name}:{line}: not JSON: {description}: correct the line, or fetch it again"


def _parse_yaml(name: str, body: bytes, report_error: ErrorReporter) -> Iterator[InputDocument]:
    if len(body) > MAX_YAML_BYTES:
        raise InputError(f"{name}: {len(body) / 1024**2:,.0f} MB of YAML would take many minutes: {JSON_HINT}")
    from cli.inputs.yaml_reader import read_yaml  # noqa: PLC0415 - who has JSON need not wait for YAML

    for line, value in read_yaml(
        body.decode(), lambda line, reason: report_error(f"{name}:{line}: not YAML: {reason}")
    ):
        yield InputDocument(location=f"{name}:{line}", value=value)


def _is_template(body: bytes) -> bool:
    return body.lstrip().startswith(b"{{")


def iterate_objects(documents: Iterable[InputDocument], report_error: ErrorReporter) -> Iterator[InputDocument]:
    """Yield the objects in *documents*: Lists are expanded, and their items get a missing apiVersion and kind."""
    for document in documents:
        try:
            yield from _iterate_objects(document, report_error)
        except RecursionError:
            report_error(f"{document.location}: is nested too deeply: no Kubernetes object is; remove it")


def _iterate_objects(document: InputDocument, report_error: ErrorReporter) -> Iterator[InputDocument]:
    value, location = document.value, document.location
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        defaults = _build_item_defaults(
            _ObjectList(api_version=str(value.get("apiVersion")), kind=str(value.get("kind") or ""), items=[])
        )
        for item in value["items"]:
            yield from _iterate_objects(
                InputDocument(location=location, value=_add_defaults(item, defaults)), report_error
            )
    elif isinstance(value, Mapping):
        yield document
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_objects(InputDocument(location=location, value=item), report_error)
    elif value is not None:
        excerpt = " ".join(str(value).split())[:40]
        report_error(
            f"{location}: holds something that is not an object: {excerpt!r}: "
            "write apiVersion, kind and metadata, or remove it"
        )
