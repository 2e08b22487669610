"""From a seed to a script: what is drawn how often, and how bad it may be."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeVar

from msgspec.structs import replace

from sim.chaos.manifests import SHAPES, TYPES, ZONES
from sim.chaos.script import (
    FUNCTIONS,
    AnyEvent,
    DeadBoot,
    Doom,
    Drift,
    Failing,
    Flap,
    How,
    Kill,
    Lag,
    Messages,
    Pause,
    Port,
    Recreate,
    Repeat,
    Scale,
    Script,
    Setting,
    Shortage,
    Skew,
    Stale,
    Trouble,
    ZoneDown,
)
from sim.cloud.chance import share

SITES: Final = Path(__file__).with_name("sites.txt")
T = TypeVar("T")
MOST: Final[dict[Port, float]] = {"kube": 0.35, "ec2": 0.6, "table": 0.3, "bucket": 0.5, "mailbox": 0.6}
"""The largest share of a port's calls that fail: a cycle makes many calls of Kubernetes and few of EC2."""
SITED: Final = 0.7
"""So often a kill or a pause is at a place that is known, else at any call."""
KILLS: Final = 6
"""Besides what else goes wrong."""
CAPACITY: Final[tuple[Literal["", "on-demand", "spot"], ...]] = ("", "spot", "on-demand")
PORTS: Final[tuple[Port, ...]] = ("kube", "kube", "kube", "ec2", "ec2", "table", "bucket", "mailbox")
DOOMS: Final[tuple[How, ...]] = ("die", "die", "stop", "spot", "spot", "rebalance", "maintenance")
LOUD: Final[dict[Port, tuple[Failing, ...]]] = {
    "kube": ("conflict", "expired", "throttled", "unreachable", "lost", "refused"),
    "ec2": ("throttled", "unreachable", "lost", "lost"),
    "table": ("throttled", "unreachable", "lost"),
    "bucket": ("unreachable", "throttled"),
    "mailbox": ("unreachable", "throttled", "lost"),
}


class Lot:
    """Draws for one seed, each under a name of its own."""

    def __init__(self, seed: int) -> None:
        """Begin."""
        self.seed = seed

    def share(self, *words: object) -> float:
        """Answer a number in [0, 1)."""
        return share("chaos", self.seed, *words)

    def whole(self, low: int, high: int, *words: object) -> int:
        """Answer one of *low* to *high*, both included."""
        return low + int(self.share(*words) * (high - low + 1))

    def one(self, some: Sequence[T], *words: object) -> T:
        """Answer one of *some*."""
        return some[int(self.share(*words) * len(some))]


def script_of(seed: int) -> Script:
    """Answer the play of *seed*: twenty to thirty minutes of work, six deaths, and up to eight other faults."""
    lot = Lot(seed)
    length = lot.whole(20, 30, "length") * 60
    events = [*_work(lot, length), *_faults(lot, length)]
    return Script(
        seed=seed,
        setting=_setting(lot),
        length=length,
        events=_in_order(events),
    )


def brief_of(seed: int) -> Script:
    """Answer a play of six minutes in which many launches go wrong: what is lost, and who is overtaken."""
    lot = Lot(seed)
    names = sorted(SHAPES)
    events: list[AnyEvent] = []
    for number in range(6):
        name = lot.one(names, "brief", number)
        replicas = lot.whole(0, SHAPES[name][0], "scale", number)
        events.append(Scale(at=lot.whole(0, 240, "brief", number, "at"), name=name, replicas=replicas))
    for number in range(2):
        at, lasts = lot.whole(0, 200, "lost", number), lot.whole(10, 60, "lasts", number)
        events.append(Trouble(at=at, lasts=lasts, port="ec2", fault="lost", share=0.6, method="create_fleet"))
    for number in range(2):
        at, lasts = lot.whole(0, 200, "pause", number), lot.whole(61, 90, "held", number)
        site = f"provision table.write {lot.one(('launch-group', 'ledger'), 'site', number)}"
        events.append(Pause(at=at, lasts=lasts, function="provision", nth=1, when="before", site=site))
    setting = replace(_setting(lot), limit_cpu=lot.one((8, 64), "limit"))
    return Script(seed=seed, setting=setting, length=360, events=_in_order(events))


@cache
def known_sites() -> tuple[str, ...]:
    """Answer the places at which a handler calls the outside, as they were met so far."""
    return tuple(SITES.read_text().split("\n")[:-1]) if SITES.exists() else ()


def _in_order(events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
    return tuple(sorted(events, key=lambda one: (one.at, type(one).__name__, repr(one))))


def _setting(lot: Lot) -> Setting:
    return Setting(
        limit_cpu=lot.one((10, 16, 64), "limit"),
        budget=lot.one((1, 1, 2), "budget"),
        consolidate_after=lot.one(("0s", "30s", "1m"), "after"),
        policy=lot.one(("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"), "policy"),
        grace=lot.one(("", "", "5m"), "grace"),
        expire_after=lot.one(("Never", "Never", "Never", "14m"), "expire"),
        spot=lot.one((True, True, False), "spot"),
        replicas=tuple((name, lot.whole(0, most, "replicas", name)) for name, (most, _) in sorted(SHAPES.items())),
    )


def _work(lot: Lot, length: int) -> Iterator[AnyEvent]:
    names = sorted(SHAPES)
    for number in range(lot.whole(3, 6, "work")):
        at = lot.whole(10, length - 240, "work", number)
        name = lot.one(names, "work", number, "name")
        kind = lot.one((Scale, Scale, Scale, Scale, Recreate, Drift), "work", number, "kind")
        if kind is Scale:
            yield Scale(at=at, name=name, replicas=lot.whole(0, SHAPES[name][0], "scale", number))
        elif kind is Recreate:
            yield Recreate(at=at, name=name)
        else:
            yield Drift(at=at, release=f"r{number}")


def _faults(lot: Lot, length: int) -> Iterator[AnyEvent]:
    for number in range(KILLS):
        yield _kill(lot, -1 - number, int((length - 200) * lot.share("kill", number) ** 2))  # what is rare needs time
    for number in range(lot.whole(2, 8, "faults")):
        at = lot.whole(5, length - 60, "fault", number)
        make = lot.one(_MAKERS, "fault", number, "kind")
        yield make(lot, number, at)


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
    return Doom(at=at, how=lot.one(DOOMS, "how", number), which=round(lot.share("which", number), 3))


def _flap(lot: Lot, number: int, at: int) -> AnyEvent:
    return Flap(at=at, lasts=lot.whole(30, 200, "lasts", number), which=round(lot.share("which", number), 3))


def _zone_down(lot: Lot, number: int, at: int) -> AnyEvent:
    return ZoneDown(at=at, lasts=lot.whole(60, 240, "lasts", number), zone=lot.one(ZONES, "zone", number))


def _skew(lot: Lot, number: int, at: int) -> AnyEvent:
    return Skew(
        at=at,
        lasts=lot.whole(60, 300, "lasts", number),
        function=lot.one(FUNCTIONS, "function", number),
        seconds=lot.one((-60, -20, -5, 5, 20, 60), "skew", number),
    )


_MAKERS: Final[tuple[Callable[[Lot, int, int], AnyEvent], ...]] = (
    *(_kill, _kill, _kill, _pause, _pause, _repeat, _messages, _messages),
    *(_trouble, _trouble, _trouble, _trouble, _stale, _shortage, _lag),
    *(_dead_boot, _doom, _doom, _flap, _zone_down, _skew),
)
