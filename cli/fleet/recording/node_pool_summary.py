"""The NodePools of a fleet document."""

from collections.abc import Iterable, Iterator, Sequence

from cli.fleet.document.node_columns import FleetNodePool
from shared.model.core.formatting import format_count
from shared.model.core.resources import format_amount
from shared.model.core.units import format_duration
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool


def build_node_pools(node_pools: Sequence[NodePool], used_names: Iterable[str]) -> tuple[FleetNodePool, ...]:
    """Return *node_pools*, and those of *used_names* that could not be read or are deleted, sorted by name."""
    names = {name: FleetNodePool(name=name) for name in used_names if name}
    names |= {node_pool.name: _build_node_pool(node_pool) for node_pool in node_pools}
    return tuple(names[name] for name in sorted(names))


def _build_node_pool(node_pool: NodePool) -> FleetNodePool:
    limits = node_pool.limits.amounts if node_pool.limits is not None else ()
    return FleetNodePool(
        name=node_pool.name,
        weight=node_pool.weight,
        limits={name: format_amount(name, amount) for name, amount in limits} or None,
        summary="; ".join(_list_rules(node_pool)),
    )


def _list_rules(node_pool: NodePool) -> Iterator[str]:
    if node_pool.replicas is not None:
        yield f"static: {format_count(node_pool.replicas, 'node')}"
    yield node_pool.consolidation_policy
    yield f"consolidateAfter {format_duration(node_pool.consolidate_after)}"
    yield f"expireAfter {format_duration(node_pool.expire_after)}"
    yield from map(_format_budget, node_pool.budgets)


def _format_budget(budget: DisruptionBudget) -> str:
    reasons = f" ({', '.join(budget.reasons)})" if budget.reasons else ""
    schedule = f" from {budget.schedule} UTC for {format_duration(budget.duration)}" if budget.schedule else ""
    return f"budget {budget.nodes}{reasons}{schedule}"
