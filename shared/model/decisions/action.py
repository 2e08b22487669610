"""The closed set of actions (effects as values); dry run, journal, simulator and tests read the same tuple.

Each action is idempotent: a cycle that was killed between two actions can be repeated. A *resource_version* is a
precondition; if it does not hold, nothing is done and the next cycle decides again. *message* is for people.
"""

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.offering_history import OfferingEvent
from shared.model.core.metadata import OwnerReference, Pairs
from shared.model.core.taints import Taint
from shared.model.ec2.types import Tags
from shared.model.karpenter.node_claim import NodeClaim

Function: TypeAlias = Literal["provision", "lifecycle", "disrupt", "interrupt", "catalog", "watch"]
Kind: TypeAlias = Literal[
    "Node", "NodeClaim", "NodePool", "EC2NodeClass", "NodeOverlay", "CapacityBuffer", "ProvisioningRequest"
]


class CreateNodeClaim(msgspec.Struct, frozen=True, kw_only=True, tag="CreateNodeClaim", tag_field="action"):
    """Create a NodeClaim; its name is derived from the decision, so the same decision creates the same NodeClaim."""

    claim: NodeClaim
    pods: tuple[str, ...] = ()
    """The pods it is launched for, as ``shop/cart``, sorted."""
    message: str = msgspec.field(default="", name="why")


class LaunchInstances(msgspec.Struct, frozen=True, kw_only=True, tag="LaunchInstances", tag_field="action"):
    """Launch a group of equal NodeClaims with one CreateFleet.

    The group is recorded first, then sent, then the result is written to the NodeClaims.
    """

    group: LaunchGroup
    message: str = msgspec.field(default="", name="why")


class TerminateInstances(msgspec.Struct, frozen=True, kw_only=True, tag="TerminateInstances", tag_field="action"):
    """Terminate instances; ids are sorted."""

    instance_ids: tuple[str, ...]
    message: str = msgspec.field(name="why")


class TagInstance(msgspec.Struct, frozen=True, kw_only=True, tag="TagInstance", tag_field="action"):
    """Add tags to an instance."""

    instance_id: str
    tags: Tags
    message: str = msgspec.field(default="", name="why")


class DeleteLaunchTemplate(msgspec.Struct, frozen=True, kw_only=True, tag="DeleteLaunchTemplate", tag_field="action"):
    """Delete an unused launch template."""

    name: str
    message: str = msgspec.field(default="", name="why")


class MarkUnavailable(msgspec.Struct, frozen=True, kw_only=True, tag="MarkUnavailable", tag_field="action"):
    """Record that EC2 refused an offering."""

    offering: UnavailableOffering
    message: str = msgspec.field(default="", name="why")


class RecordOfferingEvents(msgspec.Struct, frozen=True, kw_only=True, tag="RecordOfferingEvents", tag_field="action"):
    """Add interruptions, rebalance recommendations or capacity errors to the history of offerings."""

    events: tuple[OfferingEvent, ...]
    message: str = msgspec.field(default="", name="why")


class PatchMetadata(msgspec.Struct, frozen=True, kw_only=True, tag="PatchMetadata", tag_field="action"):
    """Set labels, annotations and (unless None) the complete list of finalizers or owners of an object."""

    kind: Kind
    name: str
    resource_version: str = ""
    labels: Pairs = ()
    annotations: Pairs = ()
    removed_labels: tuple[str, ...] = msgspec.field(default=(), name="unlabelled")
    """Keys of the labels to remove."""
    finalizers: tuple[str, ...] | None = None
    owners: tuple[OwnerReference, ...] | None = None
    message: str = msgspec.field(default="", name="why")


class PatchStatus(msgspec.Struct, frozen=True, kw_only=True, tag="PatchStatus", tag_field="action"):
    """Merge-patch the status of an object."""

    kind: Kind
    name: str
    namespace: str = ""
    resource_version: str = ""
    status: str
    """JSON, as in the object: ``{"nodeName": …, "conditions": […]}``."""
    message: str = msgspec.field(default="", name="why")


class TaintNode(msgspec.Struct, frozen=True, kw_only=True, tag="TaintNode", tag_field="action"):
    """Replace the taints of a Node, and set labels and annotations with the same patch."""

    name: str
    resource_version: str
    taints: tuple[Taint, ...]
    labels: Pairs = ()
    annotations: Pairs = ()
    message: str = msgspec.field(default="", name="why")


class NominatePod(msgspec.Struct, frozen=True, kw_only=True, tag="NominatePod", tag_field="action"):
    """Nominate a node for this very pod: a hint to kube-scheduler that keeps other pods from taking its place."""

    namespace: str
    name: str
    uid: str
    node: str
    """The name of the Node, which may not exist yet."""
    message: str = msgspec.field(default="", name="why")


class RegisterNode(msgspec.Struct, frozen=True, kw_only=True, tag="RegisterNode", tag_field="action"):
    """Apply a NodeClaim's metadata to its Node in one patch: all taints, labels, annotations, finalizers and owners."""

    name: str
    resource_version: str
    taints: tuple[Taint, ...]
    labels: Pairs
    annotations: Pairs
    finalizers: tuple[str, ...]
    owners: tuple[OwnerReference, ...]
    nominations: tuple[NominatePod, ...] = msgspec.field(default=(), name="hints")
    """Nominations of the pods that the node was launched for, the most important last; made before the registration."""
    observed_taints: tuple[Taint, ...] = msgspec.field(default=(), name="seen")
    """The Node's taints at the time of the decision; only the difference is applied to a newer version of the Node."""
    message: str = msgspec.field(default="", name="why")


class EvictPod(msgspec.Struct, frozen=True, kw_only=True, tag="EvictPod", tag_field="action"):
    """Evict a pod with the eviction API; a PodDisruptionBudget may refuse it."""

    namespace: str
    name: str
    uid: str
    node: str
    message: str = msgspec.field(default="", name="why")


class SetDeletionCost(msgspec.Struct, frozen=True, kw_only=True, tag="SetDeletionCost", tag_field="action"):
    """Set the deletion cost of a pod, and mark it as Joiner's; or remove both.

    The ReplicaSet controller deletes pods with the lowest deletion cost first when it scales down.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    node: str
    cost: int | None
    """None: remove it."""
    message: str = msgspec.field(default="", name="why")


class RestartDeployment(msgspec.Struct, frozen=True, kw_only=True, tag="RestartDeployment", tag_field="action"):
    """Roll out a Deployment again, by an annotation of its pod template; the same *restart* has an effect only once."""

    namespace: str
    name: str
    resource_version: str
    restart: str
    """The value of the annotation joiner.dev/surge-drain-restart."""
    message: str = msgspec.field(default="", name="why")


SCALING_SUFFIX: Final = " scaling"
"""The end of the annotation of a workload that is not scaled yet."""


class ScaleWorkload(msgspec.Struct, frozen=True, kw_only=True, tag="ScaleWorkload", tag_field="action"):
    """Scale a workload, by its scale subresource, and remember why in the annotation joiner.dev/scheduled-scale.

    The annotation is written before the workload is scaled, with `SCALING_SUFFIX` until it is scaled, and removed after
    it is scaled back.
    """

    kind: str
    """Deployment or StatefulSet."""
    namespace: str
    name: str
    resource_version: str
    replicas: int | None
    """None: keep them."""
    memory: str | None
    """The annotation; None: remove it."""
    message: str = msgspec.field(default="", name="why")


class DeletePod(msgspec.Struct, frozen=True, kw_only=True, tag="DeletePod", tag_field="action"):
    """Delete a pod at the end of its node's termination grace period, regardless of any PodDisruptionBudget.

    The pod gets the remaining time as its grace period.
    """

    namespace: str
    name: str
    uid: str
    node: str
    grace_seconds: int
    message: str = msgspec.field(default="", name="why")


class DeleteObject(msgspec.Struct, frozen=True, kw_only=True, tag="DeleteObject", tag_field="action"):
    """Delete a Node or a NodeClaim; its finalizers keep it until the termination is complete."""

    kind: Kind
    name: str
    uid: str = ""
    message: str = msgspec.field(name="why")


class PublishEvent(msgspec.Struct, frozen=True, kw_only=True, tag="PublishEvent", tag_field="action"):
    """Publish an event, for `kubectl describe`; the same event, repeated too soon, is dropped."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    type: Literal["Normal", "Warning"] = "Normal"
    reason: str
    message: str
    at: datetime


MAX_FOLLOW_UP_DELAY: Final = timedelta(minutes=15)
"""The longest delay that SQS supports; a message that arrives early is harmless: its run finds no changes yet."""


class FollowUp(msgspec.Struct, frozen=True, kw_only=True, tag="FollowUp", tag_field="action"):
    """Requeue a function before its next schedule."""

    function: Function
    after: timedelta
    message: str = msgspec.field(default="", name="why")


Action: TypeAlias = (
    CreateNodeClaim
    | LaunchInstances
    | TerminateInstances
    | TagInstance
    | DeleteLaunchTemplate
    | MarkUnavailable
    | RecordOfferingEvents
    | PatchMetadata
    | PatchStatus
    | TaintNode
    | RegisterNode
    | EvictPod
    | NominatePod
    | SetDeletionCost
    | RestartDeployment
    | ScaleWorkload
    | DeletePod
    | DeleteObject
    | PublishEvent
    | FollowUp
)


NO_CLAIM_MESSAGE: Final = "it has no NodeClaim"


LAUNCH_REFUSED_PREFIX: Final = "instances could not be launched"
"""Prefix of a NodePool's event where EC2 refuses for another reason than missing capacity."""
