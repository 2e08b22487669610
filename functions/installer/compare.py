"""How a manifest and what is live differ: what has to be patched, and what somebody else's definition lacks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from functions.installer.manifests import Manifest, name_of

FREE: Final = "x-kubernetes-preserve-unknown-fields"
Json = Any
"""Whatever a document may hold."""


def is_within(wanted: Json, live: Json) -> bool:
    """Whether *live* says all that is *wanted*; what the server adds to it does not matter, lists are as long.

    >>> is_within({"a": [{"b": 1}]}, {"a": [{"b": 1, "default": 2}], "c": 3}), is_within({"a": [1]}, {"a": [1, 2]})
    (True, False)
    """
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(key in live and is_within(wanted[key], live[key]) for key in wanted)
    if isinstance(wanted, list):
        pairs = zip(wanted, live, strict=False) if isinstance(live, list) else ()
        return isinstance(live, list) and len(live) == len(wanted) and all(is_within(*pair) for pair in pairs)
    return bool(wanted == live)


def merge_patch(live: Manifest, wanted: Manifest) -> dict[str, Json]:
    """Answer the merge patch (RFC 7386) that makes *live* say what is *wanted*, and no more than that in its content.

    Of the metadata only what is wanted is touched: labels of others stay.
    """
    content = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    changed = {key: _difference(live.get(key), value) for key, value in content.items()}
    return {**changed, "metadata": {key: wanted["metadata"][key] for key in ("labels", "annotations")}}


def _difference(live: Json, wanted: Json) -> Json:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    gone: dict[str, Json] = {key: None for key in live if key not in wanted}
    return gone | {key: _difference(live.get(key), value) for key, value in wanted.items()}


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


def described(wanted: Manifest, live: Manifest) -> str:
    """Say of somebody else's definition *live* that it is used as it is, and what it lacks."""
    missing = lacking(wanted, live)
    said = f"{name_of(wanted)} is somebody else's and left alone"
    return f"{said}; it does not know {', '.join(missing)}" if missing else said
