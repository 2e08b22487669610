"""Pods, DaemonSets and PodDisruptionBudgets: wire JSON -> model.

Pods of one ReplicaSet differ in little but their names. The inputs of a PodSpec are encoded as a key, and equal keys
share one PodSpec: 20,000 pods are converted in the time, and kept in the memory, of some hundreds.

Code that groups pods can rely on this: `first.spec is second.spec` implies that the specs are equal, without comparing
them. The reverse does not hold: two different objects can be equal, because they were written differently or because
the cache exceeded `MAX_CACHED_SPECS`. Labels, owners and conditions are shared in the same way. A memo by
`id(pod.spec)` and `id(pod.meta.labels)` that lives no longer than the ClusterSnapshot therefore hashes hundreds of
values instead of 20,000, and then merges the equal ones.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from sys import intern
from typing import Final

import msgspec

from shared.model.core.devices import PodClaim
from shared.model.core.labels import POD_DELETION_COST, SAFE_TO_EVICT
from shared.model.core.metadata import Condition, Pairs, build_pairs
from shared.model.core.taints import Toleration
from shared.model.core.units import MAX_DURATION
from shared.model.kubernetes.gangs.gang import READ_ANNOTATIONS
from shared.model.kubernetes.gangs.provisioning_request import CONSUMED_REQUEST
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.model.kubernetes.workloads import DaemonSet
from shared.wire.decode.core import parse_conditions, parse_label_selector_json, parse_object_meta, parse_tolerations
from shared.wire.decode.pod_affinity import parse_affinity, without_preferences
from shared.wire.decode.pod_requests import compute_pod_requests
from shared.wire.schema import pods as wire
from shared.wire.schema.core import ConditionJson, ObjectMetaJson

MAX_CACHED_SPECS: Final = 8192
"""The number of distinct specs that are cached."""
_MAX_SECONDS: Final = int(MAX_DURATION.total_seconds())
_SPEC_KEY_DECODER: Final = msgspec.json.Decoder(wire.PodSpecKey)
_SPEC_KEY_ENCODER: Final = msgspec.json.Encoder()
_READ_ANNOTATIONS: Final = READ_ANNOTATIONS | {POD_DELETION_COST, CONSUMED_REQUEST}
_READ_ANNOTATION_PREFIXES: Final = ("karpenter.sh/", "joiner.dev/")
_DAEMON_POD_TOLERATIONS: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""The tolerations that the DaemonSet controller adds to each of its pods."""
_HOST_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


class PodTemplateSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The values that pods of one template share; *node_name* is set if all are bound to the same node."""

    spec: PodSpec
    node_name: str
    priority: int
    priority_class: str
    grace_period: timedelta
    restart_policy: str
    active_deadline: timedelta | None


def parse_pod(pod: wire.PodJson) -> Pod:
    """Parse a Pod. Only annotations that decisions read are kept.

    Raises:
        ValueError: a part of its spec cannot be parsed; the message names the field.
    """
    return build_pod(parse_pod_template_spec(pod.spec, pod.status, pod.metadata.name), pod.metadata, pod.status)


def parse_pod_template_spec(spec: wire.PodSpecJson, status: wire.PodStatusJson, name: str) -> PodTemplateSpec:
    """Parse the spec of the pod *name*; *status* counts for containers that are being resized.

    Raises:
        ValueError: a part of the spec cannot be parsed; the message names the field.
    """
    return PodTemplateSpec(
        spec=_parse_spec_key(_SPEC_KEY_ENCODER.encode(_build_spec_key(spec, status, name))),
        node_name=intern(spec.node_name),
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        grace_period=_convert_seconds(spec.termination_grace_period_seconds),
        restart_policy=intern(spec.restart_policy or "Always"),
        active_deadline=None
        if spec.active_deadline_seconds is None
        else _convert_seconds(spec.active_deadline_seconds),
    )


def build_pod(template: PodTemplateSpec, metadata: ObjectMetaJson, status: wire.PodStatusJson) -> Pod:
    """Build a pod from *template* with its own metadata and status."""
    return Pod(
        meta=parse_object_meta(metadata, _select_read_annotations(metadata.annotations)),
        spec=template.spec,
        node_name=template.node_name,
        nominated_node_name=status.nominated_node_name,
        phase=status.phase or "Pending",
        priority=template.priority,
        priority_class=template.priority_class,
        grace_period=template.grace_period,
        restart_policy=template.restart_policy,
        active_deadline=template.active_deadline,
        started_at=status.start_time,
        conditions=_parse_conditions(status.conditions),
        restarts=sum([container_status.restart_count for container_status in status.container_statuses]),
        claim_names=_list_claim_names(status.resource_claim_statuses) if status.resource_claim_statuses else (),
    )


def parse_daemon_set(daemon_set: wire.DaemonSetJson) -> DaemonSet:
    """Parse a DaemonSet; the spec is that of a pod that it would create now, without preferences.

    Raises:
        ValueError: a part of its template cannot be parsed; the message names the field.
    """
    template = daemon_set.spec.template.spec
    try:
        spec = _parse_spec_key(_SPEC_KEY_ENCODER.encode(_build_spec_key(template, wire.PodStatusJson(), "")))
    except ValueError as error:
        raise ValueError(f"spec.template.{error}") from None
    added_tolerations = (
        (*_DAEMON_POD_TOLERATIONS, _HOST_NETWORK_TOLERATION) if template.host_network else _DAEMON_POD_TOLERATIONS
    )
    tolerations = tuple(sorted({*spec.tolerations, *added_tolerations}))
    spec = msgspec.structs.replace(without_preferences(spec), tolerations=tolerations)
    return DaemonSet(meta=parse_object_meta(daemon_set.metadata), spec=spec)


def parse_pod_disruption_budget(budget: wire.PodDisruptionBudgetJson) -> PodDisruptionBudget:
    """Parse a PodDisruptionBudget.

    Raises:
        ValueError: its selector has an unknown operator.
    """
    spec = budget.spec
    return PodDisruptionBudget(
        meta=parse_object_meta(budget.metadata),
        selector=parse_label_selector_json("spec.selector", spec.selector),
        disruptions_allowed=budget.status.disruptions_allowed,
        min_available="" if spec.min_available is None else str(spec.min_available),
        max_unavailable="" if spec.max_unavailable is None else str(spec.max_unavailable),
        always_allows_unhealthy=spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )


def _build_spec_key(spec: wire.PodSpecJson, status: wire.PodStatusJson, name: str) -> wire.PodSpecKey:
    statuses = (*status.init_container_statuses, *status.container_statuses)
    return wire.PodSpecKey(
        containers=spec.containers,
        init_containers=spec.init_containers,
        statuses=tuple(
            [
                msgspec.structs.replace(container_status, restart_count=0)
                for container_status in statuses
                if container_status.resources.requests or container_status.allocated_resources
            ]
        ),
        overhead=spec.overhead,
        resources=spec.resources,
        tolerations=spec.tolerations,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        spread=spec.topology_spread_constraints,
        claims=tuple(sorted(set(_list_volume_claims(spec.volumes, name)))),
        host_network=spec.host_network,
        resource_claims=spec.resource_claims,
    )


def _list_claim_names(statuses: Iterable[wire.PodClaimStatusJson]) -> Pairs:
    """Return the names of the claims that were created for a pod; pods that need no claim have none."""
    return build_pairs((status.name, status.resource_claim_name) for status in statuses if status.resource_claim_name)


def _list_volume_claims(volumes: Iterable[wire.VolumeJson], pod: str) -> Iterator[str]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod}-{volume.name}"


@lru_cache(maxsize=MAX_CACHED_SPECS)
def _parse_spec_key(key: bytes) -> PodSpec:
    spec_key = _SPEC_KEY_DECODER.decode(key)
    return PodSpec(
        requests=compute_pod_requests(spec_key),
        tolerations=parse_tolerations(spec_key.tolerations),
        host_ports=_list_host_ports(spec_key),
        volume_claims=spec_key.claims,
        has_resource_claims=bool(spec_key.resource_claims),
        resource_claims=tuple(
            PodClaim(name=claim.name, claim=claim.resource_claim_name, template=claim.resource_claim_template_name)
            for claim in spec_key.resource_claims
        ),
        **parse_affinity(spec_key),
    )


def _list_host_ports(spec_key: wire.PodSpecKey) -> tuple[HostPort, ...]:
    sidecars = (container for container in spec_key.init_containers if container.restart_policy == "Always")
    ports = [port for container in (*spec_key.containers, *sidecars) for port in container.ports]
    numbered_ports = ((port.host_port or (port.container_port if spec_key.host_network else 0), port) for port in ports)
    host_ports = {
        HostPort(port=number, protocol=port.protocol or "TCP", ip=port.host_ip or "0.0.0.0")  # noqa: S104
        for number, port in numbered_ports
        if number
    }
    return tuple(sorted(host_ports))


def _select_read_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in annotations.items()
        if key in _READ_ANNOTATIONS
        or key.startswith(_READ_ANNOTATION_PREFIXES)
        or (key == SAFE_TO_EVICT and value == "false")
    }


@lru_cache(maxsize=8192)
def _parse_conditions(conditions: tuple[ConditionJson, ...]) -> tuple[Condition, ...]:
    return parse_conditions(conditions)


@lru_cache(maxsize=64)
def _convert_seconds(count: int) -> timedelta:
    return timedelta(seconds=max(0, min(count, _MAX_SECONDS)))
