"""JSON and YAML: bytes -> documents, each with the place it came from.

What cannot be read is told with its place and a remedy, and left out; the rest goes on.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cli.files import AS_JSON, JSON, MOST_YAML, InputError, Tell, body_of, files_in

_INK: Final = re.compile(r"\S")
_BYTE: Final = re.compile(r" \(byte (\d+)\)$")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One document, and where it begins: a file, with a line where there are several in it."""

    where: str
    value: Any
    body: msgspec.Raw | None = None
    """The whole of it as JSON, where *value* is but a glance: of pods there are many."""

    @property
    def source(self) -> Any:  # noqa: ANN401 - JSON, or what it decodes to
        """Answer the whole of it."""
        return self.value if self.body is None else self.body

    def says_the_same(self, other: "Document") -> bool:
        """Whether both are equal, letter for letter where they are JSON."""
        if self.body is None or other.body is None:
            return bool(self.value == other.value)
        return bytes(self.body) == bytes(other.body)


class _List(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A List whose items are still bytes: decoded one by one they need a fraction of the time and the memory."""

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


class _Glance(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is looked at of a Pod before its kind's own reader does."""

    api_version: str
    kind: Literal["Pod"]
    metadata: _Meta
    status: _Phase = _Phase()


_GLANCE: Final = msgspec.json.Decoder(_Glance)


def documents_in(sources: Iterable[str], tell: Tell) -> Iterator[Document]:
    """Iterate over the documents in *sources*: files, folders (sorted, not their subfolders), ``-``: standard input.

    What cannot be read is told, and left out.
    """
    for source in sources:
        for name, path in files_in(source, tell):
            try:
                yield from documents_of(name, body_of(name, path), tell)
            except InputError as error:
                tell(str(error))


def documents_of(name: str, body: bytes, tell: Tell) -> Iterator[Document]:
    """Iterate over the documents in *body*, which is JSON or YAML.

    Raises:
        InputError: nothing of it can be read.
    """
    try:
        if body.lstrip()[:1] in JSON and not _is_template(body):
            yield from _json(name, body, tell)
        else:
            yield from _yaml(name, body, tell)
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply: no Kubernetes object is; remove it") from None


def _json(name: str, body: bytes, tell: Tell) -> Iterator[Document]:
    try:
        some = msgspec.json.decode(body, type=_List)
    except msgspec.ValidationError:
        try:
            yield Document(where=name, value=msgspec.json.decode(body))
        except msgspec.DecodeError as error:
            yield from _several(name, body, str(error), tell)
    except msgspec.DecodeError as error:
        yield from _several(name, body, str(error), tell)
    else:
        for item in some.items:
            yield _glanced(name, item) or Document(where=name, value=_lent(msgspec.json.decode(item), _about(some)))


def _glanced(name: str, item: msgspec.Raw) -> Document | None:
    try:
        glance = _GLANCE.decode(item)
    except msgspec.ValidationError:
        return None
    return Document(where=name, value=msgspec.to_builtins(glance), body=item)


def _about(some: _List) -> dict[str, str]:
    """Answer what the items of a PodList do not say themselves."""
    kind = some.kind.removesuffix("List")
    return {"apiVersion": some.api_version, "kind": kind} if kind else {}


def _lent(item: Any, about: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
    return {**about, **item} if isinstance(item, dict) else item


def _several(name: str, body: bytes, why: str, tell: Tell) -> Iterator[Document]:
    """Read JSON documents one after the other, as several commands print them; those before an error count."""
    decoder, text, at, line = json.JSONDecoder(), body.decode(), 0, 1
    while (match := _INK.search(text, at)) is not None:
        line += text.count("\n", at, match.start())
        at = match.start()
        try:
            document, end = decoder.raw_decode(text, at)
        except ValueError as error:
            if Path(name).suffix in (".yaml", ".yml") and not at:
                yield from _yaml(name, body, tell)
            else:
                tell(_not_json(name, text, error, why))
            return
        yield Document(where=f"{name}:{line}", value=document)
        line += text.count("\n", at, end)
        at = end


def _not_json(name: str, text: str, error: ValueError, why: str) -> str:
    if "truncated" in why or getattr(error, "pos", 0) >= len(text.rstrip()):
        return f"{name}: not JSON: it ends in the middle of an object: fetch it again, it was cut off"
    line = getattr(error, "lineno", 1)
    what = _BYTE.sub("", why).removeprefix("JSON is malformed: ")
    if "trailing characters" in what:
        what = str(getattr(error, "msg", what))
    return f"{name}:{line}: not JSON: {what}: correct the line, or fetch it again"


def _yaml(name: str, body: bytes, tell: Tell) -> Iterator[Document]:
    if len(body) > MOST_YAML:
        raise InputError(f"{name}: {len(body) / 1024**2:,.0f} MB of YAML would take many minutes: {AS_JSON}")
    from cli.yaml_documents import read_yaml  # noqa: PLC0415 - who has JSON need not wait for YAML

    for line, value in read_yaml(body.decode(), lambda line, why: tell(f"{name}:{line}: not YAML: {why}")):
        yield Document(where=f"{name}:{line}", value=value)


def _is_template(body: bytes) -> bool:
    return body.lstrip().startswith(b"{{")


def objects_of(documents: Iterable[Document], tell: Tell) -> Iterator[Document]:
    """Iterate over the objects in *documents*: Lists are opened, and lend their items the kind they may lack."""
    for document in documents:
        try:
            yield from _objects(document, tell)
        except RecursionError:
            tell(f"{document.where}: is nested too deeply: no Kubernetes object is; remove it")


def _objects(document: Document, tell: Tell) -> Iterator[Document]:
    value, where = document.value, document.where
    if isinstance(value, Mapping) and isinstance(value.get("items"), list):
        about = _about(_List(api_version=str(value.get("apiVersion")), kind=str(value.get("kind") or ""), items=[]))
        for item in value["items"]:
            yield from _objects(Document(where=where, value=_lent(item, about)), tell)
    elif isinstance(value, Mapping):
        yield document
    elif isinstance(value, list):
        for item in value:
            yield from _objects(Document(where=where, value=item), tell)
    elif value is not None:
        shown = " ".join(str(value).split())[:40]
        tell(
            f"{where}: holds something that is no object: {shown!r}: write apiVersion, kind and metadata, or remove it"
        )
