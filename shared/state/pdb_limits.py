"""PDB limits: which pods cannot be evicted because of their PodDisruptionBudgets."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shared.model.core.metadata import Pairs, find_condition
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_evictable
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget


class PdbLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's PodDisruptionBudgets by namespace, each list sorted by name."""

    budgets: Mapping[str, tuple[PodDisruptionBudget, ...]]
    budgets_by_pod_labels: dict[tuple[str, Pairs], tuple[PodDisruptionBudget, ...]] = msgspec.field(
        default_factory=dict
    )
    """Cache of the matching budgets, by namespace and pod labels."""

    def list_budgets(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select *pod*."""
        key = (pod.meta.namespace, pod.meta.labels)
        if key not in self.budgets_by_pod_labels:
            self.budgets_by_pod_labels[key] = tuple(
                budget for budget in self.budgets.get(pod.meta.namespace, ()) if budget.is_match(pod)
            )
        return self.budgets_by_pod_labels[key]

    def find_refusal(self, pod: Pod, now: datetime) -> str:
        """Return why the eviction of *pod* would be refused now; "" if it would not, or if the pod is not evictable."""
        return self._find_refusal(pod, lasting=False) if is_evictable(pod, now) else ""

    def find_lasting_refusal(self, pod: Pod) -> str:
        """Return why the eviction of *pod* would be refused at any time; "" if it would not.

        The eviction API does not check budgets for a pod that has not started.
        """
        return self._find_refusal(pod, lasting=True) if pod.phase != "Pending" else ""

    def _find_refusal(self, pod: Pod, *, lasting: bool) -> str:
        pod_budgets = self.list_budgets(pod)
        if len(pod_budgets) > 1:
            names = ", ".join(budget.name for budget in pod_budgets)
            return (
                f"pod {pod.name} has {len(pod_budgets)} PodDisruptionBudgets, but the eviction API supports "
                f"only one ({names})"
            )
        if not pod_budgets or (pod_budgets[0].always_allows_unhealthy and _is_unready(pod)):
            return ""
        refuses = pod_budgets[0].is_fully_blocking() if lasting else pod_budgets[0].disruptions_allowed <= 0
        count = pod_budgets[0].disruptions_allowed
        return (
            f"PodDisruptionBudget {pod_budgets[0].name} blocks the eviction of pod {pod.name} ({count} allowed)"
            if refuses
            else ""
        )


def build_pdb_limits(budgets: Iterable[PodDisruptionBudget]) -> PdbLimits:
    """Index *budgets* by namespace."""
    budgets_by_namespace: dict[str, list[PodDisruptionBudget]] = {}
    for budget in sorted(budgets, key=lambda budget: budget.name):
        budgets_by_namespace.setdefault(budget.meta.namespace, []).append(budget)
    return PdbLimits(
        budgets={namespace: tuple(namespace_budgets) for namespace, namespace_budgets in budgets_by_namespace.items()}
    )


def _is_unready(pod: Pod) -> bool:
    ready = find_condition(pod.conditions, "Ready")
    return ready is not None and ready.status == "False"
