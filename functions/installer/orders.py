"""What CloudFormation orders, carried out."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from functions.installer.answer import Order, Status, reply
from functions.installer.ending import emptied, left, resumed
from functions.installer.manifests import parse_manifests
from functions.installer.shell import Installer, Refused
from shared.errors import Fault
from shared.ports import World

ENOUGH: Final = timedelta(minutes=3)
"""For an API server that does not let us in, or does not answer."""
MARGIN: Final = timedelta(seconds=30)
"""To answer in: CloudFormation would wait for an hour."""


def handle(order: Order, world: World, wait: Callable[[timedelta], None]) -> bytes:
    """Do what *order* says; answer what CloudFormation is to hear, and let the log have it, too."""
    try:
        told = "; ".join(_done(order, world, wait))
    except (Fault, Refused) as why:
        return _said(order, world, "FAILED", str(why))
    return _said(order, world, "SUCCESS", told)


def _said(order: Order, world: World, status: Status, told: str) -> bytes:
    what = {"installer": order.resource_properties.part, "request": order.request_type}
    world.emit(msgspec.json.encode({**what, "status": status, "told": told}).decode())
    return reply(order, status, told)


def _done(order: Order, world: World, wait: Callable[[timedelta], None]) -> tuple[str, ...]:
    properties, deleting = order.resource_properties, order.request_type == "Delete"
    purge = properties.on_destroy == "purge"
    within = world.time_left() - MARGIN if world.time_left is not None else ENOUGH
    if properties.part == "emptied":
        if not deleting or properties.on_destroy == "abandon":
            return ()
        leaving = _installer(world, b"[]", wait, within)
        return emptied(leaving) if purge else left(leaving, properties.profiles)
    shipped = world.packaged(properties.manifests) if world.packaged is not None else b"[]"
    installer = _installer(world, shipped, wait, min(ENOUGH, within))
    told = installer.remove(purge=purge) if deleting else installer.install()
    resumed(installer)
    return told


def _installer(world: World, shipped: bytes, wait: Callable[[timedelta], None], within: timedelta) -> Installer:
    return Installer(
        kube=world.kube,
        wanted=parse_manifests(shipped),
        clock=world.clock,
        wait=wait,
        deadline=world.clock() + within,
    )
