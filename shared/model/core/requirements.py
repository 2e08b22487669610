"""Node requirements: the allowed values of labels, and their intersection.

A requirement is a set of label values: finite (`In`, `DoesNotExist`), or the complement of a finite set (`NotIn`,
`Exists`), optionally between two inclusive integer bounds (`Gt`, `Lt`, `Gte`, `Lte`). Intersection is the only
operation that creates new requirements. `Requirements` maps keys to requirements, and does not constrain other keys.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from shared.model.core.labels import normalize_label_key

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
MAX_INTEGER: Final = 2**63 - 1
_MAX_INTEGER_DIGITS: Final = len(str(MAX_INTEGER))
_STEP_AND_IS_LOWER_BY_OPERATOR: Final = {"Gt": (1, True), "Gte": (0, True), "Lt": (-1, False), "Lte": (0, False)}


class Requirement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The allowed values of *key*; with *complement* all except *values*. A finite set has no bounds."""

    key: str
    complement: bool = False
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """The operator, ignoring bounds."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def has(self, value: str) -> bool:
        """Return whether the label may have *value*."""
        return (value in self.values) is not self.complement and self._is_within_bounds(value)

    def is_tolerant(self) -> bool:
        """Return whether a node without the label satisfies the requirement."""
        return self.operator in ("NotIn", "DoesNotExist")

    def has_intersection(self, second: "Requirement") -> bool:
        """Return whether a value satisfies both requirements."""
        intersection = self & second
        return intersection.complement or bool(intersection.values)

    def __and__(self, second: "Requirement") -> "Requirement":
        """Return the requirement of the values that satisfy both; the keys are assumed to be equal."""
        gte, lte = _choose_bound(max, self.gte, second.gte), _choose_bound(min, self.lte, second.lte)
        minimum = _choose_bound(max, self.min_values, second.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(key=self.key, min_values=minimum)
        complement = self.complement and second.complement
        if complement:
            values = self.values | second.values
        elif self.complement:
            values = second.values - self.values
        elif second.complement:
            values = self.values - second.values
        else:
            values = self.values & second.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _is_within(value, gte, lte))
        if not complement:
            gte = lte = None
        return Requirement(key=self.key, complement=complement, values=values, gte=gte, lte=lte, min_values=minimum)

    def choose_value(self) -> str:
        """Return the value for a new node: the first, or the smallest allowed integer; "" if there is none."""
        if not self.complement:
            return min(self.values, default="")
        number = min(0, self.lte or 0) if self.gte is None else self.gte
        while str(number) in self.values:
            number += 1
        return str(number) if self.has(str(number)) else ""

    def _is_within_bounds(self, value: str) -> bool:
        return (self.gte is None and self.lte is None) or _is_within(value, self.gte, self.lte)


def parse_requirement(
    key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None
) -> Requirement:
    """Parse one requirement of the API; the key is normalized.

    >>> parse_requirement("karpenter.k8s.aws/instance-cpu", "Gt", ["4"]).has("8")
    True

    Raises:
        ValueError: the operator is unknown, or its values are missing or invalid; the message names the key.
    """
    key, value_list = normalize_label_key(key), tuple(values)
    match operator:
        case "In" | "NotIn":
            if not value_list:
                raise ValueError(f"{key}: {operator} needs at least one value")
            return Requirement(
                key=key, complement=operator == "NotIn", values=frozenset(value_list), min_values=min_values
            )
        case "Exists" | "DoesNotExist":
            if value_list:
                raise ValueError(f"{key}: {operator} takes no values")
            return Requirement(key=key, complement=operator == "Exists", min_values=min_values)
        case "Gt" | "Lt" | "Gte" | "Lte":
            if len(value_list) != 1 or not _is_integer(value_list[0]):
                raise ValueError(f"{key}: {operator} takes one integer, not {list(value_list)}")
            step, lower = _STEP_AND_IS_LOWER_BY_OPERATOR[operator]
            bound = int(value_list[0]) + step
            if bound > MAX_INTEGER:
                return Requirement(key=key, min_values=min_values)
            if lower:
                return Requirement(key=key, complement=True, gte=bound, min_values=min_values)
            return Requirement(key=key, complement=True, lte=bound, min_values=min_values)
        case _:
            raise ValueError(f"{key}: unknown operator {operator!r}; known are {', '.join(OPERATORS)}")


class Requirements(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Requirements by key, sorted by key; a key without a requirement may have any value."""

    items: tuple[Requirement, ...] = ()

    def __iter__(self) -> Iterator[Requirement]:
        """Iterate in the order of the keys."""
        return iter(self.items)

    def __contains__(self, key: str) -> bool:
        """Return whether *key* has a requirement."""
        return any(item.key == key for item in self.items)

    def __getitem__(self, key: str) -> Requirement:
        """Return the requirement of *key*: `Exists` if it has none."""
        return next((item for item in self.items if item.key == key), Requirement(key=key, complement=True))

    def __and__(self, second: "Requirements") -> "Requirements":
        """Return the intersection of both."""
        return build_requirements((*self.items, *second.items))

    @property
    def has_min_values(self) -> bool:
        """Whether any requirement has minValues."""
        return any(item.min_values is not None for item in self.items)

    def without(self, keys: Iterable[str]) -> "Requirements":
        """Return the requirements without those of *keys*."""
        dropped = frozenset(keys)
        return Requirements(items=tuple(item for item in self.items if item.key not in dropped))

    def find_conflict(self, second: "Requirements") -> str:
        """Return the first key, in order, on which no value satisfies both; "" if they intersect.

        Two requirements that both accept the label's absence (`NotIn`, `DoesNotExist`) never conflict.
        """
        requirement_by_key = {item.key: item for item in self.items}
        for second_item in second.items:
            first_item = requirement_by_key.get(second_item.key)
            if (
                first_item is None
                or first_item.has_intersection(second_item)
                or (first_item.is_tolerant() and second_item.is_tolerant())
            ):
                continue
            return second_item.key
        return ""

    def find_undefined_key(self, second: "Requirements", allowed: frozenset[str]) -> str:
        """Return the first key that *second* needs to exist but that is neither defined here nor in *allowed*."""
        defined = {item.key for item in self.items}
        return next(
            (
                second_item.key
                for second_item in second.items
                if second_item.key not in defined and second_item.key not in allowed and not second_item.is_tolerant()
            ),
            "",
        )

    def is_compatible(self, second: "Requirements", allowed: frozenset[str] = frozenset()) -> bool:
        """Return whether a node with these requirements can satisfy *second*.

        Keys in *allowed* may be undefined here.
        """
        return not self.find_undefined_key(second, allowed) and not self.find_conflict(second)


ANYTHING: Final = Requirements()


def build_requirements(items: Iterable[Requirement]) -> Requirements:
    """Return *items* by key; several requirements on one key are intersected."""
    by_key: dict[str, Requirement] = {}
    for item in items:
        by_key[item.key] = by_key[item.key] & item if item.key in by_key else item
    return Requirements(items=tuple(by_key[key] for key in sorted(by_key)))


def build_label_requirements(labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> Requirements:
    """Return the requirements that describe a node with *labels*: each key is `In` its one value."""
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    return build_requirements(
        Requirement(key=normalize_label_key(key), values=frozenset((value,))) for key, value in pairs
    )


def list_requirement_entries(requirement_set: Requirements) -> list[dict[str, object]]:
    """Return *requirement_set* as in the API, values sorted; two bounds give two entries."""
    return [entry for item in requirement_set for entry in _encode_requirement(item)]


def _encode_requirement(item: Requirement) -> Iterator[dict[str, object]]:
    common: dict[str, object] = {} if item.min_values is None else {"minValues": item.min_values}
    bounds = (("Gte", item.gte), ("Lte", item.lte))
    if item.gte is None and item.lte is None:
        values = {"values": sorted(item.values)} if item.values else {}
        yield {"key": item.key, "operator": item.operator, **values, **common}
    for operator, bound in bounds:
        if bound is not None:
            yield {"key": item.key, "operator": operator, "values": [str(bound)], **common}


def _choose_bound(choose: Callable[[int, int], int], first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)


def _is_integer(value: str) -> bool:
    """Return whether *value* is a 64-bit integer: Kubernetes does not accept longer ones as numbers either."""
    digits = value.removeprefix("-")
    return (
        value.isascii()
        and digits.isdigit()
        and len(digits) <= _MAX_INTEGER_DIGITS
        and -MAX_INTEGER <= int(value) <= MAX_INTEGER
    )


def _is_within(value: str, gte: int | None, lte: int | None) -> bool:
    if not _is_integer(value):
        return False
    number = int(value)
    return (gte is None or number >= gte) and (lte is None or number <= lte)
