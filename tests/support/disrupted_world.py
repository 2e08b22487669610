"""A cluster of idle nodes behind ports, for tests that check disruption call by call."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared.cycles.disrupt import run_disrupt
from shared.model.core import labels
from shared.model.core.metadata import ObjectMeta
from shared.model.core.units import format_instant
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import (
    CommandReason,
    CommandState,
    CommandTarget,
    DisruptionCommand,
    Method,
    build_command,
)
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.ports.world import World
from shared.state.state_node import compute_pod_digest
from shared.store.commands import COMMAND_KIND
from shared.store.lease import LEASE_TTL
from sim.fault_tap import Tap
from tests.support.actions_world import Outside

CLAIMS: Final = "nodeclaims.karpenter.sh"
POOLS: Final = "nodepools.karpenter.sh"
STAGES: Final = ("Launched", "Registered", "Initialized", "Consolidatable")
Json = dict[str, Any]


class Idle(Outside):
    """Empty nodes of one NodePool, all of which are candidates."""

    def __init__(self, *names: str, budget: str = "1", together: str = "", **pool: Any) -> None:
        """Create nodes of *names*; *pool* extends their pool's spec.disruption, *together* is the cluster's budgets."""
        super().__init__()
        self.together = together
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": budget}]}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        self.api.create(POOLS, {"metadata": {"name": "default"}, "spec": spec | {"disruption": disruption | pool}})
        for name in names:
            self.create_claimed_node(name)

    def build_world(self, name: str = "one", *, mode: str = "active", tap: Tap | None = None) -> World:
        """Return the world of the invocation *name*."""
        world = super().build_world(name, mode=mode, tap=tap)
        settings = msgspec.structs.replace(world.settings, disruption_budgets=self.together)
        return msgspec.structs.replace(world, settings=settings)

    def create_claimed_node(self, name: str, *, drifted: bool = False) -> None:
        """Create a claim and its initialized Node."""
        self.create_claim(name, **({labels.NODEPOOL_HASH: "old"} if drifted else {}))
        self.bring_up_node(name, (*STAGES, *(("Drifted",) if drifted else ())))

    def create_claim(self, name: str, **annotations: str) -> None:
        """Create a claim that is not launched."""
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        metadata = {
            "name": name,
            "labels": {labels.NODEPOOL: "default"},
            "annotations": {
                labels.POD_DIGEST: compute_pod_digest(()),
                labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION,
            }
            | annotations,
            "finalizers": [labels.TERMINATION_FINALIZER],
        }
        self.api.create(CLAIMS, {"metadata": metadata, "spec": {"nodeClassRef": reference, "requirements": []}})

    def bring_up_node(self, name: str, stages: Iterable[str] = STAGES) -> None:
        """Mark the claim as launched and create its initialized Node."""
        since = format_instant(self.clock.get_time() - timedelta(hours=1))
        condition_fields = {"status": "True", "message": "", "lastTransitionTime": since}
        reasons = {"Drifted": "NodePoolDrifted"}
        conditions = [condition_fields | {"type": stage, "reason": reasons.get(stage, stage)} for stage in stages]
        provider_id = f"aws:///us-east-1a/i-{name}"
        status = {"providerID": provider_id, "nodeName": f"node-{name}", "conditions": conditions}
        self.api.patch(CLAIMS, name, {"status": status}, "", "status")
        node_labels = {labels.NODEPOOL: "default", labels.REGISTERED: "true", labels.INITIALIZED: "true"}
        metadata = {"name": f"node-{name}", "labels": node_labels}
        self.api.create("nodes", {"metadata": metadata, "spec": {"providerID": provider_id}})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.api.patch("nodes", f"node-{name}", {"status": ready}, "", "status")

    # What there is

    def list_deleting_claims(self) -> set[str]:
        """Return the names of claims that are being deleted."""
        return {
            claim["metadata"]["name"] for claim in self.api.list(CLAIMS) if "deletionTimestamp" in claim["metadata"]
        }

    def list_tainted_claims(self) -> set[str]:
        """Return the names of claims whose Nodes have the disruption taint."""
        return {
            node["metadata"]["name"].removeprefix("node-")
            for node in self.api.list("nodes")
            if any(taint["key"] == labels.DISRUPTED_TAINT for taint in node["spec"].get("taints", []))
        }

    def list_claims_with_reason(self) -> set[str]:
        """Return the names of claims that have the condition DisruptionReason."""
        return {
            claim["metadata"]["name"]
            for claim in self.api.list(CLAIMS)
            if any(
                condition["type"] == "DisruptionReason" for condition in claim.get("status", {}).get("conditions", [])
            )
        }

    def list_replacement_claims(self) -> set[str]:
        """Return the names of claims that are replacements."""
        return {
            claim["metadata"]["name"]
            for claim in self.api.list(CLAIMS)
            if labels.COMMAND in claim["metadata"].get("annotations", {})
        }

    def read_command_states(self) -> dict[str, CommandState]:
        """Return the stored command states by id."""
        return {
            row.name: msgspec.json.decode(row.body, type=CommandState) for row in self.table.list_rows(COMMAND_KIND)
        }

    def list_phases(self) -> list[str]:
        """Return the phases of the commands, sorted by command id."""
        return [state.phase for _, state in sorted(self.read_command_states().items())]

    # What happens

    def disrupt(self, world: World | None = None) -> None:
        """Run one cycle."""
        run_disrupt(world or self.build_world(), "schedule")

    def advance_and_disrupt(self, *, seconds: float = LEASE_TTL.total_seconds() + 1) -> None:
        """Advance the clock, then run one cycle."""
        self.clock.advance(timedelta(seconds=seconds))
        self.disrupt()

    def store_command(self, command: DisruptionCommand, *, phase: str = "PROPOSED") -> None:
        """Store a command as if a sweep had found it."""
        now = self.clock.get_time()
        fresh = CommandState(command=command, phase_since=now, proposed_at=now)
        body = msgspec.json.encode(msgspec.structs.replace(fresh, phase=phase)).decode()
        self.table.write(COMMAND_KIND, command.command_id, body, version=0)

    def make_command(
        self,
        *names: str,
        replacements: tuple[str, ...] = (),
        reason: CommandReason = "Drifted",
        method: Method = "Drift",
    ) -> DisruptionCommand:
        """Return a command about nodes of *names*, which must have drifted, replaced by claims named *replacements*."""
        targets = tuple(
            CommandTarget(
                node=f"node-{name}",
                claim=name,
                claim_uid=self.api.get(CLAIMS, name)["metadata"]["uid"],
                provider_id=f"aws:///us-east-1a/i-{name}",
                pool="default",
            )
            for name in names
        )
        replacement_claims = tuple(
            CreateNodeClaim(claim=NodeClaim(meta=ObjectMeta(name=name), node_class=NodeClassRef(name="default")))
            for name in replacements
        )
        return build_command(reason=reason, method=method, targets=targets, replacements=replacement_claims)
