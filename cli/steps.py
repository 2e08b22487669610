"""Disruption step by step, with nothing else changing, until it would take no more."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.fleets import Fleet, called, fleet_of, ideal
from shared.disruption.aftermath import after
from shared.disruption.candidates import Blocked
from shared.disruption.drafts import Draft
from shared.disruption.sweep import Sweep, sweep
from shared.disruption.terms import Terms
from shared.disruption.verdicts import Kept
from shared.model.cluster import Cluster
from shared.model.state import state_nodes
from shared.scheduling.placement import Options

Stop: TypeAlias = Literal["steps", "sweeps", "price", "interrupted"]
Watch: TypeAlias = Callable[[int, float], None]
REASONS: Final = ("Empty", "Drifted", "Underutilized")
MANY: Final = 1000
"""No cluster takes so many sweeps: each is cheaper than the one before, or there is none."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """One step, and what the fleet costs after it."""

    draft: Draft
    price_usd_per_hour: float


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """All steps."""

    before: Fleet
    after: Fleet
    steps: tuple[Taken, ...]
    blocked: tuple[Blocked, ...]
    kept: tuple[Kept, ...]
    underway: tuple[Blocked, ...]
    """Nodes that were going already, and claims that have no node yet."""
    ideal_usd_per_hour: float
    """What the nodes that may be touched would cost, were all their pods placed anew, and the others as they are."""
    stopped: Stop | None
    """Why there may be more steps; None: disruption would take none."""
    cluster: Cluster
    """As it would be then."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """When it is enough."""

    reasons: Collection[str] = REASONS
    most_steps: int | None = None
    most_sweeps: int | None = None
    until: Callable[[float], bool] | None = None
    """Asked with what the fleet costs, USD per hour."""

    def reached(self, steps: int, price: float) -> Stop | None:
        """Answer which of them keeps one more step from being taken."""
        if self.most_steps is not None and steps >= self.most_steps:
            return "steps"
        return "price" if self.until is not None and self.until(price) else None


EVERY: Final = Bounds()


def consolidate(
    cluster: Cluster, options: Options, terms: Terms, bounds: Bounds = EVERY, watch: Watch | None = None
) -> Consolidated:
    """Take steps until there are none, *bounds* are reached, or someone interrupts; *watch* is told after each sweep.

    Raises:
        KeyboardInterrupt: before anything was found.
    """
    best = ideal(cluster, options, terms)
    going = _Going(cluster, options, terms, frozenset(REASONS) - frozenset(bounds.reasons), bounds)
    try:
        going.on(watch)
    except KeyboardInterrupt:
        if going.last is None:
            raise
        going.stopped = "interrupted"
    before, last = fleet_of(cluster), fleet_of(going.cluster)
    return going.told(before, last, min(best, last.price_usd_per_hour))


def taken(
    cluster: Cluster, options: Options, terms: Terms, paused: Collection[str], watch: Watch | None = None
) -> tuple[Cluster, tuple[Taken, ...]]:
    """Take steps until there are none; answer the cluster as it would be then, and the steps.

    *paused* is what `sweep` is told.
    """
    going = _Going(cluster, options, terms, frozenset(paused), EVERY)
    going.on(watch)
    return going.cluster, tuple(going.steps)


class _Going:
    """The steps while they are taken."""

    def __init__(
        self, cluster: Cluster, options: Options, terms: Terms, paused: frozenset[str], bounds: Bounds
    ) -> None:
        self.cluster, self._options, self._terms, self._bounds = cluster, options, terms, bounds
        self._paused = paused
        self._price = fleet_of(cluster).price_usd_per_hour
        self.steps: list[Taken] = []
        self.last: Sweep | None = None
        self.stopped: Stop | None = None

    def on(self, watch: Watch | None) -> None:
        """Take steps; *watch* is told how many there are, and what the fleet costs."""
        for _ in range(MANY if self._bounds.most_sweeps is None else self._bounds.most_sweeps):
            found = sweep(self.cluster, options=self._options, paused=self._paused, terms=self._terms)
            self.last = found
            if not found.drafts:
                return
            self._take(found.drafts)
            if self.stopped is not None:
                return
            if watch is not None:
                watch(len(self.steps), self._price)
        self.stopped = "sweeps"

    def _take(self, drafts: Iterable[Draft]) -> None:
        some: list[Draft] = []
        for draft in drafts:
            self.stopped = self._bounds.reached(len(self.steps), self._price)
            if self.stopped is not None:
                break
            some.append(draft)
            self._price -= draft.savings_usd_per_hour
            self.steps.append(Taken(draft=draft, price_usd_per_hour=self._price))
        self.cluster = after(self.cluster, some)

    def told(self, before: Fleet, last: Fleet, best: float) -> Consolidated:
        """Answer what was found; verdicts are those on nodes that are there."""
        states = state_nodes(self.cluster)
        names = {state.name: called(state) for state in states}
        underway = {called(state) for state in states if state.node is None or state.is_marked()}
        some = [one for one in self.last.verdicts if one.node in names] if self.last is not None else []
        verdicts = [replace(one, node=names[one.node]) for one in some]
        blocked = [one for one in verdicts if isinstance(one, Blocked)]
        return Consolidated(
            before=before,
            after=last,
            steps=tuple(self.steps),
            blocked=tuple(one for one in blocked if one.node not in underway),
            kept=tuple(one for one in verdicts if isinstance(one, Kept)),
            underway=tuple(one for one in blocked if one.node in underway),
            ideal_usd_per_hour=best,
            stopped=self.stopped,
            cluster=self.cluster,
        )
