"""Findings of `joiner lint`, each with its location and a fix."""

from typing import Any, Literal, TypeAlias

import msgspec

from cli.convert.reading.remarks import FieldPath, format_path
from cli.convert.reading.sources import SourceObject

LintLevel: TypeAlias = Literal["error", "warning"]


class LintFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake to correct; `error`: the API server rejects the object, or it does not have the intended effect."""

    level: LintLevel
    location: str
    kind: str
    name: str
    field: str
    message: str


def build_finding(source_object: SourceObject, level: LintLevel, path: FieldPath, message: str) -> LintFinding:
    """Return a finding about *path* in *source_object*."""
    value = source_object.value
    return LintFinding(
        level=level,
        location=source_object.get_location(path),
        kind=value["kind"],
        name=get_object_name(value),
        field=format_path(path),
        message=message,
    )


def get_object_name(value: dict[str, Any]) -> str:
    """Return the name of the object *value*."""
    meta = value.get("metadata")
    return str((meta.get("name") if isinstance(meta, dict) else None) or "without a name")
