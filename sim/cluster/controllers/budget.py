"""PodDisruptionBudgets: how many of the pods they select may go now."""

from datetime import timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.conditions import instant_of, is_ready, is_terminal, with_conditions
from sim.cluster.controllers.informer import Informer, Key, Obj, by_namespace, controller_of, key_of
from sim.cluster.controllers.queue import Queue
from sim.cluster.controllers.templates import scaled_value
from sim.cluster.scheduler_match import Predicate, label_selector

RESOURCE: Final = "poddisruptionbudgets.policy"
_EVICTION_TAKES_AT_MOST: Final = timedelta(minutes=2)
_SCALED: Final = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
}


class Budgets:
    """The disruption controller."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Follow *api*."""
        self._clock, self._api = clock, api
        self._pods = Informer(api, "pods", by_namespace)
        self.budgets = Informer(api, RESOURCE, by_namespace)
        self._scaled = {kind: Informer(api, resource, by_namespace) for kind, resource in sorted(_SCALED.items())}
        self._selects: dict[Key, Predicate] = {}
        self._queue: Queue[Key] = Queue(clock, self._sync, "disruption")
        self._guarded: dict[Key, dict[Key, Obj]] = {}
        self._guards: dict[Key, tuple[Key, ...]] = {}
        self.budgets.on_change(self._on_budget)
        self._pods.on_change(self._on_pod)
        for informer in self._scaled.values():
            informer.on_change(self._on_scale)
        for obj in self.budgets.all():
            self._on_budget("ADDED", None, obj)

    def _on_budget(self, event: str, old: Obj | None, new: Obj) -> None:
        key = key_of(new)
        if event == "DELETED":
            self._selects.pop(key, None)
        elif old is None or key not in self._selects or old["spec"].get("selector") != new["spec"].get("selector"):
            self._selects[key] = label_selector(new["spec"].get("selector"))
        else:
            self._queue.add(key)
            return
        for pod in self._pods.of(key[0]):
            self._reselect(pod)
        self._queue.add(key)

    def _on_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        key = key_of(new)
        if event == "DELETED" or old is None or old["metadata"].get("labels") != new["metadata"].get("labels"):
            for budget in self._guards.get(key, ()):
                self._queue.add(budget)
            self._reselect(new, gone=event == "DELETED")
        for budget in self._guards.get(key, ()):
            self._guarded[budget][key] = new
            self._queue.add(budget)

    def _reselect(self, pod: Obj, *, gone: bool = False) -> None:
        """Find out anew which budgets guard *pod*."""
        key, labels = key_of(pod), pod["metadata"].get("labels") or {}
        for budget in self._guards.pop(key, ()):
            self._guarded.get(budget, {}).pop(key, None)
        if gone:
            return
        budgets = (key_of(budget) for budget in self.budgets.of(key[0]))
        self._guards[key] = tuple(each for each in budgets if each in self._selects and self._selects[each](labels))
        for budget in self._guards[key]:
            self._guarded.setdefault(budget, {})[key] = pod

    def _on_scale(self, event: str, old: Obj | None, new: Obj) -> None:
        if event != "MODIFIED" or old is None or old["spec"].get("replicas") != new["spec"].get("replicas"):
            for budget in self.budgets.of(new["metadata"]["namespace"]):
                self._queue.add(key_of(budget))

    def _sync(self, key: Key) -> None:
        budget = self.budgets.get(key[1], key[0])
        if budget is None:
            return
        guarded = self._guarded.get(key, {})
        pods = [guarded[each] for each in sorted(guarded) if not is_terminal(guarded[each])]
        disrupted = self._disrupted(budget, pods)
        expected, desired = self._wanted(budget, pods)
        healthy = sum(1 for pod in pods if _counts(pod, disrupted))
        allowed = max(0, healthy - desired) if expected else 0
        fresh = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        kept = (budget.get("status") or {}).get("disruptedPods") or {}
        status = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "expectedPods": expected,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "disruptionsAllowed": allowed,
            "disruptedPods": {**dict.fromkeys(kept), **disrupted},
            "conditions": with_conditions(budget, [fresh], self._clock.now()),
        }
        self._api.patch(RESOURCE, key[1], {"status": status}, key[0], "status")

    def _disrupted(self, budget: Obj, pods: list[Obj]) -> dict[str, str]:
        """Answer the evictions that were allowed and are not visible yet; come back when the first of them is stale."""
        waiting = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        given = (budget.get("status") or {}).get("disruptedPods") or {}
        now = self._clock.now()
        ends = {name: instant_of(given[name]) + _EVICTION_TAKES_AT_MOST for name in sorted(given) if name in waiting}
        alive = {name: end for name, end in ends.items() if end > now}
        if alive:
            self._queue.add_after(key_of(budget), min(alive.values()) - now)
        return {name: given[name] for name in alive}

    def _wanted(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """Answer how many pods there should be, and how many of them healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            return expected, max(0, expected - scaled_value(spec["maxUnavailable"], expected, up=True, default=0))
        least = spec.get("minAvailable", 1)
        if isinstance(least, int):
            return len(pods), least
        expected = self._scale(pods)
        return expected, scaled_value(least, expected, up=True, default=0)

    def _scale(self, pods: list[Obj]) -> int:
        """Add up what the controllers of *pods* want; pods without one do not count."""
        found: dict[str, int] = {}
        for pod in pods:
            controller = self._controller(pod)
            if controller is not None:
                found[controller["metadata"]["uid"]] = controller["spec"].get("replicas", 1)
        return sum(found.values())

    def _controller(self, pod: Obj) -> Obj | None:
        owner, namespace = controller_of(pod), pod["metadata"]["namespace"]
        if owner is None or owner["kind"] not in self._scaled:
            return None
        found = self._scaled[owner["kind"]].get(owner["name"], namespace)
        above = controller_of(found) if found is not None and owner["kind"] == "ReplicaSet" else None
        if above is not None and above["kind"] == "Deployment":
            return self._scaled["Deployment"].get(above["name"], namespace)
        return found


def _counts(pod: Obj, disrupted: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return is_ready(pod) and not metadata.get("deletionTimestamp") and metadata["name"] not in disrupted
