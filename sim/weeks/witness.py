"""Who watches a simulated week: judges what the API server and EC2 tell, by rules that are written down here again.

A pod that is evicted is held against every PodDisruptionBudget that selects it, a claim that is chosen to go
against its NodePool's budgets, an instance that ends against the pods that are still on it. Nothing of the product's
own opinion is asked, but which command a claim belongs to.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from shared.model.ec2 import Instance
from sim.embedded import Embedded
from sim.measure import is_over
from sim.weeks.exchanges import Exchanges
from sim.weeks.workloads import DEPLOYMENTS, GUARDED, NAMESPACE, POD_BUDGETS, POOLS, Json

NODEPOOL: Final = "karpenter.sh/nodepool"
CLAIMS: Final = "nodeclaims.karpenter.sh"


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was asked to go."""

    at: datetime
    pod: str
    reason: str
    """Why its node goes, as budgets spell it; "" if nobody chose to: EC2 takes it."""


class Witness:
    """Sees all that is told from now on."""

    def __init__(self, world: Embedded) -> None:
        """Begin to watch *world*."""
        self.evictions: list[Eviction] = []
        self.violations: list[str] = []
        """What must never happen, in words, oldest first."""
        self.launched = self.interrupted = 0
        self.changes: list[datetime] = []
        """When somebody else than us changed what is to run, in order."""
        self.exchanges = Exchanges(world)
        self._world = world
        self._pods: dict[str, Json] = {}
        self._chosen: dict[str, tuple[str, str]] = {}
        """Claims that were chosen to go and are still there: their NodePool, and for what reason."""
        self._taken: set[str] = set()
        for resource, heard in {
            "pods": self._on_pod,
            CLAIMS: self._on_claim,
            DEPLOYMENTS: self._on_work,
            "jobs.batch": self._on_work,
        }.items():
            world.live.api.subscribe(resource, heard)
        world.cloud.subscribe_events(self._on_event)
        world.cloud.on_halted(self._on_halted)

    def quiet_between(self, start: datetime, end: datetime) -> bool:
        """Whether nobody changed what is to run after *start* and until *end*."""
        return bisect_right(self.changes, start) == bisect_right(self.changes, end)

    # Pods

    def _on_pod(self, event: str, old: Json | None, new: Json | None) -> None:
        pod = new or old
        if pod is None or pod["metadata"]["namespace"] != NAMESPACE:
            return
        name = pod["metadata"]["name"]
        if event == "DELETED":
            self._pods.pop(name, None)
            return
        self._pods[name] = pod
        if old is not None and not is_over(old) and pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self.changes.append(self._world.clock.now())
        if old is not None and _is_evicted(pod) and not _is_leaving(old) and _is_leaving(pod):
            self._judge_eviction(old, pod)

    def _judge_eviction(self, before: Json, pod: Json) -> None:
        now, name = self._world.clock.now(), pod["metadata"]["name"]
        reason = self._reason_of(pod["spec"].get("nodeName", ""))
        self.evictions.append(Eviction(at=now, pod=name, reason=reason))
        if reason and dict(GUARDED).items() <= (pod["metadata"].get("annotations") or {}).items():
            self.violations.append(f"{now:%d %H:%M:%S} {name} was evicted ({reason}) past do-not-disrupt")
        if not _is_ready(before):
            return
        for budget in self._world.live.api.list(POD_BUDGETS, NAMESPACE):
            if _selects(budget, pod):
                healthy, desired = self._health(budget)
                if healthy < desired:
                    title = budget["metadata"]["name"]
                    text = f"{name} was evicted: {title} has {healthy} healthy pods of {desired}"
                    self.violations.append(f"{now:%d %H:%M:%S} {text}")

    def _health(self, budget: Json) -> tuple[int, int]:
        """Answer how many pods are ready, and how many must be."""
        spec, app = budget["spec"], budget["spec"]["selector"]["matchLabels"]["app"]
        wanted: int = self._world.live.api.get(DEPLOYMENTS, app, NAMESPACE)["spec"]["replicas"]
        if "maxUnavailable" in spec:
            # Kubernetes rounds both up: of 16 pods 10 % may be missing, which are two.
            desired = wanted - _part(spec["maxUnavailable"], wanted)
        else:
            desired = _part(spec["minAvailable"], wanted)
        some = (pod for pod in self._pods.values() if _selects(budget, pod))
        return sum(_is_ready(pod) and not _is_leaving(pod) for pod in some), desired

    # Machines

    def _on_claim(self, event: str, old: Json | None, new: Json | None) -> None:
        if event == "DELETED" and old is not None:
            self._chosen.pop(old["metadata"]["name"], None)
            return
        if new is None:
            return
        if event == "ADDED":
            self.exchanges.born(new)
        name, reason = new["metadata"]["name"], _disruption_reason(new)
        if not reason:
            self._chosen.pop(name, None)
        elif name not in self._chosen:
            self._judge_choice(new, reason)
        if reason and _is_leaving(new) and not (old is not None and _is_leaving(old)):
            self.exchanges.gone(new, reason)

    def _judge_choice(self, claim: Json, reason: str) -> None:
        """Hold it against its NodePool's budgets that the node of *claim* is chosen to go."""
        now, pool = self._world.clock.now(), claim["metadata"]["labels"][NODEPOOL]
        self._chosen[claim["metadata"]["name"]] = (pool, reason)
        counted = {one["metadata"]["name"] for one in self._world.live.api.list(CLAIMS) if _counts(one, pool)}
        going = len(counted & self._chosen.keys())
        [known] = [one for one in POOLS if one.name == pool]
        allowed = known.allows(reason, len(counted), now)
        if going > allowed:
            self.violations.append(f"{now:%d %H:%M:%S} {going} nodes of {pool} go ({reason}), allowed are {allowed}")

    def _on_halted(self, instance: Instance) -> None:
        now, node = self._world.clock.now(), instance.private_dns_name
        left = [pod["metadata"]["name"] for pod in self._pods_on(node) if not is_over(pod)]
        if left and instance.instance_id not in self._taken:
            self.violations.append(f"{now:%d %H:%M:%S} {instance.instance_id} ended under {', '.join(left)}")

    def _pods_on(self, node: str) -> Iterator[Json]:
        return (pod for pod in self._pods.values() if pod["spec"].get("nodeName") == node)

    def _reason_of(self, node: str) -> str:
        """Say why *node* goes."""
        for claim in self._world.live.api.list(CLAIMS):
            if claim.get("status", {}).get("nodeName") == node:
                return self._chosen.get(claim["metadata"]["name"], ("", ""))[1]
        return ""

    # The others

    def _on_work(self, event: str, old: Json | None, new: Json | None) -> None:
        if event != "MODIFIED" or old is None or new is None or old["spec"] != new["spec"]:
            self.changes.append(self._world.clock.now())

    def _on_event(self, event: Json) -> None:
        self.launched += event["detail"].get("state") == "pending"
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning":
            self.interrupted += 1
            self._taken.add(event["detail"]["instance-id"])
            self.changes.append(self._world.clock.now())


def _part(amount: int | str, of: int) -> int:
    return amount if isinstance(amount, int) else ceil(of * int(amount.removesuffix("%")) / 100)


def _selects(budget: Json, pod: Json) -> bool:
    wanted: Json = budget["spec"]["selector"]["matchLabels"]
    return wanted.items() <= (pod["metadata"].get("labels") or {}).items()


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _is_leaving(thing: Json) -> bool:
    return "deletionTimestamp" in thing["metadata"]


def _is_evicted(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "DisruptionTarget" and one["reason"] == "EvictionByEvictionAPI" for one in conditions)


def _disruption_reason(claim: Json) -> str:
    """Say why it was chosen to go; "" if it was not."""
    conditions = claim.get("status", {}).get("conditions") or ()
    found = [one["reason"] for one in conditions if one["type"] == "DisruptionReason" and one["status"] == "True"]
    return found[0] if found else ""


def _counts(claim: Json, pool: str) -> bool:
    """Whether it is one of the nodes that budgets count: in use, its instance not ending yet, as Karpenter has it."""
    conditions = {one["type"]: one["status"] for one in claim.get("status", {}).get("conditions") or ()}
    is_ending = conditions.get("InstanceTerminating") == "True"
    return claim["metadata"]["labels"][NODEPOOL] == pool and conditions.get("Initialized") == "True" and not is_ending
