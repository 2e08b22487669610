"""A tap between a caller and a port.

The tap sees each call, and can fail it or kill the caller, before or after the call takes effect.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from shared.ports.world import World

CallPhase = Literal["before", "after"]
PortT = TypeVar("PortT")

PORTS: Final = (
    *("kube", "ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket", "topic"),
    *("savings_plans", "zonal_shifts", "payer", "group_table", "event_bus", "remote_write"),
)


class PortCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a port."""

    port: str
    method: str
    detail: str
    """The first argument, as text: a path, a key, a function."""
    phase: CallPhase
    world_name: str = ""
    """The name of the world that makes the call."""


Tap = Callable[[PortCall], None]
"""Receives each call twice, before and after; an exception it raises reaches the caller instead of the result."""


class Killed(BaseException):
    """The process was killed. Handlers must not catch it, so it is a BaseException."""


class _TappedPort:
    def __init__(self, port: object, port_name: str, tap: Tap, world_name: str) -> None:
        self._port, self._port_name, self._tap, self._world_name = port, port_name, tap, world_name

    def __getattr__(self, method_name: str) -> Any:  # noqa: ANN401 - stands for any port
        port_method = getattr(self._port, method_name)

        def call_method(*arguments: object, **keyword_arguments: object) -> object:
            detail = str(arguments[0])[:200] if arguments else ""
            call = PortCall(
                port=self._port_name, method=method_name, detail=detail, phase="before", world_name=self._world_name
            )
            self._tap(call)
            result = port_method(*arguments, **keyword_arguments)
            self._tap(msgspec.structs.replace(call, phase="after"))
            return result

        return call_method


def tap_port(port: PortT, port_name: str, tap: Tap, world_name: str = "") -> PortT:
    """Return *port* with *tap* in front of every method; *world_name* is the name of the port's world."""
    return cast("PortT", _TappedPort(port, port_name, tap, world_name))


def tap_world(world: World, tap: Tap) -> World:
    """Return *world* with *tap* in front of every port."""
    ports = {port_name: getattr(world, port_name) for port_name in PORTS}
    tapped_ports = {
        port_name: tap_port(port, port_name, tap, world.name) for port_name, port in ports.items() if port is not None
    }
    return msgspec.structs.replace(world, **tapped_ports)
