"""Samples with a series for each node, NodeClaim, pod or offering, with the names and labels of Karpenter."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.core.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, REGION, ZONE
from shared.model.core.metadata import is_condition_true
from shared.model.core.metrics.metric_samples import LabelPairs, Sample
from shared.model.core.resources import CPU, Resources
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod import Pod
from shared.state.state_node import StateNode

NODE_LABEL_KEYS: Final = {
    "arch": ARCH,
    "capacity_type": CAPACITY_TYPE,
    "instance_type": INSTANCE_TYPE,
    "os": OS,
    "region": REGION,
    "zone": ZONE,
}
"""Label keys of nodes by Prometheus label, as in Karpenter."""
_POD_NODE_LABELS: Final = ("arch", "capacity_type", "instance_type", "zone")
_TRUTH: Final = {True: "true", False: "false"}


def compute_node_resources(
    states: Iterable[StateNode], compute_resources: Callable[[StateNode], Resources]
) -> Iterator[Sample]:
    """Yield the resources of each registered node."""
    for state_node in list_registered(states):
        labels = _build_node_labels(state_node)
        for name, amount in compute_resources(state_node).amounts:
            yield _sort_labels(labels | {"resource_type": format_resource(name)}), convert_amount(name, amount)


def compute_node_ages(states: Iterable[StateNode], now: datetime) -> Iterator[Sample]:
    """Yield the age of each registered node in seconds."""
    for state_node in list_registered(states):
        created_at = state_node.node.meta.created_at if state_node.node is not None else None
        if created_at is not None:
            yield _sort_labels(_build_node_labels(state_node)), max(0.0, (now - created_at).total_seconds())


def compute_claim_conditions(claims: Iterable[NodeClaim]) -> Iterator[Sample]:
    """Yield 1 for each condition of each NodeClaim; a NodeClaim has no namespace."""
    for claim in claims:
        for condition in claim.conditions:
            labels = {"reason": condition.reason, "status": condition.status, "type": condition.type}
            yield _sort_labels(labels | {"name": claim.name, "namespace": ""}), 1.0


def compute_pod_states(pods: Iterable[Pod], states: Iterable[StateNode]) -> Iterator[Sample]:
    """Yield 1 for each pod; the labels of the node are empty until the pod has a node."""
    state_by_node = {state_node.name: state_node for state_node in states if state_node.node is not None}
    for pod in pods:
        if pod.is_buffer_pod():
            continue
        state_node = state_by_node.get(pod.node_name)
        node_labels = _build_node_labels(state_node) if state_node is not None else {}
        owner = next(iter(pod.meta.owners), None)
        labels = {
            "managed": node_labels.get("managed", _TRUTH[False]),
            "name": pod.meta.name,
            "namespace": pod.meta.namespace,
            "node": pod.node_name,
            "nodepool": node_labels.get("nodepool", ""),
            "owner": f"{owner.kind}/{owner.name}" if owner is not None else "",
            "phase": pod.phase,
            "ready": _TRUTH[is_condition_true(pod.conditions, "Ready")],
            "scheduled": _TRUTH[bool(pod.node_name)],
        }
        yield _sort_labels(labels | {name: node_labels.get(name, "") for name in _POD_NODE_LABELS}), 1.0


def compute_offering_prices(catalog: Catalog | None) -> Iterator[Sample]:
    """Yield the price of each offering with a known price; the lowest, if reservations share its labels."""
    price_by_labels: dict[LabelPairs, float] = {}
    for instance_type in catalog.instance_types if catalog is not None else ():
        for offering in instance_type.offerings:
            labels = (
                ("capacity_type", offering.capacity_type),
                ("instance_type", instance_type.name),
                ("zone", offering.zone),
            )
            price = offering.price_usd_per_hour
            if math.isfinite(price) and price > 0:
                price_by_labels[labels] = min(price, price_by_labels.get(labels, math.inf))
    yield from price_by_labels.items()


def list_registered(states: Iterable[StateNode]) -> Iterator[StateNode]:
    """Yield the nodes that are registered."""
    yield from (state_node for state_node in states if state_node.node is not None and state_node.is_registered())


def format_resource(name: str) -> str:
    """Return the value of the label resource_type, as in Karpenter.

    >>> format_resource("ephemeral-storage")
    'ephemeral_storage'
    """
    return name.lower().replace("-", "_")


def convert_amount(name: str, amount: int) -> float:
    """Return cpu in cores; other resources unchanged."""
    return amount / 1000 if name == CPU else float(amount)


def _build_node_labels(state_node: StateNode) -> dict[str, str]:
    return {
        "managed": _TRUTH[state_node.claim is not None],
        "node_name": state_node.name,
        "nodepool": state_node.pool,
    } | {name: state_node.meta.get_label(key) for name, key in NODE_LABEL_KEYS.items()}


def _sort_labels(labels: Mapping[str, str]) -> LabelPairs:
    return tuple(sorted(labels.items()))
