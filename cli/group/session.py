"""The group that the arguments name: read, and changed."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import msgspec

from cli.aws.session import describe_fault, open_clients
from cli.terminal.errors import InputError
from shared.errors import Fault
from shared.model.cloud_provider.cluster_group import GroupEntry
from shared.ports.storage import Table
from shared.settings import Settings
from shared.settings_text import decode_texts
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind, decode_entries, remove_entry

GROUP_VARIABLE: Final = "JOINER_GROUP"
TABLE_VARIABLE: Final = "JOINER_GROUP_TABLE"
_OPTIONS: Final = {"group": "--group", "group_table": "--table"}
"""By setting."""


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """A group as an operator sees it, who is not one of its clusters."""

    group: str
    at: datetime
    entries: tuple[tuple[str, GroupEntry], ...]
    """By cluster, sorted."""

    @property
    def limit(self) -> int | None:
        """The lowest limit of the clusters, in millionths of a USD per hour; None without clusters."""
        return min((entry.limit for _, entry in self.entries), default=None)

    @property
    def used(self) -> int:
        """What all clusters use, in millionths of a USD per hour."""
        return sum(entry.used for _, entry in self.entries)


@contextmanager
def open_group(args: argparse.Namespace) -> Iterator[tuple[Table, str]]:
    """Open the table that *args* or the environment name; the context value is the table and the name of the group.

    Raises:
        InputError: a name is missing or wrong, or a call fails within the block.
    """
    from shared.aws.dynamodb import DynamoTable, get_table_region  # noqa: PLC0415 - botocore takes a fifth of a second

    group, table_arn = (
        args.group or os.environ.get(GROUP_VARIABLE, ""),
        args.table or os.environ.get(TABLE_VARIABLE, ""),
    )
    arguments = (
        (group, "--group", "NAME", GROUP_VARIABLE),
        (table_arn, "--table", "ARN", TABLE_VARIABLE),
    )
    for value, option, placeholder, variable in arguments:
        if not value:
            raise InputError(f"{option} is missing: add {option} {placeholder}, or set ${variable}")
    try:
        texts = {"cluster_name": "any", "region": "any", "group": group, "group_table": table_arn}
        decode_texts(Settings, texts, lambda name: _OPTIONS.get(name, name))
    except ValueError as error:
        raise InputError(str(error)) from None
    with open_clients(get_table_region(table_arn)) as (clients, _):
        try:
            yield DynamoTable(clients, table_arn), group
        except Fault as fault:
            raise InputError(describe_fault(fault)) from None


def read_group(table: Table, group: str) -> GroupView:
    """Read the entries of *group*.

    Raises:
        Fault: the table did not respond.
        InputError: an entry cannot be decoded.
    """
    row = table.read(build_row_kind(group), ROW_NAME)
    try:
        return GroupView(group=group, at=datetime.now(UTC), entries=decode_entries(row))
    except msgspec.DecodeError as error:
        raise InputError(f"the row of group {group} cannot be decoded: {error}: use the newest version") from None


def forget_member(table: Table, group: str, member: str, *, force: bool) -> None:
    """Remove the entry of *member*.

    Raises:
        Fault: the table did not respond.
        InputError: there is no such cluster, or it is active.
    """
    view = read_group(table, group)
    entry = dict(view.entries).get(member)
    if entry is None:
        names = ", ".join(name for name, _ in view.entries) or "no cluster"
        raise InputError(f"group {group} has no cluster {member}: it has {names}")
    if not entry.is_silent(view.at) and not force:
        raise InputError(
            f"{member} was active at {entry.written_at:%FT%TZ}: remove its setting `group` first, then wait for "
            "15 minutes, or add --force"
        )
    if not remove_entry(table, group, member, entry):
        raise InputError(f"{member} is active: it wrote its entry at this moment")
