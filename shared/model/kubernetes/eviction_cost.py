"""The cost of evicting a pod, from its deletion cost and its priority."""

import math
from typing import Final

from shared.model.kubernetes.deletion_cost import get_user_deletion_cost
from shared.model.kubernetes.pod import Pod

_MAX_PRIORITY_MAGNITUDE: Final = 2**31


def compute_eviction_cost(pod: Pod) -> float:
    """Return the cost of evicting the pod: 1 normally, between -10 and 10.

    A deletion cost that Joiner has set does not count: otherwise, Joiner's own mark would make a node look empty.
    """
    try:
        deletion_cost = float(get_user_deletion_cost(pod) or 0)
    except ValueError:
        deletion_cost = 0.0
    if math.isnan(deletion_cost):
        deletion_cost = 0.0
    priority = min(max(pod.priority, -_MAX_PRIORITY_MAGNITUDE), _MAX_PRIORITY_MAGNITUDE)
    return min(max(1 + deletion_cost / 2**27 + priority / 2**25, -10.0), 10.0)
