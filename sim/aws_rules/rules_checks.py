"""The checks that `rules.toml` names: each is built once for a rule, and yields the values that break it."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from sim.aws_rules.paths import Selector, compile_path
from sim.aws_rules.rules_table import CheckName, Rule

Parameters: TypeAlias = Mapping[str, Any]
RuleCheck: TypeAlias = Callable[[Parameters], Iterator[object]]
"""Yields what AWS rejects in the parameters: values, names or sizes."""

TAG_FILTER_PREFIX: Final = "tag:"


def build_rule_check(rule: Rule) -> RuleCheck:
    """Return the check of *rule*."""
    check = _BUILDERS[rule.check](rule)
    if not rule.when:
        return check
    conditions = tuple(rule.when.items())

    def check_conditionally(parameters: Parameters) -> Iterator[object]:
        if all(parameters.get(name) == value for name, value in conditions):
            yield from check(parameters)

    return check_conditionally


def measure_item(item: Mapping[str, Any]) -> int:
    """Return the size of a DynamoDB item in bytes: the names and the values of its attributes.

    >>> measure_item({"pk": {"S": "ab"}, "version": {"N": "12"}})
    14
    """
    return sum(len(name.encode()) + _measure_value(value) for name, value in item.items())


def _measure_value(value: Mapping[str, Any]) -> int:
    """Return the size of one attribute value; a number counts 1 byte per two digits, rounded up, and 1."""
    ((type_name, content),) = value.items()
    match type_name:
        case "S":
            size = len(content.encode())
        case "B":
            size = len(content)
        case "N":
            size = (len(content.lstrip("-")) + 1) // 2 + 1 + content.startswith("-")
        case "M":
            size = 3 + len(content) + measure_item(content)
        case "L":
            size = 3 + len(content) + sum(map(_measure_value, content))
        case _:
            size = 1
    return size


def _build_filter_check(rule: Rule) -> RuleCheck:
    names = {*rule.values, *(rule.also.values if rule.also else ())}

    def check(parameters: Parameters) -> Iterator[object]:
        for item in parameters.get("Filters") or ():
            name = item.get("Name", "")
            if name not in names - {"tag"} and not ("tag" in names and name.startswith(TAG_FILTER_PREFIX)):
                yield name

    return check


def _build_exclusive_check(rule: Rule) -> RuleCheck:
    def check(parameters: Parameters) -> Iterator[object]:
        present = [name for name in rule.parameters if parameters.get(name)]
        if len(present) > 1:
            yield " and ".join(present)

    return check


def _build_absent_check(rule: Rule) -> RuleCheck:
    return lambda parameters: (name for name in rule.parameters if name in parameters)


def _build_unique_check(rule: Rule) -> RuleCheck:
    select = _compile_paths(rule)

    def check(parameters: Parameters) -> Iterator[object]:
        values = list(select(parameters))
        yield from (value for index, value in enumerate(values) if value in values[:index])

    return check


def _build_value_check(rule: Rule, is_valid: Callable[[Any], bool]) -> RuleCheck:
    select = _compile_paths(rule)
    return lambda parameters: (value for value in select(parameters) if not is_valid(value))


def _build_range_check(rule: Rule) -> RuleCheck:
    return _build_value_check(rule, lambda value: rule.minimum <= value <= rule.maximum)


def _build_pattern_check(rule: Rule) -> RuleCheck:
    pattern = re.compile(rule.pattern, re.DOTALL)
    return _build_value_check(rule, lambda value: pattern.fullmatch(value) is not None)


def _build_size_check(measure: Callable[[Any], int]) -> Callable[[Rule], RuleCheck]:
    def build(rule: Rule) -> RuleCheck:
        return _build_value_check(rule, lambda value: rule.minimum <= measure(value) <= rule.maximum)

    return build


def _build_total_check(measure: Callable[[Any], int]) -> Callable[[Rule], RuleCheck]:
    def build(rule: Rule) -> RuleCheck:
        select = _compile_paths(rule)

        def check(parameters: Parameters) -> Iterator[object]:
            total = sum(map(measure, select(parameters)))
            if total > rule.maximum:
                yield total

        return check

    return build


def _measure_bytes(value: Any) -> int:  # noqa: ANN401 - text, bytes or a stream
    return len(value.encode()) if isinstance(value, str) else len(value) if isinstance(value, (bytes, bytearray)) else 0


def _compile_paths(rule: Rule) -> Selector:
    selectors = tuple(compile_path(path) for path in rule.all_paths)

    def select(parameters: Mapping[str, Any]) -> Iterable[Any]:
        return (value for selector in selectors for value in selector(parameters))

    return select


_BUILDERS: Final[Mapping[CheckName, Callable[[Rule], RuleCheck]]] = {
    "filters": _build_filter_check,
    "exclusive": _build_exclusive_check,
    "absent": _build_absent_check,
    "range": _build_range_check,
    "count": _build_total_check(lambda _: 1),
    "count_each": _build_size_check(len),
    "characters": _build_size_check(len),
    "bytes": _build_size_check(_measure_bytes),
    "decoded_bytes": _build_size_check(lambda text: len(b64decode(text))),
    "pattern": _build_pattern_check,
    "unique": _build_unique_check,
    "item_bytes": _build_size_check(measure_item),
    "total_item_bytes": _build_total_check(measure_item),
}
