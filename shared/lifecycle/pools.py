"""What NodePools say of themselves: what they use, whether they can be used."""

from collections.abc import Iterable
from typing import Any

import msgspec

from shared.lifecycle.health import with_health
from shared.lifecycle.machines import View
from shared.model.action import PatchStatus
from shared.model.conditions import (
    POOL_ROOTS,
    conditions_json,
    restamped,
    rooted,
    same_conditions,
    with_condition,
)
from shared.model.nodepools import NodePool
from shared.model.objects import Condition, condition
from shared.model.resources import NODES, quantities_from
from shared.model.state import StateNode, pool_usage

_ALWAYS = ("cpu", "ephemeral-storage", "memory", "nodes", "pods")


def describe(pool: NodePool, states: Iterable[StateNode], view: View) -> tuple[PatchStatus, ...]:
    """Write the pool's status, where it says anything new."""
    conditions = conditions_of(pool, view)
    usage = pool_usage(states, pool.name)
    told = same_conditions(conditions, pool.conditions)
    if told and usage == pool.usage:
        return ()
    amounts: dict[str, str | None] = dict.fromkeys(pool.usage.names())
    amounts |= dict.fromkeys(_ALWAYS, "0") | quantities_from(usage)
    status: dict[str, Any] = {"resources": dict(sorted(amounts.items())), "nodes": usage[NODES]}
    if not told:
        status["conditions"] = conditions_json(conditions)
    version = "" if told else pool.meta.resource_version
    body = msgspec.json.encode(status).decode()
    return (PatchStatus(kind="NodePool", name=pool.name, resource_version=version, status=body, why="it changed"),)


def conditions_of(pool: NodePool, view: View) -> tuple[Condition, ...]:
    """Answer the pool's conditions as they are to be."""
    now, generation = view.now, pool.meta.generation
    problems = sorted(one.message for one in view.cluster.problems if one.kind == "NodePool" and one.name == pool.name)
    valid = ("False", "NodePoolValidationFailed", "; ".join(problems)) if problems else ("True", "", "")
    some = with_condition(pool.conditions, "ValidationSucceeded", *valid, now, generation)
    some = with_condition(some, "NodeClassReady", *_class_readiness(pool, view), now, generation)
    some = with_health(some, pool, view)
    return rooted(restamped(some, POOL_ROOTS, generation), POOL_ROOTS, now, generation, pool.meta.created_at)


def _class_readiness(pool: NodePool, view: View) -> tuple[str, str, str]:
    name = pool.node_class.name
    found = next((one for one in view.cluster.node_classes if one.name == name), None)
    if found is None and view.cluster.lacks("ec2nodeclasses.karpenter.k8s.aws"):
        return "Unknown", "NodeClassReadinessUnknown", f"EC2NodeClass {name} cannot be seen"
    if found is None:
        return "False", "NodeClassNotFound", f"there is no EC2NodeClass {name}"
    if found.meta.deleted_at is not None:
        return "False", "NodeClassTerminating", f"EC2NodeClass {name} is being deleted"
    ready = condition(found.conditions, "Ready")
    if ready is None or ready.status == "Unknown" or not found.is_current():
        return "Unknown", "NodeClassReadinessUnknown", f"EC2NodeClass {name} is not resolved yet"
    return (ready.status, "", "") if ready.status == "True" else (ready.status, ready.reason, ready.message)
