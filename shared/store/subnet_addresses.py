"""Free IP addresses of subnets: one table row, written by the catalog function, read when a subnet is chosen."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.ec2.account import Subnet
from shared.ports.world import World
from shared.store.table_rows import decode_body, try_write

ROW_KIND: Final = "addresses"
ROW_NAME: Final = "subnets"


def record_free_addresses(subnets: Iterable[Subnet], world: World) -> None:
    """Write the free address counts of *subnets* to the table; nothing is written if EC2 returned none.

    Raises:
        Fault: the table did not respond.
    """
    address_counts = {subnet.subnet_id: subnet.available_ip_count for subnet in subnets}
    if not address_counts or world.settings.mode == "plan":
        return
    row = world.table.read(ROW_KIND, ROW_NAME)
    body = msgspec.json.encode(SubnetAddresses(at=world.clock(), free=tuple(sorted(address_counts.items())))).decode()
    try_write(world.table, ROW_KIND, ROW_NAME, body, version=row.version if row is not None else 0)


def read_free_addresses(world: World) -> SubnetAddresses | None:
    """Return the recorded addresses; None if there are none or the row cannot be decoded.

    Raises:
        Fault: the table did not respond.
    """
    return decode_body(world.table.read(ROW_KIND, ROW_NAME), SubnetAddresses)
