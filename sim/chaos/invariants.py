"""What must never happen, judged by what is true, not by what functions saw."""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.errors import Gone
from shared.model.cluster import LaunchGroup
from shared.model.commands import Standing
from shared.model.ec2 import FleetRequest, FleetResult, Instance
from shared.model.labels import LAUNCH_GROUP
from sim.chaos.manifests import DO_NOT_DISRUPT
from sim.chaos.script import Setting
from sim.chaos.world import ChaosWorld
from sim.cluster.eviction import budgets_of, is_unguarded
from sim.measure import is_running

Json = dict[str, Any]
CLAIMS: Final = "nodeclaims.karpenter.sh"
CLAIM_PATH: Final = "/apis/karpenter.sh/v1/nodeclaims/"
COLLECTED_WITHIN: Final = timedelta(minutes=3)
"""One period of garbage collection: a tick in which an orphan is young, one that ends it, and one to spare."""


class Invariants:
    """A witness of one play."""

    def __init__(self, world: ChaosWorld, setting: Setting, violated: Callable[[str], None]) -> None:
        """Watch *world* from now on; *violated* hears of every broken promise, once."""
        self._world, self._setting, self._violated = world, setting, violated
        self.last_fault = world.clock.now()
        """Nobody can be expected to have done anything before it was over."""
        self.given_up: set[str] = set()
        """Claims that were deleted by somebody's choice, by name."""
        self._told: set[str] = set()
        self._initialized: set[str] = set()
        self._alone: dict[str, datetime] = {}
        self._tokens: dict[str, set[str]] = defaultdict(set)
        world.witness = self
        world.live.api.subscribe(CLAIMS, self._on_claim)

    def look(self) -> None:
        """Judge the present."""
        claims = self._world.live.api.list(CLAIMS)
        self._judge_orphans(claims, self._world.living_machines())
        self._judge_limit()
        self._judge_pairs(claims)

    # What functions do

    def fleet(self, who: str, request: FleetRequest, result: FleetResult) -> None:
        """Count the machines of one request, and of one claim."""
        if not result.instances:
            return
        token = dict(request.tags).get(LAUNCH_GROUP, "")
        machines = [one for one in self._world.started() if one.tag(LAUNCH_GROUP) == token]
        if len(machines) > request.capacity:
            self._say("doubled", f"{who} started {len(machines)} machines for {request.capacity} claims of {token}")
        group = self._group(token)
        if group is None:
            self._say("unwritten", f"{who} started machines under {token}, which is written down nowhere")
            return
        for name in group.claims[: len(result.instances)]:
            self._tokens[name].add(token)
            if len(self._tokens[name]) > 1:
                self._say("doubled", f"{who} started a second machine for {name}")
        self._judge_limit()

    def ending(self, who: str, instance_ids: tuple[str, ...]) -> None:
        """Look whether the claims of machines that are ended are going, and their pods gone."""
        claims = {_instance_id(one): one for one in self._world.live.api.list(CLAIMS)}
        for instance_id in instance_ids:
            claim = claims.get(instance_id) or self._heir(instance_id)
            if claim is not None and not _is_going(claim):
                self._say("terminated", f"{who} ends {instance_id} of {claim['metadata']['name']}, which is not going")
            if claim is None or not _deadline(claim):
                self._judge_left(who, instance_id)

    def deleting(self, who: str, path: str) -> None:
        """Look at claims that are given up by choice, and at pods that are deleted instead of evicted."""
        if path.startswith(CLAIM_PATH) and who.startswith("disrupt"):
            self._judge_choice(who, path.rpartition("/")[2])
        elif "/pods/" in path:
            *_, namespace, _, name = path.split("/")
            self._judge_pod(who, namespace, name, is_evicted=False)

    def evicting(self, who: str, namespace: str, name: str) -> None:
        """Look at whom the eviction API is asked for."""
        self._judge_pod(who, namespace, name, is_evicted=True)

    # What must hold

    def _judge_orphans(self, claims: list[Json], living: tuple[Instance, ...]) -> None:
        now = self._world.clock.now()
        owned = {_instance_id(claim) for claim in claims}
        loose = [one.instance_id for one in living if one.instance_id not in owned]
        self._alone = {one: max(self._alone.get(one, now), self.last_fault) for one in loose}
        for one, since in sorted(self._alone.items()):
            if now - since > COLLECTED_WITHIN:
                self._say("orphan", f"{one} belongs to nobody")

    def _judge_pairs(self, claims: list[Json]) -> None:
        owners: dict[str, list[str]] = defaultdict(list)
        for claim in claims:
            owners[_instance_id(claim)].append(claim["metadata"]["name"])
        for instance_id, names in sorted(owners.items()):
            if instance_id and len(names) > 1:
                self._say("shared", f"{instance_id} belongs to {' and '.join(sorted(names))}")

    def _judge_limit(self) -> None:
        """Machines whose claims are going do not count, as in Karpenter."""
        claims = self._world.live.api.list(CLAIMS)
        staying = {one["metadata"]["name"] for one in claims if not _is_going(one)}
        known = {_instance_id(one): one["metadata"]["name"] for one in claims}
        vcpus = 0
        for one in self._world.living_machines():
            owners = {known[one.instance_id]} if one.instance_id in known else self._owners(one)
            if owners & staying:
                vcpus += self._world.cloud.types[one.instance_type].vcpus
        if vcpus > self._setting.limit_cpu:
            self._say("limit", f"{vcpus} vCPUs run, the limit is {self._setting.limit_cpu}")

    def _judge_choice(self, who: str, name: str) -> None:
        standing = self._command_of(name)
        if standing is None:
            self._say("undecided", f"{who} deletes {name}, which no command speaks of")
            return
        missing = sorted({one.claim.name for one in standing.command.replacements} - self._initialized)
        if missing:
            self._say("early", f"{who} deletes {name} before {', '.join(missing)} is initialized")
        self.given_up.add(name)
        going = [
            claim["metadata"]["name"]
            for claim in self._world.live.api.list(CLAIMS)
            if (_is_going(claim) or claim["metadata"]["name"] == name)
            and claim["metadata"]["name"] in self.given_up
            and not _holds(claim, "InstanceTerminating")
        ]
        if len(going) > self._setting.budget:
            self._say("budget", f"{who} deletes {name}: {', '.join(sorted(going))} go, {self._setting.budget} may")

    def _judge_pod(self, who: str, namespace: str, name: str, *, is_evicted: bool) -> None:
        try:
            pod = self._world.live.api.get("pods", name, namespace)
        except Gone:
            return
        claim = self._claim_of_node(pod["spec"].get("nodeName", ""))
        if claim is not None and _deadline(claim):
            return
        if pod["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT) == "true" and not _is_over(pod):
            self._say("do-not-disrupt", f"{who} takes {name} away, which must not be disrupted")
        if is_evicted:
            return
        budgets = budgets_of(pod, self._world.live.api.list("poddisruptionbudgets.policy", namespace))
        if any(one.get("status", {}).get("disruptionsAllowed", 0) < 1 for one in budgets) and not is_unguarded(pod):
            self._say("past-budget", f"{who} deletes {name} past its PodDisruptionBudget")
        else:
            self._say("undrained", f"{who} deletes {name} without asking, and its node has no deadline")

    def _judge_left(self, who: str, instance_id: str) -> None:
        """Nobody is ended under a pod that runs and could have been moved."""
        machine = next((one for one in self._world.living_machines() if one.instance_id == instance_id), None)
        if machine is None or machine.state != "running":
            return
        if not self._world.live.kubelet.is_running(machine.private_dns_name):
            return
        left = [pod["metadata"]["name"] for pod in self._world.live.api.pods_on(machine.private_dns_name)]
        some = [name for name in left if is_running(self._world.live.api.get("pods", name, "default"))]
        if some:
            self._say("dropped", f"{who} ends {instance_id} under {', '.join(some)}")

    # What is known

    def _on_claim(self, _event: str, _old: Json | None, new: Json | None) -> None:
        if new is not None and _holds(new, "Initialized"):
            self._initialized.add(new["metadata"]["name"])

    def _group(self, token: str) -> LaunchGroup | None:
        row = self._world.table.read("launch-group", token)
        return None if row is None else msgspec.json.decode(row.body, type=LaunchGroup)

    def _command_of(self, claim: str) -> Standing | None:
        found = [msgspec.json.decode(row.body, type=Standing) for row in self._world.table.rows("command")]
        open_first = sorted(found, key=lambda one: (not one.is_open, one.command.command_id))
        return next((one for one in open_first if any(t.claim == claim for t in one.command.targets)), None)

    def _heir(self, instance_id: str) -> Json | None:
        """Answer the claim that an instance was started for, though it was not told yet."""
        machine = next((one for one in self._world.started() if one.instance_id == instance_id), None)
        owners = self._owners(machine) if machine is not None else set()
        return next((one for one in self._world.live.api.list(CLAIMS) if {one["metadata"]["name"]} == owners), None)

    def _owners(self, machine: Instance) -> set[str]:
        """Answer the names of the claims that a machine may be for: one, once EC2's answer is written down."""
        group = self._group(machine.tag(LAUNCH_GROUP))
        if group is None:
            return set()
        if group.result is None:
            return set(group.claims)
        given = zip(group.claims, sorted(group.result.instances), strict=False)
        return {name for name, one in given if one.instance_id == machine.instance_id}

    def _claim_of_node(self, node: str) -> Json | None:
        claims = self._world.live.api.list(CLAIMS)
        return next((one for one in claims if node and one.get("status", {}).get("nodeName") == node), None)

    def _say(self, kind: str, words: str) -> None:
        if words.partition(" ")[2] not in self._told:
            self._told.add(words.partition(" ")[2])
            self._violated(f"{kind}: {words}")


def _instance_id(claim: Json) -> str:
    return str((claim.get("status") or {}).get("providerID", "")).rpartition("/")[2]


def _is_going(claim: Json) -> bool:
    return "deletionTimestamp" in claim["metadata"]


def _is_over(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _deadline(claim: Json) -> bool:
    return bool(claim["spec"].get("terminationGracePeriod"))


def _holds(claim: Json, condition: str) -> bool:
    some = (claim.get("status") or {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in some)
