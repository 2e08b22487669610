"""What to write where an API server refuses a value: its own words say what is wrong, and not what to do."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from cli.conversion.parts import remedy

_SUPPORTED: Final = re.compile(r"supported values: \[(.*)\]")
_DURATION: Final = re.compile(r"([0-9]+) *([a-zA-Z]*)")
_UNITS: Final = {"": (1, "s"), "d": (24, "h"), "w": (168, "h")} | dict.fromkeys(("day", "days"), (24, "h"))
_UNITS_SHORT: Final = {"sec": (1, "s"), "seconds": (1, "s"), "min": (1, "m"), "minutes": (1, "m"), "hours": (1, "h")}
_DURATIONS: Final = ("expireAfter", "consolidateAfter", "terminationGracePeriod", "duration")
_BY_FIELD: Final = {
    "nodes": "write a share, as 10%, or a number of nodes in quotes",
    "schedule": 'write five fields, as "0 9 * * mon-fri", or @daily',
    "volumeSize": "write an amount, as 100Gi",
    "group": "write karpenter.k8s.aws",
    "weight": "write 1 to 100: higher comes first, it is no percentage",
    "alias": "write a family and a version, as al2023@latest",
    "minValues": "write 1 to 50",
}
_PLACED: Final = (
    (re.compile(r"\.limits\.|Reserved\.|\.requests\."), "write an amount, as 1000 or 400Gi"),
    (re.compile(r"\.labels\."), "write up to 63 letters, digits, '-', '_' and '.'"),
    (re.compile(r"subnetSelectorTerms.*\.id$"), "write one like subnet-0123456789abcdef0"),
    (re.compile(r"securityGroupSelectorTerms.*\.id$"), "write one like sg-0123456789abcdef0"),
    (re.compile(r"amiSelectorTerms.*\.id$"), "write one like ami-0123456789abcdef0"),
)


def hours(text: str) -> str:
    """Answer how *text*, which is no duration, is written as one; "" if nobody knows.

    >>> hours("30d"), hours("30"), hours("5 min"), hours("soon")
    ('720h', '30s', '5m', '')
    """
    if text.lower() == "never":
        return "Never"
    found = _DURATION.fullmatch(text.strip())
    unit = None if found is None else (_UNITS | _UNITS_SHORT).get(found[2].lower())
    return "" if found is None or unit is None else f"{int(found[1]) * unit[0]}{unit[1]}"


def several(text: str) -> str:
    """Answer *text*, in which there are several values, as a list.

    >>> several("a, b c"), several("(a)")
    ('["a", "b", "c"]', '["a"]')
    """
    some = ", ".join(f'"{part}"' for part in _parts(text))
    return f"[{some}]"


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,;\"']+", text.strip("()[] ")) if part]


def remedy_for(field: str, why: str, value: object) -> str:
    """Answer what to write in *field*, which has *value*, of which a server says *why*."""
    name = field.rpartition(".")[2].partition("[")[0]
    if "Required value" in why:
        return "write it"
    if "must be of type" in why:
        return _of_type(name, why, value)
    if (supported := _SUPPORTED.search(why)) is not None:
        return _among([one.strip("' ") for one in supported[1].split(",")], str(value))
    if name in _DURATIONS:
        return remedy(value, f"write {hours(str(value)) or '720h, 30s or Never'}")
    placed = next((how for pattern, how in _PLACED if pattern.search(field)), "correct it")
    return remedy(value, placed if placed != "correct it" else _BY_FIELD.get(name, placed))


def _of_type(name: str, why: str, value: object) -> str:
    if "type string" in why:
        return f"write {hours(str(value))}" if name in _DURATIONS and isinstance(value, int) else _quoted(value)
    if "type array" in why:
        own = (
            f"{name}: {several(str(value))}"
            if isinstance(value, str | int)
            else "each item on its own line behind `- `"
        )
        return remedy(value, f"write a list: {own}")
    if "type integer" in why:
        is_number = isinstance(value, str) and value.isdecimal()
        return f"write {value}, without quotes" if is_number else remedy(value, "write a whole number")
    if "type boolean" in why:
        return "write true or false, without quotes"
    return "write fields, each with `name: value`, and a space behind the colon"


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return f'write it in quotes: "{str(value).lower()}"'
    if isinstance(value, int | float):
        return f'write it in quotes: "{value}"'
    return "write one text" if isinstance(value, list | Mapping) else "write a text, in quotes if it is empty"


def _among(some: list[str], value: str) -> str:
    lower = {one.lower(): one for one in some}
    close = get_close_matches(value.lower(), lower, n=1)
    return f"did you mean {lower[close[0]]}?" if close else f"write one of {', '.join(some)}"


def whole(keys: Sequence[str], value: Callable[[str], object]) -> str:
    """Answer a whole requirement for one that only has a label, of *keys*, with its *value*."""
    if "name" in keys:
        return "write key in place of name"
    if len(keys) != 1:
        return "name a label of nodes"
    return f"write {{key: {keys[0]}, operator: In, values: {several(str(value(keys[0])))}}}"


def value_at(value: Any, path: tuple[str | int, ...]) -> object:  # noqa: ANN401 - JSON
    """Answer what stands at *path* in *value*; None if nothing does."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
