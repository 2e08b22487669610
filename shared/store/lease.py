"""The lease: one function plans at a time, and a controller that lost its lease can do no more harm.

The lease is a table row; its version is the fencing token. Writes that must not be done twice (a launch group) carry
the token and fail once another controller holds the lease. The row is overwritten, never deleted, and has no TTL: a new
row would count from one again, and an old token could become valid.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

import msgspec

from shared.errors import Fault
from shared.model.core.units import EARLIEST_INSTANT
from shared.model.decisions.action import Action, CreateNodeClaim, LaunchInstances, RestartDeployment, ScaleWorkload
from shared.ports.storage import FencingToken, Table, TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_body, try_write

ROW_KIND: Final = "lease"
LEASE_TTL: Final = timedelta(seconds=60)
"""Longer than a scheduled function may run: when it has passed, the holder cannot be running any more."""

RELEASED_UNTIL: Final = EARLIEST_INSTANT
"""End of a released lease: the past for every clock."""
MAX_OVERTAKEN_VERSIONS: Final = 16
"""Overtaken holders that are remembered: their writes can be late by minutes, not by weeks."""
LEASE_CHECK_TTL: Final = timedelta(seconds=5)
"""After a check of the lease, claims are created without another check for this long."""


class LeaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row's body: the holder of the lease, and until when it holds.

    Fields that a later release has written stay unchanged: until it is deployed everywhere, both releases take turns.
    """

    owner: str
    until: datetime
    overtaken: tuple[int, ...] = ()
    """Versions that were not released, latest first, at most `MAX_OVERTAKEN_VERSIONS`."""


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """An acquired lease."""

    fence: FencingToken
    foreign_fields: Mapping[str, msgspec.Raw]
    """Fields of the row that this release does not know."""


@contextmanager
def hold_lease(world: World, name: str) -> Iterator[FencingToken | None]:
    """Hold the lease *name* for a block; yield its fencing token, or None if another controller holds the lease.

    The lease is released at the end of the block; if the process dies, it expires.

    Raises:
        Fault: the table did not respond.
    """
    lease = _acquire_lease(world, name)
    try:
        yield lease.fence if lease is not None else None
    except Exception:
        _release_lease(world, lease)
        raise
    _release_lease(world, lease)


def is_lease_held(table: Table, fence: FencingToken) -> bool:
    """Return whether the lease is still held with *fence*."""
    row = table.read(ROW_KIND, fence.name)
    return row is not None and row.version == fence.version


class LeaseGuard:
    """Checks the lease before launches and before the creation of NodeClaims.

    The lease is checked before every launch, and the launch's row carries the fencing token. For a claim, a recent
    check is enough: the launch for the claim is fenced again. Safe to share between threads.
    """

    def __init__(self, world: World, fence: FencingToken | None) -> None:
        """Start without a check; without *fence*, nothing is guarded."""
        self.fence = fence
        self._world = world
        self.write_lock = Lock()
        """Held while a row is written with the fencing token: of two transactions that check the lease at the same
        time, DynamoDB can reject both (TransactionConflict)."""
        self._checked_at: datetime | None = None
        self._lock = Lock()

    def can_perform(self, action: Action) -> bool:
        """Return whether *action* may be performed.

        Raises:
            Fault: the table did not respond.
        """
        if self.fence is None or not isinstance(
            action, CreateNodeClaim | LaunchInstances | RestartDeployment | ScaleWorkload
        ):
            return True
        with self._lock:  # one thread reads the row for all that create claims
            now = self._world.clock()
            is_fresh = self._checked_at is not None and now - self._checked_at < LEASE_CHECK_TTL
            if is_fresh and isinstance(action, CreateNodeClaim):
                return True
            if not is_lease_held(self._world.table, self.fence):
                return False
            self._checked_at = now
            return True


def _acquire_lease(world: World, name: str) -> HeldLease | None:
    now = world.clock()
    row = world.table.read(ROW_KIND, name)
    current_holder, foreign_fields = _decode_lease_row(row), _decode_foreign_fields(row)
    if current_holder.until > now:
        return None
    overtaken = current_holder.overtaken
    if row is not None and current_holder.owner:
        overtaken = (row.version, *overtaken)[:MAX_OVERTAKEN_VERSIONS]
    body = _encode_lease_row(LeaseRow(owner=world.name, until=now + LEASE_TTL, overtaken=overtaken), foreign_fields)
    written_row = try_write(world.table, ROW_KIND, name, body, version=row.version if row is not None else 0)
    if written_row is None:
        return None
    return HeldLease(
        fence=FencingToken(name=name, version=written_row.version, overtaken=overtaken), foreign_fields=foreign_fields
    )


def _release_lease(world: World, lease: HeldLease | None) -> None:
    if lease is None:
        return
    fence = lease.fence
    body = _encode_lease_row(LeaseRow(owner="", until=RELEASED_UNTIL, overtaken=fence.overtaken), lease.foreign_fields)
    try:
        world.table.write(ROW_KIND, fence.name, body, version=fence.version)
    except Fault:
        return  # another controller took over, or the lease expires


def _decode_lease_row(row: TableRow | None) -> LeaseRow:
    """Decode the holder of the lease; an undecodable row counts as expired: acquiring it breaks the holder's token."""
    return decode_body(row, LeaseRow) or LeaseRow(owner="?" if row is not None else "", until=RELEASED_UNTIL)


def _decode_foreign_fields(row: TableRow | None) -> Mapping[str, msgspec.Raw]:
    """Return the fields of *row* that this release does not know; none if the row cannot be decoded."""
    fields = decode_body(row, dict[str, msgspec.Raw]) or {}
    return {name: value for name, value in sorted(fields.items()) if name not in LeaseRow.__struct_fields__}


def _encode_lease_row(lease_row: LeaseRow, foreign_fields: Mapping[str, msgspec.Raw]) -> str:
    return msgspec.json.encode(msgspec.structs.asdict(lease_row) | dict(foreign_fields)).decode()
