"""Facts about a cluster, its account and the installation; a part that could not be read has a `ReadFailure`."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.decide.gangs.waiting_gangs import WaitingGang
from shared.model.cloud_provider.cluster_group import GroupUsage
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.ec2.account import SecurityGroup, Subnet
from shared.model.ec2.dry_run import DryRunRefusal
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.workloads import Namespace
from shared.settings import Settings

Manifest = Mapping[str, Any]


class ReadFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a part could not be read: whether the part exists is unknown."""

    reason: str
    is_denied: bool = False
    """The request was answered, and denied."""
    fix: str = ""
    """Empty: the missing permission, or a retry."""


class ApiServerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The API server's first response."""

    version: str
    seconds: float
    clock_offset_seconds: float | None
    """The API server's clock minus the local one; None if the response had no date."""


class DeploymentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment."""

    namespace: str
    name: str
    images: tuple[str, ...]
    replicas: int


class NodePoolEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of Joiner about a NodePool."""

    pool: str
    message: str
    at: datetime


class KubernetesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from the Kubernetes API."""

    source: str
    """The endpoint, or the files, that the facts were read from."""
    response: ApiServerResponse | ReadFailure | None
    """None for files, which have no API server."""
    nodes: tuple[Node, ...] | ReadFailure
    node_pools: tuple[NodePool, ...] | ReadFailure
    node_classes: tuple[EC2NodeClass, ...] | ReadFailure
    node_claims: tuple[NodeClaim, ...] | ReadFailure
    crds: tuple[Manifest, ...] | ReadFailure
    deployments: tuple[DeploymentFacts, ...] | ReadFailure
    namespaces: tuple[Namespace, ...] | ReadFailure
    """With kube-system, on which a pause of the whole cluster may be annotated."""
    has_role_binding: bool | ReadFailure
    """Whether the functions' group is bound to its ClusterRole."""
    missing_permissions: tuple[str, ...] | ReadFailure = ()
    """What the live ClusterRole does not grant although the functions need it, as ``get on pods``."""
    missing_feature_permissions: Mapping[str, tuple[str, ...]] | ReadFailure = {}
    """The same for each optional feature, by the field of its setting: what it needs if it is on."""
    pause_events: tuple[NodePoolEvent, ...] | ReadFailure | None = None
    """Recent events about what Joiner itself holds back; None for files, which have no events."""
    read_errors: tuple[str, ...] = ()
    """Objects that could not be parsed."""
    waiting_gangs: tuple[WaitingGang, ...] | ReadFailure | None = None
    """Gangs that wait for nodes; None if the setting gangs is off, and for files."""


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """The response of eks:DescribeCluster, as far as it matters before and after an installation."""

    status: str
    version: str
    endpoint: str
    authentication_mode: str
    """``API``, ``API_AND_CONFIG_MAP`` or ``CONFIG_MAP``."""
    is_public: bool
    is_private: bool
    public_cidrs: tuple[str, ...]
    has_auto_mode: bool
    log_types: tuple[str, ...]
    """Enabled control plane log types, for example ``scheduler``."""
    subnet_ids: tuple[str, ...]
    security_group_id: str
    vpc_id: str = ""
    ip_family: str = "ipv4"
    """Of pods and services: ``ipv4`` or ``ipv6``."""


class NodeClassFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an EC2NodeClass resolves to in the account."""

    node_class: EC2NodeClass
    """Its status is filled from *answers*."""
    answers: NodeClassAnswers
    refusals: tuple[DryRunRefusal, ...] | ReadFailure | None
    """Errors that EC2 returns to the caller's dry run; None if there is nothing to launch with."""
    snapshots: tuple[tuple[str, str, int], ...] | ReadFailure
    """Image, device and GiB of the snapshots of its images."""
    role_arn: str | ReadFailure
    """The role of its instance profile; empty if there is no profile."""
    errors: tuple[str, ...] = ()


class InvocationCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Lambda's recent invocations and errors."""

    invocations: int
    errors: int


class FunctionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of Joiner's Lambda functions."""

    name: str
    """Its short name, for example ``provision``."""
    role_arn: str
    state: str
    last_update_status: str
    is_in_vpc: bool
    log_group: str
    settings: Settings | None
    invocation_counts: InvocationCounts | ReadFailure


class ScheduleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of Joiner's EventBridge schedules."""

    name: str
    is_enabled: bool


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of Joiner's SQS queues."""

    name: str
    arn: str
    message_count: int
    policy: str
    """JSON; empty if the queue has no policy."""


class EventRule(msgspec.Struct, frozen=True, kw_only=True):
    """One of Joiner's EventBridge rules."""

    name: str
    arn: str
    is_enabled: bool
    target_arns: tuple[str, ...]


class TopicFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The SNS topic of the daily cost notification."""

    arn: str
    exists: bool = True
    confirmed_subscriptions: int = 0
    pending_subscriptions: int = 0
    """Subscriptions that are not confirmed yet."""
    kms_key: str = ""
    """The KMS key that encrypts the topic."""


class StackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The installation."""

    name: str
    status: str
    created_at: datetime
    functions: tuple[FunctionFacts, ...] | ReadFailure
    schedules: tuple[ScheduleFacts, ...] | ReadFailure
    queues: tuple[QueueFacts, ...] | ReadFailure
    rules: tuple[EventRule, ...] | ReadFailure
    catalog_times: tuple[datetime | None, datetime | None] | ReadFailure | None
    """When the newest catalog was built, and when it was priced; None if there is no catalog."""
    topic: TopicFacts | ReadFailure | None = None
    """None if no topic is configured, so that no cost notification is sent."""
    zonal_shifts: tuple[ZonalShift, ...] | ReadFailure | None = None
    """The shifts that ARC applies; None: zonal shift is not enabled for the cluster, or the setting is off."""
    group_usage: GroupUsage | None = None
    """What the clusters of its group use; None without a group."""

    @property
    def settings(self) -> Settings | None:
        """Settings of the functions; None if none could be read."""
        functions = self.functions if not isinstance(self.functions, ReadFailure) else ()
        return next((function.settings for function in functions if function.settings is not None), None)


class QuotaUsage(msgspec.Struct, frozen=True, kw_only=True):
    """A vCPU quota and its current use."""

    vcpus: float
    used: int | None = None
    """By all in the account and region, as counted by CloudWatch; None if unknown."""


class RolePermissions(msgspec.Struct, frozen=True, kw_only=True):
    """What IAM's policy simulator says about roles that nodes and their volumes depend on."""

    default_key: str = ""
    """ARN of the customer-managed key that encrypts new EBS volumes; empty: there is none, or AWS manages the key."""
    denied_key_actions: tuple[str, ...] = ()
    """What the role of `provision` may not do with the key; empty if there is no installation."""
    roles_without_ipv6: tuple[str, ...] = ()
    """On IPv6 clusters: the node roles that may not assign IPv6 addresses."""


class AccountFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts from AWS."""

    region: str
    cluster: str
    caller: str | ReadFailure
    clock_offset_seconds: float | None
    """The AWS clock minus the local one; None if the response had no date."""
    control_plane: ControlPlane | ReadFailure | None
    """None if there is no such cluster."""
    access_entries: tuple[str, ...] | ReadFailure
    """ARNs of the principals with an access entry."""
    cluster_names: tuple[str, ...] | ReadFailure = ()
    """All clusters of the region; read only if there is no cluster with the given name."""
    node_classes: tuple[NodeClassFacts, ...]
    discoverable: tuple[tuple[Subnet, ...], tuple[SecurityGroup, ...]] | ReadFailure
    """Subnets and security groups with the usual discovery tag."""
    instances: tuple[Instance, ...] | ReadFailure
    launch_templates: tuple[LaunchTemplate, ...] | ReadFailure
    quotas: Mapping[str, QuotaUsage | ReadFailure]
    """By the quota's name, for example ``standard spot``."""
    stack: StackFacts | ReadFailure | None
    """None if there is no stack with the given name."""
    role_permissions: RolePermissions | ReadFailure = RolePermissions()


class DoctorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts; None for a part that was not requested."""

    now: datetime
    kubernetes: KubernetesFacts | None
    account: AccountFacts | None
    shipped_crds: tuple[Manifest, ...]
    """Joiner's own CRDs."""

    @property
    def is_installed(self) -> bool | None:
        """Whether there is an installation; None if unknown."""
        if self.account is None or isinstance(self.account.stack, ReadFailure):
            return None
        return self.account.stack is not None

    @property
    def stack(self) -> StackFacts | None:
        """The installation, if it could be read."""
        return self.account.stack if self.account is not None and isinstance(self.account.stack, StackFacts) else None

    @property
    def control_plane(self) -> ControlPlane | None:
        """The control plane, if it could be read."""
        if self.account is None or not isinstance(self.account.control_plane, ControlPlane):
            return None
        return self.account.control_plane


INVOCATION_WINDOW: Final = timedelta(minutes=15)
"""The period of the functions' invocations that is checked."""
