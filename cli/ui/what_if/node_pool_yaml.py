"""NodePools as YAML that can be edited and read back."""

from collections.abc import Iterable
from typing import Any

from shared.model.core.requirements import list_requirement_entries
from shared.model.core.resources import format_quantities
from shared.model.core.taints import encode_taint
from shared.model.core.units import format_duration
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.state.schedules import get_usual


def render_node_pools(node_pools: Iterable[NodePool]) -> dict[str, str]:
    """Return the YAML of each NodePool, by name."""
    import yaml  # noqa: PLC0415 - only what-if needs it

    return {
        node_pool.name: str(yaml.safe_dump(build_manifest(get_usual(node_pool)), sort_keys=False, allow_unicode=True))
        for node_pool in node_pools
    }


def build_manifest(node_pool: NodePool) -> dict[str, Any]:
    """Return the manifest of *node_pool*, without fields that have their defaults."""
    spec: dict[str, Any] = {
        "replicas": node_pool.replicas,
        "weight": node_pool.weight or None,
        "limits": format_quantities(node_pool.limits) if node_pool.limits is not None else None,
        "disruption": {
            "consolidationPolicy": node_pool.consolidation_policy,
            "consolidateAfter": format_duration(node_pool.consolidate_after),
            "budgets": [_build_budget(budget) for budget in node_pool.budgets],
        },
        "template": _build_template(node_pool),
    }
    metadata: dict[str, Any] = {"name": node_pool.name}
    if node_pool.meta.annotations:
        metadata["annotations"] = dict(node_pool.meta.annotations)
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _build_template(node_pool: NodePool) -> dict[str, Any]:
    reference, grace_period = node_pool.node_class, node_pool.termination_grace_period
    metadata = _drop_empty({"labels": dict(node_pool.labels), "annotations": dict(node_pool.annotations)})
    lists = {
        "requirements": list_requirement_entries(node_pool.requirements),
        "taints": [encode_taint(taint) for taint in node_pool.taints],
        "startupTaints": [encode_taint(taint) for taint in node_pool.startup_taints],
    }
    spec = {
        "nodeClassRef": {"group": reference.group, "kind": reference.kind, "name": reference.name},
        "requirements": [],  # required, also if it is empty
        **_drop_empty(lists),
        "expireAfter": format_duration(node_pool.expire_after),
    }
    if grace_period is not None:
        spec["terminationGracePeriod"] = format_duration(grace_period)
    return _drop_empty({"metadata": metadata}) | {"spec": spec}


def _build_budget(budget: DisruptionBudget) -> dict[str, Any]:
    fields: dict[str, Any] = {"nodes": budget.nodes}
    if budget.reasons is not None:
        fields["reasons"] = list(budget.reasons)
    if budget.schedule:
        fields["schedule"] = budget.schedule
    if budget.duration is not None:
        fields["duration"] = format_duration(budget.duration)
    return fields


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
