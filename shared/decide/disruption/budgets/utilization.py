"""Utilization of a node as Cluster Autoscaler computes it, for the threshold of a NodePool.

The highest share of CPU or memory that the pods request of what is allocatable. DaemonSet pods and static pods count,
as by default in Cluster Autoscaler. Ended and terminating pods do not count. On a node with GPUs, only the share of its
GPUs counts.
"""

from typing import Final

import msgspec

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.decide.disruption.candidates import Candidate
from shared.model.core.labels import UTILIZATION_THRESHOLD
from shared.model.core.resources import AMD_GPU, CPU, GAUDI, MEMORY, NEURON, NVIDIA_GPU, sum_resources
from shared.state.state_node import StateNode

_GPU_RESOURCES: Final = (NVIDIA_GPU, AMD_GPU, NEURON, GAUDI)


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """The resource of which the pods request the highest share."""

    resource: str
    percent: float


def compute_utilization(state: StateNode) -> Utilization:
    """Return the utilization of *state*; a node without allocatable resources counts as unused."""
    allocatable = dict(state.compute_allocatable().amounts)
    requested = dict(
        sum_resources(
            pod.spec.requests for pod in state.pods if not pod.is_terminal() and not pod.is_terminating()
        ).amounts
    )
    gpus = tuple(name for name in _GPU_RESOURCES if allocatable.get(name))
    shares = [
        Utilization(resource=name, percent=100 * requested.get(name, 0) / allocatable[name])
        for name in gpus or (CPU, MEMORY)
        if allocatable.get(name)
    ]
    return max(shares, key=lambda share: share.percent, default=Utilization(resource=CPU, percent=0.0))


def explain_utilization(candidate: Candidate) -> str:
    """Return why the utilization of *candidate* is too high for consolidation; "" if it is not."""
    threshold_percent = parse_disruption_annotations(candidate.pool).utilization_percent
    if threshold_percent is None:
        return ""
    utilization = compute_utilization(candidate.state)
    if utilization.percent < threshold_percent:
        return ""
    used = f"{utilization.percent:.0f}%"
    relation = "at" if used == f"{threshold_percent:g}%" else "above"
    return (
        f"uses {used} of its {utilization.resource}, {relation} the threshold of {threshold_percent:g}% "
        f"(annotation {UTILIZATION_THRESHOLD})"
    )
