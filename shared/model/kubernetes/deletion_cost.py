"""The deletion cost of a pod, and who has set it: a user, or Joiner to empty the pod's node.

A value is Joiner's if the annotation joiner.dev/pod-deletion-cost repeats it. A user who changes the value
takes it over, with any tool.
"""

from contextlib import suppress

from shared.model.core.labels import OWN_DELETION_COST, POD_DELETION_COST
from shared.model.kubernetes.pod import Pod


def get_user_deletion_cost(pod: Pod) -> str:
    """Return the deletion cost that a user has set, as text; "" if there is none, or if Joiner has set it."""
    deletion_cost = pod.meta.get_annotation(POD_DELETION_COST)
    return "" if deletion_cost and deletion_cost == pod.meta.get_annotation(OWN_DELETION_COST) else deletion_cost


def get_own_deletion_cost(pod: Pod) -> int | None:
    """Return the deletion cost that Joiner has set; None if there is none, or if a user has changed it."""
    deletion_cost = pod.meta.get_annotation(POD_DELETION_COST)
    if deletion_cost and deletion_cost == pod.meta.get_annotation(OWN_DELETION_COST):
        with suppress(ValueError):
            return int(deletion_cost)
    return None
