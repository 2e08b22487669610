"""Disruption commands and their state.

A command names the nodes to disrupt, their replacements and the reason. It is a value, and its id is a digest of it:
the same decision gives the same command. The command state is its row in the table.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.core.metadata import Pairs
from shared.model.decisions.action import CreateNodeClaim

CommandReason: TypeAlias = Literal["Empty", "Drifted", "Underutilized"]
"""As spelled in disruption budgets and in the NodeClaim's condition."""
Method: TypeAlias = Literal["Emptiness", "StaticDrift", "Drift", "MultiNode", "SingleNode"]
Phase: TypeAlias = Literal[
    "PROPOSED", "VALIDATED", "LAUNCHED", "SURGING", "INITIALIZED", "DRAINING", "DONE", "ROLLED_BACK", "UNKNOWN"
]
"""The last completed step: LAUNCHED, the replacements were requested; SURGING, Deployments were restarted (only for a
surge drain); DRAINING, the NodeClaims were deleted; UNKNOWN, a newer version wrote a phase that this version does not
know. UNKNOWN is never written.
"""

ENDED_PHASES: Final[frozenset[Phase]] = frozenset(("DONE", "ROLLED_BACK"))
UNKNOWN_PHASE_TIMEOUT: Final = timedelta(hours=2)
"""How long a command in a phase of a newer version is left alone, counted from the beginning of that phase.

Longer than any phase that waits for something other than evictions: a surge drain takes at most an hour.
"""
MAX_TARGETS_PER_COMMAND: Final = 100
"""Keeps the row far below the table's limit (400 kB); more nodes are split into several commands."""


class CommandTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node to disrupt, identified by its NodeClaim's name and UID."""

    node: str
    claim: str
    claim_uid: str
    provider_id: str
    pool: str


class DisruptionCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that are disrupted together, and the replacements that must be initialized first."""

    command_id: str
    reason: CommandReason
    method: Method
    targets: tuple[CommandTarget, ...]
    """Sorted by node."""
    replacements: tuple[CreateNodeClaim, ...] = ()
    """Empty: their pods fit on other nodes, or they have none."""
    nominations: Pairs = msgspec.field(default=(), name="homes")
    """The expected node of each pod, as (``shop/cart``, name of a node or of a replacement), sorted."""
    savings_usd_per_hour: float = 0.0
    workloads: tuple[str, ...] = ()
    """With a cool-down of workloads: those that it evicts pods of, like ``shop/Deployment/web``, sorted."""
    message: str = msgspec.field(default="", name="why")

    def list_node_names(self) -> frozenset[str]:
        """Return the names of the nodes to disrupt."""
        return frozenset(target.node for target in self.targets)


def build_command(
    *,
    reason: CommandReason,
    method: Method,
    targets: tuple[CommandTarget, ...],
    replacements: tuple[CreateNodeClaim, ...] = (),
    nominations: Pairs = (),
    savings_usd_per_hour: float = 0.0,
    workloads: tuple[str, ...] = (),
    message: str = "",
) -> DisruptionCommand:
    """Return the command with sorted targets and nominations; savings, workloads and message are not part of its id."""
    sorted_targets = tuple(sorted(targets, key=lambda target: (target.node, target.claim)))
    content = msgspec.json.encode(
        (reason, method, sorted_targets, [replacement.claim for replacement in replacements]), order="sorted"
    )
    return DisruptionCommand(
        command_id=f"{method.lower()}-{sha256(content).hexdigest()[:12]}",
        reason=reason,
        method=method,
        targets=sorted_targets,
        replacements=replacements,
        nominations=tuple(sorted(nominations)),
        savings_usd_per_hour=savings_usd_per_hour,
        workloads=workloads,
        message=message,
    )


class CommandInvalidation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a proposed command is not executed."""

    message: str
    nodes: frozenset[str] = frozenset()
    """The affected targets, if the others can be disrupted without them (emptiness); empty: the whole command."""


class MovedWorkload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods of one controller that a command moves, and how many pods of that controller were failing before."""

    pool: str
    """The NodePool that they leave."""
    namespace: str
    kind: str
    name: str
    count: int
    failing: int = 0


class MovedPods(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pods that a command moves, to compare them with the pods that replace them."""

    at: datetime
    workloads: tuple[MovedWorkload, ...]
    """Sorted."""
    failed_at: datetime | None = None
    """When more of the new pods than allowed were last seen failing."""


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    """A command and its phase: one row of the table."""

    command: DisruptionCommand
    phase: Phase = "PROPOSED"
    phase_since: datetime
    proposed_at: datetime
    waiting_pod_count: int = msgspec.field(default=0, name="waiting")
    """Number of pods that had waited long for a node when the command was proposed."""
    initialized: tuple[str, ...] = ()
    """Replacements that were seen initialized, sorted; their later fate does not matter."""
    failures: tuple[datetime, ...] = ()
    """When a launch of its replacements, and with it the command, failed: now and earlier; oldest first."""
    moved: MovedPods | None = None
    """None: nothing has moved, or the outcome is not checked."""
    fencing_token: int = msgspec.field(default=0, name="fence")
    """The version of the planner's lease in the invocation that wrote the row."""
    message: str = msgspec.field(default="", name="why")
    """How the command ended, or what it waits for."""
    version: int = 0
    """Version of the row; 0 if it does not exist yet."""

    @property
    def is_open(self) -> bool:
        """Whether the command is not finished."""
        return self.phase not in ENDED_PHASES


class DisruptionPause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause of disruption."""

    pool: str = ""
    """Empty: all NodePools."""
    reason: str = ""
    """Empty: every reason."""
    message: str
    """Why disruption is paused, and how to resume it."""
    pauses_open_commands: bool = False
    """Whether open commands are paused too, unless their nodes are terminating already."""
    is_intentional: bool = False
    """Whether a person paused it, so that no alert is necessary."""
    allows_repair: bool = False
    """Whether unhealthy nodes are still repaired."""


class DisruptionPauses(msgspec.Struct, frozen=True, kw_only=True):
    """All current pauses of disruption; sorted by NodePool and reason."""

    items: tuple[DisruptionPause, ...] = ()

    def find_pause_message(self, pool: str, reason: str) -> str:
        """Return why nodes of *pool* are not disrupted for *reason*; "" if they may be."""
        return next((pause.message for pause in self._iterate_matching(pool, reason)), "")

    def find_command_pause_message(self, command: DisruptionCommand) -> str:
        """Return why *command* must not continue although its replacements were requested; "" if it may."""
        pools = sorted({target.pool for target in command.targets})
        return next(
            (
                pause.message
                for pool in pools
                for pause in self._iterate_matching(pool, command.reason)
                if pause.pauses_open_commands
            ),
            "",
        )

    def _iterate_matching(self, pool: str, reason: str) -> Iterator[DisruptionPause]:
        return (
            pause
            for pause in self.items
            if pause.pool in ("", pool)
            and pause.reason in ("", reason)
            and not (pause.allows_repair and reason == "Unhealthy")
        )


def format_pause(pause: DisruptionPause) -> str:
    """Return what is paused, and why."""
    return f"{pause.reason or 'All'} disruption is paused: {pause.message}"
