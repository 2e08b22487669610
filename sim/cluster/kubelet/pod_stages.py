"""Lifecycle stages of a pod on a node, as data: the condition, delay and effect of each stage.

The first matching stage is waited for. If it still matches after its delay, its effect is applied, which makes another
stage match. Delays have a jitter that depends only on the seed and the pod.
"""

import hashlib
from datetime import timedelta
from typing import Final, Literal

import msgspec

from sim.cluster.controller_runtime.informer import Obj

RUN_SECONDS_ANNOTATION: Final = "sim.joiner.dev/run-seconds"
"""A pod with this annotation (and a restart policy other than Always) finishes after this many seconds of running."""
START_SECONDS_ANNOTATION: Final = "sim.joiner.dev/start-seconds"
"""Time to pull images and start containers."""
STOP_SECONDS_ANNOTATION: Final = "sim.joiner.dev/stop-seconds"
"""Time that a pod takes to stop; limited by its grace period."""
EXIT_CODE_ANNOTATION: Final = "sim.joiner.dev/exit-code"
"""Exit code of a pod that finishes; any value except 0 is a failure."""

Effect = Literal["create", "run", "finish", "remove"]


class PodStage(msgspec.Struct, frozen=True, kw_only=True):
    """One stage; fields that are None match every pod."""

    name: str
    effect: Effect
    delay: timedelta
    jitter: timedelta = timedelta()
    seconds_annotation: str = ""
    """An annotation whose value in seconds replaces delay and jitter."""
    within_grace: bool = False
    """The delay is limited by the pod's grace period."""
    phases: frozenset[str] | None = None
    deleting: bool | None = None
    started: bool | None = None
    """Whether the kubelet has accepted the pod (`status.startTime`)."""
    finishes: bool | None = None

    def is_match(self, pod: Obj) -> bool:
        """Return whether *pod* is at the start of this stage."""
        status = pod.get("status") or {}
        return (
            (self.phases is None or status.get("phase", "Pending") in self.phases)
            and self.deleting in {None, bool(pod["metadata"].get("deletionTimestamp"))}
            and self.started in {None, bool(status.get("startTime"))}
            and self.finishes in {None, is_finite_pod(pod)}
        )

    def compute_duration(self, pod: Obj, seed: int) -> timedelta:
        """Return the duration of this stage for *pod*; *seed* determines the jitter."""
        annotated_seconds = (pod["metadata"].get("annotations") or {}).get(self.seconds_annotation)
        if annotated_seconds is not None:
            duration = timedelta(seconds=float(annotated_seconds))
        else:
            duration = self.delay + compute_jitter(self.jitter, f"{seed}/{self.name}/{pod['metadata']['uid']}")
        if not self.within_grace:
            return duration
        return min(duration, timedelta(seconds=pod["metadata"].get("deletionGracePeriodSeconds") or 0))


POD_STAGES: Final = (
    PodStage(
        name="pod-remove-finished",
        effect="remove",
        deleting=True,
        phases=frozenset({"Succeeded", "Failed"}),
        delay=timedelta(milliseconds=100),
    ),
    PodStage(
        name="pod-stop",
        effect="remove",
        deleting=True,
        delay=timedelta(seconds=1),
        jitter=timedelta(seconds=1),
        seconds_annotation=STOP_SECONDS_ANNOTATION,
        within_grace=True,
    ),
    PodStage(
        name="pod-create",
        effect="create",
        deleting=False,
        started=False,
        phases=frozenset({"Pending"}),
        delay=timedelta(milliseconds=200),
    ),
    PodStage(
        name="pod-run",
        effect="run",
        deleting=False,
        started=True,
        phases=frozenset({"Pending"}),
        delay=timedelta(seconds=2),
        jitter=timedelta(seconds=2),
        seconds_annotation=START_SECONDS_ANNOTATION,
    ),
    PodStage(
        name="pod-finish",
        effect="finish",
        deleting=False,
        finishes=True,
        phases=frozenset({"Running"}),
        delay=timedelta(),
        seconds_annotation=RUN_SECONDS_ANNOTATION,
    ),
)


def is_finite_pod(pod: Obj) -> bool:
    """Return whether *pod* finishes by itself."""
    annotations = pod["metadata"].get("annotations") or {}
    return RUN_SECONDS_ANNOTATION in annotations and pod["spec"].get("restartPolicy", "Always") != "Always"


def compute_jitter(max_jitter: timedelta, text: str) -> timedelta:
    """Return a duration between 0 and *max_jitter* that depends only on *text*."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return max_jitter * int.from_bytes(digest) / 2**32


def find_next_stage(pod: Obj, stages: tuple[PodStage, ...] = POD_STAGES) -> PodStage | None:
    """Return the first of *stages* that matches *pod*; None if the pod stays as it is."""
    return next((stage for stage in stages if stage.is_match(pod)), None)
