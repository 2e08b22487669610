"""Which pods their PodDisruptionBudgets hold fast."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from shared.model.objects import Pairs, condition
from shared.model.pods import Pod, PodDisruptionBudget


class Guards(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's PodDisruptionBudgets, by namespace, each list sorted by name."""

    budgets: Mapping[str, tuple[PodDisruptionBudget, ...]]
    known: dict[tuple[str, Pairs], tuple[PodDisruptionBudget, ...]] = msgspec.field(default_factory=dict)
    """What was answered, by namespace and labels."""

    def of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Answer those that select *pod*."""
        key = (pod.meta.namespace, pod.meta.labels)
        if key not in self.known:
            self.known[key] = tuple(one for one in self.budgets.get(pod.meta.namespace, ()) if one.selects(pod))
        return self.known[key]

    def refusal(self, pod: Pod, now: datetime) -> str:
        """Say what would refuse the eviction of *pod* at present; "" if nothing does, or if it is not to be evicted."""
        return self._refusal(pod, lasting=False) if pod.is_evictable(now) else ""

    def lasting_refusal(self, pod: Pod) -> str:
        """Say what would refuse the eviction of *pod* however long one waits; "" if nothing does.

        The eviction API asks no budget for a pod that has not started.
        """
        return self._refusal(pod, lasting=True) if pod.phase != "Pending" else ""

    def _refusal(self, pod: Pod, *, lasting: bool) -> str:
        guarding = self.of(pod)
        if len(guarding) > 1:
            names = ", ".join(one.name for one in guarding)
            return f"pod {pod.name} has {len(guarding)} pod disruption budgets, eviction supports one ({names})"
        if not guarding or (guarding[0].always_allows_unhealthy and _is_unready(pod)):
            return ""
        refuses = guarding[0].is_fully_blocking() if lasting else guarding[0].disruptions_allowed <= 0
        count = guarding[0].disruptions_allowed
        return (
            f"pod {pod.name} is held by pod disruption budget {guarding[0].name} ({count} allowed)" if refuses else ""
        )


def guards_of(budgets: Iterable[PodDisruptionBudget]) -> Guards:
    """Index *budgets*."""
    found: dict[str, list[PodDisruptionBudget]] = {}
    for one in sorted(budgets, key=lambda one: one.name):
        found.setdefault(one.meta.namespace, []).append(one)
    return Guards(budgets={namespace: tuple(some) for namespace, some in found.items()})


def _is_unready(pod: Pod) -> bool:
    ready = condition(pod.conditions, "Ready")
    return ready is not None and ready.status == "False"
