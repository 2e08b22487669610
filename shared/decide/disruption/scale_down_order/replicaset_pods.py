"""Pods whose ReplicaSet may delete them when it scales down, in an order that Joiner may influence."""

from collections.abc import Iterable

from shared.model.kubernetes.deletion_cost import get_user_deletion_cost
from shared.model.kubernetes.pod import Pod


class ReplicaSetPods:
    """The pods of ReplicaSets; if a user has set the deletion cost of one pod, the order of its ReplicaSet is kept."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        """Find the ReplicaSets among the owners of *pods*, the pods of the whole cluster."""
        self._replica_sets: set[str] = set()
        user_controlled: set[str] = set()
        for pod in pods:
            replica_set = _find_replica_set(pod)
            if replica_set:
                self._replica_sets.add(replica_set)
                if get_user_deletion_cost(pod):
                    user_controlled.add(replica_set)
        self._replica_sets -= user_controlled

    def includes(self, pod: Pod) -> bool:
        """Return whether a scale-down may delete *pod*, and Joiner may set its deletion cost."""
        return pod.is_active() and _find_replica_set(pod) in self._replica_sets


def _find_replica_set(pod: Pod) -> str:
    """Return the UID of the ReplicaSet that controls *pod*; "" if none does."""
    return next(
        (
            owner.uid
            for owner in pod.meta.owners
            if owner.controller and owner.kind == "ReplicaSet" and owner.api_version == "apps/v1"
        ),
        "",
    )
