"""Construction of NodeClaim templates from NodePools and instance types."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from shared.decide.scheduling.instance_types.instance_type_index import (
    OFFERING_KEYS,
    InstanceTypeIndex,
)
from shared.decide.scheduling.instance_types.offering_prices import get_offering_kind
from shared.decide.scheduling.templates.daemon_overhead import group_daemon_overhead
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_template import (
    ExcludedNodePool,
    NodeClaimTemplate,
    TemplateRefusal,
    build_narrowed_template,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import join_names
from shared.model.core.labels import NODECLASS, NODEPOOL
from shared.model.core.metadata import find_condition
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements
from shared.model.core.resources import Axes
from shared.model.decisions.placement import PoolWithoutTypes, SchedulingOptions
from shared.model.karpenter.money_limit import find_limit_problem
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.spot_share import find_pool_share_problem, find_spot_share
from shared.state.pauses import find_launch_pause_message
from shared.state.zones.zonal_shifts import find_shifted_zones

_MAX_HINTS: Final = 3


def build_template_labels(pool: NodePool) -> dict[str, str]:
    """Return the labels that every node of *pool* gets from its template."""
    return dict(pool.labels) | {NODEPOOL: pool.name, NODECLASS: pool.node_class.name}


def build_template_requirements(pool: NodePool) -> Requirements:
    """Return the requirements that every node of *pool* satisfies."""
    return pool.requirements & build_label_requirements(build_template_labels(pool))


def sort_node_pools(pools: Iterable[NodePool]) -> list[NodePool]:
    """Return the NodePools by weight, highest first, then by name, last first, as in Karpenter."""
    return sorted(sorted(pools, key=lambda pool: pool.name, reverse=True), key=lambda pool: -pool.weight)


def build_type_indexes(cluster: ClusterSnapshot, axes: Axes) -> dict[str, InstanceTypeIndex]:
    """Build an instance type index for each node class in use, by its name; equal catalogs share one index.

    NodePools whose types were changed by NodeOverlays get an index of their own.
    """
    if cluster.catalog is None:
        return {}
    types_by_node_class = dict(cluster.catalog.by_node_class)
    shared_indexes: list[InstanceTypeIndex] = []
    type_indexes: dict[str, InstanceTypeIndex] = {}
    node_class_names = {pool.node_class.name for pool in cluster.node_pools} | {
        claim.node_class.name for claim in cluster.node_claims
    }
    for name in sorted(node_class_names):
        if name in types_by_node_class:
            type_indexes[name] = InstanceTypeIndex(
                types_by_node_class[name], axes, cluster.unavailable, cluster.taken_at
            )
            continue
        if not shared_indexes:
            shared_indexes.append(
                InstanceTypeIndex(cluster.catalog.instance_types, axes, cluster.unavailable, cluster.taken_at)
            )
        type_indexes[name] = shared_indexes[0]
    for name, types in cluster.catalog.by_node_pool:
        type_indexes[_format_pool_key(name)] = InstanceTypeIndex(types, axes, cluster.unavailable, cluster.taken_at)
    return type_indexes


def find_type_index(
    type_indexes: Mapping[str, InstanceTypeIndex], node_class: str, node_pool: str
) -> InstanceTypeIndex | None:
    """Return the index of the NodePool if NodeOverlays changed its types, else the index of its node class."""
    return type_indexes.get(_format_pool_key(node_pool)) or type_indexes.get(node_class)


def _format_pool_key(name: str) -> str:
    return f"{name}/"  # the name of a node class cannot contain a slash


def build_template(
    pool: NodePool, type_index: InstanceTypeIndex, cluster: ClusterSnapshot, axes: Axes
) -> NodeClaimTemplate:
    """Return the NodeClaim template of *pool*."""
    template_requirements = build_template_requirements(pool)
    start = build_narrowed_template(template_requirements, type_index)
    daemon_overheads = group_daemon_overhead(pool.taints, template_requirements, type_index, cluster.daemon_sets, axes)
    return NodeClaimTemplate(
        pool=pool,
        type_index=type_index,
        daemon_overheads=daemon_overheads,
        initial_state=start,
        interned_states={template_requirements: start},
        shifted_zones=find_shifted_zones(cluster),
        spot_share=find_spot_share(pool),
    )


def build_templates(
    cluster: ClusterSnapshot, axes: Axes, options: SchedulingOptions
) -> tuple[tuple[NodeClaimTemplate, ...], tuple[ExcludedNodePool, ...], dict[str, InstanceTypeIndex]]:
    """Return usable templates and excluded NodePools, both by weight, and the instance type indexes."""
    type_indexes = build_type_indexes(cluster, axes)
    usable_templates: list[NodeClaimTemplate] = []
    excluded_pools: list[ExcludedNodePool] = []
    for pool in sort_node_pools(cluster.node_pools):
        refusal = find_refusal(pool, cluster, options)
        type_index = find_type_index(type_indexes, pool.node_class.name, pool.name)
        if refusal is None and type_index is not None:
            pool_template = build_template(pool, type_index, cluster, axes)
            refusal = _find_type_refusal(pool_template, options)
            if refusal is None:
                usable_templates.append(pool_template)
        if refusal is not None:
            excluded_pools.append(ExcludedNodePool(pool=pool, refusal=refusal))
    return tuple(usable_templates), tuple(excluded_pools), type_indexes


def find_pools_without_types(excluded_pools: Iterable[ExcludedNodePool]) -> tuple[PoolWithoutTypes, ...]:
    """Return the valid NodePools among *excluded_pools* for which no instance type is left, by name."""
    typeless_pools = (
        excluded_pool
        for excluded_pool in excluded_pools
        if excluded_pool.refusal.reason in ("RequirementsNotMet", "MinValuesNotMet")
    )
    return tuple(
        PoolWithoutTypes(node_pool=excluded_pool.pool.name, message=excluded_pool.refusal.message)
        for excluded_pool in sorted(typeless_pools, key=lambda excluded_pool: excluded_pool.pool.name)
    )


def find_refusal(pool: NodePool, cluster: ClusterSnapshot, options: SchedulingOptions) -> TemplateRefusal | None:
    """Return why *pool* is not used, as far as Kubernetes objects show; None if it is used."""
    message = (
        _explain_unusable_pool(pool)
        or find_limit_problem(pool)
        or find_pool_share_problem(pool)
        or find_launch_pause_message(pool, cluster)
        or _explain_unusable_class(pool, cluster, options)
    )
    if not message and cluster.catalog is None:
        message = "there is no catalog of instance types yet: wait for the function catalog, or invoke it"
    return TemplateRefusal(reason="NoNodePool", message=message) if message else None


def _explain_unusable_pool(pool: NodePool) -> str:
    if pool.meta.deleted_at is not None:
        return "is being deleted"
    if pool.replicas is not None:
        return "is static (spec.replicas): it launches no nodes for pending pods"
    if not pool.node_class.is_supported():
        kind = f"{pool.node_class.group}/{pool.node_class.kind}"
        return f"node class kind {kind} is not supported: use karpenter.k8s.aws/EC2NodeClass"
    for type_ in ("ValidationSucceeded", "Ready"):
        pool_condition = find_condition(pool.conditions, type_)
        if (
            pool_condition is not None
            and pool_condition.status == "False"
            and pool_condition.observed_generation >= pool.meta.generation
        ):
            return f"is not valid or not ready ({type_}): {pool_condition.message or pool_condition.reason}"
    return ""


def _explain_unusable_class(pool: NodePool, cluster: ClusterSnapshot, options: SchedulingOptions) -> str:
    if options.readiness == "Assumed":
        return ""
    name = pool.node_class.name
    node_class = next((ec2_node_class for ec2_node_class in cluster.node_classes if ec2_node_class.name == name), None)
    if node_class is None:
        return f"node class {name} does not exist: create it or correct spec.template.spec.nodeClassRef"
    if node_class.meta.deleted_at is not None:
        return f"node class {name} is being deleted: use another in spec.template.spec.nodeClassRef"
    if not node_class.is_ready():
        ready = find_condition(node_class.conditions, "Ready")
        detail = "" if ready is None or not ready.message else f" ({ready.message})"
        return f"node class {name} is not ready{detail}: see its status.conditions"
    return ""


def _find_unknown_value(pool: NodePool, type_index: InstanceTypeIndex) -> str:
    """Return the first requirement of *pool* with only unknown values, with similar known values; "" if none."""
    for requirement in pool.requirements:
        if requirement.key in OFFERING_KEYS:
            place = OFFERING_KEYS.index(requirement.key)
            offerings = (offering for instance_type in type_index.types for offering in instance_type.offerings)
            known_values = {get_offering_kind(offering)[place] for offering in offerings}
        else:
            any_value = Requirement(key=requirement.key, complement=True)
            known_values = set(type_index.list_values(any_value, type_index.usable))
        if requirement.operator == "In" and known_values and not requirement.values & known_values:
            values = sorted(requirement.values)
            similar_values = {
                match: None for value in values for match in get_close_matches(value, sorted(known_values))
            }
            hint = f"; did you mean {' or '.join(list(similar_values)[:_MAX_HINTS])}?" if similar_values else ""
            return f"none matches {requirement.key} In [{join_names(values, _MAX_HINTS)}]{hint}"
    return ""


def _find_type_refusal(pool_template: NodeClaimTemplate, options: SchedulingOptions) -> TemplateRefusal | None:
    if not pool_template.initial_state.mask:
        detail = _find_unknown_value(pool_template.pool, pool_template.type_index)
        message = "spec.template.spec.requirements match no available instance type: "
        return TemplateRefusal(reason="RequirementsNotMet", message=message + (detail or "widen them"))
    if options.min_values_policy == "Strict" and not has_min_values(
        pool_template, pool_template.initial_state, pool_template.initial_state.mask
    ):
        message = "fewer instance types are available than minValues requires: lower it or widen the requirements"
        return TemplateRefusal(reason="MinValuesNotMet", message=message)
    return None
