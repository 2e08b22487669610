"""Comparison of a manifest with the live object: the patch to apply, and a message about unmanaged definitions."""

from collections.abc import Mapping
from typing import Any

from shared.crds.compatibility import find_missing_fields
from shared.installer.manifests import Manifest, get_manifest_name

Json = Any
"""Any JSON value."""


def is_within(desired: Json, live: Json) -> bool:
    """Return whether *live* contains everything in *desired*.

    Fields that the server added do not matter; lists must have the same length.

    >>> is_within({"a": [{"b": 1}]}, {"a": [{"b": 1, "default": 2}], "c": 3}), is_within({"a": [1]}, {"a": [1, 2]})
    (True, False)
    """
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(key in live and is_within(desired[key], live[key]) for key in desired)
    if isinstance(desired, list):
        pairs = zip(desired, live, strict=False) if isinstance(live, list) else ()
        return isinstance(live, list) and len(live) == len(desired) and all(is_within(*pair) for pair in pairs)
    return bool(desired == live)


def build_merge_patch(live: Manifest, desired: Manifest) -> dict[str, Json]:
    """Return the merge patch (RFC 7386) that makes the content of *live* equal to *desired*.

    In the metadata, only the desired labels and annotations are patched; other labels are kept.
    """
    content = {key: value for key, value in desired.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    content_patch = {key: _build_value_patch(live.get(key), value) for key, value in content.items()}
    return {**content_patch, "metadata": {key: desired["metadata"][key] for key in ("labels", "annotations")}}


def _build_value_patch(live: Json, desired: Json) -> Json:
    if not isinstance(live, Mapping) or not isinstance(desired, Mapping):
        return desired
    removed_keys: dict[str, Json] = {key: None for key in live if key not in desired}
    return removed_keys | {key: _build_value_patch(live.get(key), value) for key, value in desired.items()}


def describe_unmanaged_definition(desired: Manifest, live: Manifest) -> str:
    """Return a message that Joiner does not manage the CRD *live*, with the fields that it lacks."""
    missing = find_missing_fields(desired, live)
    message = f"{get_manifest_name(desired)} was not created by Joiner and was not changed"
    return f"{message}; it lacks the fields {', '.join(missing)}" if missing else message
