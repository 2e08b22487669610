"""Reader for a mapping of an old manifest, key by key; unread keys are refused in the end, not dropped."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.convert.reading.remarks import FieldPath, RemarkCollector

_CURLY_QUOTES: Final = frozenset("\u201c\u201d\u2018\u2019")
_PLACEHOLDER_PATTERN: Final = re.compile(r"\$[{(A-Za-z_]|<[\w .-]+>|\{\{|\{%|%\{|<%")
_TEMPLATE_PATTERN: Final = re.compile(r"\{\{|\{%|%\{|<%")
_BOOLEAN_LITERALS: Final = {"true", "True", "TRUE", "false", "False", "FALSE"}
_BOOLEAN_BY_WORD: Final = dict.fromkeys(("true", "yes", "on", "enabled", "1"), "true") | dict.fromkeys(
    ("false", "no", "off", "disabled", "0"), "false"
)
_MAX_DIGITS: Final = 18
"""Of the longest number that any field accepts."""
_NUMBER_PATTERN: Final = re.compile(r"([0-9][0-9,_]*)(?:\.0+)? *%?")
_MISSING_SPACE_PATTERN: Final = re.compile(r"([\w./-]+)[:\uff1a] ?(\S+)")


class MappingReader:
    """Reads a mapping and records which keys were read."""

    def __init__(self, value: Mapping[str, Any], path: FieldPath, remarks: RemarkCollector) -> None:
        """Read *value*; *path* is its place in the object."""
        self._value, self._read_keys = value, set[str]()
        self.path, self.remarks = path, remarks

    def get_path(self, *keys: str | int) -> FieldPath:
        """Return the path of *keys* below this mapping."""
        return (*self.path, *keys)

    def list_keys(self) -> list[str]:
        """Return all keys, as written."""
        return [str(key) for key in self._value]

    def is_set(self, key: str) -> bool:
        """Return whether *key* is present and not null; unlike `has`, without marking it as read."""
        return self._value.get(key) is not None

    def has(self, key: str) -> bool:
        """Return whether *key* is present and not null; mark it as read."""
        return self.read_raw(key) is not None

    def read_raw(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the value of *key* unchanged; None if it is absent."""
        self._read_keys.add(key)
        return self._value.get(key)

    def read_text(self, key: str) -> str:
        """Return a text, or "" if it is absent; quote a number or a boolean and add a remark."""
        return self._convert_to_text(self.read_raw(key), self.get_path(key))

    def read_integer(self, key: str) -> int | None:
        """Return an integer, or None if it is absent."""
        value = self.read_raw(key)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _MAX_DIGITS:
            self.remarks.add_change(self.get_path(key), f"{value!r} was quoted and is now a number")
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.remarks.add_refusal(self.get_path(key), f"is {value!r}: {choose_fix(value, _suggest_integer(value))}")
        return None

    def read_boolean(self, key: str) -> bool | None:
        """Return a boolean, or None if it is absent."""
        value = self.read_raw(key)
        if value in ("true", "false"):
            self.remarks.add_change(self.get_path(key), f"{value!r} was quoted and is now a boolean")
            return bool(value == "true")
        if value is None or isinstance(value, bool):
            return value
        expected_text = _BOOLEAN_BY_WORD.get(str(value).strip().lower(), "true or false")
        self.remarks.add_refusal(self.get_path(key), f"is {value!r}: {choose_fix(value, f'write {expected_text}')}")
        return None

    def read_mapping(self, key: str, field: str = "") -> "MappingReader | None":
        """Return a reader for the mapping in *key*; None if it is absent.

        A scalar value was probably meant for *field*.
        """
        value = self.read_raw(key)
        if isinstance(value, Mapping):
            return MappingReader(value, self.get_path(key), self.remarks)
        if value is not None:
            match = _MISSING_SPACE_PATTERN.fullmatch(value) if isinstance(value, str) else None
            expected_form = "fields under it, each with `name: value`"
            if match is not None:
                expected_form = f"`{match[1]}: {match[2]}`, with a space"
            elif field and isinstance(value, str | bool | int):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                expected_form = (
                    f"{key}: {{{field}: {_BOOLEAN_BY_WORD.get(text, text) if field == 'enabled' else text}}}"
                )
            self.remarks.add_refusal(
                self.get_path(key), f"is {format_value(value)}: {choose_fix(value, f'write {expected_form}')}"
            )
        return None

    def read_mappings(self, key: str, suggest_mapping: Callable[[str], str] = lambda _: "") -> list["MappingReader"]:
        """Return readers for the mappings in the list in *key*.

        *suggest_mapping* returns what to write instead of a text item, or "".
        """
        readers: list[MappingReader] = []
        for index, value in enumerate(self._read_list(key)):
            if isinstance(value, Mapping):
                readers.append(MappingReader(value, self.get_path(key, index), self.remarks))
            else:
                fix = (isinstance(value, str) and suggest_mapping(value)) or "write fields as `name: value`"
                self.remarks.add_refusal(self.get_path(key, index), f"is {format_value(value)}: {fix}")
        return readers

    def read_texts(self, key: str) -> list[str]:
        """Return the texts in the list in *key*; quote other scalars and add a remark."""
        return [
            self._convert_to_text(value, self.get_path(key, place)) for place, value in enumerate(self._read_list(key))
        ]

    def read_text_map(self, key: str) -> dict[str, str]:
        """Return the texts in *key* by name; quote other scalars and add a remark."""
        inner = self.read_mapping(key)
        return {} if inner is None else {name: inner.read_text(name) for name in inner.list_keys()}

    def refuse_unread_keys(self, fields: Iterable[str] = (), fixes: Mapping[str, str] | None = None) -> None:
        """Refuse the keys that were not read.

        *fields* are further keys for suggestions; *fixes* has the fix for keys that belong elsewhere.
        """
        known_keys = sorted(self._read_keys | set(fields))
        for key in self.list_keys():
            if key not in self._read_keys:
                suggestions = get_close_matches(key, known_keys, n=1)
                hint = f"did you mean {suggestions[0]}? Correct or remove it" if suggestions else "correct or remove it"
                hint = (fixes or {}).get(key, hint)
                self.remarks.add_refusal(self.get_path(key), f"unknown field without effect: {hint}")

    def _read_list(self, key: str) -> list[Any]:
        value = self.read_raw(key)
        if value is None or isinstance(value, list):
            return value or []
        expected_form = "a list: one item per line after `- `"
        if isinstance(value, str | int):
            expected_form = f"a list: {key}: [{', '.join(_list_quoted_items(value))}]"
        elif isinstance(value, Mapping) and not {"key", "tags", "id", "deviceName", "nodes"}.isdisjoint(value):
            expected_form = f"a list: `- ` before `{next(iter(value))}`, and the fields below it two spaces further in"
        self.remarks.add_refusal(
            self.get_path(key), f"is {format_value(value)}: {choose_fix(value, f'write {expected_form}')}"
        )
        return []

    def _convert_to_text(self, value: Any, path: FieldPath) -> str:  # noqa: ANN401 - JSON
        if value is None:
            return ""
        if isinstance(value, bool | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if (literal := self.remarks.literals.get(path, "true")) not in _BOOLEAN_LITERALS:
                text = literal
            self.remarks.add_change(path, f'{text} must be a string, so it is quoted: "{text}"')
            return text
        if isinstance(value, str):
            if value[:1] in _CURLY_QUOTES or value[-1:] in _CURLY_QUOTES:
                self.remarks.add_refusal(path, f"is {value}, in typographic quotes: write plain quotes")
            return value
        is_placeholder = isinstance(value, Mapping) and value and not any(value.values())
        expected_form = "its value, in quotes" if is_placeholder else "a text"
        self.remarks.add_refusal(path, f"is {format_value(value)}: write {expected_form}")
        return ""


def choose_fix(value: object, default_fix: str) -> str:
    """Return *default_fix*, unless *value* contains a placeholder or template that has to be filled in first."""
    if isinstance(value, str) and _TEMPLATE_PATTERN.search(value):
        return "this is a template: render it first, with `helm template` for example; write its value"
    if isinstance(value, str) and _PLACEHOLDER_PATTERN.search(value):
        return "fill it in first, with `envsubst` for example; write its value"
    return default_fix


def _suggest_integer(value: object) -> str:
    match = _NUMBER_PATTERN.fullmatch(str(value).strip())
    return "write a whole number" if match is None else f"write {re.sub('[,_]', '', match[1])}"


def _list_quoted_items(value: str | int) -> list[str]:
    return [f'"{part}"' for part in re.split(r"[\s,]+", str(value).strip(" ,[]")) if part]


def format_value(value: object) -> str:
    """Return *value* for a message: its type if it is a mapping or list."""
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else repr(value)
