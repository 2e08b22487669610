"""Status of NodePools: their resources, and whether they are ready."""

from typing import Any

import msgspec

from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.decide.lifecycle.status.registration_health import with_registration_health
from shared.model.core.conditions import (
    NODE_POOL_ROOTS,
    encode_conditions,
    has_equal_conditions,
    with_condition,
    with_current_root_conditions,
)
from shared.model.core.metadata import Condition, find_condition
from shared.model.core.resources import NODES, format_quantities
from shared.model.decisions.action import PatchStatus
from shared.model.karpenter.node_class import NODE_CLASS_CRD
from shared.model.karpenter.node_pool import NodePool
from shared.state.state_node import compute_pool_usage

_ALWAYS_REPORTED_RESOURCES = ("cpu", "ephemeral-storage", "memory", "nodes", "pods")


def build_pool_status(pool: NodePool, context: LifecycleContext) -> tuple[PatchStatus, ...]:
    """Return the patch of the NodePool's status, if it changes."""
    conditions = build_pool_conditions(pool, context)
    usage = compute_pool_usage(context.cluster_state.nodes, pool.name)
    is_unchanged = has_equal_conditions(conditions, pool.conditions)
    if is_unchanged and usage == pool.usage:
        return ()
    amounts: dict[str, str | None] = dict.fromkeys(pool.usage.list_names())
    amounts |= dict.fromkeys(_ALWAYS_REPORTED_RESOURCES, "0") | format_quantities(usage)
    status: dict[str, Any] = {"resources": dict(sorted(amounts.items())), "nodes": usage[NODES]}
    if not is_unchanged:
        status["conditions"] = encode_conditions(conditions)
    version = "" if is_unchanged else pool.meta.resource_version
    body = msgspec.json.encode(status).decode()
    return (
        PatchStatus(
            kind="NodePool", name=pool.name, resource_version=version, status=body, message="the NodePool changed"
        ),
    )


def build_pool_conditions(pool: NodePool, context: LifecycleContext) -> tuple[Condition, ...]:
    """Return the NodePool's new conditions."""
    now, generation = context.now, pool.meta.generation
    problems = sorted(
        problem.message
        for problem in context.cluster_state.snapshot.problems
        if problem.kind == "NodePool" and problem.name == pool.name
    )
    validation_fields = ("False", "NodePoolValidationFailed", "; ".join(problems)) if problems else ("True", "", "")
    conditions = with_condition(pool.conditions, "ValidationSucceeded", *validation_fields, now, generation)
    conditions = with_condition(
        conditions, "NodeClassReady", *_compute_node_class_readiness(pool, context), now, generation
    )
    conditions = with_registration_health(conditions, pool, context)
    return with_current_root_conditions(conditions, NODE_POOL_ROOTS, now, pool.meta)


def _compute_node_class_readiness(pool: NodePool, context: LifecycleContext) -> tuple[str, str, str]:
    name = pool.node_class.name
    node_class = next(
        (
            candidate_class
            for candidate_class in context.cluster_state.snapshot.node_classes
            if candidate_class.name == name
        ),
        None,
    )
    if node_class is None and context.cluster_state.snapshot.is_unserved(NODE_CLASS_CRD):
        return "Unknown", "NodeClassReadinessUnknown", f"EC2NodeClass {name}: EC2NodeClasses cannot be listed"
    if node_class is None:
        return "False", "NodeClassNotFound", f"EC2NodeClass {name} does not exist"
    if node_class.meta.deleted_at is not None:
        return "False", "NodeClassTerminating", f"EC2NodeClass {name} is being deleted"
    ready = find_condition(node_class.conditions, "Ready")
    if ready is None or ready.status == "Unknown" or not node_class.is_current():
        return "Unknown", "NodeClassReadinessUnknown", f"EC2NodeClass {name} is not resolved yet"
    if ready.status == "True":
        subnets_ready = find_condition(node_class.conditions, "SubnetsReady")
        return "True", "", subnets_ready.message if subnets_ready is not None else ""
    return ready.status, ready.reason, ready.message
