"""The monthly budget: restricts new nodes for pending pods in steps as the budget is used up.

1. spot-only: NodePools that allow spot launch no on-demand nodes.
2. high-priority-only: in addition, only pods of high priority get new nodes.
3. no-new-nodes: no pending pod gets a new node.

Existing nodes are filled at every step, and no node is terminated. Static NodePools, and replacements of nodes that are
disrupted or interrupted, are not restricted.
"""

from collections.abc import Callable

from msgspec.structs import replace

from shared.decide.provisioning.capacity_buffers import BufferedPlacement
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_usd
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from shared.model.core.requirements import Requirement, build_requirements
from shared.model.decisions.month_costs import BudgetState
from shared.model.decisions.placement import Placement, Unschedulable
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.spot_share import find_spot_share

_WITHOUT_ON_DEMAND = build_requirements(
    (Requirement(key=CAPACITY_TYPE, complement=True, values=frozenset((ON_DEMAND,))),)
)
_FIX = "wait for the next month, or raise monthly-budget-usd"


def restrict_capacity_types(cluster: ClusterSnapshot, budget: BudgetState) -> ClusterSnapshot:
    """Return *cluster* in which NodePools that allow spot do not allow on-demand, from the first step on."""
    if not budget.step:
        return cluster
    return replace(cluster, node_pools=tuple(_restrict_pool(pool, cluster.catalog) for pool in cluster.node_pools))


def plan_within_budget(
    plan: Callable[[frozenset[str]], BufferedPlacement], cluster: ClusterSnapshot, budget: BudgetState
) -> BufferedPlacement:
    """Return the placement that the step of *budget* allows.

    *plan* returns a placement without the pods that it is given. It is called again without the pods that would get
    new nodes and may not, so that the nodes of the other pods do not include room for them.
    """
    withheld_pods: frozenset[str] = frozenset()
    placement = plan(withheld_pods)
    priority_by_pod = {pod.name: pod.priority for pod in cluster.pods}
    while True:
        refused_pods = frozenset(
            name
            for node in placement.placement.new_nodes
            for name in node.pods
            if not _can_get_node(priority_by_pod.get(name), budget)
        )
        if not refused_pods:
            break
        withheld_pods |= refused_pods
        placement = plan(withheld_pods)
    return replace(placement, placement=_explain_budget(placement.placement, withheld_pods, budget))


def _can_get_node(priority: int | None, budget: BudgetState) -> bool:
    """Return whether a pod of *priority* may get a new node; None: a buffer pod, which has the lowest priority."""
    if budget.step == "no-new-nodes":
        return False
    is_high = priority is not None and priority >= budget.policy.min_priority
    return budget.step != "high-priority-only" or is_high


def _restrict_pool(pool: NodePool, catalog: Catalog | None) -> NodePool:
    if pool.replicas is not None or not pool.requirements[CAPACITY_TYPE].has(SPOT) or catalog is None:
        return pool
    types = catalog.get_instance_types(pool.node_class.name, pool.name)
    if not any(offering.capacity_type == SPOT for kind in types for offering in kind.offerings):
        return pool
    if find_spot_share(pool) is not None:
        return pool  # without on-demand nodes, all new nodes would exceed its share
    return replace(pool, requirements=pool.requirements & _WITHOUT_ON_DEMAND)


def _explain_budget(placement: Placement, withheld_pods: frozenset[str], budget: BudgetState) -> Placement:
    """Return *placement* with *withheld_pods* as unschedulable; other unschedulable pods are told the budget too."""
    if not budget.step:
        return placement
    summary = describe_budget(budget)
    told_pods = tuple(
        replace(pod, message=f"{pod.message}; {summary}") if pod.reason != "NotReached" else pod
        for pod in placement.unschedulable
    )
    refused_pods = (
        Unschedulable(pod=name, reason="LimitExceeded", message=f"needs a new node: {summary}")
        for name in withheld_pods
    )
    return replace(placement, unschedulable=tuple(sorted((*told_pods, *refused_pods), key=lambda pod: pod.pod)))


def describe_budget(budget: BudgetState) -> str:
    """Return how much of the budget is used, and what its step means; with the fix if there is a step."""
    used = (
        f"{format_usd(budget.used_usd)} of the monthly budget of {format_usd(budget.policy.budget_usd)} is used "
        f"({budget.used_percent:.0f}%)"
    )
    percents = dict(zip(("spot-only", "high-priority-only", "no-new-nodes"), budget.policy.step_percents, strict=True))
    meaning = {
        "spot-only": "NodePools that allow spot launch no on-demand nodes",
        "high-priority-only": f"only pods with a priority of {budget.policy.min_priority} or more get new nodes",
        "no-new-nodes": "no pod gets a new node",
    }
    return f"{used}: from {percents[budget.step]}% on, {meaning[budget.step]}; {_FIX}" if budget.step else used
