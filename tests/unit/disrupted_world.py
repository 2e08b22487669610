"""A cluster of idle machines behind ports, for what disruption does call by call."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared import cycle
from shared.actions.command_rows import KIND
from shared.actions.lease import LASTS
from shared.model import labels
from shared.model.action import CreateNodeClaim
from shared.model.commands import Command, Method, Reason, Standing, Target, command
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.state import pod_digest
from shared.model.units import instant_text
from shared.ports import World
from sim.faults import Tap
from tests.unit.actions_world import Outside

CLAIMS: Final = "nodeclaims.karpenter.sh"
POOLS: Final = "nodepools.karpenter.sh"
STAGES: Final = ("Launched", "Registered", "Initialized", "Consolidatable")
Json = dict[str, Any]


class Idle(Outside):
    """So many empty nodes of one NodePool, all of which might go."""

    def __init__(self, *names: str, budget: str = "1", together: str = "", **pool: Any) -> None:
        """Make machines of *names*; *pool* adds to spec.disruption of theirs, *together* are the cluster's budgets."""
        super().__init__()
        self.together = together
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        disruption = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": budget}]}
        spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}
        self.api.create(POOLS, {"metadata": {"name": "default"}, "spec": spec | {"disruption": disruption | pool}})
        for name in names:
            self.machine(name)

    def world(self, name: str = "one", *, mode: str = "active", tap: Tap | None = None) -> World:
        """Answer the world of the invocation *name*."""
        world = super().world(name, mode=mode, tap=tap)
        settings = msgspec.structs.replace(world.settings, disruption_budgets=self.together)
        return msgspec.structs.replace(world, settings=settings)

    def machine(self, name: str, *, drifted: bool = False) -> None:
        """Make a claim and its Node, fit for use."""
        self.claim(name, **({labels.NODEPOOL_HASH: "old"} if drifted else {}))
        self.come_up(name, (*STAGES, *(("Drifted",) if drifted else ())))

    def claim(self, name: str, **annotations: str) -> None:
        """Make a claim that is not launched."""
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        metadata = {
            "name": name,
            "labels": {labels.NODEPOOL: "default"},
            "annotations": {labels.POD_DIGEST: pod_digest(()), labels.NODEPOOL_HASH_VERSION: labels.HASH_VERSION}
            | annotations,
            "finalizers": [labels.TERMINATION_FINALIZER],
        }
        self.api.create(CLAIMS, {"metadata": metadata, "spec": {"nodeClassRef": reference, "requirements": []}})

    def come_up(self, name: str, stages: Iterable[str] = STAGES) -> None:
        """Let the claim be launched, its Node join and be fit for use."""
        since = instant_text(self.clock.now() - timedelta(hours=1))
        known = {"status": "True", "message": "", "lastTransitionTime": since}
        reasons = {"Drifted": "NodePoolDrifted"}
        conditions = [known | {"type": one, "reason": reasons.get(one, one)} for one in stages]
        provider_id = f"aws:///us-east-1a/i-{name}"
        status = {"providerID": provider_id, "nodeName": f"node-{name}", "conditions": conditions}
        self.api.patch(CLAIMS, name, {"status": status}, "", "status")
        own = {labels.NODEPOOL: "default", labels.REGISTERED: "true", labels.INITIALIZED: "true"}
        metadata = {"name": f"node-{name}", "labels": own}
        self.api.create("nodes", {"metadata": metadata, "spec": {"providerID": provider_id}})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.api.patch("nodes", f"node-{name}", {"status": ready}, "", "status")

    # What there is

    def deleting(self) -> set[str]:
        """Answer the names of claims that are on their way out."""
        return {one["metadata"]["name"] for one in self.api.list(CLAIMS) if "deletionTimestamp" in one["metadata"]}

    def tainted(self) -> set[str]:
        """Answer the names of claims whose Nodes bear the taint."""
        return {
            one["metadata"]["name"].removeprefix("node-")
            for one in self.api.list("nodes")
            if any(taint["key"] == labels.DISRUPTED_TAINT for taint in one["spec"].get("taints", []))
        }

    def told(self) -> set[str]:
        """Answer the names of claims that say why they are to go."""
        return {
            one["metadata"]["name"]
            for one in self.api.list(CLAIMS)
            if any(known["type"] == "DisruptionReason" for known in one.get("status", {}).get("conditions", []))
        }

    def made(self) -> set[str]:
        """Answer the names of claims that are replacements."""
        return {
            one["metadata"]["name"]
            for one in self.api.list(CLAIMS)
            if labels.COMMAND in one["metadata"].get("annotations", {})
        }

    def standings(self) -> dict[str, Standing]:
        """Answer the rows by id."""
        return {row.name: msgspec.json.decode(row.body, type=Standing) for row in self.table.rows(KIND)}

    def phases(self) -> list[str]:
        """Answer how far commands have come, by id."""
        return [one.phase for _, one in sorted(self.standings().items())]

    # What happens

    def disrupt(self, world: World | None = None) -> None:
        """Run one cycle."""
        cycle.disrupt(world or self.world(), "schedule")

    def later(self, *, seconds: float = LASTS.total_seconds() + 1) -> None:
        """Let time pass, and then a cycle."""
        self.clock.advance(timedelta(seconds=seconds))
        self.disrupt()

    def begin(self, one: Command, *, phase: str = "PROPOSED") -> None:
        """Write a command down as if a sweep had found it."""
        now = self.clock.now()
        fresh = Standing(command=one, phase_since=now, proposed_at=now)
        body = msgspec.json.encode(msgspec.structs.replace(fresh, phase=phase)).decode()
        self.table.write(KIND, one.command_id, body, version=0)

    def order(
        self, *names: str, by: tuple[str, ...] = (), reason: Reason = "Drifted", method: Method = "Drift"
    ) -> Command:
        """Answer a command about machines of *names*, which must have drifted, replaced *by* claims."""
        targets = tuple(
            Target(
                node=f"node-{name}",
                claim=name,
                claim_uid=self.api.get(CLAIMS, name)["metadata"]["uid"],
                provider_id=f"aws:///us-east-1a/i-{name}",
                pool="default",
            )
            for name in names
        )
        replacements = tuple(
            CreateNodeClaim(claim=NodeClaim(meta=Meta(name=name), node_class=NodeClassRef(name="default")))
            for name in by
        )
        return command(reason=reason, method=method, targets=targets, replacements=replacements)
