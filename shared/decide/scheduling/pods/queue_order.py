"""Order of the scheduling queue."""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter

from shared.model.core.resources import CPU, MEMORY
from shared.model.kubernetes.pod import Pod, PodSpec


def sort_queue(pods: Iterable[Pod], taken_at: datetime, *, by_priority: bool = False) -> list[Pod]:
    """Return the pods in scheduling order: most CPU, most memory, oldest, uid, name. Buffer pods come last.

    With *by_priority*, the priority comes first, as in the queue of kube-scheduler.
    """
    size_by_spec: dict[PodSpec, tuple[int, int]] = {}

    def get_size(pod: Pod) -> tuple[int, int]:
        size = size_by_spec.get(pod.spec)
        if size is None:
            requests = pod.spec.requests
            size = size_by_spec[pod.spec] = (-requests[CPU], -requests[MEMORY])
        return size

    queue = sorted(pods, key=attrgetter("meta.uid", "meta.namespace", "meta.name"))
    queue.sort(key=lambda pod: pod.meta.created_at or taken_at)
    queue.sort(key=get_size)
    if by_priority:
        queue.sort(key=lambda pod: -pod.priority)
    queue.sort(key=Pod.is_buffer_pod)
    return queue
