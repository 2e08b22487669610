"""The samples of the metrics of `metric_table.py`: a pure function of the cluster.

`joiner metrics` and `joiner status -o prometheus` print them, and the function `disrupt` writes them to the endpoint of
the setting `remote-write-url`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from shared.decide.disruption.budgets.budget import (
    BUDGET_REASONS,
    UNLIMITED_DISRUPTIONS,
    compute_allowed_disruptions,
    count_disruptions,
)
from shared.decide.launch.money.limit_prices import measure_limit_usage
from shared.decide.prometheus.object_metrics import (
    compute_claim_conditions,
    compute_node_ages,
    compute_node_resources,
    compute_offering_prices,
    compute_pod_states,
    convert_amount,
    format_resource,
    list_registered,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.core.metrics.metric_samples import LabelPairs, MetricDetail, MetricSamples, Sample
from shared.model.core.resources import Resources, sum_resources
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, MICRO_USD, NO_CLUSTER_LIMIT, MoneyPolicy
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, compute_pool_usage

SNAPSHOT_AGE: Final = "joiner_snapshot_age_seconds"


def compute_metrics(
    cluster_state: ClusterState, money: MoneyPolicy = NO_CLUSTER_LIMIT, detail: MetricDetail = "all"
) -> MetricSamples:
    """Return the samples of the cluster by metric, as far as *detail* includes them.

    *money* has the limit of the cluster in USD per hour.
    """
    samples = dict(_compute_summary(cluster_state, money))
    cluster, states = cluster_state.snapshot, cluster_state.nodes
    if detail != "summary":
        samples |= {
            "karpenter_nodes_allocatable": compute_node_resources(states, StateNode.compute_allocatable),
            "karpenter_nodes_total_pod_requests": compute_node_resources(states, StateNode.sum_pod_requests),
            "karpenter_nodes_current_lifetime_seconds": compute_node_ages(states, cluster.taken_at),
            "operator_nodeclaim_status_condition_count": compute_claim_conditions(cluster.node_claims),
        }
    if detail == "all":
        samples |= {
            "karpenter_pods_state": compute_pod_states(cluster.pods, states),
            "karpenter_cloudprovider_instance_type_offering_price_estimate": compute_offering_prices(cluster.catalog),
        }
    return {name: sorted(samples[name]) for name in samples}


def compute_ages(cluster: ClusterSnapshot, now: datetime) -> MetricSamples:
    """Return the age of the snapshot and of its catalog, if there is one, at *now*."""
    ages = {SNAPSHOT_AGE: cluster.taken_at}
    if cluster.catalog is not None and cluster.catalog.built_at is not None:
        ages["joiner_catalog_age_seconds"] = cluster.catalog.built_at
    return {name: [((), max(0.0, (now - at).total_seconds()))] for name, at in sorted(ages.items())}


def _compute_summary(cluster_state: ClusterState, money: MoneyPolicy) -> Mapping[str, Iterable[Sample]]:
    cluster, states = cluster_state.snapshot, cluster_state.nodes
    managed_nodes = [state_node for state_node in states if state_node.claim is not None]
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    node_samples, price_samples = _compute_node_samples(cluster_state, managed_nodes)
    return {
        **_compute_money_samples(cluster_state, money),
        "joiner_invalid_objects": [((), float(len(cluster.problems)))],
        "joiner_nodes": node_samples,
        "joiner_pods_pending": [((), float(pending_count))],
        "joiner_usd_per_hour": price_samples,
        "karpenter_cluster_state_node_count": [((), float(len(states)))],
        "karpenter_cluster_utilization_percent": _compute_utilization(states),
        "karpenter_nodepools_allowed_disruptions": _compute_allowed_disruptions(cluster, managed_nodes),
        "karpenter_nodepools_cost_total": _sum_by_pool(price_samples),
        "karpenter_nodepools_limit": _compute_limits(cluster),
        "karpenter_nodepools_usage": _compute_usage(cluster, states),
    }


def _compute_money_samples(cluster_state: ClusterState, money: MoneyPolicy) -> dict[str, Iterable[Sample]]:
    """Return the limits in USD per hour and their usage; empty without such limits."""
    usages = measure_limit_usage(cluster_state, money)
    if not usages:
        return {}
    labels = [(("nodepool", "" if usage.scope == CLUSTER_SCOPE else usage.scope),) for usage in usages]
    return {
        "joiner_limit_usd_per_hour": [
            (key, usage.limit / MICRO_USD) for key, usage in zip(labels, usages, strict=True)
        ],
        "joiner_limit_used_usd_per_hour": [
            (key, usage.used / MICRO_USD) for key, usage in zip(labels, usages, strict=True)
        ],
    }


def _compute_node_samples(
    cluster_state: ClusterState, managed_nodes: Iterable[StateNode]
) -> tuple[list[Sample], list[Sample]]:
    prices_by_labels: dict[LabelPairs, list[float]] = defaultdict(list)
    for state_node in managed_nodes:
        type_labels = (
            ("capacity_type", state_node.meta.get_label(CAPACITY_TYPE)),
            ("instance_type", state_node.meta.get_label(INSTANCE_TYPE)),
        )
        node_class = state_node.claim.node_class.name if state_node.claim is not None else ""
        prices_by_labels[*type_labels, ("nodepool", state_node.pool)].append(
            cluster_state.price_list.get_price(state_node.meta, node_class)
        )
    dollars = prices_by_labels.items() if cluster_state.snapshot.catalog is not None else ()
    return [(key, float(len(node_prices))) for key, node_prices in prices_by_labels.items()], [
        (key, sum(node_prices)) for key, node_prices in dollars
    ]


def _sum_by_pool(price_samples: Iterable[Sample]) -> list[Sample]:
    price_by_pool: dict[str, float] = defaultdict(float)
    for labels, price in price_samples:
        price_by_pool[dict(labels)["nodepool"]] += price
    return [((("nodepool", pool),), price) for pool, price in price_by_pool.items()]


def _compute_utilization(states: Iterable[StateNode]) -> Iterator[Sample]:
    """Yield the requested part of the allocatable resources of all registered nodes in percent."""
    registered_nodes = list(list_registered(states))
    requests = sum_resources(state_node.sum_pod_requests() for state_node in registered_nodes)
    for name, amount in sum_resources(state_node.compute_allocatable() for state_node in registered_nodes).amounts:
        if amount:
            yield (("resource_type", format_resource(name)),), 100 * requests[name] / amount


def _compute_allowed_disruptions(cluster: ClusterSnapshot, managed_nodes: Iterable[StateNode]) -> Iterator[Sample]:
    disruption_tallies = count_disruptions(managed_nodes)
    for pool in cluster.node_pools:
        total = disruption_tallies[pool.name].total if pool.name in disruption_tallies else 0
        for reason in BUDGET_REASONS:
            number = compute_allowed_disruptions(pool, reason, total, cluster.taken_at).count
            yield (
                (("nodepool", pool.name), ("reason", reason.lower())),
                float("inf") if number >= UNLIMITED_DISRUPTIONS else float(number),
            )


def _compute_limits(cluster: ClusterSnapshot) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _build_resource_samples(pool.name, pool.limits)


def _compute_usage(cluster: ClusterSnapshot, states: tuple[StateNode, ...]) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _build_resource_samples(pool.name, compute_pool_usage(states, pool.name))


def _build_resource_samples(pool: str, resources: Resources | None) -> Iterator[Sample]:
    amounts: Mapping[str, int] = dict(resources.amounts) if resources is not None else {}
    for name, amount in amounts.items():
        yield (("nodepool", pool), ("resource_type", format_resource(name))), convert_amount(name, amount)
