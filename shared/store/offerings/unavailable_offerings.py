"""Rows of unavailable offerings."""

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final

import msgspec

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.metadata import Problem
from shared.ports.storage import Table
from shared.ports.world import World
from shared.store.table_rows import decode_current_rows, try_write

ROW_KIND: Final = "unavailable"


def record_unavailable_offerings(offerings: Iterable[UnavailableOffering], world: World) -> None:
    """Record that *offerings* (at least one) are unavailable until they expire.

    Raises:
        Fault: the table did not respond.
    """
    sorted_offerings = sorted(set(offerings))
    body = msgspec.json.encode(sorted_offerings)
    expires_at = max(offering.until for offering in sorted_offerings)
    name = sha256(body).hexdigest()[:32]
    try_write(world.table, ROW_KIND, name, body.decode(), version=0, expires_at=expires_at)  # else the row exists


def read_unavailable_offerings(table: Table, now: datetime, problems: list[Problem]) -> tuple[UnavailableOffering, ...]:
    """Return the offerings that are unavailable at *now*, each with its latest end time, sorted.

    Rows that cannot be decoded add to *problems*.

    Raises:
        Fault: the table could not be read.
    """
    offering_by_key: dict[tuple[str, ...], UnavailableOffering] = {}
    for offerings in decode_current_rows(table, ROW_KIND, now, tuple[UnavailableOffering, ...], problems):
        for offering in offerings:
            key = (offering.capacity_type, offering.instance_type, offering.zone, offering.subnet_id, offering.group_id)
            offering_by_key[key] = max(
                offering, offering_by_key.get(key, offering), key=lambda offering: offering.until
            )
    return tuple(sorted(offering for offering in offering_by_key.values() if offering.until > now))
