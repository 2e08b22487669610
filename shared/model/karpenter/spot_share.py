"""Spot shares: how much of a NodePool, or of the pods of a workload, may be on Spot nodes.

As in a mixed instances policy of EC2 Auto Scaling, a base is on-demand, and the share counts above it.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.core.formatting import join_names
from shared.model.core.labels import (
    CAPACITY_TYPE,
    ON_DEMAND,
    ON_DEMAND_BASE,
    RESERVED,
    SPOT,
    SPOT_SHARE,
    SPOT_SHARE_UNIT,
)
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements
from shared.model.karpenter.node_pool import NodePool

ShareUnit: TypeAlias = Literal["nodes", "vcpu", "pods"]
POOL_UNITS: Final[tuple[ShareUnit, ...]] = ("nodes", "vcpu")
WORKLOAD_UNITS: Final[tuple[ShareUnit, ...]] = ("pods",)
SHARE_ANNOTATIONS: Final = (SPOT_SHARE, ON_DEMAND_BASE, SPOT_SHARE_UNIT)
MILLI: Final = 1000
"""Thousandths of a vCPU in a vCPU."""
NOT_SPOT: Final = Requirements(items=(Requirement(key=CAPACITY_TYPE, complement=True, values=frozenset((SPOT,))),))

ONLY_SPOT: Final = build_label_requirements({CAPACITY_TYPE: SPOT})
UNLIMITED: Final = 1 << 62
_MAX_PERCENT: Final = 100
_MAX_BASE: Final = 1_000_000


class ShareUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is, in nodes, thousandths of a vCPU, or pods."""

    spot: int = 0
    total: int = 0
    """Spot, on-demand and reserved capacity."""

    def __add__(self, addend: "ShareUsage") -> "ShareUsage":
        """Return the sum."""
        return ShareUsage(spot=self.spot + addend.spot, total=self.total + addend.total)

    def __sub__(self, subtrahend: "ShareUsage") -> "ShareUsage":
        """Return the difference."""
        return ShareUsage(spot=self.spot - subtrahend.spot, total=self.total - subtrahend.total)


class SpotShare(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be Spot: at most *percent* of what exceeds *base*."""

    percent: int
    base: int = 0
    """In units of usage: nodes, thousandths of a vCPU, or pods."""
    unit: ShareUnit = "nodes"

    def compute_free_spot(self, usage: ShareUsage) -> int:
        """Return how much Spot capacity may be added to *usage*; at least 0."""
        slack = self._compute_slack(usage)
        if slack < 0:
            return 0
        return UNLIMITED if self.percent == _MAX_PERCENT else slack // (_MAX_PERCENT - self.percent)

    def measure_excess(self, usage: ShareUsage) -> int:
        """Return by how much *usage* exceeds the share, 0 if it does not; in hundredths of the unit.

        Without Spot capacity, nothing exceeds the share.
        """
        return max(0, -self._compute_slack(usage)) if usage.spot > 0 else 0

    def compute_max_spot(self, total: int) -> int:
        """Return how much of *total* may be Spot."""
        return max(0, self.percent * (total - self.base) // _MAX_PERCENT)

    def format_usage(self, usage: ShareUsage) -> str:
        """Return *usage* in words, with what the share allows.

        >>> SpotShare(percent=50, base=2).format_usage(ShareUsage(spot=4, total=10))
        '4 of 10 nodes are Spot, at most 4 may be (50 % of the nodes above the base of 2)'
        """
        divisor, unit = (MILLI, "vCPU") if self.unit == "vcpu" else (1, self.unit)
        spot, total, base = (f"{amount / divisor:g}" for amount in (usage.spot, usage.total, self.base))
        max_spot = f"{self.compute_max_spot(usage.total) / divisor:g}"
        above = f" of the {unit} above the base of {base}" if self.base else ""
        return f"{spot} of {total} {unit} are Spot, at most {max_spot} may be ({self.percent} %{above})"

    def _compute_slack(self, usage: ShareUsage) -> int:
        return self.percent * (usage.total - self.base) - _MAX_PERCENT * usage.spot


def find_spot_share(pool: NodePool) -> SpotShare | None:
    """Return the share of *pool*; None if there is none, if it is invalid, or if it cannot have an effect."""
    if not has_share_annotations(pool.meta) or find_pool_share_problem(pool) or not allows_both_capacity_types(pool):
        return None
    share = parse_spot_share(pool.meta, POOL_UNITS)
    return None if share.percent == _MAX_PERCENT and not share.base else share


def has_share_annotations(meta: ObjectMeta) -> bool:
    """Return whether an object has an annotation of shares."""
    return any(meta.get_annotation(key) for key in SHARE_ANNOTATIONS)


def allows_both_capacity_types(pool: NodePool) -> bool:
    """Return whether *pool* allows Spot and also on-demand or reserved capacity, and is not static."""
    allowed = pool.requirements[CAPACITY_TYPE]
    return pool.replicas is None and allowed.has(SPOT) and (allowed.has(ON_DEMAND) or allowed.has(RESERVED))


def find_pool_share_problem(pool: NodePool) -> str:
    """Return the error in the share of *pool*, as annotation and fix; "" if there is none."""
    return find_share_problem(pool.meta, POOL_UNITS)


def find_share_problem(meta: ObjectMeta, units: tuple[ShareUnit, ...]) -> str:
    """Return the error in the share of an object that can be counted in *units*; "" if there is none."""
    if not has_share_annotations(meta):
        return ""
    try:
        parse_spot_share(meta, units)
    except ValueError as error:
        return str(error)
    return ""


def parse_spot_share(meta: ObjectMeta, units: tuple[ShareUnit, ...]) -> SpotShare:
    """Parse the annotations of an object; the first of *units* is the default.

    Without a percentage, everything above the base may be Spot.

    Raises:
        ValueError: an annotation is invalid; the message starts with its key.
    """
    percent = _parse_number(meta, SPOT_SHARE, _MAX_PERCENT, _MAX_PERCENT)
    base = _parse_number(meta, ON_DEMAND_BASE, 0, _MAX_BASE)
    text = meta.get_annotation(SPOT_SHARE_UNIT) or units[0]
    unit = next((known_unit for known_unit in units if known_unit == text), None)
    if unit is None:
        raise ValueError(f"{SPOT_SHARE_UNIT}: {text!r} is not a unit: write {join_names(units)}")
    return SpotShare(percent=percent, base=base * MILLI if unit == "vcpu" else base, unit=unit)


def _parse_number(meta: ObjectMeta, key: str, default: int, maximum: int) -> int:
    text = meta.get_annotation(key)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or int(text) > maximum:
        raise ValueError(f"{key}: {text!r} is not a whole number from 0 to {maximum:,}: write a number like 50")
    return int(text)
