"""Rows of limit reservations."""

from typing import Final

import msgspec

from shared.errors import Invalid
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.money_limit import has_limits
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_body, encode_body, try_write

ROW_KIND: Final = "ledger"


def read_limit_reservations(world: World, cluster: ClusterSnapshot) -> tuple[LimitReservations, ...]:
    """Return the reservations of NodePools and of the cluster; nothing is read if there are no limits.

    A row that cannot be decoded reserves nothing; the rows of open launches are counted in any case.

    Raises:
        Fault: the table did not respond.
    """
    has_total_limit = bool(world.settings.limit_usd_per_hour or world.settings.group)
    if not has_total_limit and not any(has_limits(pool) for pool in cluster.node_pools):
        return ()
    return tuple(_decode_reservations(row) for row in world.table.list_rows(ROW_KIND))


def try_write_reservations(reservations: LimitReservations, world: World, fence: FencingToken | None) -> bool:
    """Write *reservations* over the version they were read at; return False if another controller was faster.

    Return False as well if DynamoDB would refuse the row: the NodePool's launches wait until reservations expire.

    Raises:
        Fault: the table did not respond.
    """
    try:
        body = encode_body(reservations, reservations.pool, "launches wait until reservations expire")
    except Invalid:
        return False
    row = try_write(world.table, ROW_KIND, reservations.pool, body, version=reservations.version, fence=fence)
    return row is not None


def _decode_reservations(row: TableRow) -> LimitReservations:
    reservations = decode_body(row, LimitReservations) or LimitReservations(pool=row.name)
    return msgspec.structs.replace(reservations, pool=row.name, version=row.version)
