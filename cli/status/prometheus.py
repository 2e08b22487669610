"""Metrics of a fleet in the Prometheus text format, with Karpenter's metric names where they exist.

For a textfile collector or a push gateway: Joiner has no endpoint for Prometheus.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from shared.decide.disruption.budgets.budget import (
    BUDGET_REASONS,
    UNLIMITED_DISRUPTIONS,
    compute_allowed_disruptions,
    count_disruptions,
)
from shared.decide.launch.money.limit_prices import measure_limit_usage
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.core.resources import CPU, Resources
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, MICRO_USD, NO_CLUSTER_LIMIT, MoneyPolicy
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, compute_pool_usage

LabelPairs = tuple[tuple[str, str], ...]
Sample = tuple[LabelPairs, float]


def render_metrics(cluster_state: ClusterState, money: MoneyPolicy = NO_CLUSTER_LIMIT) -> str:
    """Return the metrics of the cluster, sorted; each family has a HELP and a TYPE line, all are gauges.

    *money* has the limit of the cluster in USD per hour.
    """
    cluster, states = cluster_state.snapshot, cluster_state.nodes
    managed_nodes = [state_node for state_node in states if state_node.claim is not None]
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    node_samples, price_samples = _collect_node_samples(cluster_state, managed_nodes)
    families: tuple[tuple[str, str, Iterable[Sample]], ...] = (
        ("joiner_nodes", "Nodes by NodePool, capacity type and instance type.", node_samples),
        ("joiner_pods_pending", "Pending pods.", [((), float(pending_count))]),
        ("joiner_usd_per_hour", "Price of the nodes in US dollars per hour.", price_samples),
        ("karpenter_cluster_state_node_count", "Nodes and NodeClaims.", [((), float(len(states)))]),
        (
            "karpenter_nodepools_allowed_disruptions",
            "Nodes that may be disrupted at the same time.",
            _collect_allowed_disruptions(cluster, managed_nodes),
        ),
        ("karpenter_nodepools_limit", "spec.limits; cpu in cores.", _collect_limits(cluster)),
        (
            "karpenter_nodepools_usage",
            "Resources that count against the limits; cpu in cores.",
            _collect_usage(cluster, states),
        ),
    )
    return "".join(_render_family(*family) for family in (*_build_money_families(cluster_state, money), *families))


def _build_money_families(
    cluster_state: ClusterState, money: MoneyPolicy
) -> tuple[tuple[str, str, Iterable[Sample]], ...]:
    """Return the limits in USD per hour and their usage; empty without such limits."""
    usages = measure_limit_usage(cluster_state, money)
    if not usages:
        return ()
    labels = [(("nodepool", "" if usage.scope == CLUSTER_SCOPE else usage.scope),) for usage in usages]
    return (
        (
            "joiner_limit_usd_per_hour",
            "Limit in US dollars per hour; of the cluster without nodepool.",
            [(key, usage.limit / MICRO_USD) for key, usage in zip(labels, usages, strict=True)],
        ),
        (
            "joiner_limit_used_usd_per_hour",
            "Price that counts against the limit, with volumes.",
            [(key, usage.used / MICRO_USD) for key, usage in zip(labels, usages, strict=True)],
        ),
    )


def _render_family(name: str, help_text: str, samples: Iterable[Sample]) -> str:
    lines = [f"{name}{_render_labels(labels)} {value:.12g}\n" for labels, value in sorted(samples)]
    return "".join([f"# HELP {name} {help_text}\n# TYPE {name} gauge\n", *lines])


def _render_labels(labels: LabelPairs) -> str:
    label_text = ",".join(f'{key}="{_escape_label_value(value)}"' for key, value in labels)
    return f"{{{label_text}}}" if label_text else ""


def _escape_label_value(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _collect_node_samples(
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


def _collect_allowed_disruptions(cluster: ClusterSnapshot, managed_nodes: Iterable[StateNode]) -> Iterator[Sample]:
    disruption_tallies = count_disruptions(managed_nodes)
    for pool in cluster.node_pools:
        total = disruption_tallies[pool.name].total if pool.name in disruption_tallies else 0
        for reason in BUDGET_REASONS:
            number = compute_allowed_disruptions(pool, reason, total, cluster.taken_at).count
            yield (
                (("nodepool", pool.name), ("reason", reason)),
                float("inf") if number >= UNLIMITED_DISRUPTIONS else float(number),
            )


def _collect_limits(cluster: ClusterSnapshot) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _build_resource_samples(pool.name, pool.limits)


def _collect_usage(cluster: ClusterSnapshot, states: tuple[StateNode, ...]) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _build_resource_samples(pool.name, compute_pool_usage(states, pool.name))


def _build_resource_samples(pool: str, resources: Resources | None) -> Iterator[Sample]:
    amounts: Mapping[str, int] = dict(resources.amounts) if resources is not None else {}
    for name, amount in amounts.items():
        yield (("nodepool", pool), ("resource_type", name)), amount / 1000 if name == CPU else float(amount)
