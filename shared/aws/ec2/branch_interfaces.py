"""The number of branch network interfaces of each instance type, which EC2's API does not return.

The numbers are those of AWS's VPC resource controller, release 1.8.2 of September 2026. A newer instance type has none
until `branches.json` is regenerated from a later release.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec


class _FamilyGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Instance families with the same number of branch interfaces for each size."""

    families: str
    sizes: dict[str, int]


def count_branch_interfaces(instance_type: str) -> int:
    """Return the number of branch network interfaces of *instance_type*, 0 for a type without a trunk interface.

    >>> count_branch_interfaces("m5.large"), count_branch_interfaces("t3.large")
    (9, 0)
    """
    return _load_branch_interface_counts().get(instance_type, 0)


@cache
def _load_branch_interface_counts() -> Mapping[str, int]:
    body = files("shared.aws.ec2").joinpath("branches.json").read_bytes()
    return {
        f"{family}.{size}": count
        for family_group in msgspec.json.decode(body, type=list[_FamilyGroup])
        for family in family_group.families.split()
        for size, count in family_group.sizes.items()
    }
