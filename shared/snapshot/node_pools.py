"""NodePools: wire -> model. One that the rules refuse is refused for all its errors at once."""

from shared.model.nodepools import Budget, NodePool
from shared.model.objects import pairs
from shared.model.resources import Resources
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.core import conditions_from_wire, meta_from_wire, requirements_from_wire, taints_from_wire
from shared.snapshot.fields import amounts
from shared.snapshot.node_claims import class_ref_from_wire, duration, nillable_duration
from shared.snapshot.node_pool_rules import refusals
from shared.snapshot.wire_core import Quantities


def node_pool_from_wire(pool: wire.NodePool) -> NodePool:
    """Read a NodePool.

    Raises:
        ValueError: the rules refuse it; the message joins all the errors.
    """
    errors = tuple(refusals(pool.spec))
    if errors:
        raise ValueError(" | ".join(errors))
    spec, template, disruption = pool.spec, pool.spec.template, pool.spec.disruption
    return NodePool(
        meta=meta_from_wire(pool.metadata),
        node_class=class_ref_from_wire(template.spec.node_class_ref),
        labels=pairs(template.metadata.labels),
        annotations=pairs(template.metadata.annotations),
        requirements=requirements_from_wire("spec.template.spec.requirements", template.spec.requirements),
        taints=taints_from_wire(template.spec.taints),
        startup_taints=taints_from_wire(template.spec.startup_taints),
        expire_after=nillable_duration("spec.template.spec.expireAfter", template.spec.expire_after),
        termination_grace_period=duration(
            "spec.template.spec.terminationGracePeriod", template.spec.termination_grace_period
        ),
        consolidation_policy=disruption.consolidation_policy,
        consolidate_after=nillable_duration("spec.disruption.consolidateAfter", disruption.consolidate_after),
        budgets=tuple(budget_from_wire(number, budget) for number, budget in enumerate(disruption.budgets)),
        limits=None if spec.limits is None else limits_from_wire(spec.limits),
        weight=spec.weight or 0,
        replicas=spec.replicas,
        usage=amounts("status.resources", pool.status.resources),
        conditions=conditions_from_wire(pool.status.conditions),
    )


def budget_from_wire(number: int, budget: wire.PoolBudget) -> Budget:
    """Read disruption budget *number*; what its *nodes* and *schedule* say is judged where they are used.

    Raises:
        ValueError: its duration cannot be read.
    """
    return Budget(
        nodes=budget.nodes,
        reasons=None if budget.reasons is None else tuple(sorted(set(budget.reasons))),
        schedule=budget.schedule,
        duration=duration(f"spec.disruption.budgets[{number}].duration", budget.duration),
    )


def limits_from_wire(limits: Quantities) -> Resources:
    """Read limits. A limit of zero stays: it says that there may be none, where no limit says nothing.

    Raises:
        ValueError: an amount is not a quantity.
    """
    found = amounts("spec.limits", limits)
    return Resources(amounts=tuple(sorted((name, found[name]) for name in limits)))
