"""Safety invariants: what must never happen, checked against the ground truth and not against what functions saw."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from shared.errors import NotFound
from shared.model.core.labels import LAUNCH_GROUP, NODEPOOL
from shared.model.ec2.fleet import FleetRequest, FleetResult
from shared.model.ec2.instance import Instance
from sim.cluster.api_server.rules.eviction import find_matching_budgets, is_exempt_from_budgets
from sim.cluster.controller_runtime.object_conditions import is_true
from sim.fault_simulation.checks.expiration import list_overdue_claims
from sim.fault_simulation.checks.feature_checks import build_feature_checks
from sim.fault_simulation.checks.ground_truth import CLAIMS, GroundTruth, get_instance_id, get_node_pool, is_deleting
from sim.fault_simulation.checks.node_pool_limits import get_allowed_disruptions, get_cpu_limits, is_closed
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import DO_NOT_DISRUPT
from sim.lambda_runtime.invocation import Invocation
from sim.world.measurements import is_finished

Json = dict[str, Any]
CLAIM_PATH: Final = "/apis/karpenter.sh/v1/nodeclaims/"
READINESS_LOOKBACK: Final = timedelta(minutes=5)
ORPHAN_TIMEOUT: Final = timedelta(minutes=3)
"""Time for garbage collection: one tick when an orphan is too young, one that terminates it, and one as reserve."""


class InvariantChecker:
    """Checks the safety invariants during one run."""

    def __init__(self, world: FaultWorld, setup: ScriptSetup, on_violation: Callable[[str], None]) -> None:
        """Watch *world* from now on; *violated* is called once for every violation."""
        self._world, self._setup, self._on_violation = world, setup, on_violation
        self._ground_truth = GroundTruth(world)
        self.last_fault = world.clock.get_time()
        """Garbage collection cannot be expected before this instant."""
        self.disrupted_uids: set[str] = set()
        """UIDs of NodeClaims that were disrupted voluntarily; names are reused."""
        self._initialized_counts: deque[tuple[datetime, Counter[str]]] = deque()
        """Recent numbers of initialized nodes per NodePool: a plan is older than the actions that carry it out."""
        self._reported: set[str] = set()
        self._initialized_claims: set[str] = set()
        self._orphans_since: dict[str, datetime] = {}
        self._tokens_by_uid: dict[str, set[str]] = defaultdict(set)
        self._feature_checks = build_feature_checks(world, setup, self._ground_truth, self._report)
        world.observer = self
        world.cluster.api.subscribe(CLAIMS, self._handle_claim)

    def check_state(self) -> None:
        """Check the current state."""
        claims = self._ground_truth.list_claims()
        self._record_initialized(claims)
        self._check_orphans(claims, self._world.list_living())
        self._check_limits()
        self._check_claim_pairs(claims)
        self._check_expiration(claims)
        for check in self._feature_checks:
            check.check_state(claims, self.last_fault)

    def observe_invocation(self, invocation: Invocation) -> None:
        """Check an invocation that has ended."""
        for check in self._feature_checks:
            check.observe_invocation(invocation)

    # Effects of the functions

    def observe_fleet(self, caller: str, request: FleetRequest, result: FleetResult) -> None:
        """Check the number of instances of one request, and of one NodeClaim."""
        if not result.instances:
            return
        token = dict(request.tags).get(LAUNCH_GROUP, "")
        instances = [instance for instance in self._world.list_launched() if instance.get_tag(LAUNCH_GROUP) == token]
        if len(instances) > request.capacity:
            self._report(
                "doubled", f"{caller} started {len(instances)} instances for {request.capacity} claims of {token}"
            )
        group = self._ground_truth.get_launch_group(token)
        if group is None:
            self._report("unwritten", f"{caller} started instances with token {token}, which no row records")
            return
        for name, uid in list(zip(group.claims, group.uids, strict=True))[: len(result.instances)]:
            self._tokens_by_uid[uid].add(token)
            if len(self._tokens_by_uid[uid]) > 1:
                self._report("doubled", f"{caller} started a second instance for {name}")
        self._check_limits()
        for check in self._feature_checks:
            check.observe_fleet(caller, result)

    def observe_termination(self, caller: str, instance_ids: tuple[str, ...]) -> None:
        """Check that the NodeClaims of terminated instances are being deleted, and that their pods are gone."""
        claims = {get_instance_id(claim): claim for claim in self._ground_truth.list_claims()}
        for instance_id in instance_ids:
            if instance_id in self._world.foreign_instances:
                self._report("terminated", f"{caller} ends {instance_id}, which is another cluster's")
            claim = claims.get(instance_id) or self._ground_truth.find_owner(instance_id)
            if claim is not None and not is_deleting(claim):
                self._report(
                    "terminated", f"{caller} ends {instance_id} of {claim['metadata']['name']}, which is not going"
                )
            if claim is None or not self._ground_truth.has_deadline(claim):
                self._check_drained(caller, instance_id)

    def observe_deletion(self, caller: str, path: str, uid: str = "") -> None:
        """Check voluntary disruptions, and pods that are deleted instead of evicted; *uid* is the precondition."""
        if path.startswith(CLAIM_PATH) and caller.startswith("disrupt"):
            self._check_disruption(caller, path.rpartition("/")[2])
        elif "/pods/" in path:
            *_, namespace, _, name = path.split("/")
            self._check_pod(caller, namespace, name, uid, is_evicted=False)

    def observe_eviction(self, caller: str, namespace: str, name: str, uid: str = "") -> None:
        """Check the pod of an eviction request."""
        self._check_pod(caller, namespace, name, uid, is_evicted=True)

    # Checks

    def _record_initialized(self, claims: list[Json]) -> None:
        now = self._world.clock.get_time()
        self._initialized_counts.append(
            (now, Counter(get_node_pool(claim) for claim in claims if is_true(claim, "Initialized")))
        )
        while now - self._initialized_counts[0][0] > READINESS_LOOKBACK:
            self._initialized_counts.popleft()

    def _check_orphans(self, claims: list[Json], living: tuple[Instance, ...]) -> None:
        now = self._world.clock.get_time()
        owned_ids = {get_instance_id(claim) for claim in claims}
        orphan_ids = [instance.instance_id for instance in living if instance.instance_id not in owned_ids]
        self._orphans_since = {
            orphan_id: max(self._orphans_since.get(orphan_id, now), self.last_fault) for orphan_id in orphan_ids
        }
        for instance_id, since in sorted(self._orphans_since.items()):
            if now - since > ORPHAN_TIMEOUT:
                self._report("orphan", f"{instance_id} has no NodeClaim")

    def _check_claim_pairs(self, claims: list[Json]) -> None:
        owners: dict[str, list[str]] = defaultdict(list)
        for claim in claims:
            owners[get_instance_id(claim)].append(claim["metadata"]["name"])
        for instance_id, names in sorted(owners.items()):
            if instance_id and len(names) > 1:
                self._report("shared", f"{instance_id} belongs to {' and '.join(sorted(names))}")

    def _check_expiration(self, claims: list[Json]) -> None:
        now = self._world.clock.get_time()
        for name, deadline in list_overdue_claims(claims, self._setup, self.last_fault, now):
            self._report("expired", f"{name} should have been deleted at {deadline}")

    def _check_limits(self) -> None:
        """Check the vCPU limits; instances of NodeClaims that are being deleted do not count, as in Karpenter."""
        vcpus: Counter[str] = Counter()
        for instance in self._ground_truth.list_staying_instances():
            vcpus[instance.get_tag(NODEPOOL)] += self._world.cloud.types[instance.instance_type].vcpus
        for pool, limit in sorted(get_cpu_limits(self._setup).items()):
            if vcpus[pool] > limit:
                self._report("limit", f"{vcpus[pool]} vCPUs run of {pool}, the limit is {limit}")

    def _check_disruption(self, caller: str, name: str) -> None:
        command_state = self._ground_truth.find_command(name)
        if command_state is None and name not in self._initialized_claims and self._ground_truth.is_rolled_back(name):
            return
        if command_state is None:
            self._report("undecided", f"{caller} deletes {name}, which no command speaks of")
            return
        for check in self._feature_checks:
            check.observe_disruption(caller, name, command_state)
        uninitialized = sorted(
            {replacement.claim.name for replacement in command_state.command.replacements} - self._initialized_claims
        )
        if uninitialized:
            self._report("early", f"{caller} deletes {name} before {', '.join(uninitialized)} is initialized")
        claims = self._ground_truth.list_claims()
        pool = next((get_node_pool(claim) for claim in claims if claim["metadata"]["name"] == name), "")
        if is_closed(self._setup, pool, command_state.proposed_at):
            self._report(
                "budget",
                f"{caller} deletes {name}, chosen at {command_state.proposed_at}, when none of {pool} might go",
            )
        self.disrupted_uids |= {claim["metadata"]["uid"] for claim in claims if claim["metadata"]["name"] == name}
        # A node whose instance EC2 has terminated is gone, although lifecycle could not record it yet.
        ended_ids = {instance.instance_id for instance in self._world.list_launched() if instance.state == "terminated"}
        disrupted_claims = [
            claim["metadata"]["name"]
            for claim in claims
            if (is_deleting(claim) or claim["metadata"]["name"] == name)
            and get_node_pool(claim) == pool
            and claim["metadata"]["uid"] in self.disrupted_uids
            and not is_true(claim, "InstanceTerminating")
            and get_instance_id(claim) not in ended_ids
        ]
        allowed_disruptions = get_allowed_disruptions(
            self._setup, pool, max((node_counts[pool] for _, node_counts in self._initialized_counts), default=0)
        )
        if len(disrupted_claims) > allowed_disruptions:
            self._report(
                "budget",
                f"{caller} deletes {name}: {', '.join(sorted(disrupted_claims))} go, {allowed_disruptions} may",
            )

    def _check_pod(self, caller: str, namespace: str, name: str, uid: str, *, is_evicted: bool) -> None:
        try:
            pod = self._world.cluster.api.get("pods", name, namespace)
        except NotFound:
            return
        if uid and pod["metadata"]["uid"] != uid:
            return  # a new pod with the same name: the API server rejects the request
        claim = self._ground_truth.find_claim_of_node(pod["spec"].get("nodeName", ""))
        if claim is not None and self._ground_truth.has_deadline(claim):
            return
        if pod["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT) == "true" and not is_finished(pod):
            self._report("do-not-disrupt", f"{caller} takes {name} away, which must not be disrupted")
        if is_evicted:
            return
        budgets = find_matching_budgets(pod, self._world.cluster.api.list("poddisruptionbudgets.policy", namespace))
        if any(
            budget.get("status", {}).get("disruptionsAllowed", 0) < 1 for budget in budgets
        ) and not is_exempt_from_budgets(pod):
            self._report("past-budget", f"{caller} deletes {name} past its PodDisruptionBudget")
        else:
            self._report("undrained", f"{caller} deletes {name} without asking, and its node has no deadline")

    def _check_drained(self, caller: str, instance_id: str) -> None:
        """Check that no instance is terminated under a running pod that could have been evicted."""
        instance = next(
            (instance for instance in self._world.list_living() if instance.instance_id == instance_id), None
        )
        if instance is None or instance.state != "running":
            return
        if not self._world.cluster.kubelet.is_running(instance.private_dns_name):
            return
        if dropped_pods := self._ground_truth.list_running_pods(instance.private_dns_name):
            self._report("dropped", f"{caller} ends {instance_id} under {', '.join(dropped_pods)}")

    def _handle_claim(self, _event: str, _old: Json | None, new: Json | None) -> None:
        if new is not None and is_true(new, "Initialized"):
            self._initialized_claims.add(new["metadata"]["name"])

    def _report(self, kind: str, message: str) -> None:
        if message.partition(" ")[2] not in self._reported:
            self._reported.add(message.partition(" ")[2])
            self._on_violation(f"{kind}: {message}")
