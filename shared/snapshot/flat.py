"""Documents one by one, out of whatever Lists they came in, each with the object it is about and its JSON unread.

JSON stays bytes until its kind is known: an item of a List is a view into the List's own bytes, and nothing is copied.
What Python objects say (YAML) is written as JSON first, so that there is one way to read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from shared.model.objects import Problem

Source: TypeAlias = Mapping[str, Any] | bytes | msgspec.Raw
"""One document: JSON, or what JSON would decode to."""
_NAMESPACED: Final = frozenset(
    (
        "CapacityBuffer",
        "DaemonSet",
        "Deployment",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "Service",
        "StatefulSet",
    )
)
_SHOWN: Final = 40


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One object's JSON, and which object it is: *api* as ``apps/v1``; what is not said in text is ""."""

    api: str
    kind: str
    namespace: str
    name: str
    body: msgspec.Raw

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Answer what no other object has."""
        return self.api, self.kind, self.namespace, self.name


class _Meta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str | None = ""
    namespace: str | None = ""


class _Shell(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    api: str | None = msgspec.field(name="apiVersion", default="")
    kind: str | None = ""
    metadata: _Meta | None = None
    items: tuple[msgspec.Raw, ...] | None = None


_SHELL: Final = msgspec.json.Decoder(_Shell)
_NOTHING: Final = _Shell()


def documents_in(sources: Iterable[Source], problems: list[Problem]) -> Iterator[Document]:
    """Iterate over the objects in *sources*, Lists resolved, in order; what is no object joins *problems*.

    An object of a namespaced kind that names no namespace is in ``default``.
    """
    for source in sources:
        try:
            raw = _json(source)
        except (ValueError, RecursionError) as error:
            problems.append(unreadable(f"cannot be written as JSON: {error}"))
        else:
            yield from _flat(raw, _NOTHING, problems)


def unreadable(message: str, kind: str = "Document", name: str = "") -> Problem:
    """Answer what to say of a document that is not what it should be."""
    what = f"{message}; write an object with kind and metadata in JSON"
    return Problem(kind=kind, name=name or "without a name", message=what)


def _flat(raw: msgspec.Raw, around: _Shell, problems: list[Problem]) -> Iterator[Document]:
    try:
        shell = _shell(raw)
    except ValueError as error:
        problems.append(unreadable(str(error)))
        return
    if shell.items is not None:
        for item in shell.items:
            yield from _flat(item, shell, problems)
        return
    api, kind = shell.api or "", shell.kind or ""
    if not kind and around.kind:  # items of a PodList have no kind of their own
        api, kind = around.api or "", around.kind.removesuffix("List")
    meta = shell.metadata or _Meta()
    namespace = meta.namespace or ("default" if kind in _NAMESPACED and shell.metadata is not None else "")
    yield Document(api=api, kind=kind, namespace=namespace, name=meta.name or "", body=raw)


def _shell(raw: msgspec.Raw) -> _Shell:
    """Read what a document is about, or what can be made of it where that is not written as it should be.

    Raises:
        ValueError: it is no object, or no JSON.
    """
    try:
        return _SHELL.decode(raw)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(raw)
    if not isinstance(plain, dict):
        raise ValueError(f"is no object: {str(plain)[:_SHOWN]!r}")  # noqa: TRY004 - the document's fault, not a caller's
    items, meta = plain.get("items"), plain.get("metadata")
    return _Shell(
        api=_text(plain, "apiVersion"),
        kind=_text(plain, "kind"),
        metadata=_Meta(name=_text(meta, "name"), namespace=_text(meta, "namespace"))
        if isinstance(meta, dict)
        else None,
        items=tuple(map(_json, items)) if isinstance(items, list) else None,
    )


def _text(section: Mapping[str, object], key: str) -> str:
    value = section.get(key)
    return value if isinstance(value, str) else ""


def _json(source: object) -> msgspec.Raw:
    """Write *source* as JSON, unless it is.

    Raises:
        ValueError: it goes round in circles.
    """
    if isinstance(source, msgspec.Raw):
        return source
    if isinstance(source, bytes):
        return msgspec.Raw(source)
    try:
        return msgspec.Raw(msgspec.json.encode(source))
    except TypeError:  # YAML has keys that are no text, and JSON has not
        return msgspec.Raw(json.dumps(source, default=str, skipkeys=True).encode())
