"""The vCPU quota that EC2 counts an instance type against, and the quotas that NodePools may use."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT
from shared.model.karpenter.node_pool import NodePool

STANDARD: Final = "standard"
_FAMILY_PREFIXES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (STANDARD, ("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z")),
    ("G and VT", ("g", "gr", "vt")),
    ("P", ("p",)),
    ("Inf", ("inf",)),
    ("Trn", ("trn",)),
    ("DL", ("dl",)),
    ("F", ("f",)),
    ("X", ("x",)),
    ("high memory", ("u",)),
    ("HPC", ("hpc",)),
)
"""Letters at the start of the type names of each family: the values of the label instance-category."""
_P5: Final = "P5"
"""P5 has a spot quota of its own."""
_QUOTA_CODES: Final = {
    (STANDARD, ON_DEMAND): "L-1216C47A",
    (STANDARD, SPOT): "L-34B43A08",
    ("G and VT", ON_DEMAND): "L-DB2E81BA",
    ("G and VT", SPOT): "L-3819A6DF",
    ("P", ON_DEMAND): "L-417A185B",
    ("P", SPOT): "L-7212CCBC",
    (_P5, SPOT): "L-C4BD4855",
    ("Inf", ON_DEMAND): "L-1945791B",
    ("Inf", SPOT): "L-B5D1601B",
    ("Trn", ON_DEMAND): "L-2C3B7624",
    ("Trn", SPOT): "L-6B0D517C",
    ("DL", ON_DEMAND): "L-6E869C2A",
    ("DL", SPOT): "L-85EED4F7",
    ("F", ON_DEMAND): "L-74FC7D96",
    ("F", SPOT): "L-88CF9481",
    ("X", ON_DEMAND): "L-7295265B",
    ("X", SPOT): "L-E3A00192",
    ("high memory", ON_DEMAND): "L-43DA4232",
    ("HPC", ON_DEMAND): "L-F7808C92",
}
"""Codes of Service Quotas. High memory and HPC instances are not sold as spot."""
_CATEGORY_LABEL: Final = "karpenter.k8s.aws/instance-category"
_FAMILY_LABEL: Final = "karpenter.k8s.aws/instance-family"
_FAMILIES_BY_LABEL_PREFIX: Final = {
    "karpenter.k8s.aws/instance-gpu-": frozenset(("G and VT", "P", _P5)),
    "karpenter.k8s.aws/instance-accelerator-": frozenset(("Inf", "Trn", "DL")),
}
"""Labels that only instance types of these families have."""
_TYPE_NAME_PATTERN: Final = re.compile(r"(?P<letters>[a-z]+)-?(?P<generation>\d*)")


class Quota(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A vCPU quota of one instance family and one capacity type."""

    family: str
    capacity_type: str
    """``on-demand`` or ``spot``."""
    code: str

    @property
    def name(self) -> str:
        """Name of the quota, for example ``standard spot``."""
        return f"{self.family} {self.capacity_type}"


QUOTAS: Final = tuple(
    Quota(family=family, capacity_type=kind, code=code) for (family, kind), code in _QUOTA_CODES.items()
)
"""Standard quotas come first."""
QUOTA_BY_NAME: Final = {quota.name: quota for quota in QUOTAS}
DEFAULT_QUOTAS: Final = tuple(quota for quota in QUOTAS if quota.family == STANDARD)
"""The quotas to read if no NodePool restricts them."""


def find_quota(instance_type: str, capacity_type: str) -> Quota | None:
    """Return the quota that counts an instance type; None if it is none of these.

    >>> [find_quota(name, "spot").name for name in ("m5.large", "p5.48xlarge")]
    ['standard spot', 'P5 spot']
    >>> find_quota("p5.48xlarge", "on-demand").name
    'P on-demand'
    """
    return next(
        (
            QUOTA_BY_NAME[name]
            for instance_family in _list_families_of_type(instance_type)
            if (name := f"{instance_family} {capacity_type}") in QUOTA_BY_NAME
        ),
        None,
    )


def list_node_pool_quotas(pool: NodePool) -> tuple[Quota, ...]:
    """Return the quotas that nodes of *pool* may count against, as far as its requirements decide.

    Only the names of instance types and requirements for a GPU or an accelerator are considered: requirements for CPU
    and memory may exclude more quotas.
    """
    return tuple(
        quota for quota in QUOTAS if pool.requirements[CAPACITY_TYPE].has(quota.capacity_type) and _can_use(quota, pool)
    )


def select_quotas(pools: Iterable[NodePool]) -> tuple[Quota, ...]:
    """Return the quotas that nodes of *pools* may count against, else `DEFAULT_QUOTAS`."""
    used_quotas = {quota for pool in pools for quota in list_node_pool_quotas(pool)}
    return tuple(quota for quota in QUOTAS if quota in used_quotas) or DEFAULT_QUOTAS


def _can_use(quota: Quota, pool: NodePool) -> bool:
    requirements = pool.requirements
    if any(
        quota.family not in families
        for requirement in requirements
        if not requirement.is_tolerant()
        for families in _list_families_of_label(requirement.key)
    ):
        return False
    type_requirements = [
        key_requirement
        for key in (_FAMILY_LABEL, INSTANCE_TYPE)
        if not (key_requirement := requirements[key]).complement
    ]
    if any(
        quota not in {find_quota(value, quota.capacity_type) for value in requirement.values}
        for requirement in type_requirements
    ):
        return False
    return any(requirements[_CATEGORY_LABEL].has(category) for category in _list_prefixes(quota.family))


def _list_prefixes(family: str) -> tuple[str, ...]:
    return dict(_FAMILY_PREFIXES).get("P" if family == _P5 else family, ())


def _list_families_of_label(key: str) -> Iterator[frozenset[str]]:
    yield from (families for prefix, families in _FAMILIES_BY_LABEL_PREFIX.items() if key.startswith(prefix))


def _list_families_of_type(instance_type: str) -> Iterator[str]:
    """Yield the families that may count an instance type, the narrower one first."""
    match = _TYPE_NAME_PATTERN.match(instance_type)
    if match is None:
        return
    if match["letters"] == "p" and match["generation"] == "5":
        yield _P5
    yield from (family for family, prefixes in _FAMILY_PREFIXES if match["letters"] in prefixes)
