"""Gangs: pods that are useful only together, and how the pods of each tool tell their gang and its size.

Labels and annotations: docs/guide/gangs.md.
"""

from typing import Final

import msgspec

from shared.model.core.labels import GANG, GANG_SIZE, GANG_TOPOLOGY
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.pod import Pod

POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
"""Label of scheduler-plugins: the name of a PodGroup."""
KUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""Label of Kueue on pods that are queued as a group."""
KUEUE_GROUP_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
"""Annotation of Kueue on the same pods."""
JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
JOB_SET_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
JOB_SET_JOBS: Final = "jobset.sigs.k8s.io/global-replicas"
"""Labels of JobSet; the last one is the number of Jobs of the JobSet, not of their pods."""
LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/name"
LEADER_WORKER_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
LEADER_WORKER_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
"""Labels of LeaderWorkerSet, and its annotation: the number of pods of each group."""
READ_ANNOTATIONS: Final = frozenset((KUEUE_GROUP_SIZE, LEADER_WORKER_SIZE))
"""Annotations of pods that other tools set and gangs read."""
MAX_GANG_SIZE: Final = 10_000
_MAX_TEXT_IN_PROBLEM: Final = 20
_KINDS_BY_SIZE_KEY: Final = {
    GANG_SIZE: "gang",
    KUEUE_GROUP_SIZE: "Kueue pod group",
    POD_GROUP: "PodGroup",
    LEADER_WORKER_SIZE: "LeaderWorkerSet group",
    JOB_SET_JOBS: "JobSet",
}


class GangMembership(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod says about its gang."""

    name: str
    """Namespace and name: ``shop/train``."""
    size: int | None = None
    """Number of pods that the gang needs; None: the pod does not say it."""
    is_exact: bool = True
    """Whether *size* counts pods. A JobSet only says how many Jobs it has, each with at least one pod."""
    pod_group: str = ""
    """The PodGroup that has the size: ``shop/train``; "": none."""
    problem: str = ""
    """The error in the size, as annotation and fix."""


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    meta: ObjectMeta
    min_member: int

    @property
    def name(self) -> str:
        """Namespace and name: ``shop/train``."""
        return f"{self.meta.namespace}/{self.meta.name}"


def find_gang_membership(pod: Pod) -> GangMembership | None:
    """Return the gang of *pod*; None if it is in no gang, or in a gang of one pod."""
    meta = pod.meta
    if not meta.labels and not meta.annotations:
        return None
    name, size_key, size_text = _find_name_and_size(pod)
    if not name:
        return None
    if own_size_text := meta.get_annotation(GANG_SIZE):
        size_key, size_text = GANG_SIZE, own_size_text
    name = f"{meta.namespace}/{name}"
    if not size_text:
        if size_key == POD_GROUP:
            return GangMembership(name=name, pod_group=name)
        problem = f"{GANG_SIZE}: is missing: write the number of pods" if size_key == GANG_SIZE else ""
        return GangMembership(name=name, problem=problem)
    size, is_exact = parse_count(size_text, MAX_GANG_SIZE), size_key != JOB_SET_JOBS
    if not size or size > MAX_GANG_SIZE:
        text = size_text[:_MAX_TEXT_IN_PROBLEM]
        problem = f"{size_key}: {text!r} is not a number from 1 to {MAX_GANG_SIZE:,}: write the number of pods"
        return GangMembership(name=name, problem=problem)
    return None if size == 1 and is_exact else GangMembership(name=name, size=size, is_exact=is_exact)


def find_gang_kind(pod: Pod) -> str:
    """Return what the gang of *pod* is called: `JobSet`, `PodGroup`, or how else *pod* says that it is in a gang."""
    return _KINDS_BY_SIZE_KEY.get(_find_name_and_size(pod)[1], "gang")


def parse_count(text: str, maximum: int) -> int | None:
    """Return the number of decimal digits; *maximum* + 1 if it is larger; None if *text* is no such number.

    Python refuses to convert thousands of digits, and each user with the permission to create pods can write them.
    """
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0")
    return maximum + 1 if len(digits) > len(str(maximum)) else min(int(digits or "0"), maximum + 1)


def find_topology_problem(meta: ObjectMeta) -> str:
    """Return the error in the topology of a gang, as annotation and fix; "" if there is none."""
    text = meta.get_annotation(GANG_TOPOLOGY)
    return f"{GANG_TOPOLOGY}: {text!r} is not a topology: write zone, or remove it" if text not in ("", "zone") else ""


def _find_name_and_size(pod: Pod) -> tuple[str, str, str]:
    """Return the name of the gang, where its size is written, and the text of the size; "" if there is none."""
    meta = pod.meta
    if name := meta.get_annotation(GANG):
        return name, GANG_SIZE, ""
    if name := meta.get_label(KUEUE_GROUP):
        return name, KUEUE_GROUP_SIZE, meta.get_annotation(KUEUE_GROUP_SIZE)
    if name := meta.get_label(POD_GROUP):
        return name, POD_GROUP, ""
    if name := meta.get_label(LEADER_WORKER_SET):
        group = f"{name}-{meta.get_label(LEADER_WORKER_GROUP)}"
        return group, LEADER_WORKER_SIZE, meta.get_annotation(LEADER_WORKER_SIZE)
    if name := meta.get_label(JOB_SET):
        attempt = meta.get_label(JOB_SET_ATTEMPT)
        return f"{name}-{attempt}" if attempt else name, JOB_SET_JOBS, meta.get_label(JOB_SET_JOBS)
    return "", "", ""
