"""The full verdict on one pod: where it is placed and why, or why each NodePool cannot take it.

Nothing is estimated. The placement is that of the plan. The answers of the other NodePools come from planning for this
pod alone, with one NodePool at a time.
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
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.core.metadata import find_condition
from shared.model.core.requirements import Requirements
from shared.model.core.resources import PODS, build_resources, format_quantities
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
    """NewNode, ExistingNode, Unschedulable, or NotWaiting."""
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
    """Return the verdict on the pod *query* (``shop/cart``, or ``cart`` if that is unambiguous).

    Raises:
        InputError: there is no such pod, or more than one.
    """
    name = _find_pod_name(plan_result, query)
    parsed_pod = plan_result.index_pods_by_name().get(name)
    common_fields: dict[str, Any] = {
        "pod": name,
        "workload": describe_workload(parsed_pod) if parsed_pod is not None else "",
        "requests": format_quantities(parsed_pod.spec.requests - build_resources({PODS: 1}))
        if parsed_pod is not None
        else {},
        "undecided": tuple(
            approximation.constraint
            for approximation in plan_result.placement.approximations
            if approximation.pod == name
        ),
    }
    for unschedulable_pod in plan_result.unschedulable_pods:
        if unschedulable_pod.pod == name:
            pool_messages = tuple(
                (", ".join(pools), words) for pools, words in group_messages_by_pool(unschedulable_pod.message)
            )
            return PodVerdict(
                kind="Unschedulable", reason=unschedulable_pod.reason, pool_messages=pool_messages, **common_fields
            )
    pod = plan_result.index_pods_by_name()[name]  # a pod that is not in unschedulable_pods could be parsed
    for node in plan_result.placement.new_nodes:
        if name in node.pods:
            return _build_new_node_verdict(plan_result, pod, node, common_fields)
    for fit in plan_result.placement.existing:
        if name in fit.pods:
            return _build_existing_node_verdict(
                plan_result, fit.node, tuple(other_pod for other_pod in fit.pods if other_pod != name), common_fields
            )
    return PodVerdict(kind="NotWaiting", node=pod.node_name, reason=_explain_not_pending(pod), **common_fields)


def _find_pod_name(plan_result: PlanResult, query: str) -> str:
    known_names = sorted(
        {
            *plan_result.index_pods_by_name(),
            *(unschedulable_pod.pod for unschedulable_pod in plan_result.unschedulable_pods),
        }
    )
    matches = [name for name in known_names if query in (name, name.partition("/")[2])]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(f"--pod {query}: is in several namespaces: write one of {', '.join(matches)}")
    name_by_short_name = {name: name for name in known_names} | {name.partition("/")[2]: name for name in known_names}
    close_names = [
        name_by_short_name[match]
        for match in get_close_matches(query, list(name_by_short_name), n=3, cutoff=_MIN_SIMILARITY_RATIO)
    ]
    hint = f"do you mean {' or '.join(dict.fromkeys(close_names))}?" if close_names else "name it as namespace/name"
    raise InputError(f"--pod {query}: no such pod among {len(known_names)}: {hint}")


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
    yield "in the catalogue", len(catalog_types)
    pool_types = _filter_compatible(catalog_types, pool.requirements)
    yield f"allowed by pool {pool.name}", len(pool_types)
    # Beyond the labels of instance types the pod can require labels of the NodePool. The NodePool has them: the pod
    # fits.
    type_keys = {item.key for instance_type in pool_types for item in instance_type.requirements}
    pod_requirements = build_strict_requirements(pod.spec)
    pod_types = _filter_compatible(
        pool_types, pod_requirements.without(item.key for item in pod_requirements if item.key not in type_keys)
    )
    yield "allowed by the pod", len(pod_types)
    yield (
        "large enough for it alone",
        sum(pod.spec.requests.can_fit(instance_type.allocatable) for instance_type in pod_types),
    )
    yield "for all of the node's pods, within the plan's price", len(node.instance_types)


def _filter_compatible(instance_types: Iterable[InstanceType], requirements: Requirements) -> list[InstanceType]:
    return [
        instance_type for instance_type in instance_types if not instance_type.requirements.find_conflict(requirements)
    ]


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
        return f"alone it would fit on node {placement.existing[0].node}"
    choice = placement.new_nodes[0].cheapest
    return f"would do too; the cheapest for it alone is {format_choice(choice)}"


def format_choice(choice: CheapestOffering) -> str:
    """Return an offering as text."""
    price = f"${choice.price_usd_per_hour:.4f} per hour"
    return f"{choice.instance_type}, {choice.capacity_type}, in {choice.zone}, {price}"


def _build_existing_node_verdict(
    plan_result: PlanResult, name: str, other_pods: tuple[str, ...], common_fields: dict[str, Any]
) -> PodVerdict:
    state_node = plan_result.cluster_state.node_by_name[name]
    meta = state_node.meta
    type_name, zone, capacity_type = (meta.get_label(key) for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
    catalog = plan_result.cluster.catalog
    price = next(
        (
            offering.price_usd_per_hour
            for instance_type in (catalog.instance_types if catalog is not None else ())
            for offering in instance_type.offerings
            if (instance_type.name, offering.zone, offering.capacity_type) == (type_name, zone, capacity_type)
        ),
        0.0,
    )
    offering = CheapestOffering(
        instance_type=type_name, zone=zone, capacity_type=capacity_type, price_usd_per_hour=price
    )
    return PodVerdict(
        kind="ExistingNode", node=name, offering=offering if type_name else None, other_pods=other_pods, **common_fields
    )


def _explain_not_pending(pod: Pod) -> str:
    """Return why nothing is planned for *pod*."""
    if pod.node_name:
        return f"it is on node {pod.node_name} already"
    if pod.nominated_node_name:
        return f"kube-scheduler makes room for it on node {pod.nominated_node_name}"
    if pod.is_daemon() or pod.is_mirror():
        return "it belongs to one node: no node is made for it"
    scheduled = find_condition(pod.conditions, "PodScheduled")
    if scheduled is not None and scheduled.reason:
        return f"kube-scheduler has not given up on it: {scheduled.reason}"
    return "kube-scheduler has not looked at it yet (--assume-unschedulable plans for it all the same)"


def build_verdict_document(verdict: PodVerdict) -> dict[str, Any]:
    """Return *verdict* as a document with stable keys; prices in USD per hour."""
    return {
        "pod": verdict.pod,
        "workload": verdict.workload,
        "requests": verdict.requests,
        "verdict": verdict.kind,
        "reason": verdict.reason,
        "node": verdict.node,
        "nodePool": verdict.node_pool,
        "offering": build_choice_document(verdict.offering) if verdict.offering is not None else None,
        "instanceTypes": list(verdict.instance_types),
        "beside": list(verdict.other_pods),
        "daemonPods": verdict.daemon_pods,
        "typesLeft": [{"step": step, "types": number} for step, number in verdict.type_funnel],
        "constraints": [
            constraint.requirement | {"madeBy": list(constraint.sources)} for constraint in verdict.constraints
        ],
        "pools": [
            {"nodePools": pools.split(", ") if pools else [], "says": words} for pools, words in verdict.pool_messages
        ],
        "undecided": list(verdict.undecided),
    }
