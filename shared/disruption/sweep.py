"""One look at every node: what may go, in what company, and for each of the others why it stays.

Methods follow each other as in Karpenter: emptiness, drift of static pools, drift, consolidation. Karpenter stops at
the first that finds something and looks again; here each goes on with what those before it left, and their commands
are disjoint. Budgets are counted over all of them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from shared.disruption.balanced import Worthwhile
from shared.disruption.candidates import Blocked, Candidate
from shared.disruption.consolidation import Search
from shared.disruption.drafts import Draft, command_of, price_of
from shared.disruption.drift import Renewal, renew_static
from shared.disruption.drifting import DRIFTED
from shared.disruption.eligibility import kept_from_consolidation, kept_from_emptiness
from shared.disruption.exchange import Exchanges
from shared.disruption.layout import Layout
from shared.disruption.scope import DEFAULT, NOWHERE, Scope
from shared.disruption.terms import EVERYTHING, Terms
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.model.cluster import Cluster
from shared.model.commands import TARGETS_MAX, Command
from shared.scheduling.costs import costs_by_pool
from shared.scheduling.placement import Options

EMPTY: Final = "Empty"
UNDERUTILIZED: Final = "Underutilized"
FEW: Final = 300
"""So few candidates are looked at in two orders: which is better cannot be known beforehand."""
ALIKE: Final = 1.001


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided."""

    commands: tuple[Command, ...] = ()
    """Disjoint, in the order in which they were found."""
    verdicts: tuple[Verdict, ...] = ()
    """One for each node, sorted by name."""
    cursor: str = ""
    """The candidate that the next sweep begins with, since the time was up; "" if all were looked at."""
    drafts: tuple[Draft, ...] = ()
    """What the commands come from, in the same order."""


def sweep(
    cluster: Cluster,
    *,
    options: Options,
    paused: Collection[str] = (),
    cursor: str = "",
    is_over: Callable[[], bool] | None = None,
    busy: frozenset[str] = frozenset(),
    homes: Mapping[str, str] = NOWHERE,
    terms: Terms = DEFAULT,
) -> Sweep:
    """Answer what goes now.

    *paused*: reasons for which nothing goes, ``pool/reason`` for those of one NodePool, `EVERYTHING` for all. *busy*:
    names of nodes in commands that run: they are as good as gone. *homes*: where their pods are expected, by pod;
    others of them are wherever there is room. *is_over* is asked whether time is up; what was not looked at comes first
    the next time, if that is given *cursor*.
    """
    scope = Scope(cluster, options, busy, homes, terms)
    sweeping = _Sweeping(scope, frozenset(paused), is_over or _never)
    return sweeping.run(cursor)


class _Sweeping:
    """A sweep while it goes on."""

    def __init__(self, scope: Scope, paused: frozenset[str], is_over: Callable[[], bool]) -> None:
        self._scope, self._paused, self._is_over = scope, paused, is_over
        self._drafts: list[Draft] = []
        self._verdicts: dict[str, Verdict] = {}
        self._gone: set[str] = set()
        self._ground: tuple[Layout, Exchanges] | None = None

    def run(self, cursor: str) -> Sweep:
        assessed = self._scope.assessed()
        candidates = {name: one for name, one in assessed.items() if isinstance(one, Candidate)}
        self._verdicts |= {name: one for name, one in assessed.items() if isinstance(one, Blocked)}
        self._empty(candidates.values())
        eligible = self._eligible(candidates)
        self._drift(eligible)
        unreached = self._consolidate([one for one in eligible if one.name not in self._gone], candidates, cursor)
        for draft in self._drafts:
            for one in draft.targets:
                self._verdicts[one.name] = _disrupted(one, draft)
        return Sweep(
            commands=tuple(command_of(one, self._scope.cluster) for one in self._drafts),
            verdicts=tuple(one for _, one in sorted(self._verdicts.items())),
            cursor=unreached,
            drafts=tuple(self._drafts),
        )

    def _add(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self._drafts.append(draft)
            self._gone.update(one.name for one in draft.targets)

    def _empty(self, candidates: Iterable[Candidate]) -> None:
        scope, found = self._scope, list[Candidate]()
        for one in sorted(candidates, key=_order):
            kept = kept_from_emptiness(one, scope.field, scope.headroom) or self._pause(one, EMPTY)
            if kept is not None:
                self._verdicts[one.name] = kept
            elif scope.rooms.has_room_for((one,), EMPTY):
                found.append(one)
                scope.rooms.take((one,))
            else:
                self._verdicts[one.name] = self._over_budget(one, EMPTY)
        for start in range(0, len(found), TARGETS_MAX):
            some = tuple(found[start : start + TARGETS_MAX])
            why = "no pod on it would need another place"
            draft = Draft(method="Emptiness", reason=EMPTY, targets=some, price_usd_per_hour=price_of(some), why=why)
            self._add((draft,))

    def _eligible(self, candidates: Mapping[str, Candidate]) -> list[Candidate]:
        """Answer what consolidation may take, in its order; say of the others why not."""
        found: list[Candidate] = []
        for one in candidates.values():
            if one.is_empty():
                continue
            kept = kept_from_consolidation(one, self._scope.field) or self._pause(one, UNDERUTILIZED)
            if kept is None:
                found.append(one)
            else:
                self._verdicts[one.name] = kept
        return sorted(found, key=_dearest)

    def _drift(self, eligible: list[Candidate]) -> None:
        if not any(self._scope.has_drifted(state) for state in self._scope.field.states):
            return
        drifted = []
        for one in self._scope.assessed(eventual=True).values():
            if isinstance(one, Blocked) or one.name in self._gone or not self._scope.has_drifted(one.state):
                continue
            kept = self._pause(one, DRIFTED)
            if kept is None:
                drifted.append(one)
            else:
                self._verdicts[one.name] = kept
        static = [one for one in drifted if one.pool.replicas is not None]
        drafts, blocked = renew_static(static, self._scope.field, self._scope.rooms, self._scope.busy)
        self._add(drafts)
        self._verdicts |= {one.node: one for one in blocked}
        dynamic = [one for one in drifted if one.pool.replicas is None]
        if not dynamic:
            return
        self._ground = layout, exchanges = self._new_ground(eligible)
        renewal = Renewal(layout, exchanges, self._scope.rooms, self._is_over)
        self._add(renewal.find(dynamic))
        self._verdicts |= renewal.blocked

    def _new_ground(self, eligible: list[Candidate]) -> tuple[Layout, Exchanges]:
        layout = self._scope.lay_out(eligible, self._gone)
        return layout, self._scope.exchanges(layout)

    def _consolidate(self, eligible: list[Candidate], candidates: Mapping[str, Candidate], cursor: str) -> str:
        if not eligible:
            return ""
        worthwhile = Worthwhile(self._scope.field, candidates, self._scope.terms.overlap)
        search, drafts = self._deleted(eligible, cursor, worthwhile)
        if drafts and self._ground is None and len(eligible) <= FEW and not self._is_over():
            others = sorted(eligible, key=_order)
            other, found = self._deleted(others, cursor, worthwhile)
            if _saved(found) > ALIKE * _saved(drafts):
                search, drafts, eligible = other, found, others
        self._add([*drafts, *search.exchange(_from(cursor, eligible))])
        self._verdicts |= search.kept
        for one in search.over_budget:
            self._verdicts[one.name] = self._over_budget(one, UNDERUTILIZED)
        return next(iter(search.unreached), "")

    def _deleted(self, eligible: list[Candidate], cursor: str, worthwhile: Worthwhile) -> tuple[Search, list[Draft]]:
        """Look for what may just go of *eligible*, in that order, on the ground that there is or on one of its own."""
        scope = self._scope
        layout, exchanges = self._ground or self._new_ground(eligible)
        scope.quiet(layout)
        extras = costs_by_pool(scope.cluster, scope.options)
        judges = (exchanges, scope.rooms.fork(), worthwhile.refusal)
        search = Search(layout, judges, extras, self._is_over)
        return search, search.delete(_from(cursor, eligible))

    def _pause(self, one: Candidate, reason: str) -> Kept | None:
        if not self._paused & {reason, f"{one.pool.name}/{reason}", EVERYTHING}:
            return None
        mine = not self._paused & {reason, EVERYTHING}
        whose = f" for NodePool {one.pool.name}, see its events" if mine else ""
        return Kept(node=one.name, reason="Paused", message=f"disruption for reason {reason} is paused{whose}")

    def _over_budget(self, one: Candidate, reason: str) -> Blocked:
        return Blocked(node=one.name, reason="Budget", message=self._scope.rooms.why_none(one.pool, reason))


def _disrupted(one: Candidate, draft: Draft) -> Disrupted:
    return Disrupted(node=one.name, reason=draft.reason, message=draft.why, price_usd_per_hour=one.price_usd_per_hour)


def _from(cursor: str, eligible: list[Candidate]) -> list[Candidate]:
    """Answer them beginning with the one called *cursor*, if it is there."""
    start = next((place for place, one in enumerate(eligible) if one.name == cursor), 0)
    return eligible[start:] + eligible[:start]


def _dearest(one: Candidate) -> tuple[float, float, str]:
    """Answer a key that sorts what costs most first: Karpenter asks how much for each pod, which ends up dearer."""
    return -one.price_usd_per_hour, one.reschedule_cost, one.name


def _order(one: Candidate) -> tuple[float, str]:
    return -one.savings_ratio, one.name


def _saved(drafts: Iterable[Draft]) -> float:
    return sum(one.savings_usd_per_hour for one in drafts)


def _never() -> bool:
    return False
