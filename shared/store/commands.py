"""Disruption commands and the sweep's cursor as table rows: read, written under the planner's lease, and deleted."""

from datetime import timedelta
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import replace

from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.core.units import format_instant
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import UNKNOWN_PHASE_TIMEOUT, CommandState, DisruptionCommand, Phase
from shared.model.karpenter.node_claim import NodeClaim
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_body, decode_body_text, describe_undecodable_row, encode_body, try_write

COMMAND_KIND: Final = "command"
CURSOR_KIND: Final = "cursor"
CURSOR_NAME: Final = "disrupt"
ENDED_COMMAND_TTL: Final = timedelta(hours=1)
"""How long an ended command is kept: recent failures pause further disruption."""
MAX_ROWS_DELETED_PER_CYCLE: Final = 25
"""Rows of ended commands that one cycle deletes at most."""


class _StoredPhase(msgspec.Struct, frozen=True, kw_only=True):
    """The phase in a row of any version."""

    phase: str


def read_commands(world: World, problems: list[Problem]) -> dict[str, CommandState]:
    """Return the command states by id.

    Rows that cannot be decoded are added to *problems*, and own no nodes. A phase of a newer version is UNKNOWN, and a
    problem too.

    Raises:
        Fault: the table did not respond.
    """
    rows = world.table.list_rows(COMMAND_KIND)
    command_states: dict[str, CommandState] = {}
    for row in rows:
        command_state = decode_command(row)
        if command_state is None:
            problems.extend(describe_undecodable_row(row, CommandState, "the command was rolled back"))
            continue
        command_states[row.name] = command_state
        if command_state.phase == "UNKNOWN":
            ends_at = format_instant(command_state.phase_since + UNKNOWN_PHASE_TIMEOUT)
            message = (
                f"phase: {decode_body_text(row.body, _StoredPhase).phase!r} was written by a newer version; until "
                f"{ends_at} the command and its nodes are left alone, then it is rolled back; to complete it, deploy "
                "the newer version again"
            )
            problems.append(Problem(kind=COMMAND_KIND, name=row.name, message=message))
    return command_states


def decode_command(row: TableRow) -> CommandState | None:
    """Return the command state in *row*; its phase is UNKNOWN if only the phase cannot be decoded.

    None if the row cannot be decoded.
    """
    command_state = decode_body(row, CommandState)
    if command_state is None:
        content, stored_phase = decode_body(row, dict[str, Any]), decode_body(row, _StoredPhase)
        if content is None or stored_phase is None or stored_phase.phase in get_args(Phase):
            return None
        try:
            command_state = msgspec.convert(content | {"phase": "UNKNOWN"}, CommandState)
        except msgspec.ValidationError:
            return None
    return replace(command_state, version=row.version)


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
    body = encode_body(body_state, name, "it has too many targets or replacements, and is not started")
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
