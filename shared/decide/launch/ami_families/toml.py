"""TOML serialization. Keys are sorted; tables inside lists are written inline."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def format_toml(document: Mapping[str, Any]) -> str:
    r"""Format *document* as TOML.

    >>> format_toml({"b": {"x": [1, True], "a/b": "q\"\n"}, "a": 1.5})
    'a = 1.5\n\n[b]\n"a/b" = "q\\"\\n"\nx = [1, true]\n'
    """
    return "\n".join(_format_tables((), document))


def _format_tables(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    scalars = {key: value for key, value in sorted(table.items()) if not isinstance(value, Mapping)}
    subtables = {key: value for key, value in sorted(table.items()) if isinstance(value, Mapping)}
    if scalars or (path and not subtables):
        head = f"[{'.'.join(map(_format_key, path))}]\n" if path else ""
        yield head + "".join(f"{_format_key(key)} = {_format_value(value)}\n" for key, value in scalars.items())
    for key, value in subtables.items():
        yield from _format_tables((*path, key), value)


def _format_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _format_string(key)


def _format_value(value: Any) -> str:  # noqa: ANN401 - any value of TOML
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _format_string(value)
        case list() | tuple():
            return f"[{', '.join(map(_format_value, value))}]"
        case dict():
            return (
                f"{{{', '.join(f'{_format_key(key)} = {_format_value(item)}' for key, item in sorted(value.items()))}}}"
            )
        case int() | float():
            return repr(value)
        case _:
            return str(value.isoformat())


def _format_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
