"""What all kinds share: wire -> model. Also Namespace and Node."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from shared.model.cluster import Namespace
from shared.model.holds import WORDS
from shared.model.nodes import Node
from shared.model.objects import Condition, Meta, Owner, Pairs, pairs
from shared.model.requirements import Requirements, requirement, requirements
from shared.model.selectors import Expression, LabelSelector, selector
from shared.model.taints import Taint
from shared.snapshot import wire_core as wire
from shared.snapshot.fields import EXPRESSION, amounts, at

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


@lru_cache(maxsize=8192)
def _canonical(some: Pairs) -> Pairs:
    """Answer the one value that stands for all that are equal to *some*."""
    return some


@lru_cache(maxsize=8192)
def owner_from_wire(owner: wire.Owner) -> Owner:
    """Read an ownerReference; equal ones are one value."""
    return Owner(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=owner.controller,
    )


def meta_from_wire(meta: wire.Meta, annotations: Mapping[str, str] | None = None) -> Meta:
    """Read metadata; *annotations* stand for its own where only some are wanted."""
    kept = meta.annotations if annotations is None else annotations
    return Meta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        created_at=meta.creation_timestamp,
        deleted_at=meta.deletion_timestamp,
        labels=_canonical(tuple(sorted(meta.labels.items()))),
        annotations=tuple(sorted(item for item in kept.items() if item[0] != LAST_APPLIED)) if kept else (),
        finalizers=meta.finalizers,
        owners=tuple([owner_from_wire(owner) for owner in meta.owner_references]),
    )


def conditions_from_wire(conditions: Iterable[wire.Condition]) -> tuple[Condition, ...]:
    """Read status.conditions, sorted by type."""
    some = [
        Condition(
            type=one.type,
            status=one.status,
            reason=one.reason,
            message=one.message,
            since=one.last_transition_time,
            observed_generation=one.observed_generation,
        )
        for one in conditions
    ]
    return tuple(sorted(some, key=lambda one: (one.type, one.status, one.reason, one.message)))


def taints_from_wire(taints: Iterable[wire.Taint]) -> tuple[Taint, ...]:
    """Read taints, sorted."""
    return tuple(sorted({Taint(key=one.key, effect=one.effect, value=one.value) for one in taints}))


def requirements_from_wire(path: str, expressions: Iterable[wire.Expression]) -> Requirements:
    """Read matchExpressions over node labels, at *path*.

    Raises:
        ValueError: an operator is unknown or has not the values that it needs.
    """
    with at(path, EXPRESSION):
        return requirements(
            [requirement(one.key, one.operator, one.values, min_values=one.min_values) for one in expressions]
        )


def selector_from_wire(path: str, some: wire.LabelSelector | None) -> LabelSelector | None:
    """Read a selector of labels, at *path*; None stays None and selects nothing.

    Raises:
        ValueError: an operator is unknown.
    """
    if some is None:
        return None
    for one in some.match_expressions:
        if one.operator not in _OPERATORS:
            raise ValueError(f"{path}: unknown operator {one.operator!r}; write one of {', '.join(_OPERATORS)}")
    expressions = tuple(
        Expression(key=one.key, operator=one.operator, values=tuple(sorted(set(one.values))))
        for one in some.match_expressions
    )
    return selector(some.match_labels, expressions)


def namespace_from_wire(namespace: wire.Namespace) -> Namespace:
    """Read a Namespace."""
    meta = namespace.metadata
    ours = {key: value for key, value in meta.annotations.items() if key in WORDS}
    return Namespace(name=meta.name, labels=pairs(meta.labels), annotations=pairs(ours))


def node_from_wire(node: wire.Node) -> Node:
    """Read a Node.

    Raises:
        ValueError: an amount of its status is not a quantity.
    """
    return Node(
        meta=meta_from_wire(node.metadata),
        provider_id=node.spec.provider_id,
        taints=taints_from_wire(node.spec.taints),
        unschedulable=node.spec.unschedulable,
        capacity=amounts("status.capacity", node.status.capacity),
        allocatable=amounts("status.allocatable", node.status.allocatable),
        conditions=conditions_from_wire(node.status.conditions),
    )
