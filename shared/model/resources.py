"""Amounts of resources: integers by name, and vectors of them over agreed axes.

Cpu is counted in thousandths (milli), everything else in ones: bytes, pods, devices. A request is rounded up when it
is parsed, so that nobody is believed to ask for less than they do. Never a float.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from shared.model.units import parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
NODES: Final = "nodes"
"""The pseudo-resource of NodePool limits."""

_MILLI: Final = 1000

Vector: TypeAlias = tuple[int, ...]
"""Amounts in the order of some `Axes`."""


class Resources(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Amounts by resource name, sorted by name, no zeros: equal amounts are equal values, and hashable."""

    amounts: tuple[tuple[str, int], ...] = ()

    def __getitem__(self, name: str) -> int:
        """Answer the amount of *name*, 0 if there is none."""
        return next((amount for key, amount in self.amounts if key == name), 0)

    def names(self) -> tuple[str, ...]:
        """Answer what is not zero, sorted."""
        return tuple(name for name, _ in self.amounts)

    def __add__(self, other: "Resources") -> "Resources":
        """Sum, by name."""
        return total((self, other))

    def __sub__(self, other: "Resources") -> "Resources":
        """Answer the difference, by name; it may be negative."""
        amounts = dict(self.amounts)
        for name, amount in other.amounts:
            amounts[name] = amounts.get(name, 0) - amount
        return resources(amounts)

    def without(self, names: Iterable[str]) -> "Resources":
        """Answer the same without *names*."""
        left_out = set(names)
        return Resources(amounts=tuple(one for one in self.amounts if one[0] not in left_out))

    def fits(self, available: "Resources") -> bool:
        """Whether every amount is there, and *available* overdrawn nowhere."""
        there = dict(available.amounts)
        return all(amount >= 0 for amount in there.values()) and all(
            amount <= there.get(name, 0) for name, amount in self.amounts
        )

    def exceeds(self, limit: "Resources") -> str:
        """Answer the first name, in order, of which there is more than *limit* says; "" if there is none.

        What *limit* does not name is not limited.
        """
        here = dict(self.amounts)
        return next((name for name, most in limit.amounts if here.get(name, 0) > most), "")


NONE: Final = Resources()


def resources(amounts: Mapping[str, int]) -> Resources:
    """Make the value of *amounts*.

    >>> resources({"pods": 1, "cpu": 250, "memory": 0}).amounts
    (('cpu', 250), ('pods', 1))
    """
    return Resources(amounts=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)))


def total(many: Iterable[Resources]) -> Resources:
    """Sum, by name; nothing is `NONE`."""
    amounts: dict[str, int] = {}
    for some in many:
        for name, amount in some.amounts:
            amounts[name] = amounts.get(name, 0) + amount
    return resources(amounts)


def largest(many: Iterable[Resources]) -> Resources:
    """Answer the greatest amount of each name."""
    amounts: dict[str, int] = {}
    for some in many:
        for name, amount in some.amounts:
            amounts[name] = max(amounts.get(name, amount), amount)
    return resources(amounts)


def smallest(many: Iterable[Resources]) -> Resources:
    """Answer the least amount of each name, 0 where one of *many* has none."""
    some = tuple(many)
    names = {name for one in some for name in one.names()}
    return resources({name: min(one[name] for one in some) for name in names})


def parse_resources(quantities: Mapping[str, str | int | float]) -> Resources:
    """Read a ResourceList.

    >>> parse_resources({"cpu": "0.25", "memory": "1Ki"})["cpu"]
    250

    Raises:
        ValueError: a value is not a quantity; the message names the resource.
    """
    amounts: dict[str, int] = {}
    for name, quantity in quantities.items():
        try:
            amounts[name] = parse_quantity(str(quantity), per_unit=1000 if name == CPU else 1)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return resources(amounts)


def quantities_from(some: Resources) -> dict[str, str]:
    """Write a ResourceList that `parse_resources` reads back.

    >>> quantities_from(resources({"cpu": 1500, "memory": 2048, "pods": 3}))
    {'cpu': '1500m', 'memory': '2Ki', 'pods': '3'}
    """
    return {name: _quantity(name, amount) for name, amount in some.amounts}


def _quantity(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name in (MEMORY, STORAGE) or name.startswith("hugepages-"):
        for power, suffix in ((3, "Gi"), (2, "Mi"), (1, "Ki")):
            if amount % 1024**power == 0:
                return f"{amount // 1024**power}{suffix}"
    return str(amount)


_UNITS: Final = tuple((1024**power, f"{letter}i") for power, letter in zip(range(6, 0, -1), "EPTGMK", strict=True))


def amount_text(name: str, amount: int, *, is_least: bool = False) -> str:
    """Write *amount* as a person would, rounded up to a tenth of its unit; down if it is what there is at least.

    >>> amount_text("memory", 524352 * 1024**2), amount_text("cpu", 2500), amount_text("cpu", 250)
    ('512.1Gi', '2.5', '250m')
    """
    if name == CPU:
        cores = f"{amount // _MILLI}.{amount % _MILLI:03}".rstrip("0").rstrip(".")
        return f"{amount}m" if 0 < amount < _MILLI else cores
    is_bytes = name in (MEMORY, STORAGE) or name.startswith("hugepages-")
    unit, letters = next((one for one in _UNITS if is_bytes and amount >= one[0]), (1, ""))
    tenths = amount * 10 // unit if is_least else -(-amount * 10 // unit)
    return f"{tenths // 10}.{tenths % 10}".removesuffix(".0") + letters


class Axes(msgspec.Struct, frozen=True, kw_only=True):
    """Which resource stands where in a `Vector`; cpu, memory, ephemeral-storage and pods always come first."""

    names: tuple[str, ...]

    def vector(self, some: Resources) -> Vector:
        """Answer *some* in the order of the axes; names that are not among them are left out."""
        amounts = dict(some.amounts)
        return tuple(amounts.get(name, 0) for name in self.names)

    def resources(self, vector: Vector) -> Resources:
        """Answer what *vector* stands for."""
        return resources(dict(zip(self.names, vector, strict=True)))


def axes_of(many: Iterable[Resources]) -> Axes:
    """Answer axes that hold every name in *many*."""
    first = (CPU, MEMORY, STORAGE, PODS)
    others = {name for some in many for name in some.names()} - set(first)
    return Axes(names=first + tuple(sorted(others)))
