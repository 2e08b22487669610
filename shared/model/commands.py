"""Commands: disruptions that were decided, and how far each has come.

A command says which nodes go, what comes in their place and why; it is a value, and its id a digest of it: decided
again it is the same. Its standing is what the table remembers of it.
"""

from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.action import CreateNodeClaim
from shared.model.objects import Pairs

Reason: TypeAlias = Literal["Empty", "Drifted", "Underutilized"]
"""As budgets and the claim's condition spell it."""
Method: TypeAlias = Literal["Emptiness", "StaticDrift", "Drift", "MultiNode", "SingleNode"]
Phase: TypeAlias = Literal["PROPOSED", "VALIDATED", "LAUNCHED", "INITIALIZED", "DRAINING", "DONE", "ROLLED_BACK"]
"""Each is what has been done: LAUNCHED, that the replacements were asked for; DRAINING, that the claims are deleted."""

ENDED: Final[frozenset[Phase]] = frozenset(("DONE", "ROLLED_BACK"))
TARGETS_MAX: Final = 100
"""Nodes of one command at most, so that its row is far from the table's limit (400 kB): more go in several."""


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that goes; it is this one only while claim and uid are the same."""

    node: str
    claim: str
    claim_uid: str
    provider_id: str
    pool: str


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that go together, and what must be there before they do."""

    command_id: str
    reason: Reason
    method: Method
    targets: tuple[Target, ...]
    """Sorted by node."""
    replacements: tuple[CreateNodeClaim, ...] = ()
    """Empty: their pods have room elsewhere, or they have none."""
    homes: Pairs = ()
    """Where each pod is expected, as (``shop/cart``, name of a node or of a replacement), sorted."""
    savings_usd_per_hour: float = 0.0
    why: str = ""

    def nodes(self) -> frozenset[str]:
        """Answer the names of the nodes that go."""
        return frozenset(target.node for target in self.targets)


def command(
    *,
    reason: Reason,
    method: Method,
    targets: tuple[Target, ...],
    replacements: tuple[CreateNodeClaim, ...] = (),
    homes: Pairs = (),
    savings_usd_per_hour: float = 0.0,
    why: str = "",
) -> Command:
    """Answer the command, its targets and homes sorted; money and words are no part of what its id is made of."""
    ordered = tuple(sorted(targets, key=lambda target: (target.node, target.claim)))
    content = msgspec.json.encode((reason, method, ordered, [one.claim for one in replacements]), order="sorted")
    return Command(
        command_id=f"{method.lower()}-{sha256(content).hexdigest()[:12]}",
        reason=reason,
        method=method,
        targets=ordered,
        replacements=replacements,
        homes=tuple(sorted(homes)),
        savings_usd_per_hour=savings_usd_per_hour,
        why=why,
    )


class Invalid(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command that was proposed is not to be carried out."""

    why: str
    nodes: frozenset[str] = frozenset()
    """The targets that it is about, if the others may go without them (emptiness); empty: the whole command."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A command and how far it has come: one row of the table."""

    command: Command
    phase: Phase = "PROPOSED"
    phase_since: datetime
    proposed_at: datetime
    waiting: int = 0
    """Pods that had waited long for a node when it was proposed."""
    initialized: tuple[str, ...] = ()
    """Replacements that were seen fit for use, sorted; whatever became of them later, that is enough."""
    failures: tuple[datetime, ...] = ()
    """When its replacements came to nothing, and it with them: last time, and before; oldest first."""
    fence: int = 0
    """The planner's lease as this was written: which invocation it was."""
    why: str = ""
    """How it ended, or what it waits for."""
    version: int = 0
    """Of the row; 0: there is none yet."""

    @property
    def is_open(self) -> bool:
        """Whether there is something left to do."""
        return self.phase not in ENDED


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Something is not to be disrupted at present."""

    pool: str = ""
    """Empty: all."""
    reason: str = ""
    """Empty: every one."""
    why: str
    """And what resumes it."""
    holds_all: bool = False
    """What was begun does not go on either, unless nodes are going already."""
    is_meant: bool = False
    """People said so: nobody need be woken for it."""
    spares_repair: bool = False
    """Machines that are broken go all the same."""


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """All that holds disruption back at present; sorted by pool and reason."""

    items: tuple[Pause, ...] = ()

    def why(self, pool: str, reason: str) -> str:
        """Say why nodes of *pool* are not disrupted for *reason*; "" if they may be."""
        return next((one.why for one in self._of(pool, reason)), "")

    def stops(self, command: Command) -> str:
        """Say why *command* is not to go on though its replacements were asked for; "" if it may."""
        pools = sorted({target.pool for target in command.targets})
        return next((one.why for pool in pools for one in self._of(pool, command.reason) if one.holds_all), "")

    def _of(self, pool: str, reason: str) -> Iterator[Pause]:
        return (
            one
            for one in self.items
            if one.pool in ("", pool)
            and one.reason in ("", reason)
            and not (one.spares_repair and reason == "Unhealthy")
        )
