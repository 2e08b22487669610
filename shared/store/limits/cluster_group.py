"""The row of a group of clusters, in the table that its clusters share.

Every write replaces the entry of one cluster, and is conditional on the version of the row: all other entries are those
that were compared with the limit. Entries of other clusters stay byte by byte, because a later release may have written
them.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from shared.errors import Conflict, Fault
from shared.model.cloud_provider.cluster_group import (
    GroupAmount,
    GroupEntry,
    GroupUsage,
    is_within_limit,
    needs_write,
    update_entry,
)
from shared.model.karpenter.money_limit import convert_to_micro_usd
from shared.ports.storage import Table, TableRow
from shared.ports.world import World
from shared.settings import ChosenSettings, Settings
from shared.store.table_rows import decode_body_text, encode_body

ROW_NAME: Final = "usage"
MAX_WRITE_ATTEMPTS: Final = 8
"""Attempts of one write: each fails only if another cluster wrote its own entry in between."""


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    entries: dict[str, msgspec.Raw]


def build_row_kind(group: str) -> str:
    """Return the partition key of *group*: permissions are restricted to it."""
    return f"group/{group}"


def read_group_usage(world: World) -> GroupUsage | None:
    """Read the group of the cluster; None without a group. An error is part of the result: nothing is left then."""
    settings = world.settings
    if not settings.group:
        return None
    if world.group_table is None:
        return replace(build_empty_usage(settings, settings.group_member), read_error="there is no group-table")
    return read_usage(world.group_table, settings, settings.group_member)


def read_usage(table: Table, settings: ChosenSettings, member: str) -> GroupUsage:
    """Read the group in *settings* for its cluster *member*; an error is part of the result."""
    usage = build_empty_usage(settings, member)
    try:
        row = table.read(build_row_kind(settings.group), ROW_NAME)
        return replace(usage, entries=decode_entries(row))
    except (Fault, msgspec.DecodeError) as error:
        return replace(usage, read_error=f"{type(error).__name__}: {error}")


def build_empty_usage(settings: ChosenSettings, member: str) -> GroupUsage:
    """Return the usage of the group in *settings*, without entries."""
    return GroupUsage(
        group=settings.group,
        table=settings.group_table,
        member=member,
        is_observer=settings.mode == "plan" or not member,
        own_limit=convert_to_micro_usd(settings.group_limit_usd_per_hour),
    )


def decode_entries(row: TableRow | None) -> tuple[tuple[str, GroupEntry], ...]:
    """Return the entries of *row*, sorted by cluster.

    Raises:
        msgspec.DecodeError: an entry cannot be decoded: the amount of its cluster is not known.
    """
    if row is None:
        return ()
    raw_entries = decode_body_text(row.body, _Row).entries
    return tuple(
        (member, msgspec.json.decode(raw_entry, type=GroupEntry)) for member, raw_entry in sorted(raw_entries.items())
    )


def try_write_amount(world: World, amount: GroupAmount, *, is_launch: bool) -> bool:
    """Write *amount* into the entry of the cluster; return False if it was not written.

    It is not written if another function of the cluster wrote the entry since it was read. A higher amount for a
    launch must be within the limit next to the current entries of all other clusters. Without a launch, it is what the
    nodes cost now, for example at higher spot prices, and is written in any case.

    Raises:
        Fault: the table did not respond, or its row cannot be decoded.
    """
    table, settings, now = world.group_table, world.settings, world.clock()
    if table is None:
        return False
    for _ in range(MAX_WRITE_ATTEMPTS):
        usage, row = _read_row(table, settings)
        if not is_launch and not needs_write(usage, amount.used, now):
            return True
        entry = update_entry(usage, amount, settings.money_limit_prices, now)
        if entry is None:
            return False
        if is_launch and (usage.find_waiting_reason(now) or not is_within_limit(usage, amount.used)):
            return False
        if _try_write_entries(
            table, settings.group, row, {settings.group_member: msgspec.Raw(msgspec.json.encode(entry))}
        ):
            return True
    return False


def remove_entry(table: Table, group: str, member: str, expected: GroupEntry) -> bool:
    """Remove the entry of *member* if it is still *expected*; return whether it was removed.

    Raises:
        Fault: the table did not respond.
        msgspec.DecodeError: the row cannot be decoded.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        row = table.read(build_row_kind(group), ROW_NAME)
        if dict(decode_entries(row)).get(member) != expected:
            return False
        if _try_write_entries(table, group, row, {member: None}):
            return True
    return False


def _read_row(table: Table, settings: Settings) -> tuple[GroupUsage, TableRow | None]:
    row = table.read(build_row_kind(settings.group), ROW_NAME)
    try:
        return replace(build_empty_usage(settings, settings.group_member), entries=decode_entries(row)), row
    except msgspec.DecodeError as error:
        raise Fault(f"the row of group {settings.group} cannot be decoded: {error}") from error


def _try_write_entries(table: Table, group: str, row: TableRow | None, changes: dict[str, msgspec.Raw | None]) -> bool:
    """Write *row* with *changes* of entries; return False if the row changed since it was read."""
    entries = {} if row is None else decode_body_text(row.body, _Row).entries
    entries = {member: entry for member, entry in (entries | changes).items() if entry is not None}
    body = encode_body(_Row(entries=entries), group, "remove clusters with `joiner group forget`")
    try:
        table.write(build_row_kind(group), ROW_NAME, body, version=0 if row is None else row.version)
    except Conflict:
        return False
    return True
