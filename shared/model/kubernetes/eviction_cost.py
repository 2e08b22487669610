"""The cost of evicting a pod, from its deletion cost and its priority."""

import math
from typing import Final

from shared.model.core.labels import POD_DELETION_COST
from shared.model.kubernetes.pod import Pod

_MAX_PRIORITY_MAGNITUDE: Final = 2**31


def compute_eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod: 1 normally, between -10 and 10."""
    try:
        deletion_cost = float(pod.meta.get_annotation(POD_DELETION_COST) or 0)
    except ValueError:
        deletion_cost = 0.0
    if math.isnan(deletion_cost):
        deletion_cost = 0.0
    priority = min(max(pod.priority, -_MAX_PRIORITY_MAGNITUDE), _MAX_PRIORITY_MAGNITUDE)
    return min(max(1 + deletion_cost / 2**27 + priority / 2**25, -10.0), 10.0)
