"""Events of a script: user actions and faults; see `sim.fault_simulation.features.event`."""

from typing import Final, Literal, TypeAlias

import msgspec

from sim.cloud.ec2.instance import StatusCheck
from sim.fault_simulation.features.event import Event
from sim.fault_simulation.features.feature_events import (
    BadRelease,
    DeviceJob,
    FeatureAction,
    FeatureFault,
    Gang,
    OtherCluster,
    PartialCapacity,
    Request,
)

FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "interrupt", "catalog")
"""The functions of the stack; `interrupt` is invoked only by messages."""
When = Literal["before", "after"]
Port = Literal["kube", "ec2", "table", "bucket", "mailbox", "group_table", "event_bus"]
FailureKind = Literal["conflict", "expired", "throttled", "unreachable", "lost", "refused"]
InstanceFaultKind = Literal["die", "stop", "terminate", "spot", "rebalance", "maintenance", "called-off", "reservation"]
"""`maintenance` is announced; with `called-off` it is canceled at the end of the event."""
ErasableResource = Literal["nodes", "nodeclaims.karpenter.sh"]
MessageKind = Literal["unreadable", "unknown", "foreign", "gone", "again"]
"""`again`: an earlier message is delivered once more."""


class Scale(Event, frozen=True, kw_only=True, tag="scale"):
    """A user scales a Deployment or a StatefulSet."""

    name: str
    replicas: int


class Recreate(Event, frozen=True, kw_only=True, tag="recreate"):
    """A user deletes the pods of a Deployment; its controller creates new ones."""

    name: str


class Drift(Event, frozen=True, kw_only=True, tag="drift"):
    """A user changes the NodePool template, so that all or some of its nodes drift."""

    release: str
    excluded_type: str = msgspec.field(default="", name="without")
    """An instance type that the NodePool no longer allows."""


class Retag(Event, frozen=True, kw_only=True, tag="retag"):
    """A user changes the tags of the EC2NodeClass, so that all of its nodes drift."""

    owner: str


class Release(Event, frozen=True, kw_only=True, tag="release"):
    """AWS publishes new AMIs; nodes with the old ones drift."""


class Batch(Event, frozen=True, kw_only=True, tag="batch"):
    """A user starts a Job; *seconds* is the run time of its pods."""

    name: str
    pods: int
    seconds: int


class Restaff(Event, frozen=True, kw_only=True, tag="restaff"):
    """A user scales the static NodePool."""

    replicas: int


class Remove(Event, frozen=True, kw_only=True, tag="remove"):
    """A user deletes the second NodePool, and applies it again at the end; *with_node_class*: its EC2NodeClass too."""

    with_node_class: bool = msgspec.field(name="whole")


class Erase(Event, frozen=True, kw_only=True, tag="erase"):
    """A user deletes a Node or a NodeClaim; *position* in [0, 1) selects it among all of them."""

    resource: ErasableResource = msgspec.field(name="what")
    position: float = msgspec.field(name="which")


class Kill(Event, frozen=True, kw_only=True, tag="kill"):
    """Kill *function* at its *nth* call from now on; if *site* is not empty, only calls at this site count."""

    function: str
    nth: int
    when: When
    site: str = ""


class Pause(Event, frozen=True, kw_only=True, tag="pause"):
    """Pause *function* before or after its *nth* call (at *site*) for *lasts* seconds; only this invocation is paused.

    *overtaker*: a function that is invoked at the start of the pause, without knowledge of the paused invocation.
    """

    function: str
    nth: int
    when: When
    site: str = ""
    overtaker: str = ""


class Repeat(Event, frozen=True, kw_only=True, tag="repeat"):
    """A function is invoked *times* times in a row, as at-least-once delivery allows."""

    function: str
    times: int


class Messages(Event, frozen=True, kw_only=True, tag="messages"):
    """Ratios of the messages are lost or duplicated; the others are late by up to *max_delay_seconds*, out of order."""

    lost_ratio: float = msgspec.field(name="lost")
    duplicated_ratio: float = msgspec.field(name="doubled")
    max_delay_seconds: int = msgspec.field(name="late")


class CallFailure(Event, frozen=True, kw_only=True, tag="trouble"):
    """A *ratio* of the calls of a port fails. "lost": the call takes effect, but its response is lost."""

    port: Port
    fault: FailureKind
    ratio: float = msgspec.field(name="share")
    method: str = ""
    """Empty: all methods."""
    function: str = ""
    """The function that makes the calls; empty: all functions."""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """The interruption queue receives a message that is invalid, foreign, late or a duplicate."""

    shape: MessageKind
    position: float = msgspec.field(name="which")
    """In [0, 1): selects among the possible messages or instances."""


class Stale(Event, frozen=True, kw_only=True, tag="stale"):
    """Lists of the API server show a state that is up to *max_age_seconds* old."""

    max_age_seconds: int = msgspec.field(name="behind")


class Shortage(Event, frozen=True, kw_only=True, tag="shortage"):
    """EC2 has insufficient capacity for an instance type (empty: all types) in a zone (empty: all zones)."""

    instance_type: str
    zone: str
    capacity_type: Literal["", "on-demand", "spot"]


class Lag(Event, frozen=True, kw_only=True, tag="lag"):
    """DescribeInstances does not show an instance for *seconds* after its launch."""

    seconds: int


class DeadBoot(Event, frozen=True, kw_only=True, tag="dead-boot"):
    """Instances of a type that are launched during the event run, but never register."""

    instance_type: str


class Doom(Event, frozen=True, kw_only=True, tag="doom"):
    """One running instance is affected; *position* in [0, 1) selects it."""

    cause: InstanceFaultKind = msgspec.field(name="how")
    position: float = msgspec.field(name="which")


class Flap(Event, frozen=True, kw_only=True, tag="flap"):
    """The kubelet of a node hangs, and resumes at the end."""

    position: float = msgspec.field(name="which")


class Impair(Event, frozen=True, kw_only=True, tag="impair"):
    """A status check of an instance fails during the event; its kubelet is not affected."""

    status_check: StatusCheck = msgspec.field(name="of")
    position: float = msgspec.field(name="which")


class SlowDetach(Event, frozen=True, kw_only=True, tag="slow-detach"):
    """Detaching a volume takes *seconds*."""

    seconds: int


class ZoneDown(Event, frozen=True, kw_only=True, tag="zone-down"):
    """All instances of a zone are terminated, and the zone has no capacity during the event."""

    zone: str


class ZonalShiftStart(Event, frozen=True, kw_only=True, tag="zonal-shift"):
    """A user starts a zonal shift of the cluster away from a zone, and cancels it at the end of the event."""

    zone: str


class Skew(Event, frozen=True, kw_only=True, tag="skew"):
    """The clock of *function* is *seconds* ahead of the others."""

    function: str
    seconds: int


UserAction: TypeAlias = Batch | Drift | Erase | Recreate | Release | Remove | Restaff | Retag | Scale
FunctionFault: TypeAlias = Kill | Messages | Pause | Repeat | Skew | Stale | CallFailure
InfrastructureFault: TypeAlias = (
    DeadBoot | Doom | Flap | Impair | Lag | Notice | Shortage | SlowDetach | ZonalShiftStart | ZoneDown
)
AnyEvent: TypeAlias = UserAction | FunctionFault | InfrastructureFault | FeatureAction | FeatureFault
USER_ACTION_TYPES: Final = (
    *(Scale, Recreate, Drift, Retag, Release, Batch, Restaff),
    *(Gang, Request, DeviceJob, OtherCluster, PartialCapacity),
)
"""Normal user actions, which excuse no violation."""


def format_event_kind(event: AnyEvent) -> str:
    """Return the kind of an event for counting: ``Doom spot``, ``CallFailure kube lost``."""
    words = [type(event).__name__]
    match event:
        case Doom():
            words += [event.cause]
        case CallFailure():
            words += [event.port, event.fault]
        case Notice():
            words += [event.shape]
        case Kill() | Pause():
            words += [event.when]
        case Impair():
            words += [event.status_check]
        case BadRelease():
            words += [event.defect]
        case Erase():
            words += [event.resource.partition(".")[0]]
        case _:
            pass
    return " ".join(words)
