"""A group of clusters with one limit in USD per hour.

The group's row in the shared table has one entry for each cluster: the amount that the cluster may be using. A cluster
raises its entry before it launches, and lowers it when it uses less. So no clock and no expiry decides whether an
amount counts: the last known amount counts until its cluster, or an operator, replaces it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec

from shared.model.core.resources import USD_PER_HOUR, format_amount
from shared.model.karpenter.money_limit import GroupShare, LimitPriceKind

JOIN_DELAY: Final = timedelta(minutes=3)
"""A cluster that joins a group launches nothing for this long, so that the other clusters write their entries first.

After the row of a group was deleted, all clusters join again. Each of them writes its entry once a minute.
"""
REWRITE_INTERVAL: Final = timedelta(minutes=5)
"""An entry whose amount does not change is written again after this time, so that silent clusters can be found."""
_DENIED: Final = "Forbidden: "
SILENT_AFTER: Final = timedelta(minutes=15)
"""An entry that was not written for this long belongs to a cluster that is silent: uninstalled, or failing."""


class GroupEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of one cluster. Amounts are in millionths of a USD per hour."""

    used: Annotated[int, msgspec.Meta(ge=0)]
    """The price of all running, in-flight and reserved nodes."""
    limit: Annotated[int, msgspec.Meta(ge=0)]
    """The limit of the group, as this cluster has it."""
    prices: LimitPriceKind = "marginal"
    revision: int = 1
    """Grows by one with every write of the entry."""
    joined_at: datetime
    written_at: datetime
    """By the clock of this cluster: it is shown, and decides about nothing but the cluster's own writes."""

    def is_silent(self, now: datetime) -> bool:
        """Return whether the cluster has not written its entry for a while."""
        return now - self.written_at >= SILENT_AFTER


class GroupUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The group as one of its clusters reads it."""

    group: str
    member: str
    """The cluster that reads: ACCOUNT/REGION/NAME."""
    own_limit: int
    """The limit of the group in the settings of this cluster, in millionths of a USD per hour."""
    is_observer: bool = False
    """Whether *member* only reads the group, and launches nothing: then it does not wait for its entry."""
    entries: tuple[tuple[str, GroupEntry], ...] = ()
    """By cluster, sorted; also that of *member*."""
    table: str = ""
    """ARN of the table."""
    read_error: str = ""
    """Why the entries could not be read: the kind of the error, and its message.

    Then they are unknown, and nothing is left of the limit.
    """

    def get_entry(self, member: str = "") -> GroupEntry | None:
        """Return the entry of *member*, by default of the reading cluster; None if there is none."""
        return dict(self.entries).get(member or self.member)

    @property
    def is_denied(self) -> bool:
        """Whether the entries could not be read because a permission is missing."""
        return self.read_error.startswith(_DENIED)

    @property
    def limit(self) -> int:
        """The lowest of the limits that the clusters have."""
        return min([self.own_limit, *(entry.limit for _, entry in self.entries)])

    @property
    def used_by_others(self) -> int:
        """The sum of the amounts of all other clusters."""
        return sum(entry.used for member, entry in self.entries if member != self.member)

    @property
    def used(self) -> int:
        """The sum of the amounts of all clusters."""
        return sum(entry.used for _, entry in self.entries)

    def find_waiting_reason(self, now: datetime) -> str:
        """Return why no amount may be used now, although some may be left; "" if it may."""
        if self.read_error:
            fix = "; to fix: allow dynamodb:GetItem and dynamodb:PutItem on group-table for provision"
            return (
                f"group {self.group}: {f'table {self.table}'.strip()} could not be read: {self.read_error}; "
                f"no node is launched until it can be read{fix if self.is_denied else ''}"
            )
        entry = self.get_entry()
        if self.is_observer:
            return ""
        if entry is None:
            minutes = JOIN_DELAY // timedelta(minutes=1)
            return f"the cluster joins group {self.group}; it launches no nodes for {minutes}m"
        launches_at = entry.joined_at + JOIN_DELAY
        if now < launches_at:
            return (
                f"the cluster joined group {self.group} at {entry.joined_at:%H:%M:%SZ}; "
                f"it launches no nodes until {launches_at:%H:%M:%SZ}"
            )
        return ""

    def compute_share(self, now: datetime) -> GroupShare:
        """Return what the other clusters leave to this cluster."""
        waiting_reason = self.find_waiting_reason(now)
        available = 0 if waiting_reason else max(0, self.limit - self.used_by_others)
        return GroupShare(group=self.group, limit=self.limit, available=available, waiting_reason=waiting_reason)


class GroupAmount(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster writes into its entry before it launches."""

    used: int
    """In millionths of a USD per hour, with the launches that are planned."""
    revision: int
    """The revision of the entry that was read; 0 if there was none."""


def update_entry(usage: GroupUsage, amount: GroupAmount, prices: LimitPriceKind, now: datetime) -> GroupEntry | None:
    """Return the new entry of the reading cluster; None if it must not be written.

    It must not be written if the entry changed since it was read, or if a higher amount exceeds the limit.
    """
    entry = usage.get_entry()
    revision = 0 if entry is None else entry.revision
    if revision != amount.revision:
        return None
    return GroupEntry(
        used=amount.used,
        limit=usage.own_limit,
        prices=prices,
        revision=revision + 1,
        joined_at=now if entry is None else entry.joined_at,
        written_at=now,
    )


def is_within_limit(usage: GroupUsage, used: int) -> bool:
    """Return whether the reading cluster may launch up to the amount *used*."""
    return used <= usage.limit - usage.used_by_others


def needs_write(usage: GroupUsage, used: int, now: datetime) -> bool:
    """Return whether the entry of the reading cluster differs from *used* or the settings, or is old."""
    entry = usage.get_entry()
    if usage.read_error:
        return False
    return (
        entry is None
        or (entry.used, entry.limit) != (used, usage.own_limit)
        or now - entry.written_at >= REWRITE_INTERVAL
    )


def describe_different_settings(entries: Iterable[tuple[str, GroupEntry]]) -> str:
    """Return how the limits or prices of the clusters differ; "" if they are equal."""
    by_member = tuple(entries)
    limits = sorted({entry.limit for _, entry in by_member})
    if len(limits) > 1:
        amounts = ", ".join(f"{member} {format_amount(USD_PER_HOUR, entry.limit)}" for member, entry in by_member)
        return f"the clusters have different limits, and the lowest applies: {amounts}"
    if len({entry.prices for _, entry in by_member}) > 1:
        kinds = ", ".join(f"{member} {entry.prices}" for member, entry in by_member)
        return f"the clusters count with different prices (money-limit-prices): {kinds}"
    return ""
