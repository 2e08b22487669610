"""PodDisruptionBudgets: how many of the selected pods may be disrupted now."""

from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import (
    Informer,
    NamespacedName,
    Obj,
    find_controller_reference,
    get_object_key,
    index_by_namespace,
)
from sim.cluster.controller_runtime.object_conditions import is_ready, is_terminal, parse_timestamp, with_conditions
from sim.cluster.controller_runtime.templates import compute_scaled_value
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.matching import Predicate, compile_label_selector
from sim.time.virtual_clock import Clock

RESOURCE: Final = "poddisruptionbudgets.policy"
_DELETION_TIMEOUT: Final = timedelta(minutes=2)
_SCALED_RESOURCES: Final = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
}


class PodDisruptionBudgetController:
    """The disruption controller of kube-controller-manager."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Watch the budgets, pods and scaled workloads of *api*."""
        self._clock, self._api = clock, api
        self._pods = Informer(api, "pods", index_by_namespace)
        self.budgets = Informer(api, RESOURCE, index_by_namespace)
        self._scaled_informers = {
            kind: Informer(api, resource, index_by_namespace) for kind, resource in sorted(_SCALED_RESOURCES.items())
        }
        self._selector_by_budget: dict[NamespacedName, Predicate] = {}
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "disruption")
        self._pods_by_budget: dict[NamespacedName, dict[NamespacedName, Obj]] = {}
        self._budgets_by_pod: dict[NamespacedName, tuple[NamespacedName, ...]] = {}
        self.budgets.add_event_handler(self._handle_budget)
        self._pods.add_event_handler(self._handle_pod)
        for informer in self._scaled_informers.values():
            informer.add_event_handler(self._handle_scaled_object)
        for obj in self.budgets.list_all():
            self._handle_budget("ADDED", None, obj)

    def _handle_budget(self, event: str, old: Obj | None, new: Obj) -> None:
        key = get_object_key(new)
        if event == "DELETED":
            self._selector_by_budget.pop(key, None)
        elif (
            old is None
            or key not in self._selector_by_budget
            or old["spec"].get("selector") != new["spec"].get("selector")
        ):
            self._selector_by_budget[key] = compile_label_selector(new["spec"].get("selector"))
        else:
            self._queue.add(key)
            return
        for pod in self._pods.list_by_index(key[0]):
            self._update_budgets_of_pod(pod)
        self._queue.add(key)

    def _handle_pod(self, event: str, old: Obj | None, new: Obj) -> None:
        key = get_object_key(new)
        if event == "DELETED" or old is None or old["metadata"].get("labels") != new["metadata"].get("labels"):
            for budget_key in self._budgets_by_pod.get(key, ()):
                self._queue.add(budget_key)
            self._update_budgets_of_pod(new, is_deleted=event == "DELETED")
        for budget_key in self._budgets_by_pod.get(key, ()):
            self._pods_by_budget[budget_key][key] = new
            self._queue.add(budget_key)

    def _update_budgets_of_pod(self, pod: Obj, *, is_deleted: bool = False) -> None:
        """Recompute which budgets select *pod*."""
        key, labels = get_object_key(pod), pod["metadata"].get("labels") or {}
        for budget in self._budgets_by_pod.pop(key, ()):
            self._pods_by_budget.get(budget, {}).pop(key, None)
        if is_deleted:
            return
        budgets = (get_object_key(budget) for budget in self.budgets.list_by_index(key[0]))
        self._budgets_by_pod[key] = tuple(
            budget_key
            for budget_key in budgets
            if budget_key in self._selector_by_budget and self._selector_by_budget[budget_key](labels)
        )
        for budget in self._budgets_by_pod[key]:
            self._pods_by_budget.setdefault(budget, {})[key] = pod

    def _handle_scaled_object(self, event: str, old: Obj | None, new: Obj) -> None:
        if event != "MODIFIED" or old is None or old["spec"].get("replicas") != new["spec"].get("replicas"):
            for budget in self.budgets.list_by_index(new["metadata"]["namespace"]):
                self._queue.add(get_object_key(budget))

    def _sync(self, key: NamespacedName) -> None:
        budget = self.budgets.get(key[1], key[0])
        if budget is None:
            return
        pods_by_key = self._pods_by_budget.get(key, {})
        pods = [pods_by_key[pod_key] for pod_key in sorted(pods_by_key) if not is_terminal(pods_by_key[pod_key])]
        disrupted = self._filter_disrupted_pods(budget, pods)
        expected, desired = self._compute_expected_pods(budget, pods)
        healthy = sum(1 for pod in pods if _is_healthy(pod, disrupted))
        allowed_disruptions = max(0, healthy - desired) if expected else 0
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed_disruptions else "False",
            "reason": "SufficientPods" if allowed_disruptions else "InsufficientPods",
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        previous_disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
        status = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "expectedPods": expected,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "disruptionsAllowed": allowed_disruptions,
            "disruptedPods": {**dict.fromkeys(previous_disrupted), **disrupted},
            "conditions": with_conditions(budget, [condition], self._clock.get_time()),
        }
        self._api.patch(RESOURCE, key[1], {"status": status}, key[0], "status")

    def _filter_disrupted_pods(self, budget: Obj, pods: list[Obj]) -> dict[str, str]:
        """Return the allowed evictions that are not visible yet; requeue when the first of them times out."""
        present_names = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        disrupted_pods = (budget.get("status") or {}).get("disruptedPods") or {}
        now = self._clock.get_time()
        deadlines = {
            name: parse_timestamp(disrupted_pods[name]) + _DELETION_TIMEOUT
            for name in sorted(disrupted_pods)
            if name in present_names
        }
        pending_deadlines = {name: end for name, end in deadlines.items() if end > now}
        if pending_deadlines:
            self._queue.add_after(get_object_key(budget), min(pending_deadlines.values()) - now)
        return {name: disrupted_pods[name] for name in pending_deadlines}

    def _compute_expected_pods(self, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
        """Return how many pods are expected, and how many of them must be healthy."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is not None:
            expected = self._compute_expected_scale(pods)
            return expected, max(
                0, expected - compute_scaled_value(spec["maxUnavailable"], expected, up=True, default=0)
            )
        min_available = spec.get("minAvailable", 1)
        if isinstance(min_available, int):
            return len(pods), min_available
        expected = self._compute_expected_scale(pods)
        return expected, compute_scaled_value(min_available, expected, up=True, default=0)

    def _compute_expected_scale(self, pods: list[Obj]) -> int:
        """Return the sum of the replicas of the controllers of *pods*; pods without a controller do not count."""
        replicas_by_uid: dict[str, int] = {}
        for pod in pods:
            controller = self._find_scale_controller(pod)
            if controller is not None:
                replicas_by_uid[controller["metadata"]["uid"]] = controller["spec"].get("replicas", 1)
        return sum(replicas_by_uid.values())

    def _find_scale_controller(self, pod: Obj) -> Obj | None:
        owner, namespace = find_controller_reference(pod), pod["metadata"]["namespace"]
        if owner is None or owner["kind"] not in self._scaled_informers:
            return None
        controller = self._scaled_informers[owner["kind"]].get(owner["name"], namespace)
        parent = (
            find_controller_reference(controller) if controller is not None and owner["kind"] == "ReplicaSet" else None
        )
        if parent is not None and parent["kind"] == "Deployment":
            return self._scaled_informers["Deployment"].get(parent["name"], namespace)
        return controller


def _is_healthy(pod: Obj, disrupted: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return is_ready(pod) and not metadata.get("deletionTimestamp") and metadata["name"] not in disrupted
