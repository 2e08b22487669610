"""Draw the faults of a script: how often they occur, and how severe they are."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from sim.cloud.ec2.instance import StatusCheck
from sim.fault_simulation.drawing.random_draws import RandomDraws
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_events import (
    FUNCTIONS,
    AnyEvent,
    CallFailure,
    DeadBoot,
    Doom,
    FailureKind,
    Flap,
    Impair,
    InstanceFaultKind,
    Kill,
    Lag,
    MessageKind,
    Messages,
    Notice,
    Pause,
    Port,
    Repeat,
    Shortage,
    Skew,
    SlowDetach,
    Stale,
    ZonalShiftStart,
    ZoneDown,
)
from sim.fault_simulation.events.script_manifests import INSTANCE_TYPES, ZONES

EventDrawer = Callable[[RandomDraws, int, int], Iterator[AnyEvent]]
"""Draws the events of a fault from its number and its start second."""
SITES_FILE: Final = Path(__file__).with_name("sites.txt")
MAX_FAILURE_RATIO_BY_PORT: Final[dict[Port, float]] = {
    "kube": 0.35,
    "ec2": 0.6,
    "table": 0.3,
    "bucket": 0.5,
    "mailbox": 0.6,
}
"""Maximum ratio of failing calls per port: a reconcile makes many Kubernetes calls and few EC2 calls."""
KNOWN_SITE_RATIO: Final = 0.7
"""How often a kill or pause is at a known call site; otherwise it is at any call."""
KILLS_PER_SCRIPT: Final = 6
"""In addition to the other faults."""
CAPACITY_TYPES: Final[tuple[Literal["", "on-demand", "spot"], ...]] = ("", "spot", "on-demand")
PORTS: Final[tuple[Port, ...]] = ("kube", "kube", "kube", "ec2", "ec2", "table", "bucket", "mailbox")
INSTANCE_FAULTS: Final[tuple[InstanceFaultKind, ...]] = (
    *("die", "die", "stop", "terminate", "spot", "spot", "rebalance"),
    *("maintenance", "called-off"),
)
FAULTS_WITH_WARNING: Final[tuple[InstanceFaultKind, ...]] = ("spot", "spot", "stop", "terminate", "maintenance")
MESSAGE_KINDS: Final[tuple[MessageKind, ...]] = ("unreadable", "unknown", "foreign", "gone", "again", "again")
STATUS_CHECKS: Final[tuple[StatusCheck, ...]] = ("instance", "system")
FAILURES_BY_PORT: Final[dict[Port, tuple[FailureKind, ...]]] = {
    "kube": ("conflict", "expired", "throttled", "unreachable", "lost", "refused"),
    "ec2": ("throttled", "unreachable", "lost", "lost"),
    "table": ("throttled", "unreachable", "lost"),
    "bucket": ("unreachable", "throttled"),
    "mailbox": ("unreachable", "throttled", "lost"),
}


def draw_faults(draws: RandomDraws, length: int, setup: ScriptSetup) -> Iterator[AnyEvent]:
    """Yield the faults of *length* seconds in the order of drawing: kills, and two to eight other faults."""
    if setup.reserved_count:
        at = draws.draw_integer(120, length - 200, "reservation")
        yield Doom(at=at, cause="reservation", position=draws.draw_position("reservation ends"))
    if setup.zonal_shift != "off":
        at = draws.draw_integer(60, length - 300, "zonal shift")
        lasts = draws.draw_integer(60, 600, "zonal shift lasts")
        yield ZonalShiftStart(at=at, lasts=lasts, zone=draws.choose(ZONES, "zonal shift zone"))
    for index in range(KILLS_PER_SCRIPT):
        # Quadratic: rare call sites need time to be reached.
        yield _draw_kill(draws, -1 - index, int((length - 200) * draws.draw_ratio("kill", index) ** 2))
    for index in range(draws.draw_integer(2, 8, "faults")):
        at = draws.draw_integer(5, length - 60, "fault", index)
        yield from draws.choose(_EVENT_DRAWERS, "fault", index, "kind")(draws, index, at)


@cache
def load_known_sites() -> tuple[str, ...]:
    """Return the known call sites, at which handlers were seen calling a port."""
    return tuple(SITES_FILE.read_text().split("\n")[:-1]) if SITES_FILE.exists() else ()


def _draw_call(draws: RandomDraws, number: int) -> dict[str, Any]:
    """Return the call at which a function is killed or paused, as fields of the event."""
    has_site = load_known_sites() and draws.draw_ratio("site?", number) < KNOWN_SITE_RATIO
    site = draws.choose(load_known_sites(), "site", number) if has_site else ""
    return {
        "function": site.partition(" ")[0] or draws.choose(FUNCTIONS, "function", number),
        "nth": draws.draw_integer(1, 2 if site else 40, "nth", number),
        "when": draws.choose(("before", "after"), "when", number),
        "site": site,
    }


def _draw_kill(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Kill(at=at, **_draw_call(draws, number))


def _draw_pause(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    lasts = draws.draw_integer(5, 90, "pause", number)
    overtaker = draws.choose(("", *FUNCTIONS[:3]), "overtaker", number)
    return Pause(at=at, lasts=lasts, overtaker=overtaker, **_draw_call(draws, number))


def _draw_repeat(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    names = [name for name in FUNCTIONS if name != "interrupt"]
    return Repeat(
        at=at, function=draws.choose(names, "function", number), times=draws.draw_integer(2, 3, "times", number)
    )


def _draw_messages(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Messages(
        at=at,
        lasts=draws.draw_integer(30, 240, "lasts", number),
        lost_ratio=draws.choose((0.0, 0.3, 1.0), "lost", number),
        duplicated_ratio=draws.choose((0.0, 0.5), "doubled", number),
        max_delay_seconds=draws.choose((0, 10, 60), "late", number),
    )


def _draw_call_failure(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    port = draws.choose(PORTS, "port", number)
    is_outage = draws.choose((True, False, False, False, False), "outage?", number)
    return CallFailure(
        at=at,
        lasts=draws.draw_integer(20, 400 if is_outage else 180, "lasts", number),
        port=port,
        fault="unreachable" if is_outage else draws.choose(FAILURES_BY_PORT[port], "fault", number),
        ratio=1.0
        if is_outage
        else round(MAX_FAILURE_RATIO_BY_PORT[port] * (0.1 + 0.9 * draws.draw_ratio("share", number)), 3),
        method=draws.choose(("", "create_fleet", "terminate_instances"), "method", number) if port == "ec2" else "",
    )


def _draw_stale(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Stale(
        at=at,
        lasts=draws.draw_integer(30, 180, "lasts", number),
        max_age_seconds=draws.draw_integer(5, 40, "behind", number),
    )


def _draw_shortage(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Shortage(
        at=at,
        lasts=draws.draw_integer(60, 300, "lasts", number),
        instance_type=draws.choose(("", *INSTANCE_TYPES), "type", number),
        zone=draws.choose(("", *ZONES), "zone", number),
        capacity_type=draws.choose(CAPACITY_TYPES, "capacity", number),
    )


def _draw_lag(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Lag(
        at=at, lasts=draws.draw_integer(60, 300, "lasts", number), seconds=draws.draw_integer(3, 40, "lag", number)
    )


def _draw_dead_boot(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return DeadBoot(
        at=at,
        lasts=draws.draw_integer(30, 120, "lasts", number),
        instance_type=draws.choose(INSTANCE_TYPES, "type", number),
    )


def _draw_doom(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Doom(
        at=at, cause=draws.choose(INSTANCE_FAULTS, "how", number), position=draws.draw_position("which", number)
    )


def _draw_flap(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Flap(
        at=at, lasts=draws.draw_integer(30, 200, "lasts", number), position=draws.draw_position("which", number)
    )


def _draw_zone_down(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return ZoneDown(at=at, lasts=draws.draw_integer(60, 240, "lasts", number), zone=draws.choose(ZONES, "zone", number))


def _draw_skew(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return Skew(
        at=at,
        lasts=draws.draw_integer(60, 300, "lasts", number),
        function=draws.choose(FUNCTIONS, "function", number),
        seconds=draws.choose((-60, -20, -5, 5, 20, 60), "skew", number),
    )


def _draw_impair(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    lasts, check = draws.draw_integer(60, 400, "lasts", number), draws.choose(STATUS_CHECKS, "check", number)
    return Impair(at=at, lasts=lasts, status_check=check, position=draws.draw_position("which", number))


def _draw_slow_detach(draws: RandomDraws, number: int, at: int) -> AnyEvent:
    return SlowDetach(
        at=at, lasts=draws.draw_integer(120, 500, "lasts", number), seconds=draws.draw_integer(20, 180, "slow", number)
    )


def _draw_messages_without_news(draws: RandomDraws, number: int, at: int) -> Iterator[AnyEvent]:
    """Yield a few interruption messages without meaning or without news."""
    for index in range(draws.draw_integer(1, 4, "notices", number)):
        shape, position = (
            draws.choose(MESSAGE_KINDS, "shape", number, index),
            draws.draw_position("which", number, index),
        )
        yield Notice(at=at + 5 * index, shape=shape, position=position)


def _draw_api_outage(draws: RandomDraws, number: int, at: int) -> Iterator[AnyEvent]:
    """Yield an API server outage of some minutes, with interruptions during it.

    The outage affects all functions, or only `interrupt`.
    """
    lasts, function = draws.draw_integer(170, 300, "lasts", number), draws.choose(("", "interrupt"), "deaf", number)
    yield CallFailure(at=at, lasts=lasts, port="kube", fault="unreachable", ratio=1.0, function=function)
    for index in range(draws.draw_integer(1, 3, "warned", number)):
        cause, position = (
            draws.choose(FAULTS_WITH_WARNING, "how", number, index),
            draws.draw_position("which", number, index),
        )
        yield Doom(at=at + draws.draw_integer(1, 120, "at", number, index), lasts=60, cause=cause, position=position)


def _wrap_single(draw_event: Callable[[RandomDraws, int, int], AnyEvent]) -> EventDrawer:
    return lambda draws, number, at: iter((draw_event(draws, number, at),))


_SINGLE_EVENT_DRAWERS: Final = (
    *(_draw_kill, _draw_kill, _draw_kill, _draw_pause, _draw_pause, _draw_repeat, _draw_messages, _draw_messages),
    *(
        _draw_call_failure,
        _draw_call_failure,
        _draw_call_failure,
        _draw_call_failure,
        _draw_stale,
        _draw_shortage,
        _draw_lag,
    ),
    *(
        _draw_dead_boot,
        _draw_doom,
        _draw_doom,
        _draw_doom,
        _draw_flap,
        _draw_zone_down,
        _draw_skew,
        _draw_impair,
        _draw_slow_detach,
    ),
)
_EVENT_DRAWERS: Final[tuple[EventDrawer, ...]] = (
    *map(_wrap_single, _SINGLE_EVENT_DRAWERS),
    _draw_messages_without_news,
    _draw_api_outage,
)
