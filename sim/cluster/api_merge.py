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
    if not _has_nulls(value):
        return value
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


def _has_nulls(value: Json) -> bool:
    """Answer whether an object in *value* has a null member; most have none, so that this is what takes time."""
    if isinstance(value, dict):
        for item in value.values():
            if item is None or (isinstance(item, (dict, list)) and _has_nulls(item)):
                return True
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)) and _has_nulls(item):
                return True
    return False
