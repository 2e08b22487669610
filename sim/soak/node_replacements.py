"""Which nodes consolidation removed and created, how long they lived, and whether replacements were undone soon."""

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
CAPACITY_TYPE_LABEL: Final = "karpenter.sh/capacity-type"
NODEPOOL_LABEL: Final = "karpenter.sh/nodepool"
SHORT_LIVED_DURATION: Final = timedelta(hours=1)


class ClaimLife(msgspec.Struct, kw_only=True):
    """A NodeClaim from its creation to its end."""

    node_pool: str
    created_at: datetime
    command_id: str = ""
    """The disruption command that created it; "" if it was created for pending pods."""
    kind: str = ""
    """Instance type and zone."""
    price_usd_per_hour: float = 0.0
    """When its instance was launched."""
    deleted_at: datetime | None = None
    """When its deletion began."""
    ended_at: datetime | None = None


class NodeReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """One consolidation that was carried out."""

    at: datetime
    command_id: str
    node_pools: tuple[str, ...]
    """Of the removed claims, sorted."""
    removed_claims: tuple[str, ...]
    """Names of NodeClaims, sorted."""
    created_claims: tuple[str, ...]
    removed_kinds: tuple[str, ...]
    """Instance type and zone of each removed claim."""
    savings_usd_per_hour: float
    """As the command states them."""
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
        self.life_by_claim: dict[str, ClaimLife] = {}
        self._world = world
        self._replacement_by_command: dict[str, NodeReplacement] = {}
        world.cluster.api.subscribe("nodeclaims.karpenter.sh", self._record_life)

    def record_deletion(self, claim: dict[str, Any], reason: str) -> None:
        """Record that *claim* is deleted for *reason*."""
        if reason != "Underutilized":
            return
        for row in self._world.table.list_rows("command"):
            command = msgspec.json.decode(row.body, type=CommandState).command
            if claim["metadata"]["uid"] in {target.claim_uid for target in command.targets}:
                self._replacement_by_command.setdefault(command.command_id, self._build_replacement(command))

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
                creating, created_at = replacement_by_claim.get(name), self.life_by_claim[name].created_at
                if creating is not None and removing.at - created_at <= SHORT_LIVED_DURATION:
                    has_same_kinds = sorted(creating.removed_kinds) == sorted(self._get_kinds(removing.created_claims))
                    yield ShortLivedNode(
                        created_by=creating,
                        removed_by=removing,
                        claim=name,
                        requested_at=created_at,
                        minutes=round((removing.at - created_at).total_seconds() / 60, 1),
                        is_reverted=bool(has_same_kinds),
                    )

    def _record_life(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        """Record creation, launch, deletion and end of a claim."""
        metadata, now = (new or old or {})["metadata"], self._world.clock.get_time()
        life = self.life_by_claim.get(metadata["name"])
        if life is None:
            command_id = (metadata.get("annotations") or {}).get(COMMAND_ANNOTATION, "")
            life = ClaimLife(
                node_pool=metadata["labels"][NODEPOOL_LABEL],
                created_at=now,
                command_id=command_id if command_id.startswith(CONSOLIDATION_PREFIXES) else "",
            )
            self.life_by_claim[metadata["name"]] = life
        labels = metadata.get("labels") or {}
        if not life.kind and INSTANCE_TYPE_LABEL in labels and ZONE_LABEL in labels:
            life.kind = f"{labels[INSTANCE_TYPE_LABEL]} {labels[ZONE_LABEL]}"
            life.price_usd_per_hour = self._get_price(labels, now)
        if life.deleted_at is None and "deletionTimestamp" in metadata:
            life.deleted_at = now
        if event == "DELETED":
            life.deleted_at, life.ended_at = life.deleted_at or now, now

    def _get_price(self, labels: dict[str, str], now: datetime) -> float:
        prices, instance_type = self._world.cloud.prices, labels[INSTANCE_TYPE_LABEL]
        if labels.get(CAPACITY_TYPE_LABEL) == "spot":
            return prices.get_spot_price(instance_type, labels[ZONE_LABEL], now)
        return prices.on_demand[instance_type]

    def _build_replacement(self, command: DisruptionCommand) -> NodeReplacement:
        removed_claims = [target.claim for target in command.targets]
        return NodeReplacement(
            at=self._world.clock.get_time(),
            command_id=command.command_id,
            node_pools=tuple(sorted({target.pool for target in command.targets})),
            removed_claims=tuple(sorted(removed_claims)),
            created_claims=tuple(sorted(replacement_claim.claim.name for replacement_claim in command.replacements)),
            removed_kinds=tuple(self._get_kinds(removed_claims)),
            savings_usd_per_hour=command.savings_usd_per_hour,
            reason=command.message,
        )

    def _get_kinds(self, claims: Iterable[str]) -> Iterator[str]:
        return (life.kind if (life := self.life_by_claim.get(name)) is not None else "" for name in claims)
