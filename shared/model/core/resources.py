"""Resource amounts: integers by name, and vectors of them over fixed axes.

CPU is counted in milli units, everything else in units: bytes, pods, devices. Requests are rounded up when they are
parsed, so that no request is underestimated. Amounts are never floats.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from shared.model.core.formatting import format_usd_per_hour
from shared.model.core.units import parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
NVIDIA_GPU: Final = "nvidia.com/gpu"
AMD_GPU: Final = "amd.com/gpu"
GAUDI: Final = "habana.ai/gaudi"
NEURON: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
EFA: Final = "vpc.amazonaws.com/efa"
NODES: Final = "nodes"
"""The pseudo-resource of NodePool limits."""
USD_PER_HOUR: Final = "usd-per-hour"
"""The pseudo-resource of limits in money, in millionths of a USD per hour; `karpenter.money_limit` has them."""

_MILLI_PER_CORE: Final = 1000

Vector: TypeAlias = tuple[int, ...]
"""Amounts in the order of an `Axes`."""


class Resources(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Amounts by resource name, sorted by name, without zeros: equal amounts are equal values, and hashable."""

    amounts: tuple[tuple[str, int], ...] = ()

    def __getitem__(self, name: str) -> int:
        """Return the amount of *name*, 0 if it is absent."""
        return next((amount for key, amount in self.amounts if key == name), 0)

    def list_names(self) -> tuple[str, ...]:
        """Return the names of the nonzero amounts, sorted."""
        return tuple(name for name, _ in self.amounts)

    def has_negative_amount(self) -> bool:
        """Return whether some amount is below zero."""
        return any(amount < 0 for _, amount in self.amounts)

    def __add__(self, addend: "Resources") -> "Resources":
        """Return the sum, by name."""
        return sum_resources((self, addend))

    def __sub__(self, subtrahend: "Resources") -> "Resources":
        """Return the difference, by name; amounts may be negative."""
        amounts = dict(self.amounts)
        for name, amount in subtrahend.amounts:
            amounts[name] = amounts.get(name, 0) - amount
        return build_resources(amounts)

    def without(self, names: Iterable[str]) -> "Resources":
        """Return the amounts without those of *names*."""
        excluded_names = set(names)
        return Resources(amounts=tuple(item for item in self.amounts if item[0] not in excluded_names))

    def can_fit(self, available: "Resources") -> bool:
        """Return whether *available* has every amount, and no negative amount."""
        available_amounts = dict(available.amounts)
        return all(amount >= 0 for amount in available_amounts.values()) and all(
            amount <= available_amounts.get(name, 0) for name, amount in self.amounts
        )


NONE: Final = Resources()


def build_resources(amounts: Mapping[str, int]) -> Resources:
    """Return *amounts* as a value.

    >>> build_resources({"pods": 1, "cpu": 250, "memory": 0}).amounts
    (('cpu', 250), ('pods', 1))
    """
    return Resources(amounts=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)))


def sum_resources(resource_lists: Iterable[Resources]) -> Resources:
    """Return the sum, by name; `NONE` for no items."""
    amounts: dict[str, int] = {}
    for item in resource_lists:
        for name, amount in item.amounts:
            amounts[name] = amounts.get(name, 0) + amount
    return build_resources(amounts)


def compute_max_resources(resource_lists: Iterable[Resources]) -> Resources:
    """Return the largest amount of each name."""
    amounts: dict[str, int] = {}
    for item in resource_lists:
        for name, amount in item.amounts:
            amounts[name] = max(amounts.get(name, amount), amount)
    return build_resources(amounts)


def compute_min_resources(resource_lists: Iterable[Resources]) -> Resources:
    """Return the smallest amount of each name, 0 if an item does not have it."""
    items = tuple(resource_lists)
    names = {name for item in items for name in item.list_names()}
    return build_resources({name: min(item[name] for item in items) for name in names})


def parse_resources(quantities: Mapping[str, str | int | float]) -> Resources:
    """Parse a ResourceList.

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
    return build_resources(amounts)


def format_quantities(amounts_by_name: Resources) -> dict[str, str]:
    """Return a ResourceList that `parse_resources` parses back.

    >>> format_quantities(build_resources({"cpu": 1500, "memory": 2048, "pods": 3}))
    {'cpu': '1500m', 'memory': '2Ki', 'pods': '3'}
    """
    return {name: _format_quantity(name, amount) for name, amount in amounts_by_name.amounts}


def _format_quantity(name: str, amount: int) -> str:
    if name == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name in (MEMORY, STORAGE) or name.startswith("hugepages-"):
        for power, suffix in ((3, "Gi"), (2, "Mi"), (1, "Ki")):
            if amount % 1024**power == 0:
                return f"{amount // 1024**power}{suffix}"
    return str(amount)


_BINARY_UNITS: Final = tuple(
    (1024**power, f"{letter}i") for power, letter in zip(range(6, 0, -1), "EPTGMK", strict=True)
)


def format_amount(name: str, amount: int, *, is_minimum: bool = False) -> str:
    """Return *amount* for people, rounded up to a tenth of its unit; rounded down if it is a minimum.

    >>> format_amount("memory", 524352 * 1024**2), format_amount("cpu", 2500), format_amount("cpu", 250)
    ('512.1Gi', '2.5', '250m')
    """
    if name == USD_PER_HOUR:
        return format_usd_per_hour(amount / 1_000_000)
    if name == CPU:
        cores = f"{amount // _MILLI_PER_CORE}.{amount % _MILLI_PER_CORE:03}".rstrip("0").rstrip(".")
        return f"{amount}m" if 0 < amount < _MILLI_PER_CORE else cores
    is_bytes = name in (MEMORY, STORAGE) or name.startswith("hugepages-")
    unit, letters = next(
        (size_and_suffix for size_and_suffix in _BINARY_UNITS if is_bytes and amount >= size_and_suffix[0]), (1, "")
    )
    tenths = amount * 10 // unit if is_minimum else -(-amount * 10 // unit)
    return f"{tenths // 10}.{tenths % 10}".removesuffix(".0") + letters


class Axes(msgspec.Struct, frozen=True, kw_only=True):
    """The order of resources in a `Vector`; cpu, memory, ephemeral-storage and pods always come first."""

    names: tuple[str, ...]

    def build_vector(self, amounts_by_name: Resources) -> Vector:
        """Return the amounts in the order of the axes; names that are not axes are left out."""
        amounts = dict(amounts_by_name.amounts)
        return tuple(amounts.get(name, 0) for name in self.names)

    def decode_vector(self, vector: Vector) -> Resources:
        """Return the resources of *vector*."""
        return build_resources(dict(zip(self.names, vector, strict=True)))


def build_axes(resource_lists: Iterable[Resources]) -> Axes:
    """Return axes that include every name in *resource_lists*."""
    first = (CPU, MEMORY, STORAGE, PODS)
    other_names = {name for item in resource_lists for name in item.list_names()} - set(first)
    return Axes(names=first + tuple(sorted(other_names)))
