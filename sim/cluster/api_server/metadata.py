"""Rules for `metadata`: names, labels, and which fields a client may change."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from shared.crds.definitions import Object
from shared.errors import Conflict, Invalid
from sim.cluster.api_server.api_resources import ApiResource

_DNS_LABEL_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN_PATTERN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED_NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE_PATTERN: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_DNS_LABEL_RESOURCES: Final = {"namespaces", "services"}

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_MAX_GENERATED_BASE_LENGTH: Final = 63 - _SUFFIX_LENGTH
_MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
_MAX_SUBDOMAIN_LENGTH: Final = 253

_OMITTED_IF_EMPTY: Final = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
_STANDARD_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_SERVER_OWNED_FIELDS: Final = ("managedFields", "selfLink", "resourceVersion")


def format_time(when: datetime) -> str:
    """Format *when* as the API server does: RFC 3339, whole seconds, Z."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def build_uid(seed: int, counter: int) -> str:
    """Return the *counter*-th UID for *seed*, formatted as a version 4 UUID."""
    digits = sha256(f"uid/{seed}/{counter}".encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def generate_name(base: str, seed: int, counter: int) -> str:
    """Return *base* with the *counter*-th suffix for *seed*; a long base is cut so that the name fits a label."""
    digest = sha256(f"name/{seed}/{counter}".encode()).digest()
    suffix = "".join(_SUFFIX_ALPHABET[byte % len(_SUFFIX_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
    return base[:_MAX_GENERATED_BASE_LENGTH] + suffix


def build_invalid_error(resource: ApiResource, name: str, field: str, reason: str) -> Invalid:
    """Return the exception for a rejected field, with the API server's wording."""
    return Invalid(f'{resource.qualified_kind} "{name}" is invalid: {field}: {reason}', "Invalid")


def check_name(resource: ApiResource, name: str) -> None:
    """Reject a name of *resource* that RFC 1123 does not allow.

    Raises:
        Invalid: the name is not allowed.
    """
    if resource.plural in _DNS_LABEL_RESOURCES and not resource.group:
        is_valid = bool(_DNS_LABEL_PATTERN.fullmatch(name))
    else:
        is_valid = len(name) <= _MAX_SUBDOMAIN_LENGTH and bool(_DNS_SUBDOMAIN_PATTERN.fullmatch(name))
    if not is_valid:
        reason = f'Invalid value: "{name}": not a lowercase RFC 1123 name'
        raise build_invalid_error(resource, name, "metadata.name", reason)


@lru_cache(maxsize=4096)
def is_qualified_name(key: str) -> bool:
    """Return whether *key* is a label key: an optional DNS prefix and a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _MAX_SUBDOMAIN_LENGTH and _DNS_SUBDOMAIN_PATTERN.fullmatch(prefix)):
        return False
    return bool(_QUALIFIED_NAME_PATTERN.fullmatch(name))


@lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Return whether *value* is empty or at most 63 characters of the label alphabet."""
    return bool(_LABEL_VALUE_PATTERN.fullmatch(value))


def check_metadata(resource: ApiResource, metadata: Mapping[str, Any]) -> None:
    """Reject malformed labels, annotations, finalizers and owner references.

    Raises:
        Invalid: the message names the field and the value.
    """
    for field, reason in _find_metadata_problems(resource, metadata):
        raise build_invalid_error(resource, metadata["name"], f"metadata.{field}", reason)


def _find_metadata_problems(resource: ApiResource, metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the malformed fields and the reasons."""
    for key, value in (metadata.get("labels") or {}).items():
        if not is_qualified_name(key) or not isinstance(value, str) or not is_label_value(value):
            yield "labels", f'Invalid value: "{key}: {value}": not a label'
    size = 0
    for key, value in (metadata.get("annotations") or {}).items():
        if not is_qualified_name(key.lower()) or not isinstance(value, str):
            yield "annotations", f'Invalid value: "{key}": not an annotation'
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATIONS_BYTES:
        yield "annotations", f"Too long: may not be more than {_MAX_ANNOTATIONS_BYTES} bytes"
    for finalizer in metadata.get("finalizers") or []:
        if not _is_finalizer(resource, finalizer):
            yield "finalizers", f'Invalid value: "{finalizer}": not a qualified name'
    yield from _find_owner_problems(metadata.get("ownerReferences") or [])


def _find_owner_problems(owners: list[Object]) -> Iterator[tuple[str, str]]:
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield f"ownerReferences.{field}", "Invalid value: empty"
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        yield "ownerReferences", "Only one reference can be the controller"


def _is_finalizer(resource: ApiResource, name: str) -> bool:
    """Return whether *name* is a valid finalizer: a qualified name.

    Built-in kinds also require a domain, except for the standard finalizers.
    """
    return is_qualified_name(name) and (bool(resource.schema) or "/" in name or name in _STANDARD_FINALIZERS)


def with_type_and_namespace(resource: ApiResource, obj: Object, namespace: str) -> Object:
    """Return *obj* with the kind, apiVersion and namespace of its collection.

    Raises:
        Invalid: the object has other values.
    """
    for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if obj.get(field, expected) != expected:
            raise Invalid(f"the {field} {obj[field]!r} does not match {expected!r} of the path", "BadRequest")
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if _is_client_field(key, value)}
    object_namespace = metadata.pop("namespace", "")
    if object_namespace and object_namespace != namespace:
        raise Invalid(
            f"the namespace {object_namespace!r} of the object does not match {namespace!r} of the request",
            "BadRequest",
        )
    if namespace:
        metadata["namespace"] = namespace
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def _is_client_field(field: str, value: object) -> bool:
    """Return whether the client may set *field* of the metadata, and *value* is not empty if it can be omitted."""
    return field not in _SERVER_OWNED_FIELDS and not (field in _OMITTED_IF_EMPTY and not value)


def build_initial_metadata(metadata: Object, *, uid: str, now: datetime, counts_generations: bool) -> Object:
    """Return the metadata of an object that is created at *now*; server-owned fields are replaced."""
    initial_metadata = {**metadata, "uid": uid, "creationTimestamp": format_time(now)}
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        initial_metadata.pop(field, None)
    if counts_generations:
        initial_metadata["generation"] = 1
    return initial_metadata


def build_updated_metadata(resource: ApiResource, old: Object, new: Object) -> Object:
    """Return the metadata of an update from *old* to *new*, with server-owned fields from *old*.

    Raises:
        Conflict: the UID differs.
        Invalid: the name differs, deletion fields are changed, or a finalizer is added during deletion.
    """
    name = old["name"]
    for field in ("name", "namespace"):
        if new.get(field, old.get(field)) != old.get(field):
            raise Invalid(f"the {field} of the object ({new[field]}) does not match the one on the URL", "BadRequest")
    if new.get("uid", old["uid"]) != old["uid"]:
        raise Conflict(
            f'{resource.name} "{name}": the UID in the precondition is {new["uid"]}, the object\'s {old["uid"]}'
        )
    updated = {key: value for key, value in new.items() if _is_client_field(key, value)}
    for field in ("name", "namespace", "uid", "creationTimestamp", "generation"):
        updated.pop(field, None)
        if field in old:
            updated[field] = old[field]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in old and (field == "deletionTimestamp" or field not in updated):
            updated[field] = old[field]
        if updated.get(field) != old.get(field):
            reason = "Invalid value: field is immutable; may only be changed via deletion"
            raise build_invalid_error(resource, name, f"metadata.{field}", reason)
    added_finalizers = set(updated.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if "deletionTimestamp" in old and added_finalizers:
        reason = f"Forbidden: no new finalizers can be added if the object is being deleted: {sorted(added_finalizers)}"
        raise build_invalid_error(resource, name, "metadata.finalizers", reason)
    return updated


def check_patched(resource: ApiResource, old: Object, new: Object | None) -> None:
    """Reject a patch that removes the metadata or changes the UID.

    In an update the UID is a precondition, see `build_updated_metadata`.

    Raises:
        Invalid: the patch does either.
    """
    if new is None:
        raise Invalid(f"the name of the object ({old['name']} based on URL) was undeterminable", "BadRequest")
    if new.get("uid", old["uid"]) != old["uid"]:
        reason = f'Invalid value: "{new["uid"]}": field is immutable'
        raise build_invalid_error(resource, old["name"], "metadata.uid", reason)


def check_update_target(resource: ApiResource, old: Object, new: Object) -> None:
    """Reject an update of another version or another kind of object.

    Raises:
        Conflict: the resourceVersion of *new* differs.
        Invalid: the kind differs.
    """
    target, version = f'{resource.name} "{old["metadata"]["name"]}"', new["metadata"].get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise Conflict(f"{target}: the object has been modified; read it again")
    kind, api_version = new.get("kind", resource.kind), new.get("apiVersion", resource.api_version)
    if (kind, api_version) != (resource.kind, resource.api_version):
        raise Invalid(f"{target}: the kind of an object cannot be changed", "BadRequest")


def without_resource_version(obj: Object) -> Object:
    """Return *obj* without its resourceVersion, which every write changes, for comparisons."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": metadata}
