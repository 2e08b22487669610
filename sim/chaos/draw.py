"""From a seed to a script: what stands, what people do, and how much goes wrong."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sim.chaos.draw_faults import faults
from sim.chaos.draw_work import work
from sim.chaos.events import AnyEvent, Pause, Scale, Trouble
from sim.chaos.lots import Lot
from sim.chaos.manifests import SHAPES
from sim.chaos.script import Script, Setting

PLAIN: Final = tuple(sorted(SHAPES.keys() - {"store"}))
"""The workloads that every play has."""


def script_of(seed: int) -> Script:
    """Answer the play of *seed*: fifteen to 22 minutes of work, six deaths, and up to eight other misfortunes."""
    lot = Lot(seed)
    length = lot.whole(15, 22, "length") * 60
    setting = _rich(lot, _setting(lot))
    events = [*work(lot, length, setting), *faults(lot, length, setting)]
    return Script(seed=seed, setting=setting, length=length, events=_in_order(events))


def brief_of(seed: int) -> Script:
    """Answer a play of six minutes in which many launches go wrong: what is lost, and who is overtaken."""
    lot = Lot(seed)
    events: list[AnyEvent] = []
    for number in range(6):
        name = lot.one(PLAIN, "brief", number)
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
        replicas=tuple((name, lot.whole(0, SHAPES[name][0], "replicas", name)) for name in PLAIN),
    )


def _rich(lot: Lot, plain: Setting) -> Setting:
    """Answer *plain* with some of all that there may be besides."""
    disks = ("store", lot.whole(1, SHAPES["store"][0], "replicas", "store"))
    has_disks, has_static = lot.one((True, False, False), "disks"), lot.one((True, *[False] * 5), "static?")
    return replace(
        plain,
        replicas=(*plain.replicas, disks) if has_disks else plain.replicas,
        percent=lot.one(("", "", "34%", "50%"), "percent"),
        closed=lot.one((0, 0, 0, lot.whole(6, 14, "closed at")), "closed"),
        rebalance=lot.one(("", "ignore", "cordon", "drain"), "rebalance"),
        second_cpu=lot.one((0, 0, 4, 8), "second"),
        has_static=has_static,
        static=lot.whole(0, 2, "static") if has_static else 0,
        reserved=lot.one((0, 0, 0, 2), "reserved"),
        agent=lot.one((True, False, False), "agent"),
        reaction=lot.one((*["tick"] * 9, "watch", "logs", "logs"), "reaction"),
        neighbour=lot.one((True, False), "neighbour"),
    )
