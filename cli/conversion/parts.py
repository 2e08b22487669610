"""A mapping of an old manifest, read key by key: what nobody asked for is refused in the end, not dropped."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.remarks import Path, Remarks

_CURLY: Final = frozenset("\u201c\u201d\u2018\u2019")
_PLACEHOLDER: Final = re.compile(r"\$[{(A-Za-z_]|<[\w .-]+>|\{\{|\{%|%\{|<%")
_TEMPLATE: Final = re.compile(r"\{\{|\{%|%\{|<%")
_TRUTHS: Final = {"true", "True", "TRUE", "false", "False", "FALSE"}
_SAID: Final = dict.fromkeys(("true", "yes", "on", "enabled", "1"), "true") | dict.fromkeys(
    ("false", "no", "off", "disabled", "0"), "false"
)
_DIGITS: Final = 18
"""Of the longest number that any field takes."""
_COUNT: Final = re.compile(r"([0-9][0-9,_]*)(?:\.0+)? *%?")
_GLUED: Final = re.compile(r"([\w./-]+)[:\uff1a] ?(\S+)")


class Part:
    """A mapping, and where it stands."""

    def __init__(self, value: Mapping[str, Any], path: Path, remarks: Remarks) -> None:
        """*value* is read; *path* is where it stands in its object."""
        self._value, self._asked = value, set[str]()
        self.path, self.remarks = path, remarks

    def at(self, *keys: str | int) -> Path:
        """Answer where *keys* below this stand."""
        return (*self.path, *keys)

    def keys(self) -> list[str]:
        """Answer all keys, as they are written."""
        return [str(key) for key in self._value]

    def holds(self, key: str) -> bool:
        """Whether *key* is there, and not null; unlike `has` it does not count as read by that."""
        return self._value.get(key) is not None

    def has(self, key: str) -> bool:
        """Whether *key* is there, and not null."""
        return self.raw(key) is not None

    def raw(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """Answer what stands under *key*, as it is; None if it is not there."""
        self._asked.add(key)
        return self._value.get(key)

    def text(self, key: str) -> str:
        """Answer a text, "" if there is none; a number or a truth value is quoted, which is told."""
        return self._quoted(self.raw(key), self.at(key))

    def number(self, key: str) -> int | None:
        """Answer a whole number, None if there is none."""
        value = self.raw(key)
        if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _DIGITS:
            self.remarks.changed(self.at(key), f"{value!r} was quoted and is a number")
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.remarks.refuse(self.at(key), f"is {value!r}: {remedy(value, _whole_number(value))}")
        return None

    def flag(self, key: str) -> bool | None:
        """Answer true or false, None if neither is there."""
        value = self.raw(key)
        if value in ("true", "false"):
            self.remarks.changed(self.at(key), f"{value!r} was quoted and is a truth value")
            return bool(value == "true")
        if value is None or isinstance(value, bool):
            return value
        meant = _SAID.get(str(value).strip().lower(), "true or false")
        self.remarks.refuse(self.at(key), f"is {value!r}: {remedy(value, f'write {meant}')}")
        return None

    def part(self, key: str, field: str = "") -> "Part | None":
        """Answer the mapping under *key*, None if there is none; a lone value there is hardly but its *field*."""
        value = self.raw(key)
        if isinstance(value, Mapping):
            return Part(value, self.at(key), self.remarks)
        if value is not None:
            glued = _GLUED.fullmatch(value) if isinstance(value, str) else None
            how = "fields under it, each with `name: value`"
            if glued is not None:
                how = f"`{glued[1]}: {glued[2]}`, with a space"
            elif field and isinstance(value, str | bool | int):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                how = f"{key}: {{{field}: {_SAID.get(text, text) if field == 'enabled' else text}}}"
            self.remarks.refuse(self.at(key), f"is {shown(value)}: {remedy(value, f'write {how}')}")
        return None

    def parts(self, key: str, meant: Callable[[str], str] = lambda _: "") -> list["Part"]:
        """Answer the mappings in the list under *key*; *meant* says what to write for a text, or ""."""
        found: list[Part] = []
        for place, value in enumerate(self._list(key)):
            if isinstance(value, Mapping):
                found.append(Part(value, self.at(key, place), self.remarks))
            else:
                how = (isinstance(value, str) and meant(value)) or "write fields, each with `name: value`"
                self.remarks.refuse(self.at(key, place), f"is {shown(value)}: {how}")
        return found

    def texts(self, key: str) -> list[str]:
        """Answer the texts in the list under *key*; others are quoted, which is told."""
        return [self._quoted(value, self.at(key, place)) for place, value in enumerate(self._list(key))]

    def table(self, key: str) -> dict[str, str]:
        """Answer the texts under *key* by name; others are quoted, which is told."""
        inner = self.part(key)
        return {} if inner is None else {name: inner.text(name) for name in inner.keys()}  # noqa: SIM118 - no mapping

    def end(self, fields: Iterable[str] = (), homes: Mapping[str, str] | None = None) -> None:
        """Refuse what nobody asked for; *fields* are others that could be meant, *homes* say where some belong."""
        known = sorted(self._asked | set(fields))
        for key in self.keys():
            if key not in self._asked:
                close = get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]}? Correct or remove it" if close else "correct or remove it"
                hint = (homes or {}).get(key, hint)
                self.remarks.refuse(self.at(key), f"is no field that was ever read here, so it did nothing: {hint}")

    def _list(self, key: str) -> list[Any]:
        value = self.raw(key)
        if value is None or isinstance(value, list):
            return value or []
        how = "a list: each item on its own line behind `- `"
        if isinstance(value, str | int):
            how = f"a list: {key}: [{', '.join(_items(value))}]"
        elif isinstance(value, Mapping) and not {"key", "tags", "id", "deviceName", "nodes"}.isdisjoint(value):
            how = f"a list: `- ` before `{next(iter(value))}`, and the fields below it two spaces further in"
        self.remarks.refuse(self.at(key), f"is {shown(value)}: {remedy(value, f'write {how}')}")
        return []

    def _quoted(self, value: Any, path: Path) -> str:  # noqa: ANN401 - JSON
        if value is None:
            return ""
        if isinstance(value, bool | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if (written := self.remarks.plain.get(path, "true")) not in _TRUTHS:
                text = written
            self.remarks.changed(path, f'{text} has to be a text, so it is quoted: "{text}"')
            return text
        if isinstance(value, str):
            if value[:1] in _CURLY or value[-1:] in _CURLY:
                self.remarks.refuse(path, f"is {value}, within quotes that a word processor made: write plain ones")
            return value
        is_hole = isinstance(value, Mapping) and value and not any(value.values())
        how = "what it stands for, in quotes" if is_hole else "a text"
        self.remarks.refuse(path, f"is {shown(value)}: write {how}")
        return ""


def remedy(value: object, else_: str) -> str:
    """Answer *else_*, unless *value* stands for something that has to be filled in first."""
    if isinstance(value, str) and _TEMPLATE.search(value):
        return "this is a template: render it first, with `helm template` for example; write what it stands for"
    if isinstance(value, str) and _PLACEHOLDER.search(value):
        return "fill it in first, with `envsubst` for example; write what it stands for"
    return else_


def _whole_number(value: object) -> str:
    found = _COUNT.fullmatch(str(value).strip())
    return "write a whole number" if found is None else f"write {re.sub('[,_]', '', found[1])}"


def _items(value: str | int) -> list[str]:
    return [f'"{part}"' for part in re.split(r"[\s,]+", str(value).strip(" ,[]")) if part]


def shown(value: object) -> str:
    """Answer *value* as it is told: what it is, if it is not short."""
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else repr(value)
