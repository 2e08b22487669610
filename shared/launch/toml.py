"""Values -> TOML. Keys are sorted; tables inside lists are written inline."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(document: Mapping[str, Any]) -> str:
    r"""Write *document*.

    >>> toml_text({"b": {"x": [1, True], "a/b": "q\"\n"}, "a": 1.5})
    'a = 1.5\n\n[b]\n"a/b" = "q\\"\\n"\nx = [1, true]\n'
    """
    return "\n".join(_tables((), document))


def _tables(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    plain = {key: value for key, value in sorted(table.items()) if not isinstance(value, Mapping)}
    deeper = {key: value for key, value in sorted(table.items()) if isinstance(value, Mapping)}
    if plain or (path and not deeper):
        head = f"[{'.'.join(map(_key, path))}]\n" if path else ""
        yield head + "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
    for key, value in deeper.items():
        yield from _tables((*path, key), value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _value(value: Any) -> str:  # noqa: ANN401 - whatever TOML knows
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{_key(key)} = {_value(one)}' for key, one in sorted(value.items()))}}}"
        case int() | float():
            return repr(value)
        case _:
            return str(value.isoformat())


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
