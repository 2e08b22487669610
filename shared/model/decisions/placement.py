"""Input options and result types of the scheduler; all collections are sorted."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import NONE, Resources
from shared.model.karpenter.money_limit import NO_CLUSTER_LIMIT, MoneyPolicy

MAX_INSTANCE_TYPES = 600
Usd: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1e6)]

UnschedulableReason: TypeAlias = Literal[
    "InvalidPod",
    "OptedOut",
    "ResourceClaimsIgnored",
    "ResourceClaimNotUsable",
    "VolumeNotUsable",
    "NoNodePool",
    "TaintNotTolerated",
    "RequirementsNotMet",
    "NoInstanceTypeFits",
    "NoOffering",
    "NoDeviceFits",
    "MinValuesNotMet",
    "LimitExceeded",
    "TopologyNotSatisfied",
    "GangIncomplete",
    "GangNotPlaced",
    "NotReached",
]
"""Why a pod is unschedulable, from errors in the pod itself to the reason that is closest to success.

GangIncomplete: its gang waits, for missing pods or for a Capacity Block. GangNotPlaced: pods of its gang do not fit.

NotReached: the time limit was reached before the pod was tried. The pod itself is valid.
"""


class SchedulingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Scheduling settings, with Karpenter's names and defaults."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    readiness: Literal["Required", "Assumed"] = "Required"
    """Assumed: a NodePool is used even if its node class is missing or not ready (planning from files)."""
    max_instance_types: int = MAX_INSTANCE_TYPES
    packing: Literal["Priced", "Greedy"] = "Priced"
    """Greedy: the first plan that is found, regardless of its cost."""
    node_cost_usd_per_hour: Usd = 0.0
    """Additional cost of each node that is neither instance nor volume cost, such as the license of an agent."""
    volume_usd_per_gib_month: Usd = 0.08
    """Price of the volumes that the node class maps: gp3."""
    money: MoneyPolicy = NO_CLUSTER_LIMIT
    """The limit of the cluster in USD per hour, and the prices that count against such limits."""
    priority_under_limits: bool = False
    """Whether pods of higher priority are placed first if limits or capacity are short."""
    pod_nominations: Literal["Enabled", "Disabled"] = "Enabled"
    """Whether pods get nominated node names. Disabled: plans that work without them are preferred."""


class CheapestOffering(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The cheapest offering of a new node."""

    instance_type: str
    zone: str
    capacity_type: str
    price_usd_per_hour: float
    reservation_id: str = ""
    """Id of the capacity reservation that the offering uses; "" if none."""
    interruption_usd_per_hour: float = 0.0
    """The part of the price that is the expected cost of interruptions."""
    commitments: tuple[str, ...] = ()
    """Ids of the Savings Plans and Reserved Instances that pay for the node, in the order of AWS."""
    list_usd_per_hour: float = 0.0
    """On-demand price, if commitments pay; *price_usd_per_hour* is what the node adds to the bill then."""

    @property
    def full_usd_per_hour(self) -> float:
        """The price without commitments."""
        return self.list_usd_per_hour if self.commitments else self.price_usd_per_hour


class NewNodeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A node to launch: each of *instance_types*, in each offering that *requirements* allow, holds its pods."""

    name: str
    """Name of the future NodeClaim; the same decision has the same name."""
    node_pool: str
    requirements: Requirements = ANYTHING
    """All requirements, minValues included, except the names of the instance types."""
    instance_types: tuple[str, ...] = ()
    """Cheapest first."""
    pods: tuple[str, ...] = ()
    """As ``shop/cart``, sorted."""
    requests: Resources = NONE
    """Requests of the pods, plus the smallest daemon overhead of any of the types."""
    daemon_pods: int = 0
    cheapest: CheapestOffering
    min_values_relaxed: bool = False


class ExistingNodePlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, sorted, that fit on an existing or in-flight node."""

    node: str
    pods: tuple[str, ...]


class Unschedulable(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that cannot be scheduled; *message* has the reason and the fix for each NodePool, in order of weight."""

    pod: str
    reason: UnschedulableReason
    message: str
    cause: UnschedulableReason | None = None
    """Of GangNotPlaced: the reason of the pod that *message* names first."""


class PoolWithoutTypes(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool that allows no instance type, even before any pod is considered."""

    node_pool: str
    message: str


class Approximation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A constraint that was not simulated when the pod was placed."""

    pod: str
    constraint: str


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Each pod exactly once: on a new node, on an existing node, or unschedulable.

    All collections are sorted by name.
    """

    new_nodes: tuple[NewNodeClaim, ...] = ()
    existing: tuple[ExistingNodePlacement, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    approximations: tuple[Approximation, ...] = ()
    second_launches: int = 0
    """Pods of new nodes that would need another node without nominated node names; computed only if names are
    withheld.
    """
    greedy_usd_per_hour: float = 0.0
    """Price of the new nodes in the greedy plan."""
    without_types: tuple[PoolWithoutTypes, ...] = ()
    """Sorted by NodePool."""
    by_zone: tuple[tuple[str, int], ...] = ()
    """Number of pods that can run in one zone only, by zone; `flexible`: in several zones, `none`: in no zone."""
    next_pod: str = ""
    """The first pod of the queue that was not reached within the time limit; "" if all were reached."""

    @property
    def price_usd_per_hour(self) -> float:
        """Total price of the new nodes, each at its cheapest offering."""
        return sum(node.cheapest.price_usd_per_hour for node in self.new_nodes)

    @property
    def list_usd_per_hour(self) -> float:
        """The same without commitments."""
        return sum(node.cheapest.full_usd_per_hour for node in self.new_nodes)
