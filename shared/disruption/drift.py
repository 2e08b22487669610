"""Drift: machines that differ from what is asked for are replaced, whatever that costs; the longest drifted first.

A node of a static pool is replaced by one from the pool's template, whoever was on it.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from typing import Final

from shared.disruption.candidates import Blocked, Candidate, Field
from shared.disruption.drafts import Draft, price_of
from shared.disruption.drifting import DRIFTED
from shared.disruption.exchange import Exchange, Exchanges
from shared.disruption.layout import Layout
from shared.disruption.moves import moves_of
from shared.disruption.rooms import Rooms
from shared.model.nodepools import NodePool
from shared.model.objects import condition
from shared.model.resources import NODES
from shared.scheduling.static import is_usable, static_claim

MOST_NEW: Final = 100
"""So many nodes come in the place of one, at most."""
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def first_drifted(one: Candidate) -> tuple[bool, datetime, str]:
    """Answer a key that sorts nodes without pods first, then by how long ago they drifted."""
    known = condition(one.claim.conditions, DRIFTED)
    since = known.since if known is not None else None
    return bool(one.reschedulable), since or _LONG_AGO, one.name


def why_drifted(one: Candidate) -> str:
    """Answer the kind of drift."""
    known = condition(one.claim.conditions, DRIFTED)
    return known.reason if known is not None else DRIFTED


class Renewal:
    """Replaces what has drifted in dynamic pools, each node by itself."""

    def __init__(self, layout: Layout, exchanges: Exchanges, rooms: Rooms, is_over: Callable[[], bool]) -> None:
        """Replace on the ground of *layout*."""
        self._layout, self._ground = layout, layout.ground
        self._exchanges, self._rooms, self._is_over = exchanges, rooms, is_over
        self.blocked: dict[str, Blocked] = {}

    def find(self, candidates: Sequence[Candidate]) -> list[Draft]:
        """Answer what is replaced of *candidates*, which have drifted."""
        found: list[Draft] = []
        self._ground.value(self._ground.on(one.name for one in candidates))
        for one in sorted(candidates, key=first_drifted):
            if self._is_over():
                self._block(one, "NotReached", "the time was up before its turn")
            elif not self._rooms.has_room_for((one,), DRIFTED):
                self._block(one, "Budget", self._rooms.why_none(one.pool, DRIFTED))
            elif (draft := self._renewed(one)) is not None:
                found.append(draft)
                self._rooms.take((one,))
        return found

    def _renewed(self, one: Candidate) -> Draft | None:
        ground = self._ground
        base, frame = len(ground.opened), ground.begin(may_open=MOST_NEW)
        left = ground.house_advised(ground.clear(ground.numbers[one.name]), inf)
        faults = [name for pod in one.state.pods if (name := pod.name) in self._layout.faults]
        opened = [node for node in ground.opened[base:] if node.pods]
        units = self._exchanges.units()
        judged = [self._exchanges.free(node, units) for node in opened]
        agreed = [made for made in judged if isinstance(made, Exchange)]
        if left or faults or len(agreed) < len(judged):
            ground.undo()
            names = faults or [pod.name for some in left for pod in some.pods]
            who = f"pod {names[0]} has" if len(names) == 1 else f"{len(names)} pods have"
            message = f"it has drifted, and {who} no other place" if names else "its reservations are used up"
            self._block(one, "PodsHaveNoPlace", message)
            return None
        nodes = [self._exchanges.agree(made, ground.everybody) for made in agreed]
        names_of = {
            len(ground.standing) + made.node.number: node.name for made, node in zip(agreed, nodes, strict=True)
        }
        draft = Draft(
            method="Drift",
            reason=DRIFTED,
            targets=(one,),
            new_nodes=tuple(nodes),
            moves=moves_of(ground, frame.moves, names_of),
            price_usd_per_hour=price_of((one,)),
            why=f"it has drifted: {why_drifted(one)}",
        )
        ground.keep()
        ground.seal_opened()
        return draft

    def _block(self, one: Candidate, reason: str, message: str) -> None:
        self.blocked[one.name] = Blocked(node=one.name, reason=reason, message=message)


def renew_static(
    candidates: Iterable[Candidate], field: Field, rooms: Rooms, busy: frozenset[str]
) -> tuple[list[Draft], list[Blocked]]:
    """Answer what is replaced of *candidates*, which have drifted in static pools, and why others wait."""
    by_pool: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_pool.setdefault(one.pool.name, []).append(one)
    found: list[Draft] = []
    blocked: list[Blocked] = []
    for _, some in sorted(by_pool.items()):
        some.sort(key=first_drifted)
        granted = _granted(some[0].pool, field, busy)
        for one in some:
            why = "" if granted > 0 else f"NodePool {one.pool.name} has no room for a replacement"
            why = why or ("" if rooms.has_room_for((one,), DRIFTED) else rooms.why_none(one.pool, DRIFTED))
            if why:
                blocked.append(Blocked(node=one.name, reason="Budget", message=why))
                continue
            granted -= 1
            rooms.take((one,))
            found.append(_static(one, field))
    return found, blocked


def _static(one: Candidate, field: Field) -> Draft:
    digest = sha256(f"{one.pool.meta.uid}/{one.claim.meta.uid}".encode()).hexdigest()[:10]
    claim = static_claim(one.pool, f"{one.pool.name}-{digest}", field.cluster)
    return Draft(
        method="StaticDrift",
        reason=DRIFTED,
        targets=(one,),
        claims=(claim,),
        price_usd_per_hour=0.0,
        why=f"it has drifted: {why_drifted(one)}",
    )


def _granted(pool: NodePool, field: Field, busy: frozenset[str]) -> int:
    """Answer how many more nodes the static *pool* may have beside those that it is to have."""
    mine = [state for state in field.states if state.claim is not None and state.pool == pool.name]
    active = [state for state in mine if not state.is_marked()]
    if len(active) > (pool.replicas or 0) + len([one for one in active if one.name in busy]):
        return 0
    if not is_usable(pool, field.cluster):
        return 0
    limits = dict(pool.limits.amounts) if pool.limits is not None else {}
    return max(limits.get(NODES, len(mine) + MOST_NEW) - len(mine), 0)
