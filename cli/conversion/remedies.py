"""What to write where an API server refuses a value: its own words say what is wrong, and not what to do."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from cli.conversion.parts import remedy

_SUPPORTED: Final = re.compile(r"supported values: \[(.*)\]")
_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(?![0-9]) *([a-zA-Z]*) *")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNITS: Final = {unit: unit for unit in _SECONDS} | {
    name + plural: name[0]
    for name in ("sec", "second", "min", "minute", "hr", "hour", "day", "week")
    for plural in ("", "s")
}
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
_BY_RULE: Final = (
    ("exactly one of role and instanceProfile", "write role alone, or instanceProfile alone"),
    ("exactly one of id and name", "write one of them"),
    ("amiFamily is needed", "write that too, as amiFamily: AL2023"),
    ("amiFamily is that of the alias", "remove amiFamily"),
    ("a term has", "write tags: {KEY: VALUE}, for example"),
    ("goes with nothing else", "remove what stands beside it, or write that as a term of its own"),
    ("alias is the only term", "remove the other terms"),
    ("Windows images", "write windows2022@latest"),
    ("a tag has a name", "write KEY: VALUE, or '*' for any value"),
    ("at most one rootVolume", "remove rootVolume from the others"),
    ("a snapshotID or a volumeSize", "write volumeSize: 100Gi, for example"),
    ("needs a snapshotID", "write that too, or remove it"),
    ("set by the autoscaler", "remove it"),
    ("schedule and duration", 'write both, as schedule: "0 9 * * mon-fri" and duration: 8h'),
    ("In needs at least one", "write values: [...]"),
    ("NotIn need at least one", "write values: [...]"),
    ("exactly one integer", 'write values: ["3"], for example'),
    ("minValues values", "write more values, or a lower minValues"),
    ("is reserved", "remove it, or write a domain of your own"),
    ("that is known", "remove it, or write a domain of your own"),
    ("a pool with replicas", "remove it, or remove replicas"),
    ("exclude each other", "write one of them"),
    ("the instance type's own", "remove it, or write a resource of your own"),
    ("podTemplateRef or scalableRef", "write one of them"),
    ("replicas or limits", "write one of them"),
    ("card", "write each card and device once, beginning with 0 and 0"),
)
"""What to write where a rule that a definition states in its own words is broken."""
_AMOUNT: Final = re.compile(r"([0-9][0-9,]*) *([mgt]i?b?|cores?|cpus?)?", re.IGNORECASE)
_LIMIT: Final = re.compile(r"(maximum|minimum) is (\d+)$")
_PLACED: Final = (
    (re.compile(r"\.limits\.|Reserved\.|\.requests\."), "write an amount, as 1000 or 400Gi"),
    (re.compile(r"\.key$"), "write name or domain/name, with letters, digits, '-', '_' and '.'"),
    (re.compile(r"\.labels\."), "write up to 63 letters, digits, '-', '_' and '.'"),
    (re.compile(r"subnetSelectorTerms.*\.id$"), "write one like subnet-0123456789abcdef0"),
    (re.compile(r"securityGroupSelectorTerms.*\.id$"), "write one like sg-0123456789abcdef0"),
    (re.compile(r"amiSelectorTerms.*\.id$"), "write one like ami-0123456789abcdef0"),
)


def hours(text: str) -> str:
    """Answer how *text*, which is no duration, is written as one; "" if nobody knows.

    >>> hours("30d"), hours("30"), hours("5 min"), hours("1.5h"), hours("1d12h"), hours("soon")
    ('720h', '30s', '5m', '90m', '36h', '')
    """
    if text.lower() == "never":
        return "Never"
    some = _DURATION.findall(text.strip())
    units = [_UNITS.get(unit.lower(), "" if unit else "s") for _, unit in some]
    if not all(units) or not some or _DURATION.sub("", text.strip()):
        return ""
    if len(some) == 1 and not some[0][1]:
        return f"{some[0][0]}s" if some[0][0].isdecimal() else ""
    total = sum(Fraction(amount) * _SECONDS[unit] for (amount, _), unit in zip(some, units, strict=True))
    unit = next((unit for unit in "hm" if total % _SECONDS[unit] == 0), "s")
    return f"{int(total / _SECONDS[unit])}{unit}"


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
        example, some = hours(str(value)), "8h or 30m" if name == "duration" else "720h, 30s or Never"
        return remedy(value, f"write {some if not example or (name == 'duration' and 's' in example) else example}")
    if name not in _BY_FIELD and (ruled := _ruled(why)):
        return ruled
    placed = next((how for pattern, how in _PLACED if pattern.search(field)), "")
    placed = amount_like(name, value) if ".limits." in field else placed
    return remedy(value, placed or _BY_FIELD.get(name, "correct it"))


def _ruled(why: str) -> str:
    """Answer what to write where a rule is broken that is stated as *why*; "" for others."""
    if (limit := _LIMIT.search(why)) is not None:
        return f"write {limit[2]} or {'less' if limit[1] == 'maximum' else 'more'}"
    return next((how for words, how in _BY_RULE if words in why), "")


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
    if name == "nodeClassRef" and isinstance(value, str):
        return remedy(value, f"write {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: {value}}}")
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
    if len(keys) == 1 and keys[0] in ("operator", "values"):
        return f"write {keys[0]} below the key before it, without a hyphen of its own"
    if len(keys) != 1:
        return "name a label of nodes"
    return f"write {{key: {keys[0]}, operator: In, values: {several(str(value(keys[0])))}}}"


def amount_like(name: str, value: object) -> str:
    """Answer what to write for *value*, which is no amount of *name*.

    >>> amount_like("cpu", "1,000"), amount_like("memory", "100 GB"), amount_like("resources", {"cpu": 4})
    ('write 1000', 'write 100Gi', 'its amounts belong one level higher: write cpu: 4')
    """
    if isinstance(value, Mapping) and len(value):
        some = ", ".join(f"{key}: {one}" for key, one in value.items())
        return f"its amounts belong one level higher: write {some}"
    found = _AMOUNT.fullmatch(str(value).strip())
    if found is None or (found[2] and name == "cpu" and not found[2].lower().startswith("c")):
        return "write an amount, as 1000 or 400Gi"
    unit = f"{found[2][0].upper()}i" if found[2] and found[2][0].upper() in "MGT" else ""
    return f"write {found[1].replace(',', '')}{unit}"


def value_at(value: Any, path: tuple[str | int, ...]) -> object:  # noqa: ANN401 - JSON
    """Answer what stands at *path* in *value*; None if nothing does."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
