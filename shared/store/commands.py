"""Disruption commands and the sweep's cursor as table rows: read, written under the planner's lease, and deleted."""

from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import CommandState, DisruptionCommand
from shared.model.karpenter.node_claim import NodeClaim
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_rows, try_write

COMMAND_KIND: Final = "command"
CURSOR_KIND: Final = "cursor"
CURSOR_NAME: Final = "disrupt"
ENDED_COMMAND_TTL: Final = timedelta(hours=1)
"""How long an ended command is kept: recent failures pause further disruption."""
MAX_ROWS_DELETED_PER_CYCLE: Final = 25
"""Rows of ended commands that one cycle deletes at most."""


def read_commands(world: World, problems: list[Problem]) -> dict[str, CommandState]:
    """Return the command states by id; rows that cannot be decoded are added to *problems*, and own no nodes.

    Raises:
        Fault: the table did not respond.
    """
    rows = world.table.list_rows(COMMAND_KIND)
    return {
        row.name: replace(command_state, version=row.version)
        for row, command_state in decode_rows(rows, CommandState, problems, "the command was rolled back")
    }


def delete_old_commands(command_states: dict[str, CommandState], world: World) -> None:
    """Delete the rows of commands that ended long ago, also from *command_states*; a limited number per cycle.

    Raises:
        Fault: the table did not respond.
    """
    now = world.clock()
    expired_names = [
        name
        for name, state in sorted(command_states.items())
        if not state.is_open and now - state.phase_since > _get_retention(state, world)
    ]
    for name in expired_names[:MAX_ROWS_DELETED_PER_CYCLE]:
        world.table.remove(COMMAND_KIND, name, version=command_states.pop(name).version)


def write_command(command_state: CommandState, world: World, fence: FencingToken) -> CommandState:
    """Write the row of a command, as `without_replacement_details` returns it.

    Raises:
        Conflict: the controller lost its lease, or another process wrote the row.
        Invalid: the row is too large.
    """
    name = command_state.command.command_id
    stored_state = without_replacement_details(command_state)
    body_state = replace(stored_state, fencing_token=fence.version, version=0)
    body = msgspec.json.encode(body_state, order="deterministic").decode()
    expires_at = None if command_state.is_open else command_state.phase_since + _get_retention(command_state, world)
    row = world.table.write(COMMAND_KIND, name, body, version=command_state.version, expires_at=expires_at, fence=fence)
    return replace(stored_state, fencing_token=fence.version, version=row.version)


def without_replacement_details(command_state: CommandState) -> CommandState:
    """Return *command_state* as it is stored: the replacements of an ended command keep only their names."""
    return (
        command_state
        if command_state.is_open
        else replace(command_state, command=_strip_replacements(command_state.command))
    )


def read_cursor(world: World) -> TableRow:
    """Return the row with the cursor of the last sweep; an empty body is the beginning.

    Raises:
        Fault: the table did not respond.
    """
    return world.table.read(CURSOR_KIND, CURSOR_NAME) or TableRow(
        kind=CURSOR_KIND, name=CURSOR_NAME, version=0, body=""
    )


def write_cursor(row: TableRow, cursor: str, world: World, fence: FencingToken) -> None:
    """Store the cursor if it changed; if the controller lost its lease, the cursor is left to its new holder.

    Raises:
        Fault: the table did not respond.
    """
    if cursor == row.body or world.settings.mode == "plan":
        return
    try_write(world.table, CURSOR_KIND, CURSOR_NAME, cursor, version=row.version, fence=fence)


def _get_retention(command_state: CommandState, world: World) -> timedelta:
    """Return how long an ended command is kept: as long as it may pause disruption, or its workloads cool down."""
    cooldown = world.settings.workload_cooldown_period if command_state.command.workloads else timedelta()
    return max(ENDED_COMMAND_TTL, cooldown)


def _strip_replacements(command: DisruptionCommand) -> DisruptionCommand:
    """Return *command* with only the names of its replacements."""
    stripped_replacements = (
        CreateNodeClaim(
            claim=NodeClaim(meta=ObjectMeta(name=replacement.claim.name), node_class=replacement.claim.node_class)
        )
        for replacement in command.replacements
    )
    return replace(command, replacements=tuple(stripped_replacements), nominations=())
