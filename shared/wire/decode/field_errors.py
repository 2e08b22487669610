"""Error messages for fields that cannot be parsed: the path, the error, and how to fix it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shared.model.core.resources import Resources, parse_resources
from shared.wire.schema.core import Quantities

QUANTITY_FIX: Final = "write an amount like 500m, 2 or 1Gi"
DURATION_FIX: Final = "write a duration like 30s or 1h30m"
EXPRESSION_FIX: Final = "write a key, an operator and its values"


@contextmanager
def add_field_path(path: str, fix: str) -> Iterator[None]:
    """Add *path* and *fix* to the message of every ValueError that the block raises.

    Raises:
        ValueError: the error of the block, with *path* before its message and *fix* after it.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {fix}") from None


def parse_resource_list(path: str, quantities: Quantities) -> Resources:
    """Parse the ResourceList at *path*.

    Raises:
        ValueError: an amount is not a quantity, or is negative.
    """
    with add_field_path(path, QUANTITY_FIX):
        resource_list = parse_resources(quantities)
        for name, amount in resource_list.amounts:
            if amount < 0:
                raise ValueError(f"{name}: below zero: {quantities[name]!r}")
    return resource_list
