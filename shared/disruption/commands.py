"""How a command comes to its end: one step for each look at the cluster.

What a phase says is written down before anything is done about it, under the planner's lease; what is done is done
again for as long as the cluster does not show it. So whoever dies, or has lost the lease without knowing, leaves
nothing that the next look cannot go on from:

    PROPOSED     taint and condition are on the nodes; after a delay it is looked at again
    VALIDATED    it holds: replacements are asked for; from here on nothing is judged anew until they are there
    LAUNCHED     they were asked for: each is to become fit for use
    INITIALIZED  the point of no return: the claims are deleted
    DRAINING     they are; the lifecycle drains their nodes
    DONE, ROLLED_BACK

A command without replacements goes from PROPOSED to INITIALIZED. One that is rolled back leaves things behind: see
`shared.disruption.leftovers`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.disruption.budgets import is_going
from shared.disruption.orders import SEEN_WITHIN, creations, deletions, look_again, missing, said
from shared.disruption.proposals import mark, marked_since
from shared.disruption.scenes import Scene
from shared.disruption.standings import LEAST_TIME, asked_for, moved
from shared.model.action import Action
from shared.model.cluster import Cluster
from shared.model.commands import Command, Invalid, Pauses, Phase, Standing
from shared.model.state import StateNode

StillHolds: TypeAlias = Callable[[Cluster, Command], Invalid | None]

DELAYS: Final[Mapping[str, timedelta]] = {
    "Emptiness": timedelta(seconds=5),
    "MultiNode": timedelta(seconds=15),
    "SingleNode": timedelta(seconds=15),
}
"""How long a proposal stands, by method, before it is looked at again; the others at once."""
REVOCABLE: Final[frozenset[Phase]] = frozenset(("PROPOSED", "VALIDATED", "LAUNCHED"))
NOTHING_PAUSED: Final = Pauses()
MOST_FAILURES: Final = 5
"""So many are remembered."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a look came to: *standing* is to be written down if it is another one, and then *actions* to be done."""

    standing: Standing
    actions: tuple[Action, ...] = ()


def advance(
    scene: Scene,
    standing: Standing,
    still_holds: StillHolds,
    *,
    time: timedelta = LEAST_TIME,
    paused: Pauses = NOTHING_PAUSED,
) -> Step:
    """Take the next step of one command, if it is possible now; *time* is what it may take in all.

    Where NodeClaims cannot be seen at all, nothing is concluded.
    """
    if not standing.is_open or scene.cluster.lacks("nodeclaims.karpenter.sh"):
        return Step(standing=standing)
    stopped = paused.stops(standing.command) if standing.phase in REVOCABLE else ""
    if stopped:
        return _rolled_back(standing, f"it is paused: {stopped}", scene.now)
    if standing.phase == "PROPOSED":
        return _judge(scene, standing, _unless_paused(still_holds, paused), time)
    if standing.phase == "VALIDATED":
        return _resume(scene, standing, _unless_paused(still_holds, paused))
    if standing.phase == "LAUNCHED":
        return _wait(scene, standing, time)
    return _finish(scene, standing)


def _unless_paused(still_holds: StillHolds, paused: Pauses) -> StillHolds:
    def judged(cluster: Cluster, command: Command) -> Invalid | None:
        pools = sorted({target.pool for target in command.targets})
        why = next((why for pool in pools if (why := paused.why(pool, command.reason))), "")
        return Invalid(why=f"it is paused: {why}") if why else still_holds(cluster, command)

    return judged


def _judge(scene: Scene, standing: Standing, still_holds: StillHolds, time: timedelta) -> Step:
    """PROPOSED: see that the nodes are marked, wait, and look again."""
    command, now = standing.command, scene.now
    staying = {state.claim.meta.uid for state in scene.staying(command) if state.claim is not None}
    lost = frozenset(target.node for target in command.targets if target.claim_uid not in staying)
    if lost:
        return _without(standing, Invalid(why=f"{_some(lost)} went by itself", nodes=lost), now)
    if now - standing.proposed_at > time:
        return _rolled_back(standing, "it could not be proposed in time", now)
    delay = DELAYS.get(command.method, timedelta())
    states = scene.staying(command)
    since = [marked_since(state, command.reason) for state in states]
    unmarked = [state for state, instant in zip(states, since, strict=True) if instant is None]
    if unmarked:
        marks = [action for state in unmarked for action in mark(state, command.reason, now)]
        return Step(standing=standing, actions=(*marks, look_again(standing, max(delay, SEEN_WITHIN))))
    ripe = max(standing.proposed_at, *(instant for instant in since if instant is not None)) + delay
    if ripe > now:
        return Step(standing=standing, actions=(look_again(standing, ripe - now),))
    invalid = still_holds(scene.cluster, command)
    return _confirmed(scene, standing) if invalid is None else _without(standing, invalid, now)


def _confirmed(scene: Scene, standing: Standing) -> Step:
    """Ask for the replacements; where there are none, that was all."""
    if not standing.command.replacements:
        return _commit(scene, standing)
    further = moved(standing, "VALIDATED", scene.now, "it still holds")
    return Step(standing=further, actions=creations(standing, scene))


def _resume(scene: Scene, standing: Standing, still_holds: StillHolds) -> Step:
    """VALIDATED, and whoever saw to that did not come to the end: ask for the replacements that are missing."""
    command, now = standing.command, scene.now
    lacking = missing(scene, command)
    if not lacking:
        return Step(standing=asked_for(standing, now))
    if len(scene.staying(command)) < len(command.targets):
        return _rolled_back(standing, "a node went by itself before its replacement was asked for", now)
    if len(lacking) == len(command.replacements):
        invalid = still_holds(scene.cluster, command)
        if invalid is not None:
            return _rolled_back(standing, invalid.why, now)
    return Step(standing=standing, actions=creations(standing, scene))


def _wait(scene: Scene, standing: Standing, time: timedelta) -> Step:
    """LAUNCHED: wait until every replacement was seen fit for use; once is enough."""
    command, now = standing.command, scene.now
    staying = scene.staying(command)
    if not staying:
        return _finish(scene, moved(standing, "INITIALIZED", now, "its nodes went by themselves"))
    seen = set(standing.initialized)
    for one in command.replacements:
        state = scene.by_claim.get(one.claim.name)
        claim = state.claim if state is not None else None
        if claim is not None and not claim.is_deleting() and claim.is_initialized():
            seen.add(one.claim.name)
        elif one.claim.name not in seen and not scene.cannot_see(one.claim.name) and (claim is None or _ends(state)):
            return _failed(standing, one.claim.name, "is gone" if claim is None else "is being deleted", now)
    waiting = [one.claim.name for one in command.replacements if one.claim.name not in seen]
    latched = replace(standing, initialized=tuple(sorted(seen)))
    if waiting:
        if now - standing.proposed_at > time:
            return _failed(latched, waiting[0], "was not fit for use in time", now)
        words = f"Waiting for {len(waiting)} replacements to be initialized, {waiting[0]} among them"
        return Step(standing=latched, actions=tuple(said(scene, command, "DisruptionWaitingReadiness", words)))
    protected = next((state for state in staying if _is_protected(state, command, now)), None)
    if protected is not None:
        return _rolled_back(latched, f"{protected.name} must not be disrupted any more", now)
    return _commit(scene, latched)


def _commit(scene: Scene, standing: Standing) -> Step:
    """Write down that the nodes go, whatever comes, and delete their claims."""
    further = moved(standing, "INITIALIZED", scene.now, "its claims are deleted")
    return Step(standing=further, actions=deletions(scene, further))


def _finish(scene: Scene, standing: Standing) -> Step:
    """INITIALIZED or DRAINING: delete what is still there, until all is gone."""
    if all(scene.of(target) is None and not scene.cannot_see(target.claim) for target in standing.command.targets):
        return Step(standing=moved(standing, "DONE", scene.now, "its nodes are gone"))
    if scene.staying(standing.command):
        return Step(standing=standing, actions=deletions(scene, standing, SEEN_WITHIN))
    if standing.phase == "DRAINING":
        return Step(standing=standing)
    return Step(standing=moved(standing, "DRAINING", scene.now, "its nodes are drained"))


def _without(standing: Standing, invalid: Invalid, now: datetime) -> Step:
    """Go on without the nodes that *invalid* is about, where the others do not depend on them."""
    command = standing.command
    rest = tuple(target for target in command.targets if target.node not in invalid.nodes)
    if command.method != "Emptiness" or not invalid.nodes or not rest:
        return _rolled_back(standing, invalid.why, now)
    fewer = replace(standing, command=replace(command, targets=rest), why=invalid.why)
    return Step(standing=fewer, actions=(look_again(standing, timedelta()),))


def _rolled_back(standing: Standing, why: str, now: datetime) -> Step:
    return Step(standing=moved(standing, "ROLLED_BACK", now, why))


def _failed(standing: Standing, replacement: str, fate: str, now: datetime) -> Step:
    failures = (*standing.failures, now)[-MOST_FAILURES:]
    return _rolled_back(replace(standing, failures=failures), f"replacement {replacement} {fate}", now)


def _ends(state: StateNode | None) -> bool:
    return state is None or is_going(state)


def _is_protected(state: StateNode, command: Command, now: datetime) -> bool:
    """Whether somebody has asked since that the node or a pod of it be left alone."""
    claim = state.claim
    if command.reason == "Drifted" and claim is not None and claim.termination_grace_period is not None:
        return state.is_protected()
    return state.is_protected() or any(not pod.is_disruptable(now) for pod in state.pods)


def _some(nodes: frozenset[str]) -> str:
    first = min(nodes)
    return first if len(nodes) == 1 else f"{first} and {len(nodes) - 1} more"
