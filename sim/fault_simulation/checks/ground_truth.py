"""Ground truth about NodeClaims, instances, commands and pods, for the invariant checks."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.labels import LAUNCH_GROUP, NODEPOOL
from shared.model.decisions.command import CommandState
from shared.model.ec2.instance import Instance
from shared.store.table_rows import decode_body_text
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.world.measurements import is_running

Json = dict[str, Any]
NEVER: Final = datetime.max.replace(tzinfo=UTC)
IMPAIRED_AFTER: Final = timedelta(minutes=1)
"""A status check that fails for two minutes triggers node repair, with a clock that may be one minute ahead."""
CLAIMS: Final = "nodeclaims.karpenter.sh"


class GroundTruth:
    """Reads the state of a world directly, without the ports."""

    def __init__(self, world: FaultWorld) -> None:
        """Read from *world*."""
        self._world = world

    def list_claims(self) -> list[Json]:
        """Return the NodeClaims."""
        return self._world.cluster.api.list(CLAIMS)

    def get_launch_group(self, token: str) -> LaunchGroup | None:
        """Return the stored launch group of *token*, or None."""
        row = self._world.table.read("launch-group", token)
        return None if row is None else decode_body_text(row.body, LaunchGroup)

    def list_command_states(self) -> list[CommandState]:
        """Return all stored commands."""
        return [msgspec.json.decode(row.body, type=CommandState) for row in self._world.table.list_rows("command")]

    def find_command(self, claim: str) -> CommandState | None:
        """Return the command that disrupts *claim*, preferably an open one."""
        open_first = sorted(
            self.list_command_states(),
            key=lambda command_state: (not command_state.is_open, command_state.command.command_id),
        )
        return next(
            (state for state in open_first if any(target.claim == claim for target in state.command.targets)), None
        )

    def is_rolled_back(self, name: str) -> bool:
        """Return whether the claim is a replacement of a rolled-back command and no pod runs on its node."""
        claim = next((claim for claim in self.list_claims() if claim["metadata"]["name"] == name), None)
        if claim is None:
            return False
        is_replacement = any(
            standing.phase == "ROLLED_BACK"
            and name in {replacement.claim.name for replacement in standing.command.replacements}
            for standing in self.list_command_states()
        )
        return is_replacement and not self.list_running_pods((claim.get("status") or {}).get("nodeName", ""))

    def find_owner(self, instance_id: str) -> Json | None:
        """Return the claim that an instance was launched for, also before the claim has its provider ID."""
        launched_instance = next(
            (instance for instance in self._world.list_launched() if instance.instance_id == instance_id), None
        )
        owners = self.list_owner_uids(launched_instance) if launched_instance is not None else set()
        return next((claim for claim in self.list_claims() if {claim["metadata"]["uid"]} == owners), None)

    def list_owner_uids(self, instance: Instance) -> set[str]:
        """Return the UIDs of the claims that the instance may belong to; one UID once EC2's result is stored."""
        launch_group = self.get_launch_group(instance.get_tag(LAUNCH_GROUP))
        if launch_group is None:
            return set()
        if launch_group.result is None:
            return set(launch_group.uids)
        uids_and_instances = zip(launch_group.uids, sorted(launch_group.result.instances), strict=False)
        return {uid for uid, fleet_instance in uids_and_instances if fleet_instance.instance_id == instance.instance_id}

    def list_staying_instances(self) -> list[Instance]:
        """Return the living instances whose NodeClaim is not being deleted, or may not be."""
        claims = self.list_claims()
        staying_uids = {claim["metadata"]["uid"] for claim in claims if not is_deleting(claim)}
        uid_by_instance = {get_instance_id(claim): claim["metadata"]["uid"] for claim in claims}
        staying_instances = []
        for instance in self._world.list_living():
            owners = (
                {uid_by_instance[instance.instance_id]}
                if instance.instance_id in uid_by_instance
                else self.list_owner_uids(instance)
            )
            if owners & staying_uids:
                staying_instances.append(instance)
        return staying_instances

    def list_running_pods(self, node: str) -> list[str]:
        """Return the names of the pods that run on *node* (empty: no node), without DaemonSet pods."""
        pod_names = [pod["metadata"]["name"] for pod in self._world.cluster.api.list_pods_on_node(node)] if node else []
        pods = [self._world.cluster.api.get("pods", name, "default") for name in pod_names]
        return [pod["metadata"]["name"] for pod in pods if is_running(pod) and not is_daemon_pod(pod)]

    def has_deadline(self, claim: Json) -> bool:
        """Return whether the drain has a deadline: a grace period is set, or the instance is impaired."""
        impaired_at, recovered_at = self._world.impaired_instances.get(get_instance_id(claim), (NEVER, NEVER))
        is_broken = min(recovered_at, self._world.clock.get_time()) - impaired_at >= IMPAIRED_AFTER
        return is_broken or bool(claim["spec"].get("terminationGracePeriod"))

    def find_claim_of_node(self, node: str) -> Json | None:
        """Return the claim of the Node with this name."""
        claims = self.list_claims()
        return next((claim for claim in claims if node and claim.get("status", {}).get("nodeName") == node), None)


def get_instance_id(claim: Json) -> str:
    """Return the ID of the claim's instance, or "" if it has none."""
    return str((claim.get("status") or {}).get("providerID", "")).rpartition("/")[2]


def get_node_pool(claim: Json) -> str:
    """Return the name of the claim's NodePool."""
    return str(claim["metadata"].get("labels", {}).get(NODEPOOL, ""))


def is_daemon_pod(pod: Json) -> bool:
    """Return whether a DaemonSet owns the pod."""
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


def is_deleting(claim: Json) -> bool:
    """Return whether the claim was deleted."""
    return "deletionTimestamp" in claim["metadata"]
