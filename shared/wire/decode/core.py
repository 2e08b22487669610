"""Parts that all kinds share: wire JSON -> model. Also Namespace and Node."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from shared.model.core.metadata import Condition, ObjectMeta, OwnerReference, Pairs, build_pairs
from shared.model.core.requirements import Requirements, build_requirements, parse_requirement
from shared.model.core.selectors import LabelSelector, SelectorExpression, build_label_selector
from shared.model.core.taints import Taint, Toleration
from shared.model.karpenter.pause import WORDS_BY_ANNOTATION
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.workloads import Namespace
from shared.wire.decode.field_errors import EXPRESSION_FIX, add_field_path, parse_resource_list
from shared.wire.schema import core as wire
from shared.wire.schema.pods import TolerationJson

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


@lru_cache(maxsize=8192)
def _intern_pairs(key_values: Pairs) -> Pairs:
    """Return the one shared tuple that equals *key_values*."""
    return key_values


@lru_cache(maxsize=8192)
def parse_owner_reference(owner: wire.OwnerReferenceJson) -> OwnerReference:
    """Parse an ownerReference; equal references share one value."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=owner.controller,
    )


def parse_object_meta(meta: wire.ObjectMetaJson, annotations: Mapping[str, str] | None = None) -> ObjectMeta:
    """Parse metadata. If *annotations* is given, it replaces the annotations of *meta*."""
    source_annotations = meta.annotations if annotations is None else annotations
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        generation=meta.generation,
        created_at=meta.creation_timestamp,
        deleted_at=meta.deletion_timestamp,
        labels=_intern_pairs(tuple(sorted(meta.labels.items()))),
        annotations=tuple(sorted(item for item in source_annotations.items() if item[0] != LAST_APPLIED))
        if source_annotations
        else (),
        finalizers=meta.finalizers,
        owners=tuple([parse_owner_reference(owner) for owner in meta.owner_references]),
    )


def parse_conditions(conditions: Iterable[wire.ConditionJson]) -> tuple[Condition, ...]:
    """Parse status.conditions, sorted by type."""
    parsed_conditions = [
        Condition(
            type=condition.type,
            status=condition.status,
            reason=condition.reason,
            message=condition.message,
            since=condition.last_transition_time,
            observed_generation=condition.observed_generation,
        )
        for condition in conditions
    ]
    return tuple(
        sorted(
            parsed_conditions,
            key=lambda condition: (condition.type, condition.status, condition.reason, condition.message),
        )
    )


def parse_taints(taints: Iterable[wire.TaintJson]) -> tuple[Taint, ...]:
    """Parse taints, sorted."""
    return tuple(sorted({Taint(key=taint.key, effect=taint.effect, value=taint.value) for taint in taints}))


def parse_requirements(path: str, expressions: Iterable[wire.SelectorExpressionJson]) -> Requirements:
    """Parse the matchExpressions at *path*, which select node labels.

    Raises:
        ValueError: an operator is unknown or does not have the values that it needs.
    """
    with add_field_path(path, EXPRESSION_FIX):
        return build_requirements(
            [
                parse_requirement(
                    expression.key, expression.operator, expression.values, min_values=expression.min_values
                )
                for expression in expressions
            ]
        )


def parse_label_selector_json(path: str, label_selector: wire.LabelSelectorJson | None) -> LabelSelector | None:
    """Parse the label selector at *path*; None stays None and selects nothing.

    Raises:
        ValueError: an operator is unknown.
    """
    if label_selector is None:
        return None
    for match_expression in label_selector.match_expressions:
        if match_expression.operator not in _OPERATORS:
            raise ValueError(
                f"{path}: unknown operator {match_expression.operator!r}; write one of {', '.join(_OPERATORS)}"
            )
    expressions = tuple(
        SelectorExpression(
            key=expression.key, operator=expression.operator, values=tuple(sorted(set(expression.values)))
        )
        for expression in label_selector.match_expressions
    )
    return build_label_selector(label_selector.match_labels, expressions)


def parse_namespace(namespace: wire.NamespaceJson) -> Namespace:
    """Parse a Namespace; of its annotations only the pause annotations are kept."""
    meta = namespace.metadata
    pause_annotations = {key: value for key, value in meta.annotations.items() if key in WORDS_BY_ANNOTATION}
    return Namespace(name=meta.name, labels=build_pairs(meta.labels), annotations=build_pairs(pause_annotations))


def parse_node(node: wire.NodeJson) -> Node:
    """Parse a Node.

    Raises:
        ValueError: an amount in its status is not a quantity.
    """
    return Node(
        meta=parse_object_meta(node.metadata),
        provider_id=node.spec.provider_id,
        taints=parse_taints(node.spec.taints),
        unschedulable=node.spec.unschedulable,
        capacity=parse_resource_list("status.capacity", node.status.capacity),
        allocatable=parse_resource_list("status.allocatable", node.status.allocatable),
        conditions=parse_conditions(node.status.conditions),
    )


def parse_tolerations(tolerations: Iterable[TolerationJson]) -> tuple[Toleration, ...]:
    """Return the different *tolerations*, sorted."""
    parsed_tolerations = {
        Toleration(
            key=toleration.key,
            operator=toleration.operator or "Equal",
            value=toleration.value,
            effect=toleration.effect,
        )
        for toleration in tolerations
    }
    return tuple(sorted(parsed_tolerations))
