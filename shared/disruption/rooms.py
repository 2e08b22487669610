"""How many more nodes may go, by NodePool and reason, while a sweep takes one after the other."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from shared.disruption.budgets import UNLIMITED, Allowance, Tally, allowance, least, tallies
from shared.disruption.candidates import Candidate, Field
from shared.disruption.knobs import time_zone
from shared.disruption.terms import BUDGETS, Terms
from shared.model.nodepools import NodePool

_BUSY: Final = "going or not Ready"


class Rooms:
    """What budgets leave; those of the cluster count the nodes of all pools."""

    def __init__(
        self, field: Field, terms: Terms, busy: frozenset[str], taken: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Count; *busy*: names of nodes that are being disrupted already. *taken*: how many more go, by pool."""
        self._field, self._terms, self._busy = field, terms, busy
        self._tallies = tallies(field.states, busy)
        self._all = Tally(
            total=sum(one.total for one in self._tallies.values()),
            disrupting=sum(one.disrupting for one in self._tallies.values()),
        )
        self._taken: dict[str, int] = dict(taken)
        self._allowed: dict[tuple[str, str], Allowance] = {}

    def fork(self) -> "Rooms":
        """Answer the same, to be counted on from here."""
        return Rooms(self._field, self._terms, self._busy, self._taken)

    def left(self, pool: NodePool, reason: str) -> int:
        """Answer how many more of *pool*'s nodes may go for *reason*."""
        mine, taken = self._tallies.get(pool.name, Tally()), self._taken.get(pool.name, 0)
        own = self.allowed(pool, reason).count - mine.disrupting - taken
        return max(min(own, self._room(reason)), 0)

    def take(self, targets: Iterable[Candidate]) -> None:
        """Count *targets* as going."""
        for one in targets:
            self._taken[one.pool.name] = self._taken.get(one.pool.name, 0) + 1

    def release(self, targets: Iterable[Candidate]) -> None:
        """Let *targets*, which were counted as going, stay."""
        for one in targets:
            self._taken[one.pool.name] -= 1

    def has_room_for(self, targets: Iterable[Candidate], reason: str) -> bool:
        """Whether all of *targets* may go together."""
        wanted: dict[str, tuple[NodePool, int]] = {}
        for one in targets:
            wanted[one.pool.name] = (one.pool, wanted.get(one.pool.name, (one.pool, 0))[1] + 1)
        least = min((self.left(pool, reason) - count for pool, count in wanted.values()), default=0)
        return least >= 0 and (len(wanted) <= 1 or sum(count for _, count in wanted.values()) <= self._room(reason))

    def allowed(self, pool: NodePool, reason: str) -> Allowance:
        """Answer what the pool's own budgets say, before anything is subtracted."""
        key = (pool.name, reason)
        if key not in self._allowed:
            total = self._tallies.get(pool.name, Tally()).total
            self._allowed[key] = allowance(pool, reason, total, self._field.now)
        return self._allowed[key]

    def why_none(self, pool: NodePool, reason: str) -> str:
        """Say what lets no more nodes of *pool* go for *reason*."""
        own = self.allowed(pool, reason)
        if own.problem:
            return f"NodePool {pool.name}: {own.problem}"
        if self._everywhere(reason).problem:
            return self._everywhere(reason).problem
        going = self._tallies.get(pool.name, Tally()).disrupting + self._taken.get(pool.name, 0)
        if own.count - going <= 0:
            return f"NodePool {pool.name} allows {own.count} nodes at a time for reason {reason}, {going} are {_BUSY}"
        count, everyone = self._everywhere(reason).count, self._all.disrupting + sum(self._taken.values())
        return f"the cluster allows {count} nodes at a time for reason {reason}, {everyone} are {_BUSY}"

    def _room(self, reason: str) -> int:
        """Answer how many more nodes may go in all the cluster."""
        return self._everywhere(reason).count - self._all.disrupting - sum(self._taken.values())

    def _everywhere(self, reason: str) -> Allowance:
        if self._terms.problem:
            return Allowance(count=0, problem=self._terms.problem)
        if not self._terms.budgets:
            return Allowance(count=UNLIMITED)
        key = ("", reason)
        if key not in self._allowed:
            zone = time_zone(self._terms.time_zone)
            self._allowed[key] = least(self._terms.budgets, reason, self._all.total, self._field.now, zone, BUDGETS)
        return self._allowed[key]
