"""Reasons for unschedulable pods: for each NodePool, in order of weight, the first obstacle with its fix."""

from collections.abc import Iterable
from typing import Final

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.requirement_text import format_location, format_requirement
from shared.decide.scheduling.nodes.device_refusal import explain_devices, list_pinned_kinds
from shared.decide.scheduling.nodes.node_pool_limits import select_type_limits
from shared.decide.scheduling.nodes.spot_share_quota import explain_share
from shared.decide.scheduling.nodes.usd_limit_refusal import explain_usd_limits
from shared.decide.scheduling.nodes.zonal_shift_refusal import explain_zonal_shifts
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.decide.scheduling.templates.node_claim_template import ExcludedNodePool, NodeClaimTemplate, TemplateRefusal
from shared.decide.scheduling.templates.template_builder import sort_node_pools
from shared.decide.scheduling.topology.messages import describe_topology_group
from shared.model.core.labels import WELL_KNOWN
from shared.model.core.requirements import Requirements
from shared.model.core.resources import CPU, NODES, PODS, Axes, build_resources, compute_min_resources, format_amount
from shared.model.core.taints import find_untolerated_taint
from shared.model.decisions.placement import UnschedulableReason

_MAX_PLAUSIBLE_CPU_MILLI: Final = 1_000_000 * 1000
"""In thousandths of a CPU: no instance type has as many."""
_REASONS_BY_PROGRESS: Final[tuple[UnschedulableReason, ...]] = (
    "NoNodePool",
    "TaintNotTolerated",
    "RequirementsNotMet",
    "VolumeNotUsable",
    "NoOffering",
    "NoInstanceTypeFits",
    "NoDeviceFits",
    "MinValuesNotMet",
    "LimitExceeded",
    "TopologyNotSatisfied",
)


def explain_unschedulable(
    pod_class: PodEquivalenceClass, packing: FirstFitPacking, excluded_pools: tuple[ExcludedNodePool, ...], axes: Axes
) -> TemplateRefusal:
    """Return the reason of the NodePool that came closest, with the messages of all NodePools."""
    refusals = {excluded_pool.pool.name: excluded_pool.refusal for excluded_pool in excluded_pools}
    refusals |= {
        template.pool.name: _explain_template(template, pod_class, packing, axes) for template in packing.templates
    }
    pools = sort_node_pools(
        (*(excluded_pool.pool for excluded_pool in excluded_pools), *(template.pool for template in packing.templates))
    )
    if not pools:
        return TemplateRefusal(reason="NoNodePool", message="no NodePool exists: create one")
    message = "; ".join(f"NodePool {pool.name}: {refusals[pool.name].message}" for pool in pools)
    return TemplateRefusal(reason=max(refusals.values(), key=_rank_refusal).reason, message=message)


def _explain_template(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, packing: FirstFitPacking, axes: Axes
) -> TemplateRefusal:
    """Return why *template* opened no node for the pod after all preferences were relaxed.

    If the pod has several required terms, the reason is that of the term that came closest.
    """
    last_stage = pod_class.stages[-1]
    stage_numbers = (number for number, stage in enumerate(pod_class.stages) if _is_fully_relaxed(stage, last_stage))
    return max(
        (_explain_stage(template, pod_class, number, packing, axes) for number in stage_numbers), key=_rank_refusal
    )


def _is_fully_relaxed(stage: RelaxationStage, last_stage: RelaxationStage) -> bool:
    """Return whether *stage* has no preferences left; there is such a stage for each required term."""
    stage_constraints = (stage.affinity, stage.anti_affinity, stage.spread, stage.tolerations)
    last_constraints = (last_stage.affinity, last_stage.anti_affinity, last_stage.spread, last_stage.tolerations)
    return stage_constraints == last_constraints and stage.requirements == stage.strict


def _rank_refusal(refusal: TemplateRefusal) -> int:
    return _REASONS_BY_PROGRESS.index(refusal.reason)


def _explain_stage(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage_number: int, packing: FirstFitPacking, axes: Axes
) -> TemplateRefusal:
    stage = pod_class.stages[stage_number]
    taint = find_untolerated_taint(template.pool.taints, stage.tolerations)
    if taint is not None:
        return TemplateRefusal(reason="TaintNotTolerated", message=f"needs toleration {taint}")
    refusal = (
        _explain_requirements(template, stage)
        or _explain_volumes(template, pod_class, stage)
        or _explain_size(template, pod_class, stage, axes)
        or _explain_host_ports(template, pod_class, stage)
        or explain_devices(template, pod_class, stage)
        or _explain_limits(template, pod_class, stage, packing)
        or _explain_share(template, pod_class, stage, packing)
        or _explain_min_values(template, pod_class, stage, packing)
        or _explain_topology(pod_class.binding_groups[stage_number], packing)
    )
    return explain_zonal_shifts(refusal, template, pod_class, stage)


def _explain_requirements(template: NodeClaimTemplate, stage: RelaxationStage) -> TemplateRefusal | None:
    pod_requirements = stage.requirements
    if stage.is_contradictory:
        key = next(item.key for item in pod_requirements if item.operator == "DoesNotExist")
        message = f"its nodeSelector and required node affinity contradict each other on {key}: correct one of them"
        return TemplateRefusal(reason="RequirementsNotMet", message=message)
    key = template.initial_state.requirements.find_undefined_key(pod_requirements, WELL_KNOWN)
    if key:
        message = (
            f"does not define the label {key} that the pod requires ({format_requirement(pod_requirements[key])}): "
            f"{_suggest_label(key, template)}add it to spec.template.metadata.labels or spec.template.spec.requirements"
        )
        return TemplateRefusal(reason="RequirementsNotMet", message=message)
    key = template.initial_state.requirements.find_conflict(pod_requirements)
    if key:
        allowed_text = format_requirement(template.initial_state.requirements[key])
        message = f"the pod requires {format_requirement(pod_requirements[key])}, the NodePool allows {allowed_text}"
        return TemplateRefusal(reason="RequirementsNotMet", message=message)
    return _explain_instance_types(template, pod_requirements)


def _explain_instance_types(template: NodeClaimTemplate, pod_requirements: Requirements) -> TemplateRefusal | None:
    """Return which requirement leaves no instance type or no offering, or None."""
    joint_requirements = template.initial_state.requirements & pod_requirements
    if template.type_index.find_compatible(joint_requirements) & template.type_index.find_offered(joint_requirements):
        return None
    if template.type_index.find_compatible(joint_requirements):
        location = format_location(joint_requirements)
        message = f"none of its instance types is available{location} now: allow more instance types, zones or spot"
        return TemplateRefusal(reason="NoOffering", message=message)
    failing_requirements = (
        item
        for item in pod_requirements
        if not template.type_index.find_compatible(template.initial_state.requirements & Requirements(items=(item,)))
    )
    item = next(failing_requirements, None)
    requirement_text = (
        format_requirement(item)
        if item is not None
        else " and ".join(format_requirement(requirement) for requirement in pod_requirements)
    )
    return TemplateRefusal(reason="RequirementsNotMet", message=f"none of its instance types has {requirement_text}")


def _explain_volumes(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage
) -> TemplateRefusal | None:
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    if narrowed_template is None or any(
        template.narrow(narrowed_template, alternative) is not None for alternative in pod_class.volume_alternatives
    ):
        return None
    if not pod_class.volume_alternatives:
        message = f"its {list_pinned_kinds(pod_class)} are in different zones"
        return TemplateRefusal(reason="VolumeNotUsable", message=message)
    alternatives_text = " or ".join(
        ", ".join(format_requirement(item) for item in alternative) for alternative in pod_class.volume_alternatives
    )
    kinds = list_pinned_kinds(pod_class)
    message = f"its {kinds} are in topology domains where it cannot launch nodes ({alternatives_text})"
    return TemplateRefusal(reason="VolumeNotUsable", message=message)


def _explain_size(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage, axes: Axes
) -> TemplateRefusal | None:
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    mask = 0 if narrowed_template is None else narrowed_template.mask
    if narrowed_template is None or template.filter_fitting_types(mask, pod_class.request_vector):
        return None
    groups = [group for group in template.daemon_overheads if group.mask & mask]
    least_overhead = axes.build_vector(compute_min_resources(group.requests for group in groups))
    needed_resources = build_resources(dict(zip(axes.names, pod_class.sum_requests(1, least_overhead), strict=True)))
    unavailable_resources = {
        name: amount
        for name, amount in needed_resources.amounts
        if not template.type_index.filter_fitting(mask, axes.build_vector(build_resources({name: amount})))
    }
    reported_resources = unavailable_resources or {
        name: amount for name, amount in needed_resources.amounts if name != PODS
    }
    resources_text = " and ".join(
        f"{format_amount(name, amount)} {name}" for name, amount in sorted(reported_resources.items())
    )
    together = "" if len(unavailable_resources) == 1 else " together"
    location = format_location(narrowed_template.requirements)
    message = f"no instance type has {resources_text}{together}{location}{_suggest_cpu_unit(pod_class)}"
    return TemplateRefusal(reason="NoInstanceTypeFits", message=message)


def _explain_host_ports(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage
) -> TemplateRefusal | None:
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    if narrowed_template is None or template.filter_fitting_types(
        narrowed_template.mask, pod_class.request_vector, pod_class.ports
    ):
        return None
    ports = ", ".join(f"{host_port.port}/{host_port.protocol}" for host_port in pod_class.ports)
    message = f"DaemonSets use a host port of the pod ({ports}) on every instance type that fits: choose another port"
    return TemplateRefusal(reason="NoInstanceTypeFits", message=message)


def _explain_limits(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage, packing: FirstFitPacking
) -> TemplateRefusal | None:
    pool_limits = packing.remaining_limits.get(template.pool.name)
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    if pool_limits is None or narrowed_template is None:
        return None
    if pool_limits.get(NODES, 1) < 1:
        message = "its limit of nodes is reached: increase spec.limits.nodes"
        return TemplateRefusal(reason="LimitExceeded", message=message)
    resource_limits = select_type_limits(pool_limits)
    if template.filter_fitting_types(
        narrowed_template.mask & template.type_index.find_within_limits(resource_limits), pod_class.request_vector
    ):
        return explain_usd_limits(template, pod_class, narrowed_template, packing.remaining_limits, packing.options)
    exceeded_limits = [
        name
        for name, amount in sorted(resource_limits.items())
        if not template.filter_fitting_types(
            narrowed_template.mask & template.type_index.find_within_limits({name: amount}), pod_class.request_vector
        )
    ] or sorted(resource_limits)
    limits_text = ", ".join(
        f"{name} ({format_amount(name, max(0, resource_limits[name]), is_minimum=True)} left)"
        for name in exceeded_limits
    )
    message = f"every instance type that fits would exceed its limit of {limits_text}: increase spec.limits"
    return TemplateRefusal(reason="LimitExceeded", message=message)


def _explain_share(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage, packing: FirstFitPacking
) -> TemplateRefusal | None:
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    if template.spot_share is None or narrowed_template is None:
        return None
    fitting_types = template.filter_fitting_types(narrowed_template.mask, pod_class.request_vector, pod_class.ports)
    return explain_share(template, fitting_types, narrowed_template, packing.share_usages)


def _explain_min_values(
    template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage, packing: FirstFitPacking
) -> TemplateRefusal | None:
    narrowed_template = template.narrow(template.initial_state, stage.requirements)
    if narrowed_template is None or packing.options.min_values_policy != "Strict":
        return None
    fitting_types = template.filter_fitting_types(narrowed_template.mask, pod_class.request_vector, pod_class.ports)
    affordable_types, pool_limits = fitting_types, packing.remaining_limits.get(template.pool.name)
    if pool_limits is not None:
        affordable_types &= template.type_index.find_within_limits(select_type_limits(pool_limits))
    if has_min_values(template, narrowed_template, affordable_types):
        return None
    keys = ", ".join(f"{item.key} ({item.min_values})" for item in narrowed_template.min_value_requirements)
    fit, fix = "fit", "lower minValues"
    if has_min_values(template, narrowed_template, fitting_types):
        fit, fix = "fit and are within its limits", "increase spec.limits or lower minValues"
    message = f"the instance types that {fit} do not satisfy minValues of {keys}: {fix}"
    return TemplateRefusal(reason="MinValuesNotMet", message=message)


def _explain_topology(binding_groups: Iterable[int], packing: FirstFitPacking) -> TemplateRefusal:
    constraints_text = " and ".join(
        sorted({describe_topology_group(packing.topology.groups[number]) for number in binding_groups})
    )
    if constraints_text:
        message = f"none of its domains satisfies {constraints_text}: relax the constraint or allow more domains"
        return TemplateRefusal(reason="TopologyNotSatisfied", message=message)
    message = (
        "no instance type satisfies its volumes, limits and minValues together: check the volumes "
        "of the pod and spec.limits"
    )
    return TemplateRefusal(reason="NoInstanceTypeFits", message=message)


def _suggest_label(key: str, template: NodeClaimTemplate) -> str:
    """Return a question for the label that *key* may stand for; "" if there is none.

    That is a known label with the same last part, or one that contains *key*.
    """
    candidate_labels = sorted({*WELL_KNOWN, *(item.key for item in template.initial_state.requirements)})
    last_part = key.rpartition("/")[2]
    similar_label = next(
        (label for label in candidate_labels if key in label or label.rpartition("/")[2] == last_part), ""
    )
    return f"did you mean {similar_label}? Else " if similar_label else ""


def _suggest_cpu_unit(pod_class: PodEquivalenceClass) -> str:
    if pod_class.spec.requests[CPU] < _MAX_PLAUSIBLE_CPU_MILLI:
        return ""
    return ": did you mean m (thousandths of a cpu) instead of M (millions)?"
