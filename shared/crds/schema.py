"""Structural schemas of custom resources: pruning, defaults and validation."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from shared.crds.validation_rules import Json, compile_rules, find_broken_rules

_ABSENT: Final = object()
_ENVELOPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_PYTHON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_DATE_TIME_PATTERN: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_INTEGER_BOUNDS: Final = {"int32": 2**31, "int64": 2**63}


class Schema:
    """The structural schema of one kind."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Parse an `openAPIV3Schema`."""
        self._root = _SchemaNode(definition)

    def prune_and_default(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Return *obj* without unknown fields and with defaults; unchanged parts are shared."""
        envelope = {key: value for key, value in obj.items() if key in _ENVELOPE_FIELDS}
        content: dict[str, Any] = self._root.prune_and_default(
            {key: value for key, value in obj.items() if key not in _ENVELOPE_FIELDS}
        )
        return envelope | content

    def validate(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
        """Return the problems of *new* as ``<field>: <problem>``; CEL rules run only if there are no other problems.

        Parts that did not change since *old* are not validated again.
        """
        before: Any = _ABSENT if old is None else old
        return list(self._root.find_violations("", new, before)) or list(self._root.evaluate_rules("", new, before))


class _SchemaNode:
    """One level of a schema."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.type: str = definition.get("type", "")
        self.nullable = bool(definition.get("nullable"))
        self.int_or_string = bool(definition.get("x-kubernetes-int-or-string"))
        self.preserves_unknown_fields = bool(definition.get("x-kubernetes-preserve-unknown-fields"))
        self.default = definition.get("default", _ABSENT)
        self.properties = {key: _SchemaNode(value) for key, value in (definition.get("properties") or {}).items()}
        self.required: list[str] = definition.get("required") or []
        additional = definition.get("additionalProperties")
        self.additional = _SchemaNode(additional) if isinstance(additional, Mapping) else None
        self.items = _SchemaNode(definition["items"]) if "items" in definition else None
        self.list_type: str = definition.get("x-kubernetes-list-type", "atomic")
        self.list_keys: list[str] = definition.get("x-kubernetes-list-map-keys") or []
        self.limits = _build_limits(definition)
        self.rules = compile_rules(definition.get("x-kubernetes-validations") or [])
        child_nodes = [*self.properties.values(), *filter(None, (self.additional, self.items))]
        self.is_leaf = not child_nodes
        self.has_rules: bool = bool(self.rules) or any(node.has_rules for node in child_nodes)

    def find_child(self, key: str) -> "_SchemaNode | None":
        return self.properties.get(key, self.additional)

    def prune_and_default(self, value: Json) -> Json:
        if isinstance(value, dict):
            return self._prune_and_default_object(value)
        if isinstance(value, list) and self.items:
            items = [self.items.prune_and_default(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _prune_and_default_object(self, value: dict[str, Any]) -> dict[str, Any]:
        pruned: dict[str, Any] = {}
        for key, item in value.items():
            node = self.find_child(key)
            if node is None:
                if self.preserves_unknown_fields:
                    pruned[key] = item
            elif item is not None or node.nullable:
                pruned[key] = node.prune_and_default(item)
        for key, node in self.properties.items():
            if node.default is not _ABSENT and key not in pruned:
                pruned[key] = node.prune_and_default(node.default)
        is_unchanged = len(pruned) == len(value) and all(
            pruned.get(key, _ABSENT) is item for key, item in value.items()
        )
        return value if is_unchanged else pruned

    def is_valid_string_leaf(self, value: Json) -> bool:
        """Return whether *value* is certainly valid: a string leaf within its limits.

        This is a shortcut for long lists of strings.
        """
        return (
            self.is_leaf
            and isinstance(value, str)
            and self.type == "string"
            and not any(limit(value) for limit, _ in self.limits)
        )

    def find_violations(self, path: str, value: Json, old: Json) -> Iterator[str]:
        if old is not _ABSENT and value == old:
            return
        if value is None and self.nullable:
            return
        if type_error := self._describe_type_error(value):
            yield f"{path or '<root>'}: {type_error}"
            return
        for limit, message in self.limits:
            if limit(value):
                yield f"{path or '<root>'}: Invalid value: {_format_value(value)}: {message}"
        if isinstance(value, dict):
            yield from (f"{_join_path(path, key)}: Required value" for key in self.required if key not in value)
        yield from self._find_duplicates(path, value)
        for key, node, item, before in self._iterate_children(path, value, old):
            if not node.is_valid_string_leaf(item):
                yield from node.find_violations(_join_path(path, key), item, before)

    def evaluate_rules(self, path: str, value: Json, old: Json) -> Iterator[str]:
        if value is None or (old is not _ABSENT and value == old):
            return
        for message in find_broken_rules(self.rules, value, () if old is _ABSENT else (old,)):
            yield f"{path or '<root>'}: Invalid value: {message}"
        for key, node, item, before in self._iterate_children(path, value, old):
            if node.has_rules:
                yield from node.evaluate_rules(_join_path(path, key), item, before)

    def _describe_type_error(self, value: Json) -> str:
        if self.int_or_string:
            is_valid = isinstance(value, int | str) and not isinstance(value, bool)
            return "" if is_valid else f"Invalid value: {_format_value(value)}: must be an integer or a string"
        if not self.type:
            return ""
        is_valid = isinstance(value, _PYTHON_TYPES[self.type]) and (
            self.type == "boolean" or not isinstance(value, bool)
        )
        return "" if is_valid else f"Invalid value: {_format_value(value)}: must be of type {self.type}"

    def _find_duplicates(self, path: str, value: Json) -> Iterator[str]:
        if not isinstance(value, list) or self.list_type == "atomic":
            return
        seen_identities = []
        for index, item in enumerate(value):
            identity = [item.get(key) for key in self.list_keys] if self.list_type == "map" else item
            if identity in seen_identities:
                yield f"{path}[{index}]: Duplicate value: {_format_value(identity)}"
            seen_identities.append(identity)

    def _iterate_children(
        self, path: str, value: Json, old: Json
    ) -> Iterator[tuple[str | int, "_SchemaNode", Json, Json]]:
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, item in value.items():
                if path or key not in _ENVELOPE_FIELDS:
                    node = self.find_child(key)
                    if node:
                        yield key, node, item, before.get(key, _ABSENT)
        elif isinstance(value, list) and self.items:
            for index, item in enumerate(value):
                yield index, self.items, item, self._find_old_item(item, old)

    def _find_old_item(self, item: Json, old: Json) -> Json:
        """Return the item of the list *old* with the same keys as *item*; only for lists of type map."""
        if self.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
            return _ABSENT
        identity = [item.get(key) for key in self.list_keys]
        matching_items = (old_item for old_item in old if [old_item.get(key) for key in self.list_keys] == identity)
        return next(matching_items, _ABSENT)


def _join_path(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _format_value(value: Json) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - for reading


Limit = tuple[Callable[[Any], bool], str]

_SIZE_KEYWORDS: Final[tuple[tuple[str, type | tuple[type, ...], Callable[[Any], float]], ...]] = (
    ("minLength", str, len),
    ("maxLength", str, len),
    ("minItems", list, len),
    ("maxItems", list, len),
    ("minProperties", dict, len),
    ("maxProperties", dict, len),
    ("minimum", (int, float), lambda value: value),
    ("maximum", (int, float), lambda value: value),
)


def _build_limits(definition: Mapping[str, Any]) -> list[Limit]:
    """Return the simple limits: a predicate that is true if a value exceeds the limit, and a message."""
    limits: list[Limit] = []
    if "enum" in definition:
        allowed = definition["enum"]
        limits.append((lambda value: value not in allowed, f"Unsupported value: supported values: {allowed}"))
    if "pattern" in definition:
        pattern = re.compile(definition["pattern"])
        limits.append(
            (lambda value: isinstance(value, str) and not pattern.search(value), f"should match {pattern.pattern}")
        )
    for field, kind, measure in _SIZE_KEYWORDS:
        if field in definition:
            limits.append(_build_size_limit(field, kind, measure, definition[field]))
    if definition.get("format") in _INTEGER_BOUNDS:
        end = _INTEGER_BOUNDS[definition["format"]]
        limits.append((lambda value: not -end <= value < end, f"should fit {definition['format']}"))
    if definition.get("format") == "date-time":
        limits.append((lambda value: not _DATE_TIME_PATTERN.fullmatch(value), "should be an RFC 3339 date-time"))
    return limits


def _build_size_limit(
    field: str, kind: type | tuple[type, ...], measure: Callable[[Any], float], bound: float
) -> Limit:
    def is_exceeded(value: Json) -> bool:
        if not isinstance(value, kind):
            return False
        return measure(value) < bound if field.startswith("min") else measure(value) > bound

    return is_exceeded, f"{field} is {bound}"


@lru_cache(maxsize=64)
def parse_schema(encoded: bytes) -> Schema:
    """Parse the JSON of an OpenAPI schema, and remember the result."""
    return Schema(msgspec.json.decode(encoded))
