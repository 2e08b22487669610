"""What was gathered of a cluster, its account and the installation; a part that could not be seen says why."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from shared.launch.nodeclass import Found
from shared.model.cluster import Namespace
from shared.model.ec2 import Instance, LaunchTemplate, Refusal, SecurityGroup, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodepools import NodePool
from shared.model.nodes import Node, NodeClaim
from shared.settings import Settings

Manifest = Mapping[str, Any]


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """A part that could not be looked at: neither there nor gone."""

    why: str
    is_denied: bool = False
    """Somebody answered, and said no."""
    remedy: str = ""
    """Empty: the right that it takes, or another look."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The API server's first answer."""

    version: str
    seconds: float
    ahead_seconds: float | None
    """Its clock against ours; None: it told no date."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment."""

    namespace: str
    name: str
    images: tuple[str, ...]
    replicas: int


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What Joiner said of a NodePool."""

    pool: str
    message: str
    at: datetime


class Kubernetes(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster, from within."""

    where: str
    """The endpoint that was asked, or the files."""
    answer: Answer | Unseen | None
    """None: files do not answer."""
    nodes: tuple[Node, ...] | Unseen
    node_pools: tuple[NodePool, ...] | Unseen
    node_classes: tuple[EC2NodeClass, ...] | Unseen
    node_claims: tuple[NodeClaim, ...] | Unseen
    definitions: tuple[Manifest, ...] | Unseen
    workloads: tuple[Workload, ...] | Unseen
    namespaces: tuple[Namespace, ...] | Unseen
    """Of them kube-system may say what is paused."""
    is_bound: bool | Unseen
    """Whether the functions' group is given its rights."""
    notices: tuple[Notice, ...] | Unseen | None = None
    """What is held back by itself, as was said of late; None: files do not tell."""
    told: tuple[str, ...] = ()
    """Objects that could not be read."""


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """eks:DescribeCluster, as far as it matters before and after an installation."""

    status: str
    version: str
    endpoint: str
    authentication: str
    """``API``, ``API_AND_CONFIG_MAP`` or ``CONFIG_MAP``."""
    is_public: bool
    is_private: bool
    public_cidrs: tuple[str, ...]
    has_auto_mode: bool
    logs: tuple[str, ...]
    """Kinds of log that are on: ``scheduler``."""
    subnet_ids: tuple[str, ...]
    security_group_id: str


class ClassFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an EC2NodeClass comes to in the account."""

    node_class: EC2NodeClass
    """Filled with what was found."""
    found: Found
    refusals: tuple[Refusal, ...] | Unseen | None
    """What EC2 would refuse the caller; None: there is nothing to ask about."""
    snapshots: tuple[tuple[str, str, int], ...] | Unseen
    """Image, device and GiB of the snapshots that images begin with."""
    role_arn: str | Unseen
    """Of its instance profile; "" where there is no profile."""
    told: tuple[str, ...] = ()


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """What Lambda counted lately."""

    calls: int
    errors: int


class FunctionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of our Lambdas."""

    name: str
    """As ``provision``."""
    role_arn: str
    state: str
    update: str
    is_in_vpc: bool
    log_group: str
    settings: Settings | None
    called: Called | Unseen


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One of our ticks."""

    name: str
    is_enabled: bool


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One of our queues."""

    name: str
    arn: str
    waiting: int
    policy: str
    """JSON, "" if it has none."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One of our EventBridge rules."""

    name: str
    arn: str
    is_enabled: bool
    targets: tuple[str, ...]


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """The SNS topic that hears each day what nodes cost."""

    arn: str
    is_there: bool = True
    listeners: int = 0
    unconfirmed: int = 0
    """Those who have not said yes yet."""
    key: str = ""
    """That encrypts it."""


class Stack(msgspec.Struct, frozen=True, kw_only=True):
    """The installation."""

    name: str
    status: str
    since: datetime
    functions: tuple[FunctionFacts, ...] | Unseen
    schedules: tuple[Schedule, ...] | Unseen
    queues: tuple[QueueFacts, ...] | Unseen
    rules: tuple[Rule, ...] | Unseen
    catalogue: tuple[datetime | None, datetime | None] | Unseen | None
    """When the newest was made and priced; None: there is none."""
    topic: Topic | Unseen | None = None
    """None: nobody is told of costs."""

    @property
    def settings(self) -> Settings | None:
        """What the functions were told; None where none could be seen."""
        seen = self.functions if not isinstance(self.functions, Unseen) else ()
        return next((one.settings for one in seen if one.settings is not None), None)


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """A quota of vCPUs."""

    vcpus: float
    used: int | None = None
    """By everybody in the account and region, as CloudWatch counts; None: that is not known."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The AWS side."""

    region: str
    cluster: str
    caller: str | Unseen
    ahead_seconds: float | None
    """AWS's clock against ours; None: it told no date."""
    plane: ControlPlane | Unseen | None
    """None: there is no such cluster."""
    entries: tuple[str, ...] | Unseen
    """Principals with an access entry."""
    clusters: tuple[str, ...] | Unseen = ()
    """All of the region, asked only where there is none of that name."""
    classes: tuple[ClassFacts, ...]
    discovered: tuple[tuple[Subnet, ...], tuple[SecurityGroup, ...]] | Unseen
    """What has the usual tag."""
    instances: tuple[Instance, ...] | Unseen
    templates: tuple[LaunchTemplate, ...] | Unseen
    quotas: Mapping[str, Allowed | Unseen]
    """What may run, by the quota's name, as ``standard spot``."""
    stack: Stack | Unseen | None
    """None: there is none of that name."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All of it; what nobody asked for is None."""

    now: datetime
    kubernetes: Kubernetes | None
    account: Account | None
    shipped: tuple[Manifest, ...]
    """Our definitions."""

    @property
    def is_installed(self) -> bool | None:
        """Whether there is an installation; None: that is not known."""
        if self.account is None or isinstance(self.account.stack, Unseen):
            return None
        return self.account.stack is not None

    @property
    def stack(self) -> Stack | None:
        """The installation, if it was seen."""
        return self.account.stack if self.account is not None and isinstance(self.account.stack, Stack) else None

    @property
    def plane(self) -> ControlPlane | None:
        """The control plane, if it was seen."""
        if self.account is None or not isinstance(self.account.plane, ControlPlane):
            return None
        return self.account.plane
