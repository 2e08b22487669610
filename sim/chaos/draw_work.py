"""What people do in a play, drawn."""

from collections.abc import Callable, Iterator
from typing import Final

from sim.chaos.events import AnyEvent, Batch, Drift, Erase, Recreate, Release, Remove, Restaff, Retag, Scale, Thing
from sim.chaos.lots import Lot
from sim.chaos.manifests import SHAPES, TYPES
from sim.chaos.script import Setting

THINGS: Final[tuple[Thing, ...]] = ("nodes", "nodeclaims.karpenter.sh")
Maker = Callable[[Lot, Setting, int, int], AnyEvent]
"""Makes the event of a number and a second."""


def work(lot: Lot, length: int, setting: Setting) -> Iterator[AnyEvent]:
    """Answer what people do in so many seconds, in the order of drawing."""
    makers = (*_ALWAYS, *(_SECOND if setting.second_cpu else ()), *(_STATIC if setting.has_static else ()))
    for number in range(lot.whole(3, 6, "work")):
        at = lot.whole(10, length - 240, "work", number)
        yield lot.one(makers, "work", number, "kind")(lot, setting, number, at)


def _scale(lot: Lot, setting: Setting, number: int, at: int) -> AnyEvent:
    name, _ = lot.one(setting.replicas, "work", number, "name")
    return Scale(at=at, name=name, replicas=lot.whole(0, SHAPES[name][0], "scale", number))


def _recreate(lot: Lot, setting: Setting, number: int, at: int) -> AnyEvent:
    return Recreate(at=at, name=lot.one(setting.replicas, "work", number, "name")[0])


def _drift(lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    return Drift(at=at, release=f"r{number}", without=lot.one(("", "", *TYPES), "without", number))


def _retag(_lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    return Retag(at=at, owner=f"team-{number}")


def _release(_lot: Lot, _setting: Setting, _number: int, at: int) -> AnyEvent:
    return Release(at=at)


def _batch(lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    pods, seconds = lot.whole(1, 3, "pods", number), lot.whole(30, 300, "seconds", number)
    return Batch(at=at, name=f"batch-{number}", pods=pods, seconds=seconds)


def _erase(lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    what = lot.one(THINGS, "erase", number)
    return Erase(at=at, what=what, which=lot.which("which", number, "erase"))


def _remove(lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    return Remove(at=at, lasts=lot.whole(30, 300, "gone", number), whole=lot.one((True, False), "whole", number))


def _restaff(lot: Lot, _setting: Setting, number: int, at: int) -> AnyEvent:
    return Restaff(at=at, replicas=lot.whole(0, 3, "staff", number))


_ALWAYS: Final[tuple[Maker, ...]] = (
    *(_scale, _scale, _scale, _scale, _scale, _recreate),
    *(_drift, _retag, _release, _batch, _erase),
)
_SECOND: Final[tuple[Maker, ...]] = (_remove, _remove)
_STATIC: Final[tuple[Maker, ...]] = (_restaff, _restaff)
