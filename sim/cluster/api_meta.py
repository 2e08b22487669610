"""The rules for `metadata`: names, labels, who may change what."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from shared.errors import Conflict, Invalid
from sim.cluster.api_kinds import Object, Resource

_LABEL_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABELS_AS_NAMES: Final = {"namespaces", "services"}

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_GENERATED_BASE: Final = 63 - _SUFFIX_LENGTH
_ANNOTATIONS_BYTES: Final = 256 * 1024
_SUBDOMAIN_LENGTH: Final = 253

_OPTIONAL: Final = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
_STANDARD_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_SERVER_OWNED: Final = ("managedFields", "selfLink", "resourceVersion")


def instant(when: datetime) -> str:
    """Answer *when* as the API server writes it: RFC 3339, whole seconds, Z."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def uid(seed: int, counter: int) -> str:
    """Answer the *counter*-th UID of a world, shaped as a version 4 UUID."""
    digits = sha256(f"uid/{seed}/{counter}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def generated_name(base: str, seed: int, counter: int) -> str:
    """Answer *base* with the *counter*-th suffix of a world; a long base is cut, so that the name fits a label."""
    digest = sha256(f"name/{seed}/{counter}".encode()).digest()
    suffix = "".join(_SUFFIX_ALPHABET[byte % len(_SUFFIX_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
    return base[:_GENERATED_BASE] + suffix


def invalid(resource: Resource, name: str, field: str, reason: str) -> Invalid:
    """Word a refusal as the API server does, for raising."""
    return Invalid(f'{resource.qualified_kind} "{name}" is invalid: {field}: {reason}', "Invalid")


def check_name(resource: Resource, name: str) -> None:
    """Refuse what RFC 1123 does not allow as a name of *resource*.

    Raises:
        Invalid: it does not.
    """
    if resource.plural in _LABELS_AS_NAMES and not resource.group:
        fits = bool(_LABEL_NAME.fullmatch(name))
    else:
        fits = len(name) <= _SUBDOMAIN_LENGTH and bool(_SUBDOMAIN.fullmatch(name))
    if not fits:
        raise invalid(resource, name, "metadata.name", f'Invalid value: "{name}": not a lowercase RFC 1123 name')


@lru_cache(maxsize=4096)
def is_qualified_name(key: str) -> bool:
    """Answer whether *key* is a label key: an optional DNS prefix and a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return bool(_QUALIFIED.fullmatch(name))


@lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Answer whether *value* is empty or at most 63 characters of the label alphabet."""
    return bool(_LABEL_VALUE.fullmatch(value))


def check_metadata(resource: Resource, metadata: Mapping[str, Any]) -> None:
    """Refuse malformed labels, annotations, finalizers and owners.

    Raises:
        Invalid: the message names the field and the value.
    """
    name = metadata["name"]
    for key, value in (metadata.get("labels") or {}).items():
        if not is_qualified_name(key) or not isinstance(value, str) or not is_label_value(value):
            raise invalid(resource, name, "metadata.labels", f'Invalid value: "{key}: {value}": not a label')
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        if not is_qualified_name(key.lower()) or not isinstance(value, str):
            raise invalid(resource, name, "metadata.annotations", f'Invalid value: "{key}": not an annotation')
        size += len(key.encode()) + len(value.encode())
    if size > _ANNOTATIONS_BYTES:
        raise invalid(
            resource, name, "metadata.annotations", f"Too long: may not be more than {_ANNOTATIONS_BYTES} bytes"
        )
    for finalizer in metadata.get("finalizers") or []:
        if not _is_finalizer(resource, finalizer):
            raise invalid(resource, name, "metadata.finalizers", f'Invalid value: "{finalizer}": not a qualified name')
    _check_owners(resource, metadata)


def _is_finalizer(resource: Resource, name: str) -> bool:
    """Answer whether *name* is qualified; built-in kinds insist on a domain, but for the standard ones."""
    return is_qualified_name(name) and (bool(resource.schema) or "/" in name or name in _STANDARD_FINALIZERS)


def _check_owners(resource: Resource, metadata: Mapping[str, Any]) -> None:
    owners = metadata.get("ownerReferences") or []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                raise invalid(resource, metadata["name"], f"metadata.ownerReferences.{field}", "Invalid value: empty")
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        raise invalid(
            resource, metadata["name"], "metadata.ownerReferences", "Only one reference can be the controller"
        )


def identified(resource: Resource, obj: Object, namespace: str) -> Object:
    """Answer *obj* with the kind, apiVersion and namespace of its collection filled in.

    Raises:
        Invalid: it carries others.
    """
    for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if obj.get(field, expected) != expected:
            raise Invalid(f"the {field} {obj[field]!r} does not match {expected!r} of the path", "BadRequest")
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if _says(key, value)}
    given = metadata.pop("namespace", "")
    if given and given != namespace:
        raise Invalid(
            f"the namespace {given!r} of the object does not match {namespace!r} of the request", "BadRequest"
        )
    if namespace:
        metadata["namespace"] = namespace
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _says(field: str, value: object) -> bool:
    """Answer whether *field* of the metadata is for the writer to say, and says something."""
    return field not in _SERVER_OWNED and not (field in _OPTIONAL and not value)


def newborn(metadata: Object, *, identity: str, now: datetime, counts_generations: bool) -> Object:
    """Answer the metadata of an object that is created at *now*: what only the server may say is replaced."""
    born = {**metadata, "uid": identity, "creationTimestamp": instant(now)}
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        born.pop(field, None)
    if counts_generations:
        born["generation"] = 1
    return born


def revised(resource: Resource, old: Object, new: Object) -> Object:
    """Answer the metadata *new* as an update of *old* may make it.

    Raises:
        Conflict: the UID is another one.
        Invalid: the name differs, a deletion is forged, or a finalizer is new while the object is being deleted.
    """
    name = old["name"]
    for field in ("name", "namespace"):
        if new.get(field, old.get(field)) != old.get(field):
            raise Invalid(f"the {field} of the object ({new[field]}) does not match the one on the URL", "BadRequest")
    if new.get("uid", old["uid"]) != old["uid"]:
        raise Conflict(
            f'{resource.name} "{name}": the UID in the precondition is {new["uid"]}, the object\'s {old["uid"]}'
        )
    kept = {key: value for key, value in new.items() if _says(key, value)}
    for field in ("name", "namespace", "uid", "creationTimestamp", "generation"):
        kept.pop(field, None)
        if field in old:
            kept[field] = old[field]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in old and (field == "deletionTimestamp" or field not in kept):
            kept[field] = old[field]
        if kept.get(field) != old.get(field):
            reason = "Invalid value: field is immutable; may only be changed via deletion"
            raise invalid(resource, name, f"metadata.{field}", reason)
    added = set(kept.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if "deletionTimestamp" in old and added:
        reason = f"Forbidden: no new finalizers can be added if the object is being deleted: {sorted(added)}"
        raise invalid(resource, name, "metadata.finalizers", reason)
    return kept


def check_patched(resource: Resource, old: Object, new: Object | None) -> None:
    """Refuse a patch that leaves no metadata or another UID; in an update the UID is a precondition, see `revised`.

    Raises:
        Invalid: it does.
    """
    if new is None:
        raise Invalid(f"the name of the object ({old['name']} based on URL) was undeterminable", "BadRequest")
    if new.get("uid", old["uid"]) != old["uid"]:
        raise invalid(resource, old["name"], "metadata.uid", f'Invalid value: "{new["uid"]}": field is immutable')


def content(obj: Object) -> Object:
    """Answer *obj* without what every write changes, for comparing."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}
