"""Daemon overhead: requests of DaemonSet pods per instance type of a template, and those still missing on a node.

A DaemonSet pod runs on a node if it tolerates the taints (PreferNoSchedule is always tolerated) and if the node matches
any of its required node affinity terms.
"""

from collections.abc import Iterable

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import combine_required_terms
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.model.core.labels import INITIALIZED, REGISTERED, WELL_KNOWN
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.core.resources import Axes, Resources, Vector, build_resources, sum_resources
from shared.model.core.taints import PREFER_NO_SCHEDULE, Taint, find_untolerated_taint
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import PodSpec
from shared.model.kubernetes.workloads import DaemonSet
from shared.state.state_node import StateNode

READY_NODE_LABELS = build_label_requirements({REGISTERED: "true", INITIALIZED: "true"})
"""Labels that a node has once it is ready: DaemonSet pods may select on them, other pods may not."""


class DaemonOverheadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Instance types on which the same DaemonSets run, and the total requests of these DaemonSets."""

    mask: Mask
    request_vector: Vector
    requests: Resources
    ports: tuple[HostPort, ...]


def group_daemon_overhead(
    taints: tuple[Taint, ...],
    template_requirements: Requirements,
    type_index: InstanceTypeIndex,
    daemon_sets: Iterable[DaemonSet],
    axes: Axes,
) -> tuple[DaemonOverheadGroup, ...]:
    """Group the instance types that *template_requirements* allow by the DaemonSets that would run on them."""
    groups: list[tuple[Mask, tuple[PodSpec, ...]]] = [(type_index.find_compatible(template_requirements), ())]
    for daemon in _sort_daemon_sets(daemon_sets):
        if not _can_tolerate(daemon.spec, taints):
            continue
        runnable_types = _select_types(daemon.spec, template_requirements & READY_NODE_LABELS, type_index)
        groups = [
            part
            for mask, daemon_specs in groups
            for part in _split_group(mask, daemon_specs, runnable_types, daemon.spec)
            if part[0]
        ]
    return tuple(_build_overhead_group(mask, daemon_specs, axes) for mask, daemon_specs in groups)


def compute_missing_daemons(
    state: StateNode, labels: Requirements, daemon_sets: Iterable[DaemonSet]
) -> tuple[Resources, frozenset[HostPort]]:
    """Return the requests of expected DaemonSet pods that are missing, and the host ports of all expected ones.

    The requests are never negative.
    """
    expected = select_daemon_sets(state.list_taints(), labels, daemon_sets)
    expected_requests = sum_resources(daemon.spec.requests for daemon in expected)
    running_requests = sum_resources(
        pod.spec.requests for pod in state.pods if pod.is_daemon() and not pod.is_terminal()
    )
    missing_requests = build_resources(
        {name: max(0, amount) for name, amount in (expected_requests - running_requests).amounts}
    )
    return missing_requests, frozenset(port for daemon in expected for port in daemon.spec.host_ports)


def select_daemon_sets(
    taints: tuple[Taint, ...], labels: Requirements, daemon_sets: Iterable[DaemonSet]
) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets for which the DaemonSet controller would create a pod on a node with *labels*, by name."""
    return tuple(
        daemon
        for daemon in _sort_daemon_sets(daemon_sets)
        if _can_tolerate(daemon.spec, taints)
        and any(labels.is_compatible(term) for term in combine_required_terms(daemon.spec))
    )


def _sort_daemon_sets(daemon_sets: Iterable[DaemonSet]) -> list[DaemonSet]:
    supported_daemon_sets = (daemon for daemon in daemon_sets if not daemon.spec.has_resource_claims)
    return sorted(supported_daemon_sets, key=lambda daemon: (daemon.meta.namespace, daemon.meta.name))


def _can_tolerate(spec: PodSpec, taints: tuple[Taint, ...]) -> bool:
    return find_untolerated_taint(taints, (*spec.tolerations, PREFER_NO_SCHEDULE)) is None


def _select_types(spec: PodSpec, template_requirements: Requirements, type_index: InstanceTypeIndex) -> Mask:
    mask = 0
    for term in combine_required_terms(spec):
        if template_requirements.is_compatible(term, WELL_KNOWN):
            mask |= type_index.find_compatible(term)
    return mask


def _split_group(
    mask: Mask, daemon_specs: tuple[PodSpec, ...], runnable_types: Mask, spec: PodSpec
) -> tuple[tuple[Mask, tuple[PodSpec, ...]], tuple[Mask, tuple[PodSpec, ...]]]:
    return (mask & runnable_types, (*daemon_specs, spec)), (mask & ~runnable_types, daemon_specs)


def _build_overhead_group(mask: Mask, daemon_specs: tuple[PodSpec, ...], axes: Axes) -> DaemonOverheadGroup:
    requests = sum_resources(spec.requests for spec in daemon_specs)
    ports = tuple(port for spec in daemon_specs for port in spec.host_ports)
    return DaemonOverheadGroup(
        mask=mask,
        request_vector=axes.build_vector(requests),
        requests=requests,
        ports=ports,
    )
