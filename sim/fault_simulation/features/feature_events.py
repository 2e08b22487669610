"""Events that only scripts with optional features have: user actions, and faults of what the features use."""

from typing import Literal, TypeAlias

import msgspec

from sim.fault_simulation.features.event import Event

ImageDefect = Literal["dead", "restarts"]
"""`dead`: its nodes never register; `restarts`: the containers on its nodes restart again and again."""


class Gang(Event, frozen=True, kw_only=True, tag="gang"):
    """A user starts a gang of *size* pods: a Deployment, or a Job whose pods run for *seconds*."""

    name: str
    size: int
    seconds: int = 0
    """0: a Deployment."""
    is_in_one_zone: bool = msgspec.field(default=False, name="one_zone")


class PartialCapacity(Event, frozen=True, kw_only=True, tag="partial-capacity"):
    """EC2 launches *free* more on-demand m5.xlarge instances in *zone*, and no other instances.

    This is no fault that excuses a violation: nodes of gangs are returned in the meantime.
    """

    zone: str
    free: int


class Request(Event, frozen=True, kw_only=True, tag="request"):
    """A user creates a ProvisioningRequest for *pods* pods; a Job uses its capacity at the end of the event."""

    name: str
    pods: int
    is_used_early: bool = msgspec.field(default=False, name="early")
    """Whether the Job starts although the request is not provisioned yet; Kueue waits."""


class DeviceJob(Event, frozen=True, kw_only=True, tag="device-job"):
    """A user starts a Deployment whose *pods* pods each claim a device."""

    name: str
    pods: int


class BadRelease(Event, frozen=True, kw_only=True, tag="bad-release"):
    """AWS publishes AMIs with a defect; the next release does not have it."""

    defect: ImageDefect


class OtherCluster(Event, frozen=True, kw_only=True, tag="other-cluster"):
    """Another cluster of the group uses *share* of its limit from now on, or what is left of it."""

    share: float


class RefusedEvents(Event, frozen=True, kw_only=True, tag="refused-events"):
    """EventBridge refuses a *ratio* of the entries of each request, and accepts the others."""

    ratio: float = msgspec.field(name="share")


FeatureAction: TypeAlias = Gang | Request | DeviceJob | OtherCluster | PartialCapacity
FeatureFault: TypeAlias = BadRelease | RefusedEvents
