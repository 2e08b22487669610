"""What pods/eviction asks of a PodDisruptionBudget before it lets a pod go.

Running pods are guarded. Pending, finished and terminating ones are not: nothing is disrupted by their going. A pod
that is not ready may go without being counted while the budget is met (or always, if it says so).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from shared.errors import EvictionRefused, Forbidden, Invalid
from sim.cluster.api_deletion import TERMINAL_PHASES
from sim.cluster.api_kinds import Object
from sim.cluster.api_meta import instant
from sim.cluster.selectors import label_selector_from_object

SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."

_MOST_DISRUPTED: Final = 2000


def is_unguarded(pod: Object) -> bool:
    """Answer whether no budget is asked about *pod*."""
    phase = pod.get("status", {}).get("phase")
    return phase in TERMINAL_PHASES or phase == "Pending" or "deletionTimestamp" in pod["metadata"]


def budgets_of(pod: Object, budgets: Iterable[Object]) -> list[Object]:
    """Answer those of *budgets* (of the pod's namespace) that select it; a malformed selector selects nothing."""
    return [budget for budget in budgets if _selects(budget, pod)]


def spent(pod: Object, budget: Object, now: datetime) -> Object | None:
    """Answer the status of *budget* once *pod* is disrupted; None if the pod does not count.

    Raises:
        EvictionRefused: the budget does not allow it, or its controller has not seen its newest generation.
        Forbidden: the status is nonsense, or too many evictions are not confirmed.
    """
    status = budget.get("status") or {}
    if not _is_ready(pod) and _may_go_unready(budget["spec"], status):
        return None
    _check(budget["metadata"], status)
    left = status["disruptionsAllowed"] - 1
    name = pod["metadata"]["name"]
    disrupted = (status.get("disruptedPods") or {}) | {name: instant(now)}
    new = {**status, "disruptionsAllowed": left, "disruptedPods": disrupted}
    return new if left else {**new, "conditions": _not_allowed(status, now)}


def marked(pod: Object, now: datetime) -> Object:
    """Answer *pod* with the condition that says who takes it away."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": instant(now),
    }
    status = pod["status"]
    return {**pod, "status": {**status, "conditions": with_condition(status.get("conditions"), condition)}}


def with_condition(conditions: Iterable[Object] | None, new: Object) -> list[Object]:
    """Answer *conditions* with *new* in the place of its type; the transition time stays while the status does."""
    replaced, found = [], False
    for old in conditions or ():
        if old["type"] != new["type"]:
            replaced.append(old)
            continue
        found = True
        same = old.get("status") == new["status"] and "lastTransitionTime" in old
        replaced.append(new | ({"lastTransitionTime": old["lastTransitionTime"]} if same else {}))
    return replaced if found else [*replaced, new]


def _selects(budget: Object, pod: Object) -> bool:
    try:
        selector = label_selector_from_object((budget.get("spec") or {}).get("selector"))
    except Invalid:
        return False
    return selector.matches(pod["metadata"].get("labels"))


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _may_go_unready(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    wanted: int = status.get("desiredHealthy", 0)
    healthy: int = status.get("currentHealthy", 0)
    return 0 < wanted <= healthy


def _check(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> None:
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata["generation"]:
        raise EvictionRefused(f"{VIOLATED} The disruption budget {name} is still being processed by the server.")
    if allowed < 0:
        raise Forbidden(f'poddisruptionbudgets.policy "{name}" is forbidden: pdb disruptions allowed is negative')
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        raise Forbidden(f'poddisruptionbudgets.policy "{name}" is forbidden: too many evictions are not confirmed')
    if allowed == 0:
        healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise EvictionRefused(f"{VIOLATED} The disruption budget {name} needs {wanted} healthy pods and has {healthy}")


def _not_allowed(status: Mapping[str, Any], now: datetime) -> list[Object]:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "lastTransitionTime": instant(now),
    }
    return with_condition(status.get("conditions"), condition)
