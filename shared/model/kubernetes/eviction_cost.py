"""The cost of evicting a pod, from its deletion cost and its priority."""

import math
from functools import lru_cache
from typing import Final

from shared.model.kubernetes.deletion_cost import get_user_deletion_cost
from shared.model.kubernetes.pod import Pod

_MAX_PRIORITY_MAGNITUDE: Final = 2**31


def compute_eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod: 1 normally, between -10 and 10.

    A deletion cost that Joiner has set does not count: otherwise, Joiner's own mark would make a node look empty.
    """
    return _combine_costs(get_user_deletion_cost(pod) or "", pod.priority)


@lru_cache(maxsize=1024)
def _combine_costs(deletion_cost_text: str, pod_priority: int) -> float:
    try:
        deletion_cost = float(deletion_cost_text or 0)
    except ValueError:
        deletion_cost = 0.0
    if math.isnan(deletion_cost):
        deletion_cost = 0.0
    priority = min(max(pod_priority, -_MAX_PRIORITY_MAGNITUDE), _MAX_PRIORITY_MAGNITUDE)
    return min(max(1 + deletion_cost / 2**27 + priority / 2**25, -10.0), 10.0)
