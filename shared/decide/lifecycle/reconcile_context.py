"""NodeClaim states (a NodeClaim with its Nodes and pods) and the lifecycle context.

The context is what all steps read.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from shared.model.core.labels import NODEPOOL
from shared.model.core.metadata import is_condition_true
from shared.model.decisions.action import Action, NominatePod
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.node import Node
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import NodeClaimState

EC2_LIST_SETTLE_PERIOD: Final = timedelta(seconds=60)
"""The minimum age of a launch before its absence from a list of instances or NodeClaims counts: lists lag."""


class LifecycleContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all steps read."""

    cluster_state: ClusterState
    cluster_name: str = ""
    instances: Mapping[str, Instance] | None
    """By instance id; None if the instances were not listed, or the list is suspicious."""
    closed_nodes: frozenset[str] = frozenset()
    """The names of Nodes that are not registered yet."""
    nominations_by_node: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({})
    """By Node: the nominations of its pods, made before it is registered."""
    replacement_claim_by_pod: Mapping[str, str] = MappingProxyType({})
    """By pod (``shop/cart``): the NodeClaim whose node was launched for the pod and is not initialized yet."""

    @property
    def now(self) -> datetime:
        """When the snapshot was taken."""
        return self.cluster_state.taken_at

    def is_gone(self, instance_id: str, launched_at: datetime) -> bool:
        """Return whether EC2 does not have the instance any more."""
        if self.instances is None:
            return False
        instance = self.instances.get(instance_id)
        if instance is None:
            return self.now - launched_at > EC2_LIST_SETTLE_PERIOD
        return instance.state == "terminated"

    def is_ending(self, instance_id: str) -> bool:
        """Return whether the instance is shutting down or terminated."""
        instance = (self.instances or {}).get(instance_id)
        return instance is not None and instance.is_terminating()

    def list_unreadable_names(self, kind: str) -> frozenset[str]:
        """Return the names of the existing objects of *kind* that cannot be read.

        They must not be taken for deleted.
        """
        return frozenset(problem.name for problem in self.cluster_state.snapshot.problems if problem.kind == kind)

    def list_unreadable_pods(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """Return the names of the pods on *nodes* that cannot be read, sorted."""
        names = {node.name for node in nodes}
        return tuple(
            sorted(
                problem.name
                for problem in self.cluster_state.snapshot.problems
                if problem.kind == "Pod" and problem.node in names
            )
        )

    def is_node_possibly_unreadable(self, claim: NodeClaim) -> bool:
        """Return whether a Node that cannot be read is, or may be, that of *claim*."""
        unreadable_nodes = self.list_unreadable_names("Node")
        instance = (self.instances or {}).get(claim.instance_id)
        if not unreadable_nodes or (instance is None and not claim.node_name):
            return bool(unreadable_nodes)
        names = {claim.node_name, claim.instance_id, instance.private_dns_name if instance is not None else ""}
        return bool(names & unreadable_nodes)

    def find_node_pool(self, claim: NodeClaim) -> NodePool | None:
        """Return the NodeClaim's NodePool, if it exists."""
        return self.cluster_state.node_pools.get(claim.meta.get_label(NODEPOOL))


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The NodeClaim with its new status, and the actions before and after that status is written."""

    claim: NodeClaim
    before: tuple[Action, ...] = ()
    after: tuple[Action, ...] = ()
    waits: bool = False
    """Whether the later steps must wait for another run."""


LifecycleStep: TypeAlias = Callable[[NodeClaimState, LifecycleContext], StepResult]


def run_steps(steps: Iterable[LifecycleStep], claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Run *steps* in order, each on the NodeClaim as the previous step left it, until one of them waits."""
    before: list[Action] = []
    after: list[Action] = []
    for step in steps:
        result = step(claim_state, context)
        if result.claim is not claim_state.claim:
            claim_state = msgspec.structs.replace(claim_state, claim=result.claim)
        before.extend(result.before)
        after.extend(result.after)
        if result.waits:
            break
    return StepResult(claim=claim_state.claim, before=tuple(before), after=tuple(after))


def build_lifecycle_context(
    cluster_state: ClusterState,
    cluster_name: str = "",
    closed_nodes: frozenset[str] = frozenset(),
    nominations_by_node: Mapping[str, tuple[NominatePod, ...]] = MappingProxyType({}),
    replacement_claim_by_pod: Mapping[str, str] = MappingProxyType({}),
) -> LifecycleContext:
    """Return the context of all steps.

    The Nodes *closed_nodes* are not registered yet; the pods of the others get their *nominations_by_node*. A running
    pod in *replacement_claim_by_pod* has an in-flight node.
    """
    instances = cluster_state.snapshot.instances
    if instances is not None and is_instance_list_suspicious(cluster_state):
        instances = None
    return LifecycleContext(
        cluster_state=cluster_state,
        cluster_name=cluster_name,
        instances=None if instances is None else {instance.instance_id: instance for instance in instances},
        closed_nodes=closed_nodes,
        nominations_by_node=nominations_by_node,
        replacement_claim_by_pod=replacement_claim_by_pod,
    )


def is_instance_list_suspicious(cluster_state: ClusterState) -> bool:
    """Return whether EC2 lists no instance although managed Nodes are Ready.

    That is the case if a Node is Ready and its instance was not terminated, or if a Node or NodeClaim cannot be read.
    """
    cluster = cluster_state.snapshot
    if cluster.instances != ():
        return False
    has_unreadable_objects = any(problem.kind in ("Node", "NodeClaim") for problem in cluster.problems)
    return has_unreadable_objects or any(_is_alive(machine) for machine in cluster_state.claim_states)


def _is_alive(claim_state: NodeClaimState) -> bool:
    is_terminating = is_condition_true(claim_state.claim.conditions, "InstanceTerminating")
    return not is_terminating and claim_state.has_registered() and any(node.is_ready() for node in claim_state.nodes)
