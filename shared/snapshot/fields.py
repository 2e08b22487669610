"""What is said of a field that cannot be read: where it is, what is wrong with it, what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shared.model.resources import Resources, parse_resources
from shared.snapshot.wire_core import Quantities

QUANTITY: Final = "write an amount like 500m, 2 or 1Gi"
DURATION: Final = "write a duration like 30s or 1h30m"
EXPRESSION: Final = "write a key, an operator and the values it takes"


@contextmanager
def at(path: str, remedy: str) -> Iterator[None]:
    """Name the field at *path* in every refusal.

    Raises:
        ValueError: again, with *path* before and *remedy* behind it.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {remedy}") from None


def amounts(path: str, quantities: Quantities) -> Resources:
    """Read the ResourceList at *path*.

    Raises:
        ValueError: an amount is not a quantity, or below zero.
    """
    with at(path, QUANTITY):
        found = parse_resources(quantities)
        for name, amount in found.amounts:
            if amount < 0:
                raise ValueError(f"{name}: below zero: {quantities[name]!r}")
    return found
