"""What is true of claims, machines, commands and pods, whoever saw it: for those who judge."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from shared.model.cluster import LaunchGroup
from shared.model.commands import Standing
from shared.model.ec2 import Instance
from shared.model.labels import LAUNCH_GROUP, NODEPOOL
from sim.chaos.world import ChaosWorld
from sim.measure import is_running

Json = dict[str, Any]
NEVER: Final = datetime.max.replace(tzinfo=UTC)
BROKEN_AFTER: Final = timedelta(minutes=1)
"""A status check that fails for two minutes is acted on, by a clock that may be a minute ahead."""
CLAIMS: Final = "nodeclaims.karpenter.sh"


class Truth:
    """Looks into a world past every port."""

    def __init__(self, world: ChaosWorld) -> None:
        """Look into *world*."""
        self._world = world

    def claims(self) -> list[Json]:
        """Answer the NodeClaims."""
        return self._world.live.api.list(CLAIMS)

    def group(self, token: str) -> LaunchGroup | None:
        """Answer what is written down of a launch."""
        row = self._world.table.read("launch-group", token)
        return None if row is None else msgspec.json.decode(row.body, type=LaunchGroup)

    def standings(self) -> list[Standing]:
        """Answer every command that is written down."""
        return [msgspec.json.decode(row.body, type=Standing) for row in self._world.table.rows("command")]

    def command_of(self, claim: str) -> Standing | None:
        """Answer the command that gives *claim* up, one that is open if there is one."""
        open_first = sorted(self.standings(), key=lambda one: (not one.is_open, one.command.command_id))
        return next((one for one in open_first if any(t.claim == claim for t in one.command.targets)), None)

    def is_taken_back(self, name: str) -> bool:
        """Whether a command that was rolled back had it made, and nobody has come to use it."""
        claim = next((one for one in self.claims() if one["metadata"]["name"] == name), None)
        if claim is None:
            return False
        wanted = any(
            standing.phase == "ROLLED_BACK" and name in {one.claim.name for one in standing.command.replacements}
            for standing in self.standings()
        )
        return wanted and not self.running_on((claim.get("status") or {}).get("nodeName", ""))

    def heir(self, instance_id: str) -> Json | None:
        """Answer the claim that an instance was started for, though it was not told yet."""
        machine = next((one for one in self._world.started() if one.instance_id == instance_id), None)
        owners = self.owners_of(machine) if machine is not None else set()
        return next((one for one in self.claims() if {one["metadata"]["uid"]} == owners), None)

    def owners_of(self, machine: Instance) -> set[str]:
        """Answer the uids of the claims that a machine may be for: one, once EC2's answer is written down."""
        group = self.group(machine.tag(LAUNCH_GROUP))
        if group is None:
            return set()
        if group.result is None:
            return set(group.uids)
        given = zip(group.uids, sorted(group.result.instances), strict=False)
        return {uid for uid, one in given if one.instance_id == machine.instance_id}

    def running_on(self, node: str) -> list[str]:
        """Answer the names of the pods that run on *node*, if there is one, but not of those that every node has."""
        left = [pod["metadata"]["name"] for pod in self._world.live.api.pods_on(node)] if node else []
        pods = [self._world.live.api.get("pods", name, "default") for name in left]
        return [pod["metadata"]["name"] for pod in pods if is_running(pod) and not is_on_every_node(pod)]

    def has_deadline(self, claim: Json) -> bool:
        """Whether its drain comes to an end whatever its pods say: by its own word, or its machine being broken."""
        began, ended = self._world.impaired.get(instance_id_of(claim), (NEVER, NEVER))
        is_broken = min(ended, self._world.clock.now()) - began >= BROKEN_AFTER
        return is_broken or bool(claim["spec"].get("terminationGracePeriod"))

    def claim_of_node(self, node: str) -> Json | None:
        """Answer the claim whose Node has that name."""
        claims = self.claims()
        return next((one for one in claims if node and one.get("status", {}).get("nodeName") == node), None)


def instance_id_of(claim: Json) -> str:
    """Answer the id of its instance; "": it knows of none."""
    return str((claim.get("status") or {}).get("providerID", "")).rpartition("/")[2]


def pool_of(claim: Json) -> str:
    """Answer the name of its NodePool."""
    return str(claim["metadata"].get("labels", {}).get(NODEPOOL, ""))


def is_on_every_node(pod: Json) -> bool:
    """Whether a DaemonSet made it."""
    return any(one["kind"] == "DaemonSet" for one in pod["metadata"].get("ownerReferences", ()))


def is_going(claim: Json) -> bool:
    """Whether it was deleted."""
    return "deletionTimestamp" in claim["metadata"]


def holds(claim: Json, condition: str) -> bool:
    """Whether *condition* of it is True."""
    some = (claim.get("status") or {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in some)
