"""The details of the events on the event bus: one struct for each detail-type.

The JSON schemas in `docs/reference/event-schemas/` are generated from these structs. Consumers depend on them: a
field is never removed or given another meaning; new fields have a default.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

EVENT_SOURCE: Final = "joiner"
"""The source of all events; the permission of the functions is restricted to it."""
MAX_NAMES: Final = 20
"""Names in a list of a detail; the count beside the list is complete."""
MAX_MESSAGE_CHARS: Final = 1024

DisruptionPhase: TypeAlias = Literal["Draining", "Done", "RolledBack"]
Names: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_NAMES)]
Message: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_CHARS)]
EventId: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class EventDetail(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields that every detail has."""

    id: EventId
    """Identifies what happened. If an event is delivered twice, both deliveries have the same id."""
    key: EventId
    """The same for all events of one detail-type about the same subject: the NodeClaim, NodePool or EC2NodeClass, the
    command of a disruption, the rejected image, the namespace and the reason of blocked pods, or for limits the
    cluster. Use it to group alerts."""
    cluster: str
    """Name of the EKS cluster."""
    function: str
    """The function of Joiner that reports the event."""
    journal_key: str
    """Key of the journal entry in the bucket of the stack, with all details of the decision."""


class NodeLaunched(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """EC2 has launched the instance of a NodeClaim. The node is not registered yet."""

    node_claim: str
    """Name of the NodeClaim."""
    node_pool: str
    """Name of its NodePool."""
    instance_type: str
    """EC2 instance type."""
    zone: str
    """Availability zone."""
    capacity_type: str
    """`spot`, `on-demand` or `reserved`."""
    usd_per_hour: float
    """Price of the instance in USD per hour; 0 if the price is not known."""


class NodeInterrupted(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """AWS has announced an interruption, a stop or a termination of the instance of a node, or a risk of it."""

    node_claim: str
    """Name of the NodeClaim."""
    node: str
    """Name of the Node; empty if the node is not registered."""
    reason: str
    """Reason of the event on the NodeClaim, such as `SpotInterrupted`."""
    message: Message
    """The same in words."""


class NodeDisrupted(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """A voluntary disruption drains its nodes, has removed them, or was rolled back."""

    command: str
    """Id of the disruption command; `joiner explain command` explains it."""
    phase: DisruptionPhase
    """`Draining`: pods are evicted. `Done`: the nodes are terminated. `RolledBack`: the nodes are kept."""
    reason: str
    """`Underutilized`, `Empty` or `Drifted`."""
    nodes: Names
    """Names of the first 20 disrupted nodes."""
    node_count: int
    """Number of disrupted nodes."""
    replacements: Names
    """Names of the first 20 NodeClaims that replace the nodes."""
    savings_usd_per_hour: float
    """Expected savings in USD per hour; 0 or less if the disruption does not save money."""
    message: Message
    """The decision in words."""


class PodsBlocked(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """Pods of one namespace cannot be scheduled, and Joiner cannot launch a node for them, all for the same reason.

    Pods that Joiner ignores, and pods whose gang is incomplete, are not blocked.
    """

    namespace: str
    """Namespace of the pods."""
    pods: Names
    """Names of the first 20 pods, without the namespace."""
    pod_count: int
    """Number of pods."""
    reason: str
    """The reason as one word, such as `NoInstanceTypeFits`, `RequirementsNotMet` or `LimitExceeded`."""
    message: Message
    """The message of the event `FailedScheduling` on the first pod."""


class LaunchBreakerOpened(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """The launch circuit breaker delays launches of a NodePool."""

    node_pool: str
    """Name of the NodePool."""
    message: Message
    """The limit that is reached, and until when launches are delayed."""


class LimitReached(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """Pods get no node because of a limit: of a NodePool, of the cluster or group in USD per hour, or a budget."""

    pods: Names
    """Names of the first 20 pods, as `NAMESPACE/NAME`."""
    pod_count: int
    """Number of pods that get no node."""
    message: Message
    """The message of the event `FailedScheduling` on the first pod: it names the limit and how to raise it."""


class ImageRejected(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """A canary has rejected a new image, or a new launch configuration, of an EC2NodeClass."""

    node_class: str
    """Name of the EC2NodeClass."""
    image: str
    """Id of the image; empty if a launch configuration is rejected."""
    launch_configuration: str
    """Hash of the launch configuration, such as changed user data; empty if an image is rejected."""
    message: Message
    """The reason, what happens next, and how to override it."""


class LaunchesPaused(EventDetail, frozen=True, kw_only=True, rename="camel"):
    """Joiner launches only one node at a time for an EC2NodeClass, because its nodes do not register."""

    node_class: str
    """Name of the EC2NodeClass."""
    message: Message
    """How many nodes did not register, when the next node is launched as a test, and how to resume now."""


DETAIL_TYPES: Final[Mapping[str, type[EventDetail]]] = MappingProxyType(
    {
        "Node Launched": NodeLaunched,
        "Node Interrupted": NodeInterrupted,
        "Node Disrupted": NodeDisrupted,
        "Pods Blocked": PodsBlocked,
        "Launch Breaker Opened": LaunchBreakerOpened,
        "Limit Reached": LimitReached,
        "Image Rejected": ImageRejected,
        "Launches Paused": LaunchesPaused,
    }
)
"""The structs of the details, by detail-type."""
DETAIL_TYPE_NAMES: Final[Mapping[type[EventDetail], str]] = MappingProxyType(
    {struct: name for name, struct in DETAIL_TYPES.items()}
)
