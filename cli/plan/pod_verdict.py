"""The full verdict on one pod: where it is placed and why, or why each NodePool cannot take it.

The placement is that of the plan. The messages about other NodePools come from planning for this pod alone, with one
NodePool at a time.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.plan.pod_constraints import PlacementConstraint, list_constraints
from cli.planning.document import PlanResult, build_choice_document
from cli.planning.unschedulable import describe_workload, group_messages_by_pool
from cli.terminal.errors import InputError
from shared.decide.scheduling.scheduler import solve
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.formatting import format_count
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import find_condition
from shared.model.core.requirements import Requirements
from shared.model.core.resources import PODS, build_resources, format_quantities
from shared.model.decisions.offering_text import format_offering
from shared.model.decisions.placement import CheapestOffering, NewNodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod, build_strict_requirements
from shared.state.cluster_state import ClusterState

_MIN_SIMILARITY_RATIO: Final = 0.6


class PodVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one pod; fields that do not apply are empty."""

    pod: str
    workload: str
    requests: dict[str, str]
    kind: str
    """NewNode, ExistingNode, Unschedulable, or NotPending."""
    node: str = ""
    node_pool: str = ""
    offering: CheapestOffering | None = None
    instance_types: tuple[str, ...] = ()
    """Instance types that the node can have, cheapest first."""
    other_pods: tuple[str, ...] = ()
    """The other pods that the plan places on the node."""
    daemon_pods: int = 0
    type_funnel: tuple[tuple[str, int], ...] = ()
    """Number of remaining instance types after each step."""
    constraints: tuple[PlacementConstraint, ...] = ()
    pool_messages: tuple[tuple[str, str], ...] = ()
    """NodePools and their message; NodePools with the same message are one pair."""
    reason: str = ""
    undecided: tuple[str, ...] = ()
    """Constraints that are decided only at launch."""


def explain_pod(plan_result: PlanResult, query: str) -> PodVerdict:
    """Return the verdict on the pod or workload *query* (``shop/cart``, or ``cart`` if that is unambiguous).

    Raises:
        InputError: there is no such pod or workload, or more than one.
    """
    name = _find_pod_name(plan_result, query)
    pod = plan_result.index_pods_by_name().get(name)
    approximations = (item for item in plan_result.placement.approximations if item.pod == name)
    common_fields: dict[str, Any] = {
        "pod": name,
        "workload": "" if pod is None else describe_workload(pod),
        "requests": {} if pod is None else format_quantities(pod.spec.requests - build_resources({PODS: 1})),
        "undecided": tuple(approximation.constraint for approximation in approximations),
    }
    failure = next((failure for failure in plan_result.unschedulable_pods if failure.pod == name), None)
    if failure is not None:
        messages = tuple((", ".join(pools), words) for pools, words in group_messages_by_pool(failure.message))
        return PodVerdict(kind="Unschedulable", reason=failure.reason, pool_messages=messages, **common_fields)
    pod = plan_result.index_pods_by_name()[name]  # a pod that is not unschedulable could be parsed
    for node in plan_result.placement.new_nodes:
        if name in node.pods:
            return _build_new_node_verdict(plan_result, pod, node, common_fields)
    for fit in plan_result.placement.existing:
        if name in fit.pods:
            other_pods = tuple(other_pod for other_pod in fit.pods if other_pod != name)
            return _build_existing_node_verdict(plan_result, fit.node, other_pods, common_fields)
    return PodVerdict(kind="NotPending", node=pod.node_name, reason=_explain_not_pending(pod), **common_fields)


def _find_pod_name(plan_result: PlanResult, query: str) -> str:
    """Return the pod *query*, else a pod of the workload *query*.

    Raises:
        InputError: *query* matches nothing, or pods or workloads in several namespaces.
    """
    pod_names = {*plan_result.index_pods_by_name(), *(failure.pod for failure in plan_result.unschedulable_pods)}
    pod_by_workload = _map_first_pods(plan_result)
    for pod_by_name in ({name: name for name in pod_names}, pod_by_workload):
        matches = sorted(name for name in pod_by_name if query in _list_spellings(name))
        if len(matches) == 1:
            return pod_by_name[matches[0]]
        if matches:
            raise InputError(f"--pod {query}: exists in several namespaces: write {' or '.join(matches)}")
    all_names = sorted({*pod_names, *pod_by_workload})
    name_by_spelling = {spelling: name for name in all_names for spelling in _list_spellings(name)}
    close_spellings = get_close_matches(query, list(name_by_spelling), n=3, cutoff=_MIN_SIMILARITY_RATIO)
    close_names = dict.fromkeys(name_by_spelling[spelling] for spelling in close_spellings)
    hint = f"did you mean {' or '.join(close_names)}?" if close_names else "write NAMESPACE/NAME"
    raise InputError(f"--pod {query}: not found among {format_count(len(pod_names), 'pod')}: {hint}")


def _map_first_pods(plan_result: PlanResult) -> dict[str, str]:
    """Return a pod of each workload, by the workload's name: an unschedulable one, else a planned one, else any."""
    failed_pods = {failure.pod for failure in plan_result.unschedulable_pods}
    planned_pods = {name for node in plan_result.placement.new_nodes for name in node.pods}
    planned_pods |= {name for fit in plan_result.placement.existing for name in fit.pods}
    pods = plan_result.index_pods_by_name()
    pod_by_workload: dict[str, str] = {}
    for name in sorted(pods, key=lambda name: (name not in failed_pods, name not in planned_pods, name)):
        if workload := describe_workload(pods[name]).partition(" ")[2]:
            pod_by_workload.setdefault(workload, name)
    return pod_by_workload


def _list_spellings(name: str) -> tuple[str, str]:
    """Return *name* with and without its namespace."""
    return name, name.partition("/")[2]


def _build_new_node_verdict(
    plan_result: PlanResult, pod: Pod, node: NewNodeClaim, common_fields: dict[str, Any]
) -> PodVerdict:
    pool = next(node_pool for node_pool in plan_result.cluster.node_pools if node_pool.name == node.node_pool)
    return PodVerdict(
        kind="NewNode",
        node=node.name,
        node_pool=pool.name,
        offering=node.cheapest,
        instance_types=node.instance_types,
        other_pods=tuple(other_pod for other_pod in node.pods if other_pod != pod.name),
        daemon_pods=node.daemon_pods,
        type_funnel=tuple(_count_matching_types(plan_result, pool, pod, node)),
        constraints=tuple(list_constraints(pool, pod, node)),
        pool_messages=tuple(_plan_with_other_pools(plan_result, pod, pool.name)),
        **common_fields,
    )


def _count_matching_types(
    plan_result: PlanResult, pool: NodePool, pod: Pod, node: NewNodeClaim
) -> Iterator[tuple[str, int]]:
    """Yield the number of types in the catalog, allowed by the NodePool, by the pod, and large enough for the pod."""
    catalog = plan_result.cluster.catalog
    catalog_types = catalog.get_instance_types(pool.node_class.name, pool.name) if catalog is not None else ()
    yield "in the catalog", len(catalog_types)
    pool_types = _filter_compatible(catalog_types, pool.requirements)
    yield f"allowed by NodePool {pool.name}", len(pool_types)
    # The pod may also require labels of the NodePool. The pod was planned for this NodePool, so it has these labels.
    type_keys = {item.key for instance_type in pool_types for item in instance_type.requirements}
    pod_requirements = build_strict_requirements(pod.spec)
    other_keys = (item.key for item in pod_requirements if item.key not in type_keys)
    pod_types = _filter_compatible(pool_types, pod_requirements.without(other_keys))
    yield "allowed by the pod", len(pod_types)
    fitting_count = sum(pod.spec.requests.can_fit(instance_type.allocatable) for instance_type in pod_types)
    yield "large enough for the pod", fitting_count
    yield "large enough for all pods of the node, at the planned price", len(node.instance_types)


def _filter_compatible(instance_types: Iterable[InstanceType], requirements: Requirements) -> list[InstanceType]:
    return [candidate for candidate in instance_types if not candidate.requirements.find_conflict(requirements)]


def _plan_with_other_pools(plan_result: PlanResult, pod: Pod, chosen_pool: str) -> Iterator[tuple[str, str]]:
    """Plan for *pod* alone with each other NodePool as the only one; yield NodePool names and message."""
    pools_by_message: dict[str, list[str]] = {}
    for pool in plan_result.cluster.node_pools:
        if pool.name != chosen_pool:
            pools_by_message.setdefault(_plan_with_pool(plan_result, pod, pool), []).append(pool.name)
    yield from ((", ".join(names), words) for words, names in pools_by_message.items())


def _plan_with_pool(plan_result: PlanResult, pod: Pod, pool: NodePool) -> str:
    placement = solve(
        ClusterState(replace(plan_result.cluster, node_pools=(pool,))), pods=(pod,), options=plan_result.options
    )
    if placement.unschedulable:
        [(_, words)] = group_messages_by_pool(placement.unschedulable[0].message)
        return words
    if placement.existing:
        return f"the pod alone would fit on node {placement.existing[0].node}"
    return f"possible too; cheapest offering for the pod alone: {format_choice(placement.new_nodes[0].cheapest)}"


def format_choice(choice: CheapestOffering) -> str:
    """Return an offering as text."""
    return format_offering(choice)


def _build_existing_node_verdict(
    plan_result: PlanResult, name: str, other_pods: tuple[str, ...], common_fields: dict[str, Any]
) -> PodVerdict:
    meta = plan_result.cluster_state.node_by_name[name].meta
    offering = CheapestOffering(
        instance_type=meta.get_label(INSTANCE_TYPE),
        zone=meta.get_label(ZONE),
        capacity_type=meta.get_label(CAPACITY_TYPE),
        price_usd_per_hour=plan_result.cluster_state.price_list.get_price(meta, ""),
    )
    node_offering = offering if offering.instance_type else None
    return PodVerdict(kind="ExistingNode", node=name, offering=node_offering, other_pods=other_pods, **common_fields)


def _explain_not_pending(pod: Pod) -> str:
    """Return why *pod* is not planned for."""
    if pod.node_name:
        return f"already bound to node {pod.node_name}"
    if pod.nominated_node_name:
        return f"nominated to node {pod.nominated_node_name}, where kube-scheduler expects to place it"
    if pod.is_daemon() or pod.is_mirror():
        return "DaemonSet pods and static pods get no node of their own"
    scheduled = find_condition(pod.conditions, "PodScheduled")
    if scheduled is not None and scheduled.reason:
        return f"kube-scheduler has not marked it Unschedulable: {scheduled.reason}"
    return "kube-scheduler has not tried to schedule it yet (--assume-unschedulable plans for it anyway)"


def build_verdict_document(verdict: PodVerdict) -> dict[str, Any]:
    """Return *verdict* as a document with stable keys; prices in USD per hour."""
    return {
        "pod": verdict.pod,
        "workload": verdict.workload,
        "requests": verdict.requests,
        "result": verdict.kind,
        "reason": verdict.reason,
        "node": verdict.node,
        "nodePool": verdict.node_pool,
        "offering": build_choice_document(verdict.offering) if verdict.offering is not None else None,
        "instanceTypes": list(verdict.instance_types),
        "otherPods": list(verdict.other_pods),
        "daemonPods": verdict.daemon_pods,
        "matchingInstanceTypes": [{"step": step, "count": number} for step, number in verdict.type_funnel],
        "constraints": [
            constraint.requirement | {"sources": list(constraint.sources)} for constraint in verdict.constraints
        ],
        "nodePoolMessages": [
            {"nodePools": pools.split(", ") if pools else [], "message": words}
            for pools, words in verdict.pool_messages
        ],
        "undecidedConstraints": list(verdict.undecided),
    }
