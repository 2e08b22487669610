"""Structural schemas, as CustomResourceDefinitions carry them: pruning, defaults, validation.

Known differences: `allOf`, `anyOf`, `oneOf` and `not` are not looked at, and of `format` only integers and date-time.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sim.cluster.api_merge import Json
from sim.cluster.api_rules import broken_rules, parse_rules

_ABSENT: Final = object()
_ENVELOPE: Final = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


class Schema:
    """The schema of one kind."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Read an `openAPIV3Schema`."""
        self._root = _Node(definition)

    def completed(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Answer *obj* without unknown fields and with defaults; shares what is already so."""
        envelope = {key: value for key, value in obj.items() if key in _ENVELOPE}
        rest: dict[str, Any] = self._root.completed({key: value for key, value in obj.items() if key not in _ENVELOPE})
        return envelope | rest

    def problems(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
        """Answer what is wrong with *new*, as ``<field>: <what>``; rules are asked only if nothing else is.

        What did not change since *old* is not judged again.
        """
        before: Any = _ABSENT if old is None else old
        return list(self._root.violations("", new, before)) or list(self._root.broken_rules("", new, before))


class _Node:
    """One level of a schema."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.type: str = definition.get("type", "")
        self.nullable = bool(definition.get("nullable"))
        self.int_or_string = bool(definition.get("x-kubernetes-int-or-string"))
        self.open = bool(definition.get("x-kubernetes-preserve-unknown-fields"))
        self.default = definition.get("default", _ABSENT)
        self.properties = {key: _Node(value) for key, value in (definition.get("properties") or {}).items()}
        self.required: list[str] = definition.get("required") or []
        additional = definition.get("additionalProperties")
        self.additional = _Node(additional) if isinstance(additional, Mapping) else None
        self.items = _Node(definition["items"]) if "items" in definition else None
        self.list_type: str = definition.get("x-kubernetes-list-type", "atomic")
        self.list_keys: list[str] = definition.get("x-kubernetes-list-map-keys") or []
        self.limits = _limits(definition)
        self.rules = parse_rules(definition.get("x-kubernetes-validations") or [])
        below = [*self.properties.values(), *filter(None, (self.additional, self.items))]
        self.is_leaf = not below
        self.has_rules: bool = bool(self.rules) or any(node.has_rules for node in below)

    def child(self, key: str) -> "_Node | None":
        return self.properties.get(key, self.additional)

    def completed(self, value: Json) -> Json:
        if isinstance(value, dict):
            return self._completed_object(value)
        if isinstance(value, list) and self.items:
            items = [self.items.completed(item) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        return value

    def _completed_object(self, value: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, item in value.items():
            node = self.child(key)
            if node is None:
                if self.open:
                    kept[key] = item
            elif item is not None or node.nullable:
                kept[key] = node.completed(item)
        for key, node in self.properties.items():
            if node.default is not _ABSENT and key not in kept:
                kept[key] = node.completed(node.default)
        same = len(kept) == len(value) and all(kept.get(key, _ABSENT) is item for key, item in value.items())
        return value if same else kept

    def admits(self, value: Json) -> bool:
        """Answer whether *value* is surely right: a leaf within its limits. The short way for long lists of words."""
        return (
            self.is_leaf
            and isinstance(value, str)
            and self.type == "string"
            and not any(limit(value) for limit, _ in self.limits)
        )

    def violations(self, path: str, value: Json, old: Json) -> Iterator[str]:
        if old is not _ABSENT and value == old:
            return
        if value is None and self.nullable:
            return
        if wrong := self._wrong_type(value):
            yield f"{path or '<root>'}: {wrong}"
            return
        for limit, message in self.limits:
            if limit(value):
                yield f"{path or '<root>'}: Invalid value: {_shown(value)}: {message}"
        if isinstance(value, dict):
            yield from (f"{_join(path, key)}: Required value" for key in self.required if key not in value)
        yield from self._duplicates(path, value)
        for key, node, item, before in self._children(path, value, old):
            if not node.admits(item):
                yield from node.violations(_join(path, key), item, before)

    def broken_rules(self, path: str, value: Json, old: Json) -> Iterator[str]:
        if value is None or (old is not _ABSENT and value == old):
            return
        for message in broken_rules(self.rules, value, () if old is _ABSENT else (old,)):
            yield f"{path or '<root>'}: Invalid value: {message}"
        for key, node, item, before in self._children(path, value, old):
            if node.has_rules:
                yield from node.broken_rules(_join(path, key), item, before)

    def _wrong_type(self, value: Json) -> str:
        if self.int_or_string:
            fits = isinstance(value, int | str) and not isinstance(value, bool)
            return "" if fits else f"Invalid value: {_shown(value)}: must be an integer or a string"
        if not self.type:
            return ""
        fits = isinstance(value, _TYPES[self.type]) and (self.type == "boolean" or not isinstance(value, bool))
        return "" if fits else f"Invalid value: {_shown(value)}: must be of type {self.type}"

    def _duplicates(self, path: str, value: Json) -> Iterator[str]:
        if not isinstance(value, list) or self.list_type == "atomic":
            return
        seen = []
        for index, item in enumerate(value):
            identity = [item.get(key) for key in self.list_keys] if self.list_type == "map" else item
            if identity in seen:
                yield f"{path}[{index}]: Duplicate value: {_shown(identity)}"
            seen.append(identity)

    def _children(self, path: str, value: Json, old: Json) -> Iterator[tuple[str | int, "_Node", Json, Json]]:
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for key, item in value.items():
                if path or key not in _ENVELOPE:
                    node = self.child(key)
                    if node:
                        yield key, node, item, before.get(key, _ABSENT)
        elif isinstance(value, list) and self.items:
            for index, item in enumerate(value):
                yield index, self.items, item, self._counterpart(item, old)

    def _counterpart(self, item: Json, old: Json) -> Json:
        """Answer the item of the *old* list that *item* is a new version of; only map lists have such."""
        if self.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
            return _ABSENT
        identity = [item.get(key) for key in self.list_keys]
        same = (each for each in old if [each.get(key) for key in self.list_keys] == identity)
        return next(same, _ABSENT)


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _shown(value: Json) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - for reading


Limit = tuple[Callable[[Any], bool], str]

_SIZES: Final[tuple[tuple[str, type | tuple[type, ...], Callable[[Any], float]], ...]] = (
    ("minLength", str, len),
    ("maxLength", str, len),
    ("minItems", list, len),
    ("maxItems", list, len),
    ("minProperties", dict, len),
    ("maxProperties", dict, len),
    ("minimum", (int, float), lambda value: value),
    ("maximum", (int, float), lambda value: value),
)


def _limits(definition: Mapping[str, Any]) -> list[Limit]:
    """Answer the simple limits: a predicate that says "beyond", and words for it."""
    limits: list[Limit] = []
    if "enum" in definition:
        allowed = definition["enum"]
        limits.append((lambda value: value not in allowed, f"Unsupported value: supported values: {allowed}"))
    if "pattern" in definition:
        pattern = re.compile(definition["pattern"])
        limits.append(
            (lambda value: isinstance(value, str) and not pattern.search(value), f"should match {pattern.pattern}")
        )
    for field, kind, measure in _SIZES:
        if field in definition:
            limits.append(_size_limit(field, kind, measure, definition[field]))
    if definition.get("format") in _RANGES:
        end = _RANGES[definition["format"]]
        limits.append((lambda value: not -end <= value < end, f"should fit {definition['format']}"))
    if definition.get("format") == "date-time":
        limits.append((lambda value: not _DATE_TIME.fullmatch(value), "should be an RFC 3339 date-time"))
    return limits


def _size_limit(field: str, kind: type | tuple[type, ...], measure: Callable[[Any], float], bound: float) -> Limit:
    def beyond(value: Json) -> bool:
        if not isinstance(value, kind):
            return False
        return measure(value) < bound if field.startswith("min") else measure(value) > bound

    return beyond, f"{field} is {bound}"
