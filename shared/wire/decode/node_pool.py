"""NodePools: wire JSON -> model. An invalid NodePool is refused with all its errors at once."""

from shared.model.core.metadata import build_pairs
from shared.model.core.resources import Resources
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.karpenter.schedules.schedule_checks import parse_node_pool_schedule
from shared.wire.decode.core import parse_conditions, parse_object_meta, parse_requirements, parse_taints
from shared.wire.decode.field_errors import parse_resource_list
from shared.wire.decode.node_claim import (
    is_foreign_node_class,
    parse_duration_or_never,
    parse_node_class_ref,
    parse_optional_duration,
)
from shared.wire.decode.node_pool_validation import validate_node_pool
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import Quantities


def parse_node_pool(pool: wire.NodePoolJson) -> NodePool:
    """Parse a NodePool; one of another provider is not validated, and has only its metadata and node class.

    Raises:
        ValueError: the NodePool is invalid; the message joins all errors.
    """
    if is_foreign_node_class(pool.spec.template.spec.node_class_ref):
        node_class = parse_node_class_ref(pool.spec.template.spec.node_class_ref)
        return NodePool(meta=parse_object_meta(pool.metadata), node_class=node_class)
    meta, schedule, errors = parse_object_meta(pool.metadata), None, list(validate_node_pool(pool.spec))
    try:
        schedule = parse_node_pool_schedule(meta, is_static=pool.spec.replicas is not None)
    except ValueError as error:
        errors.append(str(error))
    if errors:
        raise ValueError(" | ".join(errors))
    spec, template, disruption = pool.spec, pool.spec.template, pool.spec.disruption
    return NodePool(
        meta=meta,
        node_class=parse_node_class_ref(template.spec.node_class_ref),
        labels=build_pairs(template.metadata.labels),
        annotations=build_pairs(template.metadata.annotations),
        requirements=parse_requirements("spec.template.spec.requirements", template.spec.requirements),
        taints=parse_taints(template.spec.taints),
        startup_taints=parse_taints(template.spec.startup_taints),
        expire_after=parse_duration_or_never("spec.template.spec.expireAfter", template.spec.expire_after),
        termination_grace_period=parse_optional_duration(
            "spec.template.spec.terminationGracePeriod", template.spec.termination_grace_period
        ),
        consolidation_policy=disruption.consolidation_policy,
        consolidate_after=parse_duration_or_never("spec.disruption.consolidateAfter", disruption.consolidate_after),
        budgets=tuple(parse_disruption_budget(number, budget) for number, budget in enumerate(disruption.budgets)),
        limits=None if spec.limits is None else parse_limits(spec.limits),
        weight=spec.weight or 0,
        replicas=spec.replicas,
        usage=parse_resource_list("status.resources", pool.status.resources),
        conditions=parse_conditions(pool.status.conditions),
        schedule=schedule,
    )


def parse_disruption_budget(number: int, budget: wire.DisruptionBudgetJson) -> DisruptionBudget:
    """Parse disruption budget *number*; *nodes* and *schedule* are parsed where they are used.

    Raises:
        ValueError: its duration cannot be parsed.
    """
    return DisruptionBudget(
        nodes=budget.nodes,
        reasons=None if budget.reasons is None else tuple(sorted(set(budget.reasons))),
        schedule=budget.schedule,
        duration=parse_optional_duration(f"spec.disruption.budgets[{number}].duration", budget.duration),
    )


def parse_limits(limits: Quantities) -> Resources:
    """Parse limits.

    A limit of zero is kept: it allows none of the resource, while a missing limit allows any amount.

    Raises:
        ValueError: an amount is not a quantity.
    """
    resource_list = parse_resource_list("spec.limits", limits)
    return Resources(amounts=tuple(sorted((name, resource_list[name]) for name in limits)))
