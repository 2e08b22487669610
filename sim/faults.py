"""A tap between a caller and a port.

Every call is seen, and can be failed or killed, before or after it takes effect.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from shared.ports import World

When = Literal["before", "after"]
Port = TypeVar("Port")

PORTS: Final = ("kube", "ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket", "topic")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that crosses a port."""

    port: str
    method: str
    detail: str
    """The first argument, as text: a path, a key, a function."""
    when: When
    who: str = ""
    """The world's name: whose call it is."""


Tap = Callable[[Call], None]
"""Sees each call twice, before and after; what it raises reaches the caller instead of the answer."""


class Killed(BaseException):
    """The process is gone: no handler may catch this, so it is no Exception."""


class _Tapped:
    def __init__(self, port: object, name: str, tap: Tap, who: str) -> None:
        self._port, self._name, self._tap, self._who = port, name, tap, who

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - stands for any port
        bound = getattr(self._port, method)

        def call(*arguments: object, **options: object) -> object:
            detail = str(arguments[0])[:200] if arguments else ""
            self._tap(Call(port=self._name, method=method, detail=detail, when="before", who=self._who))
            answer = bound(*arguments, **options)
            self._tap(Call(port=self._name, method=method, detail=detail, when="after", who=self._who))
            return answer

        return call


def tapped(port: Port, name: str, tap: Tap, who: str = "") -> Port:
    """Answer *port* with *tap* in front of every method; *who* is whose port it is."""
    return cast("Port", _Tapped(port, name, tap, who))


def tapped_world(world: World, tap: Tap) -> World:
    """Answer *world* with *tap* in front of every port."""
    ports = {name: getattr(world, name) for name in PORTS}
    taps = {name: tapped(port, name, tap, world.name) for name, port in ports.items() if port is not None}
    return msgspec.structs.replace(world, **taps)
