"""What an API server would say of an object of ours: the definitions that we ship, their types and their rules."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from cli.conversion.remarks import Path
from shared.errors import Invalid
from sim.cluster.api_definitions import defined_resource, shipped_definitions
from sim.cluster.schema import Schema

Object = dict[str, Any]


@lru_cache(maxsize=1)
def _served() -> dict[tuple[str, str], tuple[Schema, Object]]:
    found: dict[tuple[str, str], tuple[Schema, Object]] = {}
    for definition in shipped_definitions():
        served = defined_resource(definition)
        if served.schema is not None:
            version = next(one for one in definition["spec"]["versions"] if one["name"] == served.version)
            tree = version["schema"]["openAPIV3Schema"]
            found[f"{served.group}/{served.version}", served.kind] = served.schema, tree
    return found


def _schema_of(value: Mapping[str, Any]) -> Schema | None:
    schema, _ = _served().get(_key(value), (None, None))
    return schema


def is_ours(value: Mapping[str, Any]) -> bool:
    """Whether *value* is of a kind that we define."""
    return _schema_of(value) is not None


def complaints(value: Object) -> list[str]:
    """Answer what an API server would refuse of *value*, as ``<field>: <what>``; nothing of other kinds."""
    schema = _schema_of(value)
    if schema is None:
        return []
    try:
        return schema.problems(schema.completed(value), None)
    except Invalid as error:
        return [str(error)]


def unread(value: Object) -> Iterator[tuple[Path, str]]:
    """Iterate over the fields of *value* that the API server would silently drop, with what could be meant."""
    schema = _schema_of(value)
    if schema is not None:
        for path in _missing(value, schema.completed(value), ()):
            close = get_close_matches(str(path[-1]), _fields(_key(value), path[:-1]), n=1)
            yield path, close[0] if close else ""


def _key(value: Mapping[str, Any]) -> tuple[str, str]:
    return str(value.get("apiVersion")), str(value.get("kind"))


def _fields(key: tuple[str, str], path: Path) -> list[str]:
    """Answer the names of the fields that may stand at *path* in an object of the kind."""
    level: Any = _served()[key][1]
    for part in path:
        level = level.get("items", {}) if isinstance(part, int) else level.get("properties", {}).get(part, {})
    return sorted(level.get("properties", {}))


def _missing(old: Any, new: Any, path: Path) -> Iterator[Path]:  # noqa: ANN401 - JSON
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                yield (*path, key)
            else:
                yield from _missing(value, new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _missing(one, other, (*path, place))
