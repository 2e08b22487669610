"""JSON merge patch (RFC 7386) that shares what it does not change."""

from collections.abc import Mapping
from typing import Any

Json = Any
"""A value as JSON has it."""


def merge_patch(target: Json, patch: Json) -> Json:
    """Answer *target* with *patch* applied; neither is changed, and parts that stay are the same objects.

    An object in *patch* merges, null removes, anything else (lists too) replaces.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def without_nulls(value: Json) -> Json:
    """Answer *value* without the members of objects that are null; the same object if there are none."""
    if isinstance(value, dict):
        nested = {key: item for key, item in value.items() if item is None or isinstance(item, (dict, list))}
        if not nested:
            return value
        kept = {key: without_nulls(item) for key, item in nested.items() if item is not None}
        if len(kept) == len(nested) and all(kept[key] is item for key, item in nested.items()):
            return value
        return {key: kept.get(key, item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        items = [without_nulls(item) if isinstance(item, (dict, list)) else item for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
