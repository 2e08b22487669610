"""The lease: one function at a time plans, and whoever lost it can do no more harm.

The lease is a row of the table; its version is the fencing token. Writes that must not be done twice (a launch group)
carry the fence and fail once somebody else holds the lease. The row is overwritten, never removed, and has no time to
live: made anew it would count from one again, and an old fence could hold.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Conflict, Fault
from shared.model.action import Action, CreateNodeClaim, LaunchInstances
from shared.ports import Fence, Row, Table, World

KIND: Final = "lease"
LASTS: Final = timedelta(seconds=60)
"""Longer than a function of the tick may run, so that its end is the holder's death."""

NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""Until when a lease is held that was given back: for whoever comes, whatever their clock says."""
REMEMBERED: Final = 16
"""Holders that were overtaken: what they write comes late by minutes, not by weeks."""
TRUSTED: Final = timedelta(seconds=5)
"""So long after a look at the lease claims are created without another."""


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """The row's body: who holds the lease, and until when.

    What else a later release has written there stays as it is: until it is deployed everywhere both take turns.
    """

    owner: str
    until: datetime
    overtaken: tuple[int, ...] = ()
    """Versions that were not given back, the latest first, no more than `REMEMBERED`."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that was taken."""

    fence: Fence
    others: Mapping[str, msgspec.Raw]
    """Fields of the row that are not ours."""


@contextmanager
def leased(world: World, name: str) -> Iterator[Fence | None]:
    """Hold the lease *name* for a block; yield None where somebody else holds it.

    It is given back at the end of the block, not where the process dies: then it ends by itself.

    Raises:
        Fault: the table did not answer.
    """
    held = _acquire(world, name)
    try:
        yield held.fence if held is not None else None
    except Exception:
        _release(world, held)
        raise
    _release(world, held)


def holds(table: Table, fence: Fence) -> bool:
    """Whether the lease is still ours."""
    row = table.read(KIND, fence.name)
    return row is not None and row.version == fence.version


class Guard:
    """What a fence guards: launches, and claims that will be launched.

    A launch is never sent before a look at the lease, and what is written down for it carries the fence besides. Before
    a claim the last look will do for a moment: what comes of claims is launched under the fence again.
    """

    def __init__(self, world: World, fence: Fence | None) -> None:
        """Begin without a look; without *fence* nothing is guarded."""
        self.fence = fence
        self._world = world
        self._looked_at: datetime | None = None

    def lets(self, action: Action) -> bool:
        """Whether *action* may be performed.

        Raises:
            Fault: the table did not answer.
        """
        if self.fence is None or not isinstance(action, CreateNodeClaim | LaunchInstances):
            return True
        now = self._world.clock()
        is_fresh = self._looked_at is not None and now - self._looked_at < TRUSTED
        if is_fresh and isinstance(action, CreateNodeClaim):
            return True
        if not holds(self._world.table, self.fence):
            return False
        self._looked_at = now
        return True


def _acquire(world: World, name: str) -> Held | None:
    now = world.clock()
    row = world.table.read(KIND, name)
    before, others = _holding(row), _others(row)
    if before.until > now:
        return None
    overtaken = before.overtaken
    if row is not None and before.owner:
        overtaken = (row.version, *overtaken)[:REMEMBERED]
    body = _body(Holding(owner=world.name, until=now + LASTS, overtaken=overtaken), others)
    try:
        taken = world.table.write(KIND, name, body, version=row.version if row is not None else 0)
    except Conflict:
        return None
    return Held(fence=Fence(name=name, version=taken.version, overtaken=overtaken), others=others)


def _release(world: World, held: Held | None) -> None:
    if held is None:
        return
    fence = held.fence
    body = _body(Holding(owner="", until=NEVER, overtaken=fence.overtaken), held.others)
    try:
        world.table.write(KIND, fence.name, body, version=fence.version)
    except Fault:
        return  # somebody took it over, or it ends by itself


def _holding(row: Row | None) -> Holding:
    """Read who has the lease; where that cannot be read it has ended: taking it breaks its holder's fence."""
    if row is None:
        return Holding(owner="", until=NEVER)
    try:
        return msgspec.json.decode(row.body, type=Holding)
    except msgspec.DecodeError:
        return Holding(owner="?", until=NEVER)


def _others(row: Row | None) -> Mapping[str, msgspec.Raw]:
    """Answer what *row* has besides; nothing where it cannot be read."""
    try:
        fields = msgspec.json.decode(row.body, type=dict[str, msgspec.Raw]) if row is not None else {}
    except msgspec.DecodeError:
        return {}
    return {name: value for name, value in sorted(fields.items()) if name not in Holding.__struct_fields__}


def _body(holding: Holding, others: Mapping[str, msgspec.Raw]) -> str:
    return msgspec.json.encode(msgspec.structs.asdict(holding) | dict(others)).decode()
