"""By which quota of vCPUs EC2 counts an instance type, and which of them NodePools may come to."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT
from shared.model.nodepools import NodePool

STANDARD: Final = "standard"
_LETTERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
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
"""What types of a family begin with: the values of the label instance-category."""
_P5: Final = "P5"
"""Spot has a quota of its own for it."""
_CODES: Final = {
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
"""Of Service Quotas. High memory and HPC are not sold as spot."""
_CATEGORY: Final = "karpenter.k8s.aws/instance-category"
_FAMILY: Final = "karpenter.k8s.aws/instance-family"
_DEMANDED: Final = {
    "karpenter.k8s.aws/instance-gpu-": frozenset(("G and VT", "P", _P5)),
    "karpenter.k8s.aws/instance-accelerator-": frozenset(("Inf", "Trn", "DL")),
}
"""Labels that only types of these families have."""
_NAME: Final = re.compile(r"(?P<letters>[a-z]+)-?(?P<generation>\d*)")


class Quota(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One quota: of a family of types, bought in one way."""

    family: str
    kind: str
    """The capacity type: ``on-demand`` or ``spot``."""
    code: str

    @property
    def name(self) -> str:
        """What it is called, as ``standard spot``."""
        return f"{self.family} {self.kind}"


QUOTAS: Final = tuple(Quota(family=family, kind=kind, code=code) for (family, kind), code in _CODES.items())
"""Standard ones first."""
BY_NAME: Final = {one.name: one for one in QUOTAS}
USUAL: Final = tuple(one for one in QUOTAS if one.family == STANDARD)
"""What is asked where no NodePool says what it wants."""


def quota_of(instance_type: str, kind: str) -> Quota | None:
    """Answer by which quota a type counts; None: by none of these.

    >>> [quota_of(*one).name for one in (("m5.large", "spot"), ("p5.48xlarge", "spot"), ("p5.48xlarge", "on-demand"))]
    ['standard spot', 'P5 spot', 'P on-demand']
    """
    return next((BY_NAME[name] for one in _families(instance_type) if (name := f"{one} {kind}") in BY_NAME), None)


def quotas_of(pool: NodePool) -> tuple[Quota, ...]:
    """Answer the quotas by which nodes of *pool* may count, as far as its requirements say.

    Only what types are called by is looked at, and whether a GPU or an accelerator is asked for: what is asked of
    processors and memory may leave still fewer.
    """
    return tuple(one for one in QUOTAS if pool.requirements[CAPACITY_TYPE].has(one.kind) and _may_be(one, pool))


def wanted(pools: Iterable[NodePool]) -> tuple[Quota, ...]:
    """Answer the quotas that matter to *pools*, `USUAL` if there is none."""
    found = {quota for pool in pools for quota in quotas_of(pool)}
    return tuple(one for one in QUOTAS if one in found) or USUAL


def _may_be(quota: Quota, pool: NodePool) -> bool:
    asked = pool.requirements
    if any(quota.family not in some for one in asked if not one.is_tolerant() for some in _only(one.key)):
        return False
    named = [one for key in (_FAMILY, INSTANCE_TYPE) if not (one := asked[key]).complement]
    if any(quota not in {quota_of(value, quota.kind) for value in one.values} for one in named):
        return False
    return any(asked[_CATEGORY].has(letters) for letters in _beginnings(quota.family))


def _beginnings(family: str) -> tuple[str, ...]:
    return dict(_LETTERS).get("P" if family == _P5 else family, ())


def _only(key: str) -> Iterator[frozenset[str]]:
    yield from (families for prefix, families in _DEMANDED.items() if key.startswith(prefix))


def _families(instance_type: str) -> Iterator[str]:
    """Iterate over the families that a type may count by, the narrower one first."""
    found = _NAME.match(instance_type)
    if found is None:
        return
    if found["letters"] == "p" and found["generation"] == "5":
        yield _P5
    yield from (family for family, letters in _LETTERS if found["letters"] in letters)
