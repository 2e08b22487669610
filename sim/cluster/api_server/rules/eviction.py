"""Rules of pods/eviction: whether a PodDisruptionBudget allows the eviction of a pod.

Budgets protect running pods. Pending, finished and terminating pods are exempt, because their eviction disrupts
nothing. A pod that is not ready can be evicted without being counted while the budget is met (or always, if its
unhealthyPodEvictionPolicy is AlwaysAllow).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.crds.definitions import Object
from shared.errors import EvictionRefused, Forbidden, Invalid
from sim.cluster.api_server.metadata import format_time
from sim.cluster.api_server.rules.deletion import TERMINAL_PHASES
from sim.cluster.api_server.rules.label_and_field_selectors import build_label_selector

MULTIPLE_BUDGETS_MESSAGE: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
BUDGET_VIOLATED_MESSAGE: Final = "Cannot evict pod as it would violate the pod's disruption budget."

_MAX_DISRUPTED_PODS: Final = 2000


def is_exempt_from_budgets(pod: Object) -> bool:
    """Return whether *pod* can be evicted without checking a budget."""
    phase = pod.get("status", {}).get("phase")
    return phase in TERMINAL_PHASES or phase == "Pending" or "deletionTimestamp" in pod["metadata"]


def find_matching_budgets(pod: Object, budgets: Iterable[Object]) -> list[Object]:
    """Return the *budgets* (of the pod's namespace) that select *pod*; a malformed selector selects nothing."""
    return [budget for budget in budgets if _is_selected(budget, pod)]


def consume_disruption(pod: Object, budget: Object, now: datetime) -> Object | None:
    """Return the status of *budget* after the disruption of *pod*; None if the pod does not count.

    Raises:
        EvictionRefused: the budget does not allow it, or its controller has not observed the newest generation.
        Forbidden: the status is invalid, or too many evictions are not confirmed.
    """
    status = budget.get("status") or {}
    if not _is_ready(pod) and _can_evict_unready_pod(budget["spec"], status):
        return None
    _check_disruption_allowed(budget["metadata"], status)
    allowed_disruptions = status["disruptionsAllowed"] - 1
    name = pod["metadata"]["name"]
    disrupted_pods = (status.get("disruptedPods") or {}) | {name: format_time(now)}
    new_status = {**status, "disruptionsAllowed": allowed_disruptions, "disruptedPods": disrupted_pods}
    return (
        new_status if allowed_disruptions else {**new_status, "conditions": _with_disruption_not_allowed(status, now)}
    )


def with_disruption_target(pod: Object, now: datetime) -> Object:
    """Return *pod* with the DisruptionTarget condition of the eviction API."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": format_time(now),
    }
    status = pod["status"]
    return {**pod, "status": {**status, "conditions": with_condition(status.get("conditions"), condition)}}


def with_condition(conditions: Iterable[Object] | None, new: Object) -> list[Object]:
    """Return *conditions* with *new* in place of its type.

    The transition time is kept if the status is unchanged.
    """
    new_conditions, is_replaced = [], False
    for old in conditions or ():
        if old["type"] != new["type"]:
            new_conditions.append(old)
            continue
        is_replaced = True
        is_same_status = old.get("status") == new["status"] and "lastTransitionTime" in old
        new_conditions.append(new | ({"lastTransitionTime": old["lastTransitionTime"]} if is_same_status else {}))
    return new_conditions if is_replaced else [*new_conditions, new]


def _is_selected(budget: Object, pod: Object) -> bool:
    try:
        selector = build_label_selector((budget.get("spec") or {}).get("selector"))
    except Invalid:
        return False
    return selector(pod["metadata"].get("labels") or {})


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _can_evict_unready_pod(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired_healthy: int = status.get("desiredHealthy", 0)
    healthy: int = status.get("currentHealthy", 0)
    return 0 < desired_healthy <= healthy


def _check_disruption_allowed(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata["generation"]:
        raise EvictionRefused(
            f"{BUDGET_VIOLATED_MESSAGE} The disruption budget {name} is still being processed by the server."
        )
    if allowed < 0:
        raise Forbidden(f'poddisruptionbudgets.policy "{name}" is forbidden: pdb disruptions allowed is negative')
    if len(status.get("disruptedPods") or ()) > _MAX_DISRUPTED_PODS:
        raise Forbidden(f'poddisruptionbudgets.policy "{name}" is forbidden: too many evictions are not confirmed')
    if allowed == 0:
        healthy, desired_healthy = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise EvictionRefused(
            f"{BUDGET_VIOLATED_MESSAGE} The disruption budget {name} needs {desired_healthy} "
            f"healthy pods and has {healthy}"
        )


def _with_disruption_not_allowed(status: Mapping[str, Any], now: datetime) -> list[Object]:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": format_time(now),
    }
    return with_condition(status.get("conditions"), condition)
