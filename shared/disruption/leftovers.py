"""What was begun and never came to an end: it is taken back, whether the table remembers it or not."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from shared.disruption.budgets import is_going
from shared.disruption.proposals import unmark
from shared.disruption.scenes import Scene
from shared.model.action import Action, DeleteObject
from shared.model.commands import Standing
from shared.model.labels import COMMAND

TAKEN_BACK_FOR: Final = timedelta(minutes=30)
"""So long after a command was rolled back its replacements are looked for."""


def tidy(scene: Scene, standings: Iterable[Standing]) -> tuple[Action, ...]:
    """Take back what was begun and nobody accounts for: taints, conditions, and replacements that are of no use."""
    if scene.cluster.lacks("nodeclaims.karpenter.sh"):
        return ()
    known = tuple(standings)
    kept = {target.claim_uid for one in known if one.is_open for target in one.command.targets}
    actions: list[Action] = []
    for state in scene.states:
        if state.claim is not None and state.claim.meta.uid not in kept:
            actions.extend(unmark(state))
    for one in known:
        if one.phase == "ROLLED_BACK" and scene.now - one.phase_since <= TAKEN_BACK_FOR:
            actions.extend(_take_back(scene, one))
    return tuple(actions)


def _take_back(scene: Scene, standing: Standing) -> Iterator[DeleteObject]:
    """Delete the replacements that never came to be used; the others are nodes like any other."""
    command = standing.command
    for one in command.replacements:
        state = scene.by_claim.get(one.claim.name)
        claim = state.claim if state is not None else None
        if state is None or claim is None or claim.meta.annotation(COMMAND) != command.command_id:
            continue
        used = claim.is_initialized() or state.is_nominated(scene.now) or any(not pod.is_daemon() for pod in state.pods)
        if not used and not is_going(state):
            yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why="rolled_back")
