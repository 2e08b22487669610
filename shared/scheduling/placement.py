"""What a solver is told and what it answers: values, everything sorted."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import NONE, Resources

MAX_INSTANCE_TYPES = 600
Usd: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1e6)]

Reason: TypeAlias = Literal[
    "InvalidPod",
    "OptedOut",
    "ResourceClaimsIgnored",
    "VolumeNotUsable",
    "NoNodePool",
    "TaintNotTolerated",
    "RequirementsNotMet",
    "NoInstanceTypeFits",
    "NoOffering",
    "MinValuesNotMet",
    "LimitExceeded",
    "TopologyNotSatisfied",
    "NotReached",
]
"""Why a pod has no place, from what is wrong with the pod itself to what was nearest to a place.

NotReached: the time was up before its turn. Nothing is wrong with it.
"""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to decide where the objects leave a choice; Karpenter's own names and defaults."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    readiness: Literal["Required", "Assumed"] = "Required"
    """Assumed: a NodePool is used though its node class is missing or not ready (planning from files)."""
    max_instance_types: int = MAX_INSTANCE_TYPES
    packing: Literal["Priced", "Greedy"] = "Priced"
    """Greedy: the first plan that was found, whatever it costs."""
    node_cost_usd_per_hour: Usd = 0.0
    """What each node costs besides its instance and its volumes: an agent's licence, say."""
    volume_usd_per_gib_month: Usd = 0.08
    """Of the volumes that the node class maps: gp3."""
    hints: Literal["Given", "Withheld"] = "Given"
    """Whether kube-scheduler is told which node was made for which pod; Withheld: plans that need no telling win."""


class Choice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The offering that costs least."""

    instance_type: str
    zone: str
    capacity_type: str
    price_usd_per_hour: float
    reservation_id: str = ""
    """Of the capacity reservation that it takes from; "" if it takes from none."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node to be made: any of *instance_types*, in any offering that *requirements* leave open, holds its pods."""

    name: str
    """Of the NodeClaim it will be: the same decision has the same name."""
    node_pool: str
    requirements: Requirements = ANYTHING
    """Everything but the instance types' names, their minValues included."""
    instance_types: tuple[str, ...] = ()
    """Cheapest first."""
    pods: tuple[str, ...] = ()
    """As ``shop/cart``, sorted."""
    requests: Resources = NONE
    """Of the pods, and the least that daemons take on any of the types."""
    daemon_pods: int = 0
    cheapest: Choice
    min_values_relaxed: bool = False


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Pods, sorted, that have room on a node that exists or is on its way."""

    node: str
    pods: tuple[str, ...]


class Unschedulable(msgspec.Struct, frozen=True, kw_only=True):
    """A pod without a place; *message* has, by NodePool in order of weight, what excluded it and the remedy."""

    pod: str
    reason: Reason
    message: str


class WithoutTypes(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool that no instance type is left for before any pod is looked at."""

    node_pool: str
    message: str


class Approximation(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A constraint of a pod that was placed without simulating it."""

    pod: str
    constraint: str


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Each pod exactly once: on a new node, on an existing one, or unschedulable. Sorted by name throughout."""

    new_nodes: tuple[NewNode, ...] = ()
    existing: tuple[Fit, ...] = ()
    unschedulable: tuple[Unschedulable, ...] = ()
    approximations: tuple[Approximation, ...] = ()
    second_launches: int = 0
    """Pods of new nodes that would need another node if kube-scheduler were left to itself; counted if it is."""
    greedy_usd_per_hour: float = 0.0
    """What the new nodes of the greedy plan would have cost."""
    without_types: tuple[WithoutTypes, ...] = ()
    """Sorted by NodePool."""
    by_zone: tuple[tuple[str, int], ...] = ()
    """How many of the pods can be in one zone only, by it; in several: `flexible`, in none: `none`."""
    goes_on_at: str = ""
    """The first pod, in the order of the queue, that was not reached in time; "" if all were."""

    @property
    def price_usd_per_hour(self) -> float:
        """What the new nodes cost, each at its cheapest offering."""
        return sum(node.cheapest.price_usd_per_hour for node in self.new_nodes)
