"""How far a command has come, as it is written down: a proposal, and what it is once it moved."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from shared.model.action import CreateNodeClaim
from shared.model.commands import Command, Phase, Standing

LEAST_TIME: Final = timedelta(minutes=10)
MOST_TIME: Final = timedelta(hours=1)
TIME_FOR_EACH: Final = timedelta(milliseconds=80)
"""What a command may take until its replacements are there, for each node that is being disrupted."""


def proposed(command: Command, now: datetime) -> Standing:
    """Answer a new command's standing; its replacements have names of this very proposal.

    The same decision may come again, and what was launched for a name once is never launched for it again.
    """
    names = {one.claim.name: _name(one.claim.name, command, now) for one in command.replacements}
    renamed = replace(
        command,
        replacements=tuple(_renamed(one, names[one.claim.name]) for one in command.replacements),
        homes=tuple((pod, names.get(home, home)) for pod, home in command.homes),
    )
    return Standing(command=renamed, phase_since=now, proposed_at=now, why=command.why)


def _name(name: str, command: Command, now: datetime) -> str:
    salt = sha256(f"{command.command_id} {name} {now.isoformat()}".encode()).hexdigest()[:10]
    return f"{name.rpartition('-')[0] or name}-{salt}"


def _renamed(one: CreateNodeClaim, name: str) -> CreateNodeClaim:
    return replace(one, claim=replace(one.claim, meta=replace(one.claim.meta, name=name)))


def asked_for(standing: Standing, now: datetime) -> Standing:
    """Answer the standing of a command all of whose replacements were asked for."""
    count = len(standing.command.replacements)
    return moved(standing, "LAUNCHED", now, f"waits for {count} replacement{'s' if count > 1 else ''}")


def time_for(standings: Iterable[Standing]) -> timedelta:
    """Answer how long a command may take, with so many nodes being disrupted."""
    count = sum(len(one.command.targets) for one in standings if one.is_open)
    return min(max(TIME_FOR_EACH * count, LEAST_TIME), MOST_TIME)


def moved(standing: Standing, phase: Phase, now: datetime, why: str) -> Standing:
    """Answer the standing of a command that has come to *phase*."""
    return replace(standing, phase=phase, phase_since=now, why=why)
