"""Commands and the sweep's cursor as rows of the table: read, written under the planner's lease, and forgotten."""

from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.errors import Conflict
from shared.model.action import CreateNodeClaim
from shared.model.commands import Command, Standing
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta, Problem
from shared.ports import Fence, Row, World

KIND: Final = "command"
CURSOR: Final = "cursor"
DISRUPT: Final = "disrupt"
KEPT_FOR: Final = timedelta(hours=1)
"""So long a command that came to its end is remembered: what went wrong of late pauses what is to come."""
MOST_REMOVED: Final = 25
"""Rows that are past, a cycle."""


def read_commands(world: World, problems: list[Problem]) -> dict[str, Standing]:
    """Answer the rows by id; those that cannot be read join *problems*, and their nodes are nobody's.

    Raises:
        Fault: the table did not answer.
    """
    found: dict[str, Standing] = {}
    for row in world.table.rows(KIND):
        try:
            read = msgspec.json.decode(row.body, type=Standing)
        except msgspec.DecodeError as error:
            message = f"body: {error}; remove the row, what it was about is taken back"
            problems.append(Problem(kind=KIND, name=row.name, message=message))
            continue
        found[row.name] = replace(read, version=row.version)
    return found


def forget_past(standings: dict[str, Standing], world: World) -> None:
    """Remove rows of commands that ended long ago, and from *standings*; some in each cycle.

    Raises:
        Fault: the table did not answer.
    """
    now = world.clock()
    past = [name for name, one in sorted(standings.items()) if not one.is_open and now - one.phase_since > KEPT_FOR]
    for name in past[:MOST_REMOVED]:
        world.table.remove(KIND, name, version=standings.pop(name).version)


def write_command(standing: Standing, world: World, fence: Fence) -> Standing:
    """Write the row, `outlined`.

    Raises:
        Conflict: the lease was lost, or somebody else wrote the row.
        Invalid: it is too large.
    """
    name = standing.command.command_id
    kept = outlined(standing)
    fresh = replace(kept, fence=fence.version, version=0)
    body = msgspec.json.encode(fresh, order="deterministic").decode()
    until = None if standing.is_open else standing.phase_since + KEPT_FOR
    row = world.table.write(KIND, name, body, version=standing.version, expires_at=until, fence=fence)
    return replace(kept, fence=fence.version, version=row.version)


def outlined(standing: Standing) -> Standing:
    """Answer *standing* as it is written down: of what came to its end its replacements have no more than names."""
    return standing if standing.is_open else replace(standing, command=_outline(standing.command))


def read_cursor(world: World) -> Row:
    """Answer where the last sweep came to; a body of "" is the beginning.

    Raises:
        Fault: the table did not answer.
    """
    return world.table.read(CURSOR, DISRUPT) or Row(kind=CURSOR, name=DISRUPT, version=0, body="")


def write_cursor(row: Row, cursor: str, world: World, fence: Fence) -> None:
    """Remember where a sweep came to, if that is another place; who lost the lease leaves it to whoever has it.

    Raises:
        Fault: the table did not answer.
    """
    if cursor == row.body or world.settings.mode == "plan":
        return
    with suppress(Conflict):
        world.table.write(CURSOR, DISRUPT, cursor, version=row.version, fence=fence)


def _outline(command: Command) -> Command:
    """Answer *command* with no more of its replacements than their names."""
    outlined = (
        CreateNodeClaim(claim=NodeClaim(meta=Meta(name=one.claim.name), node_class=one.claim.node_class))
        for one in command.replacements
    )
    return replace(command, replacements=tuple(outlined), homes=())
