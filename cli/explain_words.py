"""Words on machines and money that several answers share."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from cli.explain_kinds import Kind
from cli.explain_machines import Machine
from cli.explain_told import NAMED, Happening
from cli.text import clock_text, count, some


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What something cost in the time that is covered."""

    usd: float
    usd_per_hour: float
    """Of what is there at its end."""
    hours: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and what is said to it."""

    question: str
    words: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one thing."""

    kind: Kind
    name: str
    answers: tuple[Answer, ...]
    cost: Cost | None = None
    happened: tuple[Happening, ...] = ()


def answer(question: str, *words: str) -> Iterator[Answer]:
    """Answer what is said to *question*, nothing if nothing is."""
    said = tuple(one for one in words if one)
    if said:
        yield Answer(question=question, words=said)


def called(machine: Machine) -> str:
    """Say who *machine* is."""
    parts = (
        f"node {machine.node}" if machine.node else "a node that has not joined yet",
        f"NodeClaim {machine.claim}",
        machine.instance,
        f"of NodePool {machine.pool}" if machine.pool else "",
    )
    return ", ".join(one for one in parts if one) + ended(machine)


def ended(machine: Machine) -> str:
    """Say since when *machine* is gone, or going; "" if it is neither."""
    if machine.terminated_at is not None:
        return f", gone since {instant(machine.terminated_at)}"
    return f", leaving since {instant(machine.deleted_at)}" if machine.deleted_at is not None else ""


def made_for(machine: Machine) -> str:
    """Say whom *machine* was made for."""
    return f"{count(len(machine.pods), 'pod')}: {some(machine.pods, NAMED)}" if machine.pods else ""


def bought(machine: Machine) -> str:
    """Say what *machine* is, for how much, and among how many EC2 chose."""
    if not machine.instance_type:
        return "nothing yet" if machine.asked_at is not None else ""
    offering = f"{machine.instance_type}, {machine.capacity_type}, in {machine.zone}"
    price = f", ${machine.usd_per_hour:.4f} per hour" if machine.usd_per_hour else ""
    choice = f": EC2's choice among {count(machine.offerings, 'offering')}" if machine.offerings else ""
    return f"{offering}{price}{choice}"


def cost_of(some: Iterable[Machine], now: datetime) -> Cost | None:
    """Answer what machines cost until *now*; None if no price is known."""
    priced = [one for one in some if one.usd_per_hour and one.launched_at is not None]
    if not priced:
        return None
    lived = [_hours(one, now) for one in priced]
    return Cost(
        usd=sum(one.usd_per_hour * hours for one, hours in zip(priced, lived, strict=True)),
        usd_per_hour=sum(one.usd_per_hour for one in priced if one.terminated_at is None),
        hours=sum(lived),
    )


def _hours(machine: Machine, now: datetime) -> float:
    began = machine.launched_at or now
    return max((machine.terminated_at or now) - began, timedelta()) / timedelta(hours=1)


def cost_words(cost: Cost | None) -> str:
    """Say what *cost* is; "" if no price is known."""
    if cost is None:
        return ""
    return f"${cost.usd:.4f} for {clock_text(timedelta(hours=cost.hours))} of instance time, without volumes"


def instant(at: datetime) -> str:
    """Answer *at* in words, UTC.

    >>> from datetime import UTC
    >>> instant(datetime(2026, 11, 21, 8, 5, tzinfo=UTC))
    '2026-11-21 08:05:00'
    """
    return f"{at:%Y-%m-%d %H:%M:%S}"
