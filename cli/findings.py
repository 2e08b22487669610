"""What a linter found: each thing with its place and a remedy."""

from typing import Any, Literal, TypeAlias

import msgspec

from cli.conversion.remarks import Path, spelled
from cli.conversion.sources import Written

Level: TypeAlias = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to correct; `error`: the object is refused, or does not do what it says."""

    level: Level
    where: str
    kind: str
    name: str
    field: str
    message: str


def finding(one: Written, level: Level, path: Path, message: str) -> Finding:
    """Answer what is wrong at *path* in *one*."""
    value = one.value
    return Finding(
        level=level,
        where=one.where(path),
        kind=value["kind"],
        name=name_of(value),
        field=spelled(path),
        message=message,
    )


def name_of(value: dict[str, Any]) -> str:
    """Answer what the object *value* is called."""
    meta = value.get("metadata")
    return str((meta.get("name") if isinstance(meta, dict) else None) or "without a name")
