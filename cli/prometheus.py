"""A fleet in Prometheus' text format, by Karpenter's names where it has the same thing.

For a textfile collector or a push gateway: nothing of Joiner runs where it could be scraped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from shared.disruption.budgets import REASONS, UNLIMITED, allowance, tallies
from shared.disruption.prices import PriceList
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.resources import CPU, Resources
from shared.model.state import StateNode, pool_usage, state_nodes

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


def exposition(cluster: Cluster) -> str:
    """Answer what is known of *cluster*, sorted; every family has its HELP and its TYPE, gauge."""
    states = state_nodes(cluster)
    ours = [one for one in states if one.claim is not None]
    waiting = sum(pod.is_provisionable() for pod in cluster.pods)
    nodes, prices = _machines(cluster, ours)
    families: tuple[tuple[str, str, Iterable[Sample]], ...] = (
        ("joiner_nodes", "Machines, by NodePool, capacity type and instance type.", nodes),
        ("joiner_pods_waiting", "Pods that no node has room for.", [((), float(waiting))]),
        ("joiner_usd_per_hour", "What they cost, US dollars.", prices),
        ("karpenter_cluster_state_node_count", "Nodes and NodeClaims.", [((), float(len(states)))]),
        ("karpenter_nodepools_allowed_disruptions", "Nodes that may be disrupted at once.", _allowed(cluster, ours)),
        ("karpenter_nodepools_limit", "spec.limits; cpu in cores.", _limits(cluster)),
        ("karpenter_nodepools_usage", "What counts against them.", _usage(cluster, states)),
    )
    return "".join(_family(*one) for one in families)


def _family(name: str, says: str, samples: Iterable[Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {value:.12g}\n" for labels, value in sorted(samples)]
    return "".join([f"# HELP {name} {says}\n# TYPE {name} gauge\n", *lines])


def _labels(labels: Labels) -> str:
    said = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _machines(cluster: Cluster, ours: Iterable[StateNode]) -> tuple[list[Sample], list[Sample]]:
    prices = PriceList(cluster.catalogue)
    found: dict[Labels, list[float]] = defaultdict(list)
    for one in ours:
        kind = (("capacity_type", one.meta.label(CAPACITY_TYPE)), ("instance_type", one.meta.label(INSTANCE_TYPE)))
        node_class = one.claim.node_class.name if one.claim is not None else ""
        found[*kind, ("nodepool", one.pool)].append(prices.price(one.meta, node_class))
    dollars = found.items() if cluster.catalogue is not None else ()
    return [(key, float(len(some))) for key, some in found.items()], [(key, sum(some)) for key, some in dollars]


def _allowed(cluster: Cluster, ours: Iterable[StateNode]) -> Iterator[Sample]:
    counted = tallies(ours)
    for pool in cluster.node_pools:
        total = counted[pool.name].total if pool.name in counted else 0
        for reason in REASONS:
            number = allowance(pool, reason, total, cluster.taken_at).count
            yield (("nodepool", pool.name), ("reason", reason)), float("inf") if number >= UNLIMITED else float(number)


def _limits(cluster: Cluster) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _amounts(pool.name, pool.limits)


def _usage(cluster: Cluster, states: tuple[StateNode, ...]) -> Iterator[Sample]:
    for pool in cluster.node_pools:
        yield from _amounts(pool.name, pool_usage(states, pool.name))


def _amounts(pool: str, some: Resources | None) -> Iterator[Sample]:
    amounts: Mapping[str, int] = dict(some.amounts) if some is not None else {}
    for name, amount in amounts.items():
        yield (("nodepool", pool), ("resource_type", name)), amount / 1000 if name == CPU else float(amount)
