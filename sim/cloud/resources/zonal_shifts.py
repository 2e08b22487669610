"""Zonal shifts and autoshifts of the EKS cluster, as Amazon Application Recovery Controller (ARC) keeps them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Invalid, NotFound
from shared.model.cloud_provider.zonal_shift import ZonalShift
from sim.cloud import seeded_random

MIN_SHIFT_DURATION: Final = timedelta(minutes=1)
MAX_SHIFT_DURATION: Final = timedelta(hours=72)


class ListedShift(msgspec.Struct, frozen=True, kw_only=True):
    """A shift as GetManagedResource lists it."""

    shift_id: str
    """Empty: an autoshift."""
    shift: ZonalShift
    is_applied: bool


class ZonalShifts:
    """The shifts of one cluster. ARC manages it after zonal shift was enabled for it; it has at most one shift."""

    def __init__(self, cluster_arn: str, zone_ids: Mapping[str, str], seed: int) -> None:
        """Start without zonal shift; *zone_ids* by the name of the zone."""
        self.cluster_arn = cluster_arn
        self._zone_ids, self._seed = zone_ids, seed
        self.is_enabled = False
        self._shift: ZonalShift | None = None
        self._autoshift: ZonalShift | None = None
        self._shift_count = 0

    def enable(self) -> None:
        """Register the cluster in ARC."""
        self.is_enabled = True

    def disable(self) -> None:
        """Remove the cluster from ARC, which ends its shifts."""
        self.is_enabled, self._shift, self._autoshift = False, None, None

    def start_shift(self, zone: str, now: datetime, duration: timedelta, comment: str = "zone impaired") -> ZonalShift:
        """Start a zonal shift away from *zone*.

        Raises:
            NotFound: ARC does not manage the cluster.
            Invalid: the duration is not allowed, or the cluster has a zonal shift.
        """
        self.check_managed(self.cluster_arn)
        if not MIN_SHIFT_DURATION <= duration <= MAX_SHIFT_DURATION:
            raise Invalid("ValidationException: expiresIn is not valid", code="ValidationException")
        if self._get_shift(now) is not None:
            raise Invalid("ConflictException: a zonal shift is active for the resource", code="ConflictException")
        self._shift_count += 1
        self._shift = ZonalShift(
            zone_id=self._zone_ids[zone], started_at=now, expires_at=now + duration, comment=comment
        )
        return self._shift

    def cancel_shift(self) -> None:
        """Cancel the zonal shift, if there is one."""
        self._shift = None

    def start_autoshift(self, zone: str, now: datetime) -> None:
        """Let AWS shift away from *zone*.

        Raises:
            NotFound: ARC does not manage the cluster.
        """
        self.check_managed(self.cluster_arn)
        self._autoshift = ZonalShift(zone_id=self._zone_ids[zone], started_at=now)

    def end_autoshift(self) -> None:
        """End the autoshift, if there is one."""
        self._autoshift = None

    def check_managed(self, cluster_arn: str) -> None:
        """Check that ARC manages *cluster_arn*.

        Raises:
            NotFound: it does not: another account, region or cluster, or zonal shift is not enabled.
        """
        if not self.is_enabled or cluster_arn != self.cluster_arn:
            raise NotFound(f"ResourceNotFoundException: the resource {cluster_arn} was not found")

    def list_shifts(self, now: datetime) -> tuple[ListedShift, ...]:
        """Return the shifts at *now*; a shift that a user started takes precedence over an autoshift."""
        shift = self._get_shift(now)
        listed_shifts = []
        if shift is not None:
            shift_id = seeded_random.build_uuid(self._seed, "zonal-shift", self._shift_count)
            listed_shifts.append(ListedShift(shift_id=shift_id, shift=shift, is_applied=True))
        if self._autoshift is not None:
            listed_shifts.append(ListedShift(shift_id="", shift=self._autoshift, is_applied=shift is None))
        return tuple(listed_shifts)

    def _get_shift(self, now: datetime) -> ZonalShift | None:
        return self._shift if self._shift is not None and self._shift.is_active(now) else None
