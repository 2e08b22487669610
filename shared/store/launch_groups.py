"""Rows of launch groups."""

from datetime import datetime
from typing import Final

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.metadata import Problem
from shared.ports.storage import Table
from shared.store.table_rows import decode_current_rows

ROW_KIND: Final = "launch-group"


def read_launch_groups(table: Table, now: datetime, problems: list[Problem]) -> tuple[LaunchGroup, ...]:
    """Return the launch groups, sorted by name; rows that cannot be decoded add to *problems*.

    Raises:
        Fault: the table could not be read.
    """
    return tuple(sorted(decode_current_rows(table, ROW_KIND, now, LaunchGroup, problems), key=lambda group: group.name))
