"""The algebra of node requirements: what values a label may have.

A requirement is a set of label values: finite (`In`, `DoesNotExist`), or the complement of a finite set (`NotIn`,
`Exists`), perhaps between two inclusive integer bounds (`Gt`, `Lt`, `Gte`, `Lte`). Intersection is the only operation
that makes new ones. A set of requirements maps keys to requirements, and says nothing of other keys.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.labels import normalised

Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
GREATEST: Final = 2**63 - 1
_DIGITS: Final = len(str(GREATEST))
_BOUNDS: Final = {"Gt": (1, True), "Gte": (0, True), "Lt": (-1, False), "Lte": (0, False)}


class Requirement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The values that *key* may have; with *complement* all but *values*. A finite set has no bounds."""

    key: str
    complement: bool = False
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> str:
        """How it would be written: bounds do not show."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def has(self, value: str) -> bool:
        """Whether the label may have *value*."""
        return (value in self.values) is not self.complement and self._within(value)

    def is_tolerant(self) -> bool:
        """Whether a node without the label satisfies it."""
        return self.operator in ("NotIn", "DoesNotExist")

    def intersects(self, other: "Requirement") -> bool:
        """Whether some value satisfies both."""
        both = self & other
        return both.complement or bool(both.values)

    def __and__(self, other: "Requirement") -> "Requirement":
        """Answer what satisfies both; keys are taken to be equal."""
        gte, lte = _extreme(max, self.gte, other.gte), _extreme(min, self.lte, other.lte)
        minimum = _extreme(max, self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(key=self.key, min_values=minimum)
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _is_within(value, gte, lte))
        if not complement:
            gte = lte = None
        return Requirement(key=self.key, complement=complement, values=values, gte=gte, lte=lte, min_values=minimum)

    def any_value(self) -> str:
        """Pick the value that a new node gets: the first, or the least allowed integer; "" if there is none."""
        if not self.complement:
            return min(self.values, default="")
        number = min(0, self.lte or 0) if self.gte is None else self.gte
        while str(number) in self.values:
            number += 1
        return str(number) if self.has(str(number)) else ""

    def _within(self, value: str) -> bool:
        return (self.gte is None and self.lte is None) or _is_within(value, self.gte, self.lte)


def requirement(key: str, operator: str, values: Iterable[str] = (), min_values: int | None = None) -> Requirement:
    """Read one requirement as the API writes it; the key is normalised.

    >>> requirement("karpenter.k8s.aws/instance-cpu", "Gt", ["4"]).has("8")
    True

    Raises:
        ValueError: the operator is unknown, or has not the values it needs; the message names the key.
    """
    key, some = normalised(key), tuple(values)
    match operator:
        case "In" | "NotIn":
            if not some:
                raise ValueError(f"{key}: {operator} needs at least one value")
            return Requirement(key=key, complement=operator == "NotIn", values=frozenset(some), min_values=min_values)
        case "Exists" | "DoesNotExist":
            if some:
                raise ValueError(f"{key}: {operator} takes no values")
            return Requirement(key=key, complement=operator == "Exists", min_values=min_values)
        case "Gt" | "Lt" | "Gte" | "Lte":
            if len(some) != 1 or not _is_integer(some[0]):
                raise ValueError(f"{key}: {operator} takes one integer, not {list(some)}")
            step, lower = _BOUNDS[operator]
            bound = int(some[0]) + step
            if bound > GREATEST:
                return Requirement(key=key, min_values=min_values)
            if lower:
                return Requirement(key=key, complement=True, gte=bound, min_values=min_values)
            return Requirement(key=key, complement=True, lte=bound, min_values=min_values)
        case _:
            raise ValueError(f"{key}: unknown operator {operator!r}; known are {', '.join(OPERATORS)}")


class Requirements(msgspec.Struct, frozen=True, kw_only=True):
    """Requirements by key, sorted by key; a key that is missing may have any value."""

    items: tuple[Requirement, ...] = ()

    def __iter__(self) -> Iterator[Requirement]:
        """Iterate by key."""
        return iter(self.items)

    def __contains__(self, key: str) -> bool:
        """Whether *key* is spoken of."""
        return any(item.key == key for item in self.items)

    def __getitem__(self, key: str) -> Requirement:
        """Answer what is required of *key*: `Exists` if it is not spoken of."""
        return next((item for item in self.items if item.key == key), Requirement(key=key, complement=True))

    def __and__(self, other: "Requirements") -> "Requirements":
        """Answer what satisfies both."""
        return requirements((*self.items, *other.items))

    def without(self, keys: Iterable[str]) -> "Requirements":
        """Answer the same, silent about *keys*."""
        dropped = frozenset(keys)
        return Requirements(items=tuple(item for item in self.items if item.key not in dropped))

    def conflict(self, other: "Requirements") -> str:
        """Answer the first key, in order, on which no value satisfies both; "" if they intersect.

        Two that both accept the label's absence (`NotIn`, `DoesNotExist`) never conflict.
        """
        mine = {item.key: item for item in self.items}
        for theirs in other.items:
            ours = mine.get(theirs.key)
            if ours is None or ours.intersects(theirs) or (ours.is_tolerant() and theirs.is_tolerant()):
                continue
            return theirs.key
        return ""

    def undefined(self, other: "Requirements", allowed: frozenset[str]) -> str:
        """Answer the first key that *other* needs to exist, and that neither we define nor *allowed* holds."""
        defined = {item.key for item in self.items}
        return next(
            (
                theirs.key
                for theirs in other.items
                if theirs.key not in defined and theirs.key not in allowed and not theirs.is_tolerant()
            ),
            "",
        )

    def is_compatible(self, other: "Requirements", allowed: frozenset[str] = frozenset()) -> bool:
        """Whether something that we describe can satisfy *other*; keys in *allowed* may be undefined with us."""
        return not self.undefined(other, allowed) and not self.conflict(other)


ANYTHING: Final = Requirements()


def requirements(some: Iterable[Requirement]) -> Requirements:
    """Join *some*; several on one key are intersected."""
    by_key: dict[str, Requirement] = {}
    for item in some:
        by_key[item.key] = by_key[item.key] & item if item.key in by_key else item
    return Requirements(items=tuple(by_key[key] for key in sorted(by_key)))


def requirements_from_labels(labels: Mapping[str, str] | Iterable[tuple[str, str]]) -> Requirements:
    """Answer what a node with *labels* is: each key `In` its one value."""
    pairs = labels.items() if isinstance(labels, Mapping) else labels
    return requirements(Requirement(key=normalised(key), values=frozenset((value,))) for key, value in pairs)


def written(some: Requirements) -> list[dict[str, object]]:
    """Write *some* as the API has it, values sorted; both bounds make two entries."""
    return [entry for item in some for entry in _entries(item)]


def _entries(item: Requirement) -> Iterator[dict[str, object]]:
    common: dict[str, object] = {} if item.min_values is None else {"minValues": item.min_values}
    bounds = (("Gte", item.gte), ("Lte", item.lte))
    if item.gte is None and item.lte is None:
        values = {"values": sorted(item.values)} if item.values else {}
        yield {"key": item.key, "operator": item.operator, **values, **common}
    for operator, bound in bounds:
        if bound is not None:
            yield {"key": item.key, "operator": operator, "values": [str(bound)], **common}


def _extreme(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def _is_integer(value: str) -> bool:
    """Whether *value* is a whole number of 64 bits: longer ones are no numbers to Kubernetes either."""
    digits = value.removeprefix("-")
    return value.isascii() and digits.isdigit() and len(digits) <= _DIGITS and -GREATEST <= int(value) <= GREATEST


def _is_within(value: str, gte: int | None, lte: int | None) -> bool:
    if not _is_integer(value):
        return False
    number = int(value)
    return (gte is None or number >= gte) and (lte is None or number <= lte)
