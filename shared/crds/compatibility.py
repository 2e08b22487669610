"""Checks whether an installed CRD of another owner is compatible, and which fields it lacks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

PRESERVE_UNKNOWN_FIELDS: Final = "x-kubernetes-preserve-unknown-fields"
Manifest = Mapping[str, Any]
Json = Any
"""Any JSON value of a document."""


def find_incompatibilities(expected: Manifest, live: Manifest) -> tuple[str, ...]:
    """Return the reasons why Joiner cannot work with the installed CRD *live* instead of the *expected* one."""
    return tuple(_find_incompatibilities(expected["spec"], live["spec"]))


def _find_incompatibilities(expected: Json, live: Json) -> Iterator[str]:
    for key in ("scope", "group"):
        if live.get(key) != expected[key]:
            yield f"its {key} is {live.get(key)}: must be {expected[key]}"
    for key in ("kind", "plural"):
        if live["names"].get(key) != expected["names"][key]:
            yield f"its {key} is {live['names'].get(key)}: must be {expected['names'][key]}"
    for version in expected["versions"]:
        live_version = _find_served_version(live, version["name"])
        if live_version is None:
            yield f"it does not serve {version['name']}: upgrade it"
        elif "status" in version.get("subresources", {}) and "status" not in (live_version.get("subresources") or {}):
            yield f"its {version['name']} has no status subresource: upgrade it"


def find_missing_fields(expected: Manifest, live: Manifest) -> tuple[str, ...]:
    """Return the fields that the CRD *live* does not define, sorted; the API server drops values written there."""
    missing_fields: set[str] = set()
    for version in expected["spec"]["versions"]:
        live_version = _find_served_version(live["spec"], version["name"])
        if live_version is not None:
            missing_fields.update(_find_missing_fields(_get_schema(version), _get_schema(live_version), ""))
    return tuple(sorted(missing_fields))


def _find_served_version(spec: Json, name: str) -> Json:
    return next((version for version in spec["versions"] if version["name"] == name and version.get("served")), None)


def _get_schema(version: Json) -> Json:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _find_missing_fields(expected: Json, live: Json, path: str) -> Iterator[str]:
    if live.get(PRESERVE_UNKNOWN_FIELDS) or not isinstance(expected, Mapping):
        return
    if isinstance(expected.get("items"), Mapping):
        yield from _find_missing_fields(expected["items"], live.get("items") or {}, f"{path}[]")
    if isinstance(live.get("additionalProperties"), Mapping):
        return
    live_properties = live.get("properties") or {}
    for key, schema in (expected.get("properties") or {}).items():
        field_path = f"{path}.{key}".lstrip(".")
        if key not in live_properties:
            yield field_path
        else:
            yield from _find_missing_fields(schema, live_properties[key], field_path)
