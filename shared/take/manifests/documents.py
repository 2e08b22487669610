"""Manifest documents as a flat sequence, with Lists resolved.

Each document has the identity of its object and the undecoded JSON.

JSON stays bytes until its kind is known: an item of a List is a view into the bytes of the List, and nothing is copied.
Python objects (from YAML) are encoded as JSON first, so that there is only one decoder.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from shared.model.core.metadata import Problem

DocumentSource: TypeAlias = Mapping[str, Any] | bytes | msgspec.Raw
"""One document: JSON, or the Python object that the JSON decodes to."""
_NAMESPACED_KINDS: Final = frozenset(
    (
        "CapacityBuffer",
        "DaemonSet",
        "Deployment",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PodTemplate",
        "ProvisioningRequest",
        "ReplicaSet",
        "ReplicationController",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "Service",
        "StatefulSet",
    )
)
_MAX_QUOTED_CHARS: Final = 40


class ManifestDocument(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """JSON and identity of one object; *api_version* is like ``apps/v1``, and a missing text is ""."""

    api_version: str
    kind: str
    namespace: str
    name: str
    body: msgspec.Raw

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key that identifies the object: API version, kind, namespace, name."""
        return self.api_version, self.kind, self.namespace, self.name


class _Meta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str | None = ""
    namespace: str | None = ""


class _DocumentHead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    api_version: str | None = msgspec.field(name="apiVersion", default="")
    kind: str | None = ""
    metadata: _Meta | None = None
    items: tuple[msgspec.Raw, ...] | None = None


_HEAD_DECODER: Final = msgspec.json.Decoder(_DocumentHead)
_EMPTY_HEAD: Final = _DocumentHead()


def iterate_documents(sources: Iterable[DocumentSource], problems: list[Problem]) -> Iterator[ManifestDocument]:
    """Yield the objects in *sources* in order, with Lists resolved; a source that is not an object adds to *problems*.

    An object of a namespaced kind without a namespace is in ``default``.
    """
    for source in sources:
        try:
            raw = _encode_json(source)
        except (ValueError, RecursionError) as error:
            problems.append(build_unreadable_problem(f"cannot be written as JSON: {error}"))
        else:
            yield from _flatten_lists(raw, _EMPTY_HEAD, problems)


def build_unreadable_problem(message: str, kind: str = "Document", name: str = "") -> Problem:
    """Return the Problem of a document that is not a valid object."""
    full_message = f"{message}; write an object with kind and metadata in JSON"
    return Problem(kind=kind, name=name or "without a name", message=full_message)


def _flatten_lists(raw: msgspec.Raw, parent_head: _DocumentHead, problems: list[Problem]) -> Iterator[ManifestDocument]:
    try:
        head = _decode_head(raw)
    except ValueError as error:
        problems.append(build_unreadable_problem(str(error)))
        return
    if head.items is not None:
        for item in head.items:
            yield from _flatten_lists(item, head, problems)
        return
    api_version, kind = head.api_version or "", head.kind or ""
    if not kind and parent_head.kind:  # items of a PodList have no kind of their own
        api_version, kind = parent_head.api_version or "", parent_head.kind.removesuffix("List")
    meta = head.metadata or _Meta()
    namespace = meta.namespace or ("default" if kind in _NAMESPACED_KINDS and head.metadata is not None else "")
    yield ManifestDocument(api_version=api_version, kind=kind, namespace=namespace, name=meta.name or "", body=raw)


def _decode_head(raw: msgspec.Raw) -> _DocumentHead:
    """Decode API version, kind, name and namespace of a document; parts of the wrong type count as missing.

    Raises:
        ValueError: the document is not an object or not JSON.
    """
    try:
        return _HEAD_DECODER.decode(raw)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(raw)
    if not isinstance(plain, dict):
        raise ValueError(f"is not an object: {str(plain)[:_MAX_QUOTED_CHARS]!r}")  # noqa: TRY004 - the document's fault, not a caller's
    items, meta = plain.get("items"), plain.get("metadata")
    return _DocumentHead(
        api_version=_get_text(plain, "apiVersion"),
        kind=_get_text(plain, "kind"),
        metadata=_Meta(name=_get_text(meta, "name"), namespace=_get_text(meta, "namespace"))
        if isinstance(meta, dict)
        else None,
        items=tuple(map(_encode_json, items)) if isinstance(items, list) else None,
    )


def _get_text(section: Mapping[str, object], key: str) -> str:
    value = section.get(key)
    return value if isinstance(value, str) else ""


def _encode_json(source: object) -> msgspec.Raw:
    """Encode *source* as JSON, unless it is JSON already.

    Raises:
        ValueError: *source* contains a reference cycle.
    """
    if isinstance(source, msgspec.Raw):
        return source
    if isinstance(source, bytes):
        return msgspec.Raw(source)
    try:
        return msgspec.Raw(msgspec.json.encode(source))
    except TypeError:  # YAML allows keys that are not strings, JSON does not
        return msgspec.Raw(json.dumps(source, default=str, skipkeys=True).encode())
