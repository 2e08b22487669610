"""What is read of the table: offerings that EC2 refused, and groups of claims that are being launched."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.objects import Problem
from shared.ports import Table

UNAVAILABLE: Final = "unavailable"
LAUNCH_GROUP: Final = "launch-group"
T = TypeVar("T")


def unavailable_offerings(table: Table, now: datetime, problems: list[Problem]) -> tuple[UnavailableOffering, ...]:
    """Answer the offerings that are not to be tried at *now*, each with its last end, sorted.

    Rows that cannot be read join *problems*.

    Raises:
        Fault: the table could not be read.
    """
    last: dict[tuple[str, ...], UnavailableOffering] = {}
    for row in _bodies(table, UNAVAILABLE, now, tuple[UnavailableOffering, ...], problems):
        for one in row:
            key = (one.capacity_type, one.instance_type, one.zone, one.subnet_id, one.group_id)
            last[key] = max(one, last.get(key, one), key=lambda one: one.until)
    return tuple(sorted(one for one in last.values() if one.until > now))


def launch_groups(table: Table, now: datetime, problems: list[Problem]) -> tuple[LaunchGroup, ...]:
    """Answer the groups, sorted by name; rows that cannot be read join *problems*.

    Raises:
        Fault: the table could not be read.
    """
    return tuple(sorted(_bodies(table, LAUNCH_GROUP, now, LaunchGroup, problems), key=lambda group: group.name))


def _bodies(table: Table, kind: str, now: datetime, type_: type[T], problems: list[Problem]) -> Iterator[T]:
    for row in table.rows(kind):
        if row.expires_at is not None and row.expires_at <= now:
            continue
        try:
            yield msgspec.json.decode(row.body, type=type_)
        except msgspec.DecodeError as error:
            message = f"body: {error}; remove the row, it will be written anew"
            problems.append(Problem(kind=kind, name=row.name, message=message))
