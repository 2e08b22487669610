"""The PodDisruptionBudget object."""

import msgspec

from shared.model.core.metadata import ObjectMeta
from shared.model.core.selectors import LabelSelector
from shared.model.kubernetes.pod import Pod


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True):
    """policy/v1 PodDisruptionBudget."""

    meta: ObjectMeta
    selector: LabelSelector | None
    disruptions_allowed: int
    min_available: str = ""
    max_unavailable: str = ""
    always_allows_unhealthy: bool = False

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/cart``."""
        return f"{self.meta.namespace}/{self.meta.name}"

    def is_match(self, pod: Pod) -> bool:
        """Return whether the budget selects *pod*."""
        is_same_namespace = self.meta.namespace == pod.meta.namespace
        return is_same_namespace and self.selector is not None and self.selector.is_match(dict(pod.meta.labels))

    def is_fully_blocking(self) -> bool:
        """Return whether the budget can never allow a disruption."""
        return self.max_unavailable in ("0", "0%") or self.min_available == "100%"
