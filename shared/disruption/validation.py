"""A command that was proposed, looked at again: pods may have come, budgets changed, room been taken meanwhile."""

from collections.abc import Mapping

from shared.disruption.candidates import Blocked, Candidate, assess
from shared.disruption.eligibility import kept_from_consolidation, kept_from_emptiness
from shared.disruption.ground import Ground
from shared.disruption.scope import DEFAULT, NOWHERE, Scope
from shared.disruption.terms import Terms
from shared.disruption.verdicts import Kept
from shared.model.cluster import Cluster
from shared.model.commands import Command, Invalid
from shared.model.labels import INSTANCE_TYPE, NODEPOOL
from shared.model.nodes import NodeClaim
from shared.scheduling.placement import Options

OPTIONS = Options()


def still_holds(
    cluster: Cluster,
    command: Command,
    others: frozenset[str] = frozenset(),
    *,
    homes: Mapping[str, str] = NOWHERE,
    options: Options = OPTIONS,
    terms: Terms = DEFAULT,
) -> Invalid | None:
    """Answer why *command* must not be carried out, None if it may.

    *others*: names of nodes in other commands that run; *homes*: where their pods are expected, by pod.

    Its nodes must still be candidates of its method, its budgets must hold, and its pods must need no more than the
    room there is and its replacements, whichever type these become. What it would save is not reckoned again.
    """
    scope = Scope(cluster, options, others, homes, terms)
    candidates: list[Candidate] = []
    lost: dict[str, str] = {}
    for target in command.targets:
        one = _candidate(target.node, target.claim_uid, command, scope)
        if isinstance(one, Candidate):
            candidates.append(one)
        else:
            lost[target.node] = f"{one.reason}: {one.message}"
    if lost:
        return Invalid(why=f"{min(lost)}: {lost[min(lost)]}", nodes=frozenset(lost))
    over = _over_budget(candidates, command, scope)
    if over is not None:
        return over
    return _without_room(candidates, command, scope) if command.reason == "Underutilized" else None


def _candidate(node: str, uid: str, command: Command, scope: Scope) -> Candidate | Blocked | Kept:
    state = next((one for one in scope.field.states if one.name == node), None)
    if state is None or state.claim is None or state.claim.meta.uid != uid:
        return Blocked(node=node, reason="Gone", message="it is not the node that it was")
    one = assess(state, scope.field, "eventual" if command.reason == "Drifted" else "graceful")
    if isinstance(one, Blocked):
        return one
    if command.reason == "Empty":
        return kept_from_emptiness(one, scope.field, scope.headroom) or one
    if command.reason == "Drifted":
        calm = Kept(node=node, reason="NotDrifted", message="it has not drifted any more")
        return one if scope.has_drifted(one.state) else calm
    if one.is_empty():
        return Kept(node=node, reason="Empty", message="it is empty by now")
    return kept_from_consolidation(one, scope.field) or one


def _over_budget(candidates: list[Candidate], command: Command, scope: Scope) -> Invalid | None:
    """Answer the targets for which there is no room, the last first."""
    over: list[Candidate] = []
    for one in candidates:
        if scope.rooms.has_room_for((one,), command.reason):
            scope.rooms.take((one,))
        else:
            over.append(one)
    if not over:
        return None
    return Invalid(why=scope.rooms.why_none(over[0].pool, command.reason), nodes=frozenset(one.name for one in over))


def _without_room(candidates: list[Candidate], command: Command, scope: Scope) -> Invalid | None:
    layout = scope.lay_out(candidates, ())
    scope.quiet(layout)
    ground = layout.ground
    ground.begin(may_open=len(command.replacements))
    names = dict(ground.numbers)
    for one in command.replacements:
        number = _opened(ground, one.claim)
        if number is None:
            return Invalid(why=f"replacement {one.claim.name} cannot be made any more")
        names[one.claim.name] = len(ground.standing) + number
    masks = [node.mask for node in ground.opened]
    pods = [pod for one in candidates for pod in ground.clear(ground.numbers[one.name])]
    homes = {pod: names[home] for pod, home in command.homes if home in names}
    left = [pod.name for some in ground.house_at(pods, homes) for pod in some.pods]
    faults = [pod.name for one in candidates for pod in one.state.pods if pod.name in layout.faults]
    if left or faults:
        return Invalid(why=f"{len(left) + len(faults)} pods have no place any more, {[*faults, *left][0]} among them")
    if [node.mask for node in ground.opened] != masks:
        return Invalid(why="not every type that a replacement may become holds its pods any more")
    return None


def _opened(ground: Ground, claim: NodeClaim) -> int | None:
    """Open the node that *claim* asks for, as any of its types; None if it cannot be had any more."""
    for template in ground.templates:
        if template.pool.name != claim.meta.label(NODEPOOL):
            continue
        state = template.narrow(template.start, claim.requirements.without((INSTANCE_TYPE,)))
        mask = 0 if state is None else state.mask & template.shelf.named(claim.requirements[INSTANCE_TYPE])
        return None if state is None or not mask else ground.open(template, state, mask)
    return None
