"""A mapping of an old manifest, read key by key: what nobody asked for is refused in the end, not dropped."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.remarks import Path, Remarks

_CURLY: Final = frozenset("\u201c\u201d\u2018\u2019")


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
        if isinstance(value, str) and value.strip().isdecimal():
            self.remarks.changed(self.at(key), f"{value!r} was quoted and is a number")
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        self.remarks.refuse(self.at(key), f"is {value!r}: write a whole number")
        return None

    def flag(self, key: str) -> bool | None:
        """Answer true or false, None if neither is there."""
        value = self.raw(key)
        if value in ("true", "false"):
            self.remarks.changed(self.at(key), f"{value!r} was quoted and is a truth value")
            return bool(value == "true")
        if value is None or isinstance(value, bool):
            return value
        self.remarks.refuse(self.at(key), f"is {value!r}: write true or false")
        return None

    def part(self, key: str) -> "Part | None":
        """Answer the mapping under *key*, None if there is none."""
        value = self.raw(key)
        if isinstance(value, Mapping):
            return Part(value, self.at(key), self.remarks)
        if value is not None:
            self.remarks.refuse(self.at(key), f"is {_shown(value)}: write fields under it, each with `name: value`")
        return None

    def parts(self, key: str) -> list["Part"]:
        """Answer the mappings in the list under *key*."""
        found: list[Part] = []
        for place, value in enumerate(self._list(key)):
            if isinstance(value, Mapping):
                found.append(Part(value, self.at(key, place), self.remarks))
            else:
                self.remarks.refuse(self.at(key, place), f"is {_shown(value)}: write fields, each with `name: value`")
        return found

    def texts(self, key: str) -> list[str]:
        """Answer the texts in the list under *key*; others are quoted, which is told."""
        return [self._quoted(value, self.at(key, place)) for place, value in enumerate(self._list(key))]

    def table(self, key: str) -> dict[str, str]:
        """Answer the texts under *key* by name; others are quoted, which is told."""
        inner = self.part(key)
        return {} if inner is None else {name: inner.text(name) for name in inner.keys()}  # noqa: SIM118 - no mapping

    def end(self, fields: Iterable[str] = ()) -> None:
        """Refuse what nobody asked for; *fields* are others that could be meant."""
        known = sorted(self._asked | set(fields))
        for key in self.keys():
            if key not in self._asked:
                close = get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]}? Correct or remove it" if close else "correct or remove it"
                self.remarks.refuse(self.at(key), f"is no field that was ever read here, so it did nothing: {hint}")

    def _list(self, key: str) -> list[Any]:
        value = self.raw(key)
        if value is None or isinstance(value, list):
            return value or []
        self.remarks.refuse(self.at(key), f"is {_shown(value)}: write a list: each item on its own line behind `- `")
        return []

    def _quoted(self, value: Any, path: Path) -> str:  # noqa: ANN401 - JSON
        if value is None:
            return ""
        if isinstance(value, bool | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            self.remarks.changed(path, f'{text} has to be a text, so it is quoted: "{text}"')
            return text
        if isinstance(value, str):
            if value[:1] in _CURLY or value[-1:] in _CURLY:
                self.remarks.refuse(path, f"is {value}, within quotes that a word processor made: write plain ones")
            return value
        self.remarks.refuse(path, f"is {_shown(value)}: write a text")
        return ""


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else repr(value)
