"""Which nodes consolidation replaced by which others, and whether replacements were undone soon after."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.model.decisions.command import CommandState, DisruptionCommand
from sim.world.embedded_world import EmbeddedWorld

COMMAND_ANNOTATION: Final = "joiner.dev/command"
CONSOLIDATION_PREFIXES: Final = ("multinode", "singlenode")
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
SHORT_LIVED_DURATION: Final = timedelta(hours=1)


class NodeReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """One consolidation that was carried out."""

    at: datetime
    command_id: str
    removed_claims: tuple[str, ...]
    """Names of NodeClaims, sorted."""
    created_claims: tuple[str, ...]
    removed_kinds: tuple[str, ...]
    """Instance type and zone of each removed claim."""
    reason: str


class ShortLivedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that consolidation created and removed soon after."""

    created_by: NodeReplacement
    removed_by: NodeReplacement
    claim: str
    requested_at: datetime
    """When its NodeClaim was created."""
    minutes: float
    is_reverted: bool
    """Whether the original nodes came back: the same types in the same zones."""


class ReplacementLog:
    """Records creations and deletions of NodeClaims."""

    def __init__(self, world: EmbeddedWorld) -> None:
        """Create an empty log and subscribe to NodeClaims."""
        self._world = world
        self._created_at: dict[str, datetime] = {}
        self._kind_by_claim: dict[str, str] = {}
        self._replacement_by_command: dict[str, NodeReplacement] = {}
        world.cluster.api.subscribe("nodeclaims.karpenter.sh", self._record_kind)

    def record_creation(self, claim: dict[str, Any]) -> None:
        """Record *claim* if consolidation created it."""
        command = (claim["metadata"].get("annotations") or {}).get(COMMAND_ANNOTATION, "")
        if command.startswith(CONSOLIDATION_PREFIXES):
            self._created_at[claim["metadata"]["name"]] = self._world.clock.get_time()

    def record_deletion(self, claim: dict[str, Any], reason: str) -> None:
        """Record that *claim* is deleted for *reason*."""
        if reason != "Underutilized":
            return
        for row in self._world.table.list_rows("command"):
            command = msgspec.json.decode(row.body, type=CommandState).command
            if claim["metadata"]["uid"] in {target.claim_uid for target in command.targets}:
                self._replacement_by_command.setdefault(command.command_id, self._build_replacement(command))

    def _record_kind(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        """Remember the instance type and the zone of every claim."""
        del event
        metadata = (new or old or {}).get("metadata") or {}
        labels = metadata.get("labels") or {}
        if INSTANCE_TYPE_LABEL in labels and ZONE_LABEL in labels:
            self._kind_by_claim[metadata["name"]] = f"{labels[INSTANCE_TYPE_LABEL]} {labels[ZONE_LABEL]}"

    def list_replacements(self) -> tuple[NodeReplacement, ...]:
        """Return all consolidations that were carried out, oldest first."""
        replacements = self._replacement_by_command.values()
        return tuple(sorted(replacements, key=lambda replacement: (replacement.at, replacement.command_id)))

    def find_short_lived(self) -> Iterator[ShortLivedNode]:
        """Yield the nodes that were created and removed within an hour."""
        replacement_by_claim = {
            name: replacement for replacement in self.list_replacements() for name in replacement.created_claims
        }
        for removing in self.list_replacements():
            for name in removing.removed_claims:
                creating = replacement_by_claim.get(name)
                if creating is not None and removing.at - self._created_at[name] <= SHORT_LIVED_DURATION:
                    minutes = (removing.at - self._created_at[name]).total_seconds() / 60
                    has_same_kinds = sorted(creating.removed_kinds) == sorted(self._get_kinds(removing.created_claims))
                    yield ShortLivedNode(
                        created_by=creating,
                        removed_by=removing,
                        claim=name,
                        requested_at=self._created_at[name],
                        minutes=round(minutes, 1),
                        is_reverted=bool(has_same_kinds),
                    )

    def _build_replacement(self, command: DisruptionCommand) -> NodeReplacement:
        removed_claims = [target.claim for target in command.targets]
        return NodeReplacement(
            at=self._world.clock.get_time(),
            command_id=command.command_id,
            removed_claims=tuple(sorted(removed_claims)),
            created_claims=tuple(sorted(replacement_claim.claim.name for replacement_claim in command.replacements)),
            removed_kinds=tuple(self._get_kinds(removed_claims)),
            reason=command.message,
        )

    def _get_kinds(self, claims: Iterable[str]) -> Iterator[str]:
        return (self._kind_by_claim.get(name, "") for name in claims)
