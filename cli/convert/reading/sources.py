"""Parsing of files into objects with the line of each field, and the original text of unchanged objects."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec

from cli.convert.reading.remarks import FieldPath
from cli.inputs.documents import parse_documents
from cli.inputs.files import JSON_PREFIXES, ErrorReporter, list_files, read_utf8
from cli.inputs.yaml_mistakes import FOREIGN_TEXT_HINTS
from cli.terminal.errors import InputError

ValueType = TypeVar("ValueType", int, str)
MAX_LINE_INDEXED_BYTES: Final = 1 << 20
"""JSON up to this size is parsed twice, to get the lines."""
_HEADER_EXAMPLE: Final = "`apiVersion: karpenter.sh/v1` and `kind: NodePool`"
_LINE_NUMBER_PATTERN: Final = re.compile(r"\d+[.:|)]?[ \t|]+\w")
_BUILD_FIX: Final = "build what it describes first, with `kubectl kustomize` for example"
_RENDER_FIX: Final = "render it first, with `helm template` for example"


_OTHER_FILE_TYPES: Final = {
    frozenset({"version"}): f"this describes a chart: {_RENDER_FIX}",
    frozenset({"resources", "patches", "patchesStrategicMerge", "bases", "components"}): (
        f"this is a kustomization: {_BUILD_FIX}"
    ),
    frozenset({"settings", "serviceAccount", "controller"}): f"these are values of a chart: {_RENDER_FIX}",
}
"""Types of files without objects, by a key that they contain."""


class SourceObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object of a manifest."""

    value: Any
    file: str
    text: str = ""
    """Its text in a YAML file, including comments; empty if it is from JSON or from a List."""
    lines: Mapping[FieldPath, int] = {}
    """Lines on which its fields begin, counted from 1."""
    literals: Mapping[FieldPath, str] = {}
    """The spelling of its numbers and booleans."""

    def get_location(self, path: FieldPath) -> str:
        """Return file and line of the field at *path*, or of its nearest existing ancestor."""
        line = self.get_line(path)
        return f"{self.file}:{line}" if line else self.file

    def get_line(self, path: FieldPath) -> int:
        """Return the line of the field at *path*; 0 if lines are unknown."""
        return next(
            (self.lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in self.lines), 0
        )


def read_objects(sources: Iterable[str], tell: ErrorReporter) -> Iterator[SourceObject]:
    """Yield the objects in *sources* (files, folders, ``-``); report and skip what cannot be read."""
    for source in sources:
        for name, path in list_files(source, tell):
            try:
                body = read_utf8(name, path)
            except InputError as error:
                tell(str(error))
                continue
            for document in _read_documents(name, body, tell):
                yield from _split_into_objects(document, tell)


def _read_documents(name: str, body: bytes, tell: ErrorReporter) -> Iterator[SourceObject]:
    if body.lstrip()[:1] in JSON_PREFIXES:
        try:
            yield from _parse_json_with_lines(name, body) or _parse_json(name, body, tell)
        except RecursionError:
            tell(f"{name}:1: is nested too deeply for a Kubernetes object: remove it")
        return
    from cli.inputs.yaml_reader import read_marked_documents  # noqa: PLC0415 - who has JSON need not wait for YAML

    for document in read_marked_documents(
        body.decode(), lambda line, reason: tell(f"{name}:{line}: not YAML: {reason}")
    ):
        yield SourceObject(
            value=document.value, file=name, text=document.text, lines=document.lines, literals=document.plain
        )


def _parse_json(name: str, body: bytes, tell: ErrorReporter) -> Iterator[SourceObject]:
    try:
        for document in parse_documents(name, body, tell):
            value = document.value if document.body is None else msgspec.json.decode(document.body)
            yield SourceObject(value=value, file=document.location)
    except InputError as error:
        tell(str(error))


def _parse_json_with_lines(name: str, body: bytes) -> list[SourceObject]:
    """Return the document in *body* with its lines, parsed as YAML; empty if it is long or not the only one."""
    if len(body) > MAX_LINE_INDEXED_BYTES:
        return []
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return []
    from cli.inputs.yaml_reader import read_marked_documents  # noqa: PLC0415 - as above

    documents = list(read_marked_documents(body.decode(), lambda *_: None))
    return [
        SourceObject(value=value, file=name, lines=document.lines) for document in documents if documents == [document]
    ]


def _split_into_objects(document: SourceObject, tell: ErrorReporter) -> Iterator[SourceObject]:
    value = document.value
    if isinstance(value, dict) and isinstance(value.get("items"), list) and str(value.get("kind")).endswith("List"):
        for index, item in enumerate(value["items"]):
            lines, literals = (
                _select_below(("items", index), document.lines),
                _select_below(("items", index), document.literals),
            )
            yield from _split_into_objects(
                SourceObject(value=_add_list_type(value, item), file=document.file, lines=lines, literals=literals),
                tell,
            )
    elif isinstance(value, dict) and isinstance(value.get("kind"), str) and value.get("apiVersion"):
        yield document
    elif isinstance(value, list) and any(isinstance(item, dict) and "kind" in item for item in value):
        for index, item in enumerate(value):
            lines, literals = _select_below((index,), document.lines), _select_below((index,), document.literals)
            yield from _split_into_objects(
                SourceObject(value=item, file=document.file, lines=lines, literals=literals), tell
            )
    elif value is not None:
        tell(f"{document.get_location(())}: is not a Kubernetes object: {_suggest_meaning(value, document.text)}")


def _add_list_type(list_object: Mapping[str, Any], item: Any) -> Any:  # noqa: ANN401 - JSON
    """Return *item* with apiVersion and kind of its list; items of a PodList have none."""
    kind = str(list_object["kind"]).removesuffix("List")
    return (
        {"apiVersion": list_object.get("apiVersion"), "kind": kind} | item if kind and isinstance(item, dict) else item
    )


def _select_below(prefix: FieldPath, value_by_path: Mapping[FieldPath, ValueType]) -> dict[FieldPath, ValueType]:
    return {path[len(prefix) :]: value for path, value in value_by_path.items() if path[: len(prefix)] == prefix}


def _suggest_meaning(value: object, text: str) -> str:
    """Return what *value*, which is no Kubernetes object, could be, and what to do."""
    if isinstance(value, Mapping):
        return _describe_incomplete_object(value)
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and {"op", "path"} <= value[0].keys():
        return f"this is a patch: {_BUILD_FIX}"
    alien = next((alien_reason for pattern, alien_reason in FOREIGN_TEXT_HINTS if pattern.search(text)), "")
    return alien or "write apiVersion, kind and metadata, or remove it"


def _describe_incomplete_object(value: Mapping[Any, Any]) -> str:
    """Return what a mapping without apiVersion or kind could be."""
    keys = [str(key) for key in value]
    if any(_LINE_NUMBER_PATTERN.match(key) for key in keys):
        return "it contains line numbers: remove them"
    other_keys = {key.lower(): key for key in keys if key not in ("apiVersion", "kind")}
    for field in ("apiVersion", "kind"):
        suggestions = get_close_matches(field.lower(), other_keys, n=1, cutoff=0.8)
        if field not in value and suggestions:
            return f"{other_keys[suggestions[0]]}: did you mean {field}?"
        if field not in value and "metadata" in value:
            return f"{field} is missing: write it, as in {_HEADER_EXAMPLE}"
    for file_keys, description in _OTHER_FILE_TYPES.items():
        if not file_keys.isdisjoint(value):
            return description
    return f"write apiVersion, kind and metadata, or remove it; if these are values of a chart, {_RENDER_FIX}"
