"""JSON merge patch (RFC 7386) that shares unchanged parts with the original."""

from collections.abc import Mapping

from shared.crds.validation_rules import Json


def merge_patch(target: Json, patch: Json) -> Json:
    """Return *target* with *patch* applied; neither is changed, and unchanged parts are the same objects.

    An object in *patch* is merged, null removes the member, any other value (also a list) replaces the old value.
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
    """Return *value* without null members of objects; the same object if there are none."""
    if not _has_nulls(value):
        return value
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


def _has_nulls(value: Json) -> bool:
    """Return whether an object in *value* has a null member.

    Most values have none, so this check is the part of `without_nulls` that takes time.
    """
    if isinstance(value, dict):
        for item in value.values():
            if item is None or (isinstance(item, (dict, list)) and _has_nulls(item)):
                return True
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, (dict, list)) and _has_nulls(item):
                return True
    return False
