"""NodePools and NodeClaims of other providers, as EKS Auto Mode: no snapshot contains them."""

from collections.abc import Iterable
from typing import Any, Final

SHARED_FIELDS: Final = frozenset({"node_pools", "node_claims"})
"""The fields of a snapshot whose kinds other providers use, too."""


def filter_own_objects(field: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the *values* of a snapshot's *field* without those whose node class is not an EC2NodeClass."""
    if field not in SHARED_FIELDS:
        return tuple(values)
    return tuple(value for value in values if value.node_class.is_supported())
