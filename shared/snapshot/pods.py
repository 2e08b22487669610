"""Pods, DaemonSets and PodDisruptionBudgets: wire -> model.

Pods of one ReplicaSet differ in little but their names. What their PodSpec is made of is written down as a key, and
equal keys are one PodSpec: 20,000 pods are converted in the time of some hundreds, and kept in their room.

Whoever groups pods may use that. `one.spec is other.spec` says that two specs are equal, without a look at them; where
it does not hold they may be equal all the same: written in other words, or forgotten because there were more than
`SPECS`. Labels, owners and conditions are shared in the same way. So a memo by `id(pod.spec)` and `id(pod.meta.labels)`
that lives no longer than the Cluster hashes hundreds of values instead of 20,000, and then joins those that are equal.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from sys import intern
from typing import Final

import msgspec

from shared.model.labels import POD_DELETION_COST
from shared.model.objects import Condition
from shared.model.pods import DaemonSet, HostPort, Pod, PodDisruptionBudget, PodSpec
from shared.model.taints import Toleration
from shared.model.units import LONGEST
from shared.snapshot import wire_pods as wire
from shared.snapshot.affinity import affinity_parts, without_preferences
from shared.snapshot.core import conditions_from_wire, meta_from_wire, selector_from_wire
from shared.snapshot.requests import requests_from_shape
from shared.snapshot.wire_core import Condition as WireCondition
from shared.snapshot.wire_core import Meta as WireMeta

SPECS: Final = 8192
"""How many different specs are remembered."""
_LONGEST_SECONDS: Final = int(LONGEST.total_seconds())
_SHAPE: Final = msgspec.json.Decoder(wire.PodShape)
_KEY: Final = msgspec.json.Encoder()
_READ_DOMAINS: Final = ("karpenter.sh/", "joiner.dev/")
_EVERY_DAEMON: Final = tuple(
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
"""What the DaemonSet controller adds to each pod that it makes."""
_HOST_NETWORK_DAEMON: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """What pods have in common that were made from one template; *node_name* if they are bound alike."""

    spec: PodSpec
    node_name: str
    priority: int
    priority_class: str
    grace_period: timedelta


def pod_from_wire(pod: wire.Pod) -> Pod:
    """Read a Pod. Of its annotations only those that decisions read are kept.

    Raises:
        ValueError: a part of its spec cannot be read; the message names the field.
    """
    return pod_from_template(template_from_wire(pod.spec, pod.status, pod.metadata.name), pod.metadata, pod.status)


def template_from_wire(spec: wire.PodSpec, status: wire.PodStatus, name: str) -> Template:
    """Read the spec of the pod *name*; *status* counts where containers are being resized.

    Raises:
        ValueError: a part of it cannot be read; the message names the field.
    """
    return Template(
        spec=_spec_from_key(_KEY.encode(_shape(spec, status, name))),
        node_name=intern(spec.node_name),
        priority=spec.priority,
        priority_class=spec.priority_class_name,
        grace_period=_seconds(spec.termination_grace_period_seconds),
    )


def pod_from_template(template: Template, metadata: WireMeta, status: wire.PodStatus) -> Pod:
    """Answer the pod of *template* with what is its own."""
    return Pod(
        meta=meta_from_wire(metadata, _read_annotations(metadata.annotations)),
        spec=template.spec,
        node_name=template.node_name,
        nominated_node_name=status.nominated_node_name,
        phase=status.phase or "Pending",
        priority=template.priority,
        priority_class=template.priority_class,
        grace_period=template.grace_period,
        started_at=status.start_time,
        conditions=_conditions(status.conditions),
    )


def daemon_set_from_wire(daemon_set: wire.DaemonSet) -> DaemonSet:
    """Read a DaemonSet: the spec is that of a pod it would make today, without preferences.

    Raises:
        ValueError: a part of its template cannot be read; the message names the field.
    """
    template = daemon_set.spec.template.spec
    try:
        spec = _spec_from_key(_KEY.encode(_shape(template, wire.PodStatus(), "")))
    except ValueError as error:
        raise ValueError(f"spec.template.{error}") from None
    added = (*_EVERY_DAEMON, _HOST_NETWORK_DAEMON) if template.host_network else _EVERY_DAEMON
    tolerations = tuple(sorted({*spec.tolerations, *added}))
    spec = msgspec.structs.replace(without_preferences(spec), tolerations=tolerations)
    return DaemonSet(meta=meta_from_wire(daemon_set.metadata), spec=spec)


def budget_from_wire(budget: wire.Budget) -> PodDisruptionBudget:
    """Read a PodDisruptionBudget.

    Raises:
        ValueError: its selector has an unknown operator.
    """
    spec = budget.spec
    return PodDisruptionBudget(
        meta=meta_from_wire(budget.metadata),
        selector=selector_from_wire("spec.selector", spec.selector),
        disruptions_allowed=budget.status.disruptions_allowed,
        min_available="" if spec.min_available is None else str(spec.min_available),
        max_unavailable="" if spec.max_unavailable is None else str(spec.max_unavailable),
        always_allows_unhealthy=spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )


def _shape(spec: wire.PodSpec, status: wire.PodStatus, name: str) -> wire.PodShape:
    statuses = (*status.init_container_statuses, *status.container_statuses)
    return wire.PodShape(
        containers=spec.containers,
        init_containers=spec.init_containers,
        statuses=tuple([one for one in statuses if one.resources.requests or one.allocated_resources]),
        overhead=spec.overhead,
        resources=spec.resources,
        tolerations=spec.tolerations,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        spread=spec.topology_spread_constraints,
        claims=tuple(sorted(set(_claims(spec.volumes, name)))),
        host_network=spec.host_network,
        has_resource_claims=bool(spec.resource_claims),
    )


def _claims(volumes: Iterable[wire.Volume], pod: str) -> Iterator[str]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod}-{volume.name}"


@lru_cache(maxsize=SPECS)
def _spec_from_key(key: bytes) -> PodSpec:
    shape = _SHAPE.decode(key)
    return PodSpec(
        requests=requests_from_shape(shape),
        tolerations=_tolerations(shape.tolerations),
        host_ports=_host_ports(shape),
        volume_claims=shape.claims,
        has_resource_claims=shape.has_resource_claims,
        **affinity_parts(shape),
    )


def _tolerations(tolerations: Iterable[wire.Toleration]) -> tuple[Toleration, ...]:
    some = {
        Toleration(key=one.key, operator=one.operator or "Equal", value=one.value, effect=one.effect)
        for one in tolerations
    }
    return tuple(sorted(some))


def _host_ports(shape: wire.PodShape) -> tuple[HostPort, ...]:
    sidecars = (container for container in shape.init_containers if container.restart_policy == "Always")
    ports = [port for container in (*shape.containers, *sidecars) for port in container.ports]
    taken = ((port.host_port or (port.container_port if shape.host_network else 0), port) for port in ports)
    some = {
        HostPort(port=number, protocol=port.protocol or "TCP", ip=port.host_ip or "0.0.0.0")  # noqa: S104
        for number, port in taken
        if number
    }
    return tuple(sorted(some))


def _read_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value for key, value in annotations.items() if key == POD_DELETION_COST or key.startswith(_READ_DOMAINS)
    }


@lru_cache(maxsize=8192)
def _conditions(conditions: tuple[WireCondition, ...]) -> tuple[Condition, ...]:
    return conditions_from_wire(conditions)


@lru_cache(maxsize=64)
def _seconds(count: int) -> timedelta:
    return timedelta(seconds=max(0, min(count, _LONGEST_SECONDS)))
