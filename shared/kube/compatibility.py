"""Somebody else's CustomResourceDefinition in place of ours: whether it can be used, and what it does not know."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

FREE: Final = "x-kubernetes-preserve-unknown-fields"
Manifest = Mapping[str, Any]
Json = Any
"""Whatever a document may hold."""


def unusable(wanted: Manifest, live: Manifest) -> tuple[str, ...]:
    """Answer why Joiner cannot work with somebody else's definition *live* in place of the one that is *wanted*."""
    return tuple(_unusable(wanted["spec"], live["spec"]))


def _unusable(wanted: Json, live: Json) -> Iterator[str]:
    for key in ("scope", "group"):
        if live.get(key) != wanted[key]:
            yield f"its {key} is {live.get(key)}: want {wanted[key]}"
    for key in ("kind", "plural"):
        if live["names"].get(key) != wanted["names"][key]:
            yield f"its {key} is {live['names'].get(key)}: want {wanted['names'][key]}"
    for version in wanted["versions"]:
        theirs = _version(live, version["name"])
        if theirs is None:
            yield f"it does not serve {version['name']}: upgrade it"
        elif "status" in version.get("subresources", {}) and "status" not in (theirs.get("subresources") or {}):
            yield f"its {version['name']} has no status of its own: upgrade it"


def lacking(wanted: Manifest, live: Manifest) -> tuple[str, ...]:
    """Answer the fields that the definition *live* does not know: what is written there is lost. Sorted."""
    found: set[str] = set()
    for version in wanted["spec"]["versions"]:
        theirs = _version(live["spec"], version["name"])
        if theirs is not None:
            found.update(_lacking(_schema_of(version), _schema_of(theirs), ""))
    return tuple(sorted(found))


def _version(spec: Json, name: str) -> Json:
    return next((one for one in spec["versions"] if one["name"] == name and one.get("served")), None)


def _schema_of(version: Json) -> Json:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _lacking(wanted: Json, live: Json, path: str) -> Iterator[str]:
    if live.get(FREE) or not isinstance(wanted, Mapping):
        return
    if isinstance(wanted.get("items"), Mapping):
        yield from _lacking(wanted["items"], live.get("items") or {}, f"{path}[]")
    if isinstance(live.get("additionalProperties"), Mapping):
        return
    theirs = live.get("properties") or {}
    for key, schema in (wanted.get("properties") or {}).items():
        inner = f"{path}.{key}".lstrip(".")
        if key not in theirs:
            yield inner
        else:
            yield from _lacking(schema, theirs[key], inner)
