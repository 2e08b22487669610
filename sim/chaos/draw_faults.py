"""What goes wrong in a play, drawn: how often, and how bad it may be."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal

from sim.chaos.events import (
    FUNCTIONS,
    AnyEvent,
    DeadBoot,
    Doom,
    Failing,
    Flap,
    How,
    Impair,
    Kill,
    Lag,
    Messages,
    Notice,
    Pause,
    Port,
    Repeat,
    Shape,
    Shortage,
    Skew,
    SlowDetach,
    Stale,
    Trouble,
    ZoneDown,
)
from sim.chaos.lots import Lot
from sim.chaos.manifests import TYPES, ZONES
from sim.chaos.script import Setting
from sim.cloud.machine import StatusCheck

Maker = Callable[[Lot, int, int], Iterator[AnyEvent]]
"""Makes what the number of a draw, and the second, stand for."""
SITES: Final = Path(__file__).with_name("sites.txt")
MOST: Final[dict[Port, float]] = {"kube": 0.35, "ec2": 0.6, "table": 0.3, "bucket": 0.5, "mailbox": 0.6}
"""The largest share of a port's calls that fail: a cycle makes many calls of Kubernetes and few of EC2."""
SITED: Final = 0.7
"""So often a kill or a pause is at a place that is known, else at any call."""
KILLS: Final = 6
"""Besides what else goes wrong."""
CAPACITY: Final[tuple[Literal["", "on-demand", "spot"], ...]] = ("", "spot", "on-demand")
PORTS: Final[tuple[Port, ...]] = ("kube", "kube", "kube", "ec2", "ec2", "table", "bucket", "mailbox")
DOOMS: Final[tuple[How, ...]] = (
    *("die", "die", "stop", "terminate", "spot", "spot", "rebalance"),
    *("maintenance", "called-off"),
)
WARNED: Final[tuple[How, ...]] = ("spot", "spot", "stop", "terminate", "maintenance")
SHAPES: Final[tuple[Shape, ...]] = ("unreadable", "unknown", "foreign", "gone", "again", "again")
CHECKS: Final[tuple[StatusCheck, ...]] = ("instance", "system")
LOUD: Final[dict[Port, tuple[Failing, ...]]] = {
    "kube": ("conflict", "expired", "throttled", "unreachable", "lost", "refused"),
    "ec2": ("throttled", "unreachable", "lost", "lost"),
    "table": ("throttled", "unreachable", "lost"),
    "bucket": ("unreachable", "throttled"),
    "mailbox": ("unreachable", "throttled", "lost"),
}


def faults(lot: Lot, length: int, setting: Setting) -> Iterator[AnyEvent]:
    """Answer what goes wrong in so many seconds, in the order of drawing: deaths, and two to eight things besides."""
    if setting.reserved:
        at = lot.whole(120, length - 200, "reservation")
        yield Doom(at=at, how="reservation", which=lot.which("reservation ends"))
    for number in range(KILLS):
        yield _kill(lot, -1 - number, int((length - 200) * lot.share("kill", number) ** 2))  # what is rare needs time
    for number in range(lot.whole(2, 8, "faults")):
        at = lot.whole(5, length - 60, "fault", number)
        yield from lot.one(_MAKERS, "fault", number, "kind")(lot, number, at)


@cache
def known_sites() -> tuple[str, ...]:
    """Answer the places at which a handler calls the outside, as they were met so far."""
    return tuple(SITES.read_text().split("\n")[:-1]) if SITES.exists() else ()


def _kill(lot: Lot, number: int, at: int) -> AnyEvent:
    site = lot.one(known_sites(), "site", number) if known_sites() and lot.share("site?", number) < SITED else ""
    return Kill(
        at=at,
        function=site.partition(" ")[0] or lot.one(FUNCTIONS, "function", number),
        nth=lot.whole(1, 2 if site else 40, "nth", number),
        when=lot.one(("before", "after"), "when", number),
        site=site,
    )


def _pause(lot: Lot, number: int, at: int) -> AnyEvent:
    site = lot.one(known_sites(), "site", number) if known_sites() and lot.share("site?", number) < SITED else ""
    return Pause(
        at=at,
        lasts=lot.whole(5, 90, "pause", number),
        function=site.partition(" ")[0] or lot.one(FUNCTIONS, "function", number),
        nth=lot.whole(1, 2 if site else 40, "nth", number),
        when=lot.one(("before", "after"), "when", number),
        site=site,
        overtaker=lot.one(("", *FUNCTIONS[:3]), "overtaker", number),
    )


def _repeat(lot: Lot, number: int, at: int) -> AnyEvent:
    names = [name for name in FUNCTIONS if name != "interrupt"]
    return Repeat(at=at, function=lot.one(names, "function", number), times=lot.whole(2, 3, "times", number))


def _messages(lot: Lot, number: int, at: int) -> AnyEvent:
    return Messages(
        at=at,
        lasts=lot.whole(30, 240, "lasts", number),
        lost=lot.one((0.0, 0.3, 1.0), "lost", number),
        doubled=lot.one((0.0, 0.5), "doubled", number),
        late=lot.one((0, 10, 60), "late", number),
    )


def _trouble(lot: Lot, number: int, at: int) -> AnyEvent:
    port = lot.one(PORTS, "port", number)
    is_outage = lot.one((True, False, False, False, False), "outage?", number)
    return Trouble(
        at=at,
        lasts=lot.whole(20, 400 if is_outage else 180, "lasts", number),
        port=port,
        fault="unreachable" if is_outage else lot.one(LOUD[port], "fault", number),
        share=1.0 if is_outage else round(MOST[port] * (0.1 + 0.9 * lot.share("share", number)), 3),
        method=lot.one(("", "create_fleet", "terminate_instances"), "method", number) if port == "ec2" else "",
    )


def _stale(lot: Lot, number: int, at: int) -> AnyEvent:
    return Stale(at=at, lasts=lot.whole(30, 180, "lasts", number), behind=lot.whole(5, 40, "behind", number))


def _shortage(lot: Lot, number: int, at: int) -> AnyEvent:
    return Shortage(
        at=at,
        lasts=lot.whole(60, 300, "lasts", number),
        instance_type=lot.one(("", *TYPES), "type", number),
        zone=lot.one(("", *ZONES), "zone", number),
        capacity_type=lot.one(CAPACITY, "capacity", number),
    )


def _lag(lot: Lot, number: int, at: int) -> AnyEvent:
    return Lag(at=at, lasts=lot.whole(60, 300, "lasts", number), seconds=lot.whole(3, 40, "lag", number))


def _dead_boot(lot: Lot, number: int, at: int) -> AnyEvent:
    return DeadBoot(at=at, lasts=lot.whole(30, 120, "lasts", number), instance_type=lot.one(TYPES, "type", number))


def _doom(lot: Lot, number: int, at: int) -> AnyEvent:
    return Doom(at=at, how=lot.one(DOOMS, "how", number), which=lot.which("which", number))


def _flap(lot: Lot, number: int, at: int) -> AnyEvent:
    return Flap(at=at, lasts=lot.whole(30, 200, "lasts", number), which=lot.which("which", number))


def _zone_down(lot: Lot, number: int, at: int) -> AnyEvent:
    return ZoneDown(at=at, lasts=lot.whole(60, 240, "lasts", number), zone=lot.one(ZONES, "zone", number))


def _skew(lot: Lot, number: int, at: int) -> AnyEvent:
    return Skew(
        at=at,
        lasts=lot.whole(60, 300, "lasts", number),
        function=lot.one(FUNCTIONS, "function", number),
        seconds=lot.one((-60, -20, -5, 5, 20, 60), "skew", number),
    )


def _impair(lot: Lot, number: int, at: int) -> AnyEvent:
    lasts, check = lot.whole(60, 400, "lasts", number), lot.one(CHECKS, "check", number)
    return Impair(at=at, lasts=lasts, of=check, which=lot.which("which", number))


def _slow_detach(lot: Lot, number: int, at: int) -> AnyEvent:
    return SlowDetach(at=at, lasts=lot.whole(120, 500, "lasts", number), seconds=lot.whole(20, 180, "slow", number))


def _notices(lot: Lot, number: int, at: int) -> Iterator[AnyEvent]:
    """Answer a few messages that mean nothing, or nothing new."""
    for count in range(lot.whole(1, 4, "notices", number)):
        shape, which = lot.one(SHAPES, "shape", number, count), lot.which("which", number, count)
        yield Notice(at=at + 5 * count, shape=shape, which=which)


def _deaf(lot: Lot, number: int, at: int) -> Iterator[AnyEvent]:
    """Answer minutes in which the API server answers nobody, or not who hears of interruptions, and such come."""
    lasts, function = lot.whole(170, 300, "lasts", number), lot.one(("", "interrupt"), "deaf", number)
    yield Trouble(at=at, lasts=lasts, port="kube", fault="unreachable", share=1.0, function=function)
    for count in range(lot.whole(1, 3, "warned", number)):
        how, which = lot.one(WARNED, "how", number, count), lot.which("which", number, count)
        yield Doom(at=at + lot.whole(1, 120, "at", number, count), lasts=60, how=how, which=which)


def _one(make: Callable[[Lot, int, int], AnyEvent]) -> Maker:
    return lambda lot, number, at: iter((make(lot, number, at),))


_SINGLE: Final = (
    *(_kill, _kill, _kill, _pause, _pause, _repeat, _messages, _messages),
    *(_trouble, _trouble, _trouble, _trouble, _stale, _shortage, _lag),
    *(_dead_boot, _doom, _doom, _doom, _flap, _zone_down, _skew, _impair, _slow_detach),
)
_MAKERS: Final[tuple[Maker, ...]] = (*map(_one, _SINGLE), _notices, _deaf)
