"""Command states as they are written: the state of a new command, and its phase changes."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from shared.model.core.formatting import format_count
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import CommandState, DisruptionCommand, Phase

MIN_COMMAND_TIMEOUT: Final = timedelta(minutes=10)
MAX_COMMAND_TIMEOUT: Final = timedelta(hours=1)
NODE_TIMEOUT: Final = timedelta(milliseconds=80)
"""Time limit until a command's replacements are ready, for each node that is being disrupted."""


def build_command_state(command: DisruptionCommand, now: datetime) -> CommandState:
    """Return the state of a new command; its replacements get names that are unique to this proposal.

    The same decision may be made again, and a name that was launched once is never launched again.
    """
    new_name_by_claim = {
        creation.claim.name: _build_replacement_name(creation.claim.name, command, now)
        for creation in command.replacements
    }
    renamed_command = replace(
        command,
        replacements=tuple(
            _rename_creation(creation, new_name_by_claim[creation.claim.name]) for creation in command.replacements
        ),
        nominations=tuple((pod, new_name_by_claim.get(home, home)) for pod, home in command.nominations),
    )
    return CommandState(command=renamed_command, phase_since=now, proposed_at=now, message=command.message)


def _build_replacement_name(name: str, command: DisruptionCommand, now: datetime) -> str:
    suffix = sha256(f"{command.command_id} {name} {now.isoformat()}".encode()).hexdigest()[:10]
    return f"{name.rpartition('-')[0] or name}-{suffix}"


def _rename_creation(creation: CreateNodeClaim, name: str) -> CreateNodeClaim:
    return replace(creation, claim=replace(creation.claim, meta=replace(creation.claim.meta, name=name)))


def with_launched_phase(command_state: CommandState, now: datetime) -> CommandState:
    """Return the state of a command after all of its replacements were requested."""
    count = len(command_state.command.replacements)
    return with_phase(command_state, "LAUNCHED", now, f"waiting for {format_count(count, 'replacement')}")


def compute_command_timeout(command_states: Iterable[CommandState]) -> timedelta:
    """Return the time limit for a command, which depends on the number of nodes in open commands."""
    count = sum(len(command_state.command.targets) for command_state in command_states if command_state.is_open)
    return min(max(NODE_TIMEOUT * count, MIN_COMMAND_TIMEOUT), MAX_COMMAND_TIMEOUT)


def with_phase(command_state: CommandState, phase: Phase, now: datetime, message: str) -> CommandState:
    """Return *command_state* with its new *phase*."""
    return replace(command_state, phase=phase, phase_since=now, message=message)
