"""What a command has done about it: replacements asked for, claims deleted, machines told, another look."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Final

from msgspec.structs import replace

from shared.disruption.events import MOST
from shared.disruption.scenes import Scene
from shared.lifecycle.events import about_machine
from shared.model.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.commands import Command, Standing
from shared.model.labels import COMMAND
from shared.model.objects import pairs

SEEN_WITHIN: Final = timedelta(seconds=1)
"""So long after nodes were marked, or deleted once more, one looks again: a list that lags would keep us at it."""


def creations(standing: Standing, scene: Scene) -> tuple[Action, ...]:
    """Ask for the replacements that are missing."""
    command = standing.command
    words = f"Launching {len(command.replacements)} for {command.reason}"
    return (
        *(_creation(one, command) for one in missing(scene, command)),
        *said(scene, command, "DisruptionLaunching", words),
        FollowUp(function="provision", after=timedelta(), why=f"{command.command_id} waits for its replacements"),
    )


def missing(scene: Scene, command: Command) -> tuple[CreateNodeClaim, ...]:
    """Answer the replacements that have no claim."""
    return tuple(one for one in command.replacements if one.claim.name not in scene.by_claim)


def deletions(scene: Scene, standing: Standing, after: timedelta = timedelta()) -> tuple[Action, ...]:
    """Delete what stays; *after*: what was deleted before may only not be seen yet, and nobody hurries for that."""
    command = standing.command
    claims = [state.claim for state in scene.staying(command) if state.claim is not None]
    return (
        *(
            DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=command.reason.lower())
            for claim in claims
        ),
        *said(scene, command, "DisruptionTerminating", f"Disrupting: {command.reason}"),
        FollowUp(function="lifecycle", after=after, why=f"{command.command_id} deletes {len(claims)} claims"),
    )


def look_again(standing: Standing, after: timedelta) -> FollowUp:
    """Wake disruption for the sake of a proposal."""
    return FollowUp(function="disrupt", after=after, why=f"{standing.command.command_id} is proposed")


def said(scene: Scene, command: Command, reason: str, words: str) -> Iterator[Action]:
    """Tell machines of the command that stay, not all of them where they are many, *words*."""
    for state in islice(scene.staying(command), MOST):
        if state.claim is not None:
            nodes = () if state.node is None else (state.node,)
            yield from about_machine(state.claim, nodes, reason, words, scene.now)


def _creation(one: CreateNodeClaim, command: Command) -> CreateNodeClaim:
    """Let the claim say what it is for: what is left of a command is found by that."""
    meta = one.claim.meta
    marked = replace(meta, annotations=pairs(dict(meta.annotations) | {COMMAND: command.command_id}))
    return replace(one, claim=replace(one.claim, meta=marked))
