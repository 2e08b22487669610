"""How many addresses the subnets had when the catalog function last asked: one row, for those who choose among them."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.errors import Conflict
from shared.launch.subnets import Addresses
from shared.model.ec2 import Subnet
from shared.ports import World

KIND: Final = "addresses"
NAME: Final = "subnets"


def note_addresses(subnets: Iterable[Subnet], world: World) -> None:
    """Write down what EC2 just said of *subnets*; nothing is written where it said nothing.

    Raises:
        Fault: the table did not answer.
    """
    free = {one.subnet_id: one.available_ip_count for one in subnets}
    if not free or world.settings.mode == "plan":
        return
    row = world.table.read(KIND, NAME)
    body = msgspec.json.encode(Addresses(at=world.clock(), free=tuple(sorted(free.items())))).decode()
    try:
        world.table.write(KIND, NAME, body, version=row.version if row is not None else 0)
    except Conflict:
        return  # somebody asked at the same time


def known_addresses(world: World) -> Addresses | None:
    """Answer what was written down; None: nothing, or nothing that can be read.

    Raises:
        Fault: the table did not answer.
    """
    row = world.table.read(KIND, NAME)
    try:
        return msgspec.json.decode(row.body, type=Addresses) if row is not None else None
    except msgspec.DecodeError:
        return None
