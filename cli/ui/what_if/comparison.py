"""Plan and consolidation of a cluster as it is, next to those with edited NodePools and prices."""

from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.consolidate.command import parse_options_and_settings
from cli.consolidate.steps import ConsolidationResult, StepLimits, consolidate
from cli.planning.fleet import build_fleet, list_owned_nodes
from cli.terminal.errors import InputError
from cli.ui.what_if.changed_cluster import WhatIfCluster, apply_node_pools, apply_prices
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState

_MAX_CONSOLIDATION_STEPS: Final = 200
_MAX_LISTED_STEPS: Final = 20


class WhatIfRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the page sends."""

    node_pools: dict[str, str] | None = None
    """The YAML of all NodePools, by name; null: unchanged."""
    prices: dict[str, float] = {}
    """USD per hour by instance type, or by instance type and capacity type, like ``m5.large/spot``."""


def compare_plans(cluster: ClusterSnapshot | None, request: WhatIfRequest) -> dict[str, Any]:
    """Return the plans and the consolidation with and without the changes, or the errors of the changes.

    A plan is for all pods that are pending, or that run on nodes of NodePools: as if all these nodes were launched
    again.

    Raises:
        InputError: There is no cluster, or there are no prices.
    """
    if cluster is None:
        raise InputError("the source has no cluster: start joiner ui with --context, -f, or a journal with snapshots")
    if cluster.catalog is None:
        raise InputError("there are no instance types and prices: start joiner ui with --instance-types")
    changed = _apply_changes(cluster, request)
    if changed.errors:
        return {"planBefore": None, "planAfter": None, "consolidation": None, "errors": list(changed.errors)}
    options, settings = parse_options_and_settings(_build_arguments())
    before, after = (_plan_all_pods(state, options) for state in (cluster, changed.cluster))
    limits = StepLimits(max_steps=_MAX_CONSOLIDATION_STEPS)
    settings = replace(settings, frees_limits=True)
    results = [consolidate(state, options, settings, limits) for state in (cluster, changed.cluster)]
    return {
        "planBefore": _build_plan_document(before),
        "planAfter": _build_plan_document(after),
        "consolidation": {
            "usdPerHour": results[0].before.price_usd_per_hour,
            "usdPerHourBefore": results[0].after.price_usd_per_hour,
            "usdPerHourAfter": results[1].after.price_usd_per_hour,
            "lines": [*_list_consolidation_lines(cluster, results[0], results[1])],
        },
        "errors": [],
    }


def _apply_changes(cluster: ClusterSnapshot, request: WhatIfRequest) -> WhatIfCluster:
    changed = apply_prices(cluster, request.prices)
    if request.node_pools is None:
        return changed
    result = apply_node_pools(changed.cluster, request.node_pools)
    return replace(result, errors=(*changed.errors, *result.errors))


def _build_arguments() -> Namespace:
    """Return the arguments of `joiner consolidate` without options: the settings are those of the environment."""
    names = (
        *("preference_policy", "min_values_policy", "pod_nominations", "node_cost", "volume_price"),
        *("feature_gates", "eviction_price"),
    )
    return Namespace(**dict.fromkeys(names), usage=_raise_usage)


def _raise_usage(message: str) -> None:
    raise InputError(message)


def _plan_all_pods(cluster: ClusterSnapshot, options: SchedulingOptions) -> Placement:
    cluster_state = ClusterState(cluster)
    replaced_nodes = frozenset(state.name for state in list_owned_nodes(cluster_state))
    return plan_pods(cluster_state, excluded=replaced_nodes, options=options).placement


def _build_plan_document(placement: Placement) -> dict[str, Any]:
    return {
        "usdPerHour": round(placement.price_usd_per_hour, 9),
        "nodes": [
            {
                "nodePool": node.node_pool,
                "instanceType": node.cheapest.instance_type,
                "capacityType": node.cheapest.capacity_type,
                "zone": node.cheapest.zone,
                "price": node.cheapest.price_usd_per_hour,
                "pods": len(node.pods),
            }
            for node in placement.new_nodes
        ],
        "unschedulable": [{"name": failure.pod, "reason": failure.message} for failure in placement.unschedulable],
    }


def _list_consolidation_lines(
    cluster: ClusterSnapshot, before: ConsolidationResult, after: ConsolidationResult
) -> Iterator[str]:
    fleet = build_fleet(ClusterState(cluster))
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    pending_text = f", {format_count(pending_count, 'pending pod')}" if pending_count else ""
    price = format_usd_per_hour(fleet.price_usd_per_hour)
    yield f"today: {format_count(fleet.node_count, 'node')}, {price}{pending_text}"
    for title, result in (("without the changes", before), ("with the changes", after)):
        steps = format_count(len(result.steps), "step")
        yield f"disruption {title}: {steps}, then {format_usd_per_hour(result.after.price_usd_per_hour)}"
        for step in result.steps[:_MAX_LISTED_STEPS]:
            names = ", ".join(sorted(target.name for target in step.proposed_command.targets))
            new_nodes = step.proposed_command.new_nodes
            new_text = f", launches {format_count(len(new_nodes), 'node')}" if new_nodes else ""
            savings = format_usd_per_hour(step.proposed_command.savings_usd_per_hour)
            yield f"  {step.proposed_command.reason}: removes {names}{new_text}, saves {savings}"
    yield "NodePools that change make their nodes drifted; this comparison does not replace drifted nodes"
