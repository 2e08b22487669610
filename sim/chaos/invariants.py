"""What must never happen, judged by what is true, not by what functions saw."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from shared.errors import Gone
from shared.model.ec2 import FleetRequest, FleetResult, Instance
from shared.model.labels import LAUNCH_GROUP, NODEPOOL
from sim.chaos.allowed import is_closed, limits, may_go
from sim.chaos.known import CLAIMS, Truth, holds, instance_id_of, is_going, pool_of
from sim.chaos.manifests import DO_NOT_DISRUPT
from sim.chaos.script import Setting
from sim.chaos.world import ChaosWorld
from sim.cluster.eviction import budgets_of, is_unguarded
from sim.measure import is_over

Json = dict[str, Any]
CLAIM_PATH: Final = "/apis/karpenter.sh/v1/nodeclaims/"
REMEMBERED: Final = timedelta(minutes=5)
COLLECTED_WITHIN: Final = timedelta(minutes=3)
"""One period of garbage collection: a tick in which an orphan is young, one that ends it, and one to spare."""


class Invariants:
    """A witness of one play."""

    def __init__(self, world: ChaosWorld, setting: Setting, violated: Callable[[str], None]) -> None:
        """Watch *world* from now on; *violated* hears of every broken promise, once."""
        self._world, self._setting, self._violated = world, setting, violated
        self._truth = Truth(world)
        self.last_fault = world.clock.now()
        """Nobody can be expected to have done anything before it was over."""
        self.given_up: set[str] = set()
        """Claims that were deleted by somebody's choice, by uid: a name comes again."""
        self._fit: deque[tuple[datetime, Counter[str]]] = deque()
        """How many nodes each NodePool had that were fit for use, lately: a plan is older than what it does."""
        self._told: set[str] = set()
        self._initialized: set[str] = set()
        self._alone: dict[str, datetime] = {}
        self._tokens: dict[str, set[str]] = defaultdict(set)
        world.witness = self
        world.live.api.subscribe(CLAIMS, self._on_claim)

    def look(self) -> None:
        """Judge the present."""
        claims = self._truth.claims()
        self._count(claims)
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
        group = self._truth.group(token)
        if group is None:
            self._say("unwritten", f"{who} started machines under {token}, which is written down nowhere")
            return
        for name, uid in list(zip(group.claims, group.uids, strict=True))[: len(result.instances)]:
            self._tokens[uid].add(token)
            if len(self._tokens[uid]) > 1:
                self._say("doubled", f"{who} started a second machine for {name}")
        self._judge_limit()

    def ending(self, who: str, instance_ids: tuple[str, ...]) -> None:
        """Look whether the claims of machines that are ended are going, and their pods gone."""
        claims = {instance_id_of(one): one for one in self._truth.claims()}
        for instance_id in instance_ids:
            if instance_id in self._world.strangers:
                self._say("terminated", f"{who} ends {instance_id}, which is another cluster's")
            claim = claims.get(instance_id) or self._truth.heir(instance_id)
            if claim is not None and not is_going(claim):
                self._say("terminated", f"{who} ends {instance_id} of {claim['metadata']['name']}, which is not going")
            if claim is None or not self._truth.has_deadline(claim):
                self._judge_left(who, instance_id)

    def deleting(self, who: str, path: str, uid: str = "") -> None:
        """Look at claims given up by choice, and at pods deleted instead of evicted; *uid*: of whom is meant."""
        if path.startswith(CLAIM_PATH) and who.startswith("disrupt"):
            self._judge_choice(who, path.rpartition("/")[2])
        elif "/pods/" in path:
            *_, namespace, _, name = path.split("/")
            self._judge_pod(who, namespace, name, uid, is_evicted=False)

    def evicting(self, who: str, namespace: str, name: str, uid: str = "") -> None:
        """Look at whom the eviction API is asked for."""
        self._judge_pod(who, namespace, name, uid, is_evicted=True)

    # What must hold

    def _count(self, claims: list[Json]) -> None:
        now = self._world.clock.now()
        self._fit.append((now, Counter(pool_of(one) for one in claims if holds(one, "Initialized"))))
        while now - self._fit[0][0] > REMEMBERED:
            self._fit.popleft()

    def _judge_orphans(self, claims: list[Json], living: tuple[Instance, ...]) -> None:
        now = self._world.clock.now()
        owned = {instance_id_of(claim) for claim in claims}
        loose = [one.instance_id for one in living if one.instance_id not in owned]
        self._alone = {one: max(self._alone.get(one, now), self.last_fault) for one in loose}
        for one, since in sorted(self._alone.items()):
            if now - since > COLLECTED_WITHIN:
                self._say("orphan", f"{one} belongs to nobody")

    def _judge_pairs(self, claims: list[Json]) -> None:
        owners: dict[str, list[str]] = defaultdict(list)
        for claim in claims:
            owners[instance_id_of(claim)].append(claim["metadata"]["name"])
        for instance_id, names in sorted(owners.items()):
            if instance_id and len(names) > 1:
                self._say("shared", f"{instance_id} belongs to {' and '.join(sorted(names))}")

    def _judge_limit(self) -> None:
        """Machines whose claims are going do not count, as in Karpenter."""
        claims = self._truth.claims()
        staying = {one["metadata"]["uid"] for one in claims if not is_going(one)}
        known = {instance_id_of(one): one["metadata"]["uid"] for one in claims}
        vcpus: Counter[str] = Counter()
        for one in self._world.living_machines():
            owners = {known[one.instance_id]} if one.instance_id in known else self._truth.owners_of(one)
            if owners & staying:
                vcpus[one.tag(NODEPOOL)] += self._world.cloud.types[one.instance_type].vcpus
        for pool, limit in sorted(limits(self._setting).items()):
            if vcpus[pool] > limit:
                self._say("limit", f"{vcpus[pool]} vCPUs run of {pool}, the limit is {limit}")

    def _judge_choice(self, who: str, name: str) -> None:
        standing = self._truth.command_of(name)
        if standing is None and name not in self._initialized and self._truth.is_taken_back(name):
            return
        if standing is None:
            self._say("undecided", f"{who} deletes {name}, which no command speaks of")
            return
        missing = sorted({one.claim.name for one in standing.command.replacements} - self._initialized)
        if missing:
            self._say("early", f"{who} deletes {name} before {', '.join(missing)} is initialized")
        claims = self._truth.claims()
        pool = next((pool_of(one) for one in claims if one["metadata"]["name"] == name), "")
        if is_closed(self._setting, pool, standing.proposed_at):
            self._say("budget", f"{who} deletes {name}, chosen at {standing.proposed_at}, when none of {pool} might go")
        self.given_up |= {one["metadata"]["uid"] for one in claims if one["metadata"]["name"] == name}
        going = [
            claim["metadata"]["name"]
            for claim in claims
            if (is_going(claim) or claim["metadata"]["name"] == name)
            and pool_of(claim) == pool
            and claim["metadata"]["uid"] in self.given_up
            and not holds(claim, "InstanceTerminating")
        ]
        allowed = may_go(self._setting, pool, max((seen[pool] for _, seen in self._fit), default=0))
        if len(going) > allowed:
            self._say("budget", f"{who} deletes {name}: {', '.join(sorted(going))} go, {allowed} may")

    def _judge_pod(self, who: str, namespace: str, name: str, uid: str, *, is_evicted: bool) -> None:
        try:
            pod = self._world.live.api.get("pods", name, namespace)
        except Gone:
            return
        if uid and pod["metadata"]["uid"] != uid:
            return  # a new pod with the name of an old one: the API server refuses
        claim = self._truth.claim_of_node(pod["spec"].get("nodeName", ""))
        if claim is not None and self._truth.has_deadline(claim):
            return
        if pod["metadata"].get("annotations", {}).get(DO_NOT_DISRUPT) == "true" and not is_over(pod):
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
        if some := self._truth.running_on(machine.private_dns_name):
            self._say("dropped", f"{who} ends {instance_id} under {', '.join(some)}")

    def _on_claim(self, _event: str, _old: Json | None, new: Json | None) -> None:
        if new is not None and holds(new, "Initialized"):
            self._initialized.add(new["metadata"]["name"])

    def _say(self, kind: str, words: str) -> None:
        if words.partition(" ")[2] not in self._told:
            self._told.add(words.partition(" ")[2])
            self._violated(f"{kind}: {words}")
