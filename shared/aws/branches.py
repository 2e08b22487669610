"""How many network interfaces of their own an instance's pods can have: EC2's answers do not say.

The numbers are those that AWS's VPC resource controller knows, as of its release 1.8.2 of September 2026; a type
that is newer has none until `branches.json` is written anew from a later release.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec


class _Alike(msgspec.Struct, frozen=True, kw_only=True):
    """Families whose sizes have the same numbers."""

    families: str
    sizes: dict[str, int]


def branch_interfaces(instance_type: str) -> int:
    """Answer the number, 0 for a type that has no trunk.

    >>> branch_interfaces("m5.large"), branch_interfaces("t3.large")
    (9, 0)
    """
    return _known().get(instance_type, 0)


@cache
def _known() -> Mapping[str, int]:
    body = files("shared.aws").joinpath("branches.json").read_bytes()
    return {
        f"{family}.{size}": count
        for alike in msgspec.json.decode(body, type=list[_Alike])
        for family in alike.families.split()
        for size, count in alike.sizes.items()
    }
