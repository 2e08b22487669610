"""What becomes of a pod on a node, as data: when a stage applies, how long it takes, what it does.

The first stage that matches is waited for; when its time has come and it still matches, its effect is applied, which
makes another stage match. Delays have a jitter that depends on the seed and the pod alone.
"""

import hashlib
from datetime import timedelta
from typing import Final, Literal

import msgspec

from sim.cluster.controllers.informer import Obj

RUN_SECONDS: Final = "sim.joiner.dev/run-seconds"
"""A pod with this annotation (and a restart policy other than Always) finishes after so many seconds of running."""
START_SECONDS: Final = "sim.joiner.dev/start-seconds"
"""How long images are pulled and containers started."""
STOP_SECONDS: Final = "sim.joiner.dev/stop-seconds"
"""How long a pod takes to stop; never longer than its grace."""
EXIT_CODE: Final = "sim.joiner.dev/exit-code"
"""What a pod that finishes answers; anything but 0 is a failure."""

Effect = Literal["create", "run", "finish", "remove"]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One stage; fields that are None match every pod."""

    name: str
    effect: Effect
    delay: timedelta
    jitter: timedelta = timedelta()
    seconds_annotation: str = ""
    """An annotation that replaces delay and jitter."""
    within_grace: bool = False
    """Never longer than the pod's grace."""
    phases: frozenset[str] | None = None
    deleting: bool | None = None
    started: bool | None = None
    """Whether the kubelet has seen the pod (`status.startTime`)."""
    finishes: bool | None = None

    def matches(self, pod: Obj) -> bool:
        """Say whether *pod* is where this stage begins."""
        status = pod.get("status") or {}
        return (
            (self.phases is None or status.get("phase", "Pending") in self.phases)
            and self.deleting in {None, bool(pod["metadata"].get("deletionTimestamp"))}
            and self.started in {None, bool(status.get("startTime"))}
            and self.finishes in {None, finishes(pod)}
        )

    def takes(self, pod: Obj, seed: int) -> timedelta:
        """Answer how long this stage takes *pod* in the world of *seed*."""
        annotated = (pod["metadata"].get("annotations") or {}).get(self.seconds_annotation)
        if annotated is not None:
            wanted = timedelta(seconds=float(annotated))
        else:
            wanted = self.delay + jitter(self.jitter, f"{seed}/{self.name}/{pod['metadata']['uid']}")
        if not self.within_grace:
            return wanted
        return min(wanted, timedelta(seconds=pod["metadata"].get("deletionGracePeriodSeconds") or 0))


POD_STAGES: Final = (
    Stage(
        name="pod-remove-finished",
        effect="remove",
        deleting=True,
        phases=frozenset({"Succeeded", "Failed"}),
        delay=timedelta(milliseconds=100),
    ),
    Stage(
        name="pod-stop",
        effect="remove",
        deleting=True,
        delay=timedelta(seconds=1),
        jitter=timedelta(seconds=1),
        seconds_annotation=STOP_SECONDS,
        within_grace=True,
    ),
    Stage(
        name="pod-create",
        effect="create",
        deleting=False,
        started=False,
        phases=frozenset({"Pending"}),
        delay=timedelta(milliseconds=200),
    ),
    Stage(
        name="pod-run",
        effect="run",
        deleting=False,
        started=True,
        phases=frozenset({"Pending"}),
        delay=timedelta(seconds=2),
        jitter=timedelta(seconds=2),
        seconds_annotation=START_SECONDS,
    ),
    Stage(
        name="pod-finish",
        effect="finish",
        deleting=False,
        finishes=True,
        phases=frozenset({"Running"}),
        delay=timedelta(),
        seconds_annotation=RUN_SECONDS,
    ),
)


def finishes(pod: Obj) -> bool:
    """Say whether *pod* is made to finish."""
    annotations = pod["metadata"].get("annotations") or {}
    return RUN_SECONDS in annotations and pod["spec"].get("restartPolicy", "Always") != "Always"


def jitter(most: timedelta, text: str) -> timedelta:
    """Answer between nothing and *most*, the same for the same *text*."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return most * int.from_bytes(digest) / 2**32


def next_stage(pod: Obj, stages: tuple[Stage, ...] = POD_STAGES) -> Stage | None:
    """Answer the first of *stages* that *pod* is at; none if nothing will happen to it by itself."""
    return next((stage for stage in stages if stage.matches(pod)), None)
