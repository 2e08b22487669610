"""Emptiness: nodes without a pod that it would cost anything to move, for as long as their pool wants it.

There is no simulation: what pending pods are planned on is nominated, and so is no candidate. A pod that came since
the last look at the node is a pod event just now, whatever the claim remembers.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.disruption.budgets import Allowance, Tally, allowance, tallies
from shared.disruption.candidates import Blocked, Candidate, Field, assess, field_of, reschedule_cost
from shared.disruption.proposals import VALIDATION, is_mature, is_standing, propose, reason_of, roll_back
from shared.disruption.verdicts import Disrupted, Kept, Sweep, Verdict
from shared.lifecycle.events import about, about_machine
from shared.lifecycle.followups import SOONEST, look_at, soonest
from shared.lifecycle.podevents import consolidatable_at
from shared.model.action import Action, DeleteObject, FollowUp
from shared.model.cluster import Cluster
from shared.model.labels import POD_DIGEST
from shared.model.nodepools import NodePool
from shared.model.objects import is_true
from shared.model.state import StateNode, pod_digest

REASON: Final = "Empty"


def decide(cluster: Cluster, nominated: frozenset[str] = frozenset(), headroom: frozenset[str] = frozenset()) -> Sweep:
    """Propose, confirm or take back.

    *nominated* are names of state nodes that pending pods are planned on, *headroom* of those that buffers are.
    """
    field = field_of(cluster, nominated)
    verdicts: list[Verdict] = []
    eligible: list[Candidate] = []
    actions: list[Action] = []
    for state in field.states:
        assessed = assess(state, field)
        judged = assessed if isinstance(assessed, Blocked) else _kept(assessed, field.now) or _held(state, headroom)
        if isinstance(assessed, Candidate) and judged is None:
            eligible.append(assessed)
        elif judged is not None:
            verdicts.append(judged)
        if isinstance(assessed, Candidate):
            actions.extend(_wake(assessed, field.now))
    taken = _within_budgets(eligible, field)
    for candidate in taken.candidates:
        actions.extend(_step(candidate, field.now))
        verdicts.append(_gone(candidate))
    verdicts.extend(_over_budget(candidate) for candidate in taken.refused)
    going = {candidate.name for candidate in taken.candidates}
    for state in field.states:
        if state.name not in going:
            actions.extend(roll_back(state, frozenset((REASON,))))
    actions.extend(taken.events)
    actions.extend(_events(verdicts, field))
    ordered = tuple(sorted(verdicts, key=lambda one: (one.node, one.reason)))
    return Sweep(actions=soonest(actions), verdicts=ordered)


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    candidates: tuple[Candidate, ...]
    refused: tuple[Candidate, ...]
    events: tuple[Action, ...]


def _kept(candidate: Candidate, now: datetime) -> Kept | None:
    """Say why a candidate is not to go as empty; None: nothing speaks against it."""
    claim, pool = candidate.claim, candidate.pool
    due = consolidatable_at(claim, pool)
    known = claim.meta.annotation(POD_DIGEST)
    if pool.replicas is not None:
        why = ("StaticPool", f"NodePool {pool.name} keeps a fixed number of nodes")
    elif pool.consolidate_after is None:
        why = ("ConsolidationDisabled", f"NodePool {pool.name} has consolidateAfter Never")
    elif not candidate.is_empty():
        why = ("NotEmpty", f"{len(candidate.reschedulable)} pods would need another place")
    elif known and known != pod_digest(candidate.state.pods):
        why = ("PodsChanged", "pods came, ended or began to go since the node was last looked at")
    elif (due is None or due > now) if known else not is_true(claim.conditions, "Consolidatable"):
        why = ("NotConsolidatable", "the node has not been quiet for consolidateAfter yet")
    else:
        return None
    return Kept(node=candidate.name, reason=why[0], message=why[1])


def _held(state: StateNode, headroom: frozenset[str]) -> Kept | None:
    if state.name not in headroom:
        return None
    return Kept(node=state.name, reason="Headroom", message="a CapacityBuffer keeps room there: it is not empty")


def _wake(candidate: Candidate, now: datetime) -> tuple[FollowUp, ...]:
    """Look again when an empty node will have been quiet long enough."""
    claim, pool = candidate.claim, candidate.pool
    due = consolidatable_at(claim, pool)
    if due is None or pool.replicas is not None or pool.consolidate_after is None or not candidate.is_empty():
        return ()
    known = claim.meta.annotation(POD_DIGEST)
    if known and known != pod_digest(candidate.state.pods):
        note = FollowUp(function="lifecycle", after=SOONEST, why=f"pods of {candidate.name} changed")
        due = now + max(pool.consolidate_after, 2 * SOONEST)
        return (note, *look_at(due, now, f"{candidate.name} may be empty", "disrupt"))
    return look_at(due, now, f"{candidate.name} may be empty", "disrupt")


def _within_budgets(eligible: Iterable[Candidate], field: Field) -> _Taken:
    """Take as many as the pools' budgets leave room for: those proposed already first, then the best savings."""
    others = frozenset(state.name for state in field.states if reason_of(state.claim) not in ("", REASON))
    counted = tallies(field.states, others)
    allowed = {
        name: allowance(pool, REASON, counted.get(name, Tally()).total, field.now)
        for name, pool in sorted(field.pools.items())
    }
    room = {name: max(one.count - counted.get(name, Tally()).disrupting, 0) for name, one in allowed.items()}
    taken: list[Candidate] = []
    refused: list[Candidate] = []
    for candidate in sorted(eligible, key=_order):
        if room[candidate.pool.name] > 0:
            room[candidate.pool.name] -= 1
            taken.append(candidate)
        else:
            refused.append(candidate)
    events = tuple(
        event
        for name, one in allowed.items()
        for event in _budget_events(field.pools[name], one, counted.get(name, Tally()).total, field.now)
    )
    return _Taken(candidates=tuple(taken), refused=tuple(refused), events=events)


def _order(candidate: Candidate) -> tuple[bool, float, str]:
    return reason_of(candidate.claim) != REASON, -candidate.savings_ratio, candidate.name


def _budget_events(pool: NodePool, allowed: Allowance, total: int, now: datetime) -> tuple[Action, ...]:
    if allowed.problem:
        words = f"No disruption is allowed: {allowed.problem}"
        return (about("NodePool", pool.meta, "DisruptionBlocked", words, now, type_="Warning"),)
    if total and allowed.count == 0:
        words = f"No allowed disruptions for disruption reason {REASON} due to blocking budget"
        return (about("NodePool", pool.meta, "DisruptionBlocked", words, now),)
    return ()


def _step(candidate: Candidate, now: datetime) -> tuple[Action, ...]:
    """Propose; or, where the proposal has stood long enough, delete."""
    again = FollowUp(function="disrupt", after=VALIDATION, why=f"{candidate.name} is proposed as empty")
    if not is_standing(candidate, REASON):
        return (*propose(candidate, REASON, now), again)
    if not is_mature(candidate, now):
        return (again,)
    claim = candidate.claim
    words = f"Disrupting {claim.name}: {REASON}"
    return (
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why="empty"),
        *about_machine(claim, (candidate.node,), "DisruptionTerminating", words, now),
        FollowUp(function="lifecycle", after=timedelta(), why=f"{candidate.name} is deleted"),
    )


def _gone(candidate: Candidate) -> Disrupted:
    message = "no pod on it would need another place"
    return Disrupted(
        node=candidate.name, reason=REASON, message=message, price_usd_per_hour=candidate.price_usd_per_hour
    )


def _over_budget(candidate: Candidate) -> Blocked:
    message = f"NodePool {candidate.pool.name} has no allowed disruptions left for reason {REASON}"
    return Blocked(node=candidate.name, reason="Budget", message=message)


def _events(verdicts: Iterable[Verdict], field: Field) -> tuple[Action, ...]:
    """Say of each machine that might go as empty what forbids it; of the others the verdicts say enough."""
    blocked = {one.node: one for one in verdicts if isinstance(one, Blocked) and one.reason not in _SILENT}
    return tuple(
        event
        for state in field.states
        if state.name in blocked and state.claim is not None and reschedule_cost(state.pods) <= 1.0
        for event in about_machine(
            state.claim,
            () if state.node is None else (state.node,),
            "DisruptionBlocked",
            f"Cannot disrupt: {blocked[state.name].message}",
            field.now,
        )
    )


_SILENT: Final = ("Budget", "Deleting", "NotManaged", "NoNode", "NotInitialized")
