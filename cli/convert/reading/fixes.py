"""Fixes for values that an API server rejects: the server's message has the reason, but not what to write instead."""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from cli.convert.reading.field_reader import choose_fix

_SUPPORTED_VALUES_PATTERN: Final = re.compile(r"supported values: \[(.*)\]")
_DURATION_PATTERN: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(?![0-9]) *([a-zA-Z]*) *")
_SECONDS_BY_UNIT: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_UNIT_BY_NAME: Final = {unit: unit for unit in _SECONDS_BY_UNIT} | {
    name + plural: name[0]
    for name in ("sec", "second", "min", "minute", "hr", "hour", "day", "week")
    for plural in ("", "s")
}
_DURATION_FIELDS: Final = ("expireAfter", "consolidateAfter", "terminationGracePeriod", "duration")
_FIX_BY_FIELD: Final = {
    "nodes": "write a percentage, such as 10%, or a number of nodes in quotes",
    "schedule": 'write five fields, such as "0 9 * * mon-fri", or @daily',
    "volumeSize": "write a quantity, such as 100Gi",
    "group": "write karpenter.k8s.aws",
    "weight": "write 1 to 100; a higher weight has precedence",
    "alias": "write a family and a version, such as al2023@latest",
    "minValues": "write 1 to 50",
}
_FIX_BY_RULE: Final = (
    ("exactly one of role and instanceProfile", "write role alone, or instanceProfile alone"),
    ("exactly one of id and name", "write only one of the two"),
    ("amiFamily is needed", "add it, for example amiFamily: AL2023"),
    ("amiFamily is that of the alias", "remove amiFamily"),
    ("a term has", "write tags: {KEY: VALUE}, for example"),
    ("goes with nothing else", "remove the other fields, or write them as a separate term"),
    ("alias is the only term", "remove the other terms"),
    ("Windows images", "write windows2022@latest"),
    ("a tag has a name", "write KEY: VALUE, or '*' for any value"),
    ("at most one rootVolume", "remove rootVolume from the others"),
    ("a snapshotID or a volumeSize", "write volumeSize: 100Gi, for example"),
    ("needs a snapshotID", "add it, or remove this field"),
    ("set by the autoscaler", "remove it"),
    ("schedule and duration", 'write both, for example schedule: "0 9 * * mon-fri" and duration: 8h'),
    ("In needs at least one", "write values: [...]"),
    ("NotIn need at least one", "write values: [...]"),
    ("exactly one integer", 'write values: ["3"], for example'),
    ("minValues values", "write more values, or a lower minValues"),
    ("is reserved", "remove it, or use a domain of your organization"),
    ("that is known", "remove it, or use a domain of your organization"),
    ("a pool with replicas", "remove it, or remove replicas"),
    ("exclude each other", "write only one of the two"),
    ("the instance type's own", "remove it, or write a resource of your own"),
    ("podTemplateRef or scalableRef", "write only one of the two"),
    ("replicas or limits", "write only one of the two"),
    ("card", "write each card and device once, beginning with 0 and 0"),
)
"""What to write if a rule is broken that a CRD states in its own words."""
_AMOUNT_PATTERN: Final = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?) *([kmgt]i?b?|cores?|v?cpus?)?", re.IGNORECASE)
_NUMBER_WORDS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LIMIT_PATTERN: Final = re.compile(r"(maximum|minimum) is (\d+)$")
_FIX_BY_PATH_PATTERN: Final = (
    (re.compile(r"\.limits\.|Reserved\.|\.requests\."), "write a quantity, such as 1000 or 400Gi"),
    (re.compile(r"\.key$"), "write name or domain/name, with letters, digits, '-', '_' and '.'"),
    (re.compile(r"\.labels\."), "write up to 63 letters, digits, '-', '_' and '.'"),
    (re.compile(r"subnetSelectorTerms.*\.id$"), "write one like subnet-0123456789abcdef0"),
    (re.compile(r"securityGroupSelectorTerms.*\.id$"), "write one like sg-0123456789abcdef0"),
    (re.compile(r"amiSelectorTerms.*\.id$"), "write one like ami-0123456789abcdef0"),
)


def suggest_duration(text: str) -> str:
    """Return *text*, an invalid duration, as a valid one; "" if its meaning is unknown.

    >>> [suggest_duration(text) for text in ("30d", "30", "5 min", "1.5h", "1d12h", "soon")]
    ['720h', '30s', '5m', '90m', '36h', '']
    """
    if text.lower() == "never":
        return "Never"
    matches = _DURATION_PATTERN.findall(text.strip())
    units = [_UNIT_BY_NAME.get(unit.lower(), "" if unit else "s") for _, unit in matches]
    if not all(units) or not matches or _DURATION_PATTERN.sub("", text.strip()):
        return ""
    if len(matches) == 1 and not matches[0][1]:
        return f"{matches[0][0]}s" if matches[0][0].isdecimal() else ""
    total = sum(Fraction(amount) * _SECONDS_BY_UNIT[unit] for (amount, _), unit in zip(matches, units, strict=True))
    unit = next((unit for unit in "hm" if total % _SECONDS_BY_UNIT[unit] == 0), "s")
    return f"{int(total / _SECONDS_BY_UNIT[unit])}{unit}"


def format_value_list(text: str) -> str:
    """Return *text*, which contains several values, as a list.

    >>> format_value_list("a, b c"), format_value_list("(a)")
    ('["a", "b", "c"]', '["a"]')
    """
    quoted_values = ", ".join(f'"{part}"' for part in _split_values(text))
    return f"[{quoted_values}]"


def _split_values(text: str) -> list[str]:
    return [part for part in re.split(r"[\s,;\"']+", text.strip("()[] ")) if part]


def suggest_fix(field: str, reason: str, value: object) -> str:
    """Return what to write in *field* instead of *value*, which an API server rejects because of *reason*."""
    name = field.rpartition(".")[2].partition("[")[0]
    if "Required value" in reason:
        return "write it"
    if "must be of type" in reason:
        return _suggest_for_type(name, reason, value)
    if (supported := _SUPPORTED_VALUES_PATTERN.search(reason)) is not None:
        return _suggest_supported_value(
            [supported_value.strip("' ") for supported_value in supported[1].split(",")], str(value)
        )
    if name in _DURATION_FIELDS:
        example, accepted_forms = (
            suggest_duration(str(value)),
            "8h or 30m" if name == "duration" else "720h, 30s or Never",
        )
        return choose_fix(
            value, f"write {accepted_forms if not example or (name == 'duration' and 's' in example) else example}"
        )
    if name not in _FIX_BY_FIELD and (rule_fix := _suggest_for_rule(reason)):
        return rule_fix
    path_fix = next((how for pattern, how in _FIX_BY_PATH_PATTERN if pattern.search(field)), "")
    path_fix = suggest_amount(name, value) if ".limits." in field else path_fix
    return choose_fix(value, path_fix or _FIX_BY_FIELD.get(name, "correct it"))


def _suggest_for_rule(reason: str) -> str:
    """Return what to write if the rule stated as *reason* is broken; "" for an unknown rule."""
    if (limit := _LIMIT_PATTERN.search(reason)) is not None:
        return f"write {limit[2]} or {'less' if limit[1] == 'maximum' else 'more'}"
    return next((how for words, how in _FIX_BY_RULE if words in reason), "")


def _suggest_for_type(name: str, reason: str, value: object) -> str:
    if "type string" in reason:
        return (
            f"write {suggest_duration(str(value))}"
            if name in _DURATION_FIELDS and isinstance(value, int)
            else _suggest_quoting(value)
        )
    if "type array" in reason:
        list_example = (
            f"{name}: {format_value_list(str(value))}"
            if isinstance(value, str | int)
            else "one item per line after `- `"
        )
        return choose_fix(value, f"write a list: {list_example}")
    if "type integer" in reason:
        is_number = isinstance(value, str) and value.isdecimal()
        return f"write {value}, without quotes" if is_number else choose_fix(value, "write a whole number")
    if "type boolean" in reason:
        return "write true or false, without quotes"
    if name == "nodeClassRef" and isinstance(value, str):
        return choose_fix(value, f"write {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: {value}}}")
    return "write fields, each as `name: value`, with a space after the colon"


def _suggest_quoting(value: object) -> str:
    if isinstance(value, bool):
        return f'write it in quotes: "{str(value).lower()}"'
    if isinstance(value, int | float):
        return f'write it in quotes: "{value}"'
    return "write one string" if isinstance(value, list | Mapping) else "write a string, in quotes if it is empty"


def _suggest_supported_value(supported_values: list[str], value: str) -> str:
    value_by_lowercase = {supported_value.lower(): supported_value for supported_value in supported_values}
    close = get_close_matches(value.lower(), value_by_lowercase, n=1)
    return f"did you mean {value_by_lowercase[close[0]]}?" if close else f"write one of {', '.join(supported_values)}"


def suggest_requirement(keys: Sequence[str], get_value: Callable[[str], object]) -> str:
    """Return a complete requirement for an incomplete one with only a label in *keys*.

    *get_value* returns its values.
    """
    if "name" in keys:
        return "replace name with key"
    if len(keys) == 1 and keys[0] in ("operator", "values"):
        return f"write {keys[0]} below the key, without a hyphen"
    if len(keys) != 1:
        return "name a label of nodes"
    return f"write {{key: {keys[0]}, operator: In, values: {format_value_list(str(get_value(keys[0])))}}}"


def suggest_amount(name: str, value: object) -> str:
    """Return what to write instead of *value*, an invalid amount of *name*.

    >>> suggest_amount("cpu", "two"), suggest_amount("memory", "100 GB"), suggest_amount("resources", {"cpu": 4})
    ('write 2', 'write 100Gi', 'its quantities belong one level higher: write cpu: 4')
    """
    if isinstance(value, Mapping) and len(value):
        amounts = ", ".join(f"{key}: {amount}" for key, amount in value.items())
        return f"its quantities belong one level higher: write {amounts}"
    text = str(value).strip().lower()
    text = str(_NUMBER_WORDS.index(text)) if text in _NUMBER_WORDS else text
    match = _AMOUNT_PATTERN.fullmatch(text)
    unit = match[2] or "" if match is not None else ""
    if match is None or (name == "cpu" and unit and "c" not in unit):
        return "write a quantity, such as 4 or 500m" if name == "cpu" else "write a quantity, such as 1000 or 400Gi"
    suffix = f"{unit[0].upper()}i" if unit and unit[0] in "kmgt" else ""
    return f"write {match[1].replace(',', '')}{suffix}"


def get_value_at(value: Any, path: tuple[str | int, ...]) -> object:  # noqa: ANN401 - JSON
    """Return the value at *path* in *value*; None if there is none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
