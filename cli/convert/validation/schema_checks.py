"""API server validation of Joiner's kinds: the schemas and rules of the shipped CRDs."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from cli.convert.reading.remarks import FieldPath
from shared.crds.custom_resource import build_custom_resource
from shared.crds.definitions import load_shipped_crds
from shared.crds.schema import Schema
from shared.errors import Invalid

JsonObject = dict[str, Any]
_QUANTITY_PATTERN_TEXT: Final = re.compile(r"should match \^\S*KMGTPE\S*\$")
"""How a CRD states that a field is a quantity."""


@lru_cache(maxsize=1)
def _load_schemas() -> dict[tuple[str, str], tuple[Schema, Mapping[str, Any]]]:
    schemas_by_kind: dict[tuple[str, str], tuple[Schema, Mapping[str, Any]]] = {}
    for resource in map(build_custom_resource, load_shipped_crds()):
        schemas_by_kind[f"{resource.group}/{resource.version}", resource.kind] = resource.schema, resource.json_schema
    return schemas_by_kind


def _find_schema(value: Mapping[str, Any]) -> Schema | None:
    schema, _ = _load_schemas().get(_get_kind_key(value), (None, None))
    return schema


def has_schema(value: Mapping[str, Any]) -> bool:
    """Return whether *value* is of a kind that a shipped CRD defines."""
    return _find_schema(value) is not None


def list_schema_problems(value: JsonObject) -> list[str]:
    """Return what an API server would reject in *value*, as ``<field>: <problem>``; empty for other kinds."""
    schema = _find_schema(value)
    if schema is None:
        return []
    try:
        problems = schema.validate(schema.prune_and_default(value), None)
    except Invalid as error:
        problems = [str(error)]
    return [_QUANTITY_PATTERN_TEXT.sub("is not a Kubernetes quantity", problem) for problem in problems]


def find_unknown_fields(value: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    """Yield the path of each field of *value* that the API server would silently drop, and the closest known field."""
    schema = _find_schema(value)
    if schema is not None:
        for path in _find_dropped_paths(value, schema.prune_and_default(value), ()):
            close = get_close_matches(str(path[-1]), _list_field_names(_get_kind_key(value), path[:-1]), n=1)
            yield path, close[0] if close else ""


def _get_kind_key(value: Mapping[str, Any]) -> tuple[str, str]:
    return str(value.get("apiVersion")), str(value.get("kind"))


def _list_field_names(key: tuple[str, str], path: FieldPath) -> list[str]:
    """Return the names of the fields that the schema of the kind *key* has at *path*."""
    schema_node: Any = _load_schemas()[key][1]
    for part in path:
        schema_node = (
            schema_node.get("items", {}) if isinstance(part, int) else schema_node.get("properties", {}).get(part, {})
        )
    return sorted(schema_node.get("properties", {}))


def _find_dropped_paths(old: Any, new: Any, path: FieldPath) -> Iterator[FieldPath]:  # noqa: ANN401 - JSON
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key not in new:
                yield (*path, key)
            else:
                yield from _find_dropped_paths(value, new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index, (old_item, new_item) in enumerate(zip(old, new, strict=False)):
            yield from _find_dropped_paths(old_item, new_item, (*path, index))
