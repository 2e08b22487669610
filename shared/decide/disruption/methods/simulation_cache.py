"""Memory of trials: a run with the same simulation as the run before does not repeat the trials that led to nothing.

Most runs find nothing to disrupt, and many of them simulate the same removals as the run before. What time changes is
whether a disruption pays, which nodes are closed, and which pods can move. The first is computed in each run; the
others are part of the key. The memory holds for a container and one key; results do not depend on it.
"""

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import POD_DIGEST
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node

_FIXED_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_TRIALS: Final = 20_000
"""Number of trials that are kept."""


class RemovalTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation showed about the removal of some nodes with at most one new node."""

    refusal: ReplacementRefusal | None = None
    """Why the removal is not possible."""
    is_placed: bool = True
    """Whether all pods were placed."""
    replacement_usd_per_hour: float | None = None
    """The price of the new node; None: no new node is needed."""
    fits_smallest_first: bool | None = None
    """Whether the pods also fit if the smallest are bound first; None: not simulated."""


class TrialKey(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that trials depend on, with the effects of time; compared with `==`."""

    cluster: ClusterSnapshot
    """With a fixed time: unchanged objects are the same objects in the next run, so that comparing is fast."""
    available_again: tuple[bool, ...]
    """Whether each unavailable offering is available again."""
    options: SchedulingOptions
    settings: DisruptionSettings
    removed_nodes: frozenset[str]
    node_by_pod: Mapping[str, str]
    node_numbers: Mapping[str, int]
    closed_nodes: int
    queue: tuple[tuple[str, int], ...]
    """The pods that can move, with the numbers of their classes, in the order of the queue."""
    resident_pods: tuple[tuple[int, tuple[str, ...]], ...]
    """By node number: the names of the pods that can move."""
    unplannable_pods: Mapping[str, Any]


class TrialMemory:
    """The trials of one key, by kind and nodes."""

    def __init__(self) -> None:
        """Start without trials."""
        self._trials: dict[Hashable, object] = {}

    def get(self, *trial_key: Hashable) -> object:
        """Return what was recorded, None if nothing was."""
        return self._trials.get(trial_key)

    def record(self, result: object, *trial_key: Hashable) -> None:
        """Record *result*; if there are too many trials, the others are dropped."""
        if len(self._trials) >= MAX_TRIALS:
            self._trials.clear()
        self._trials[trial_key] = result


class LastTrials:
    """The memory of the newest key."""

    def __init__(self) -> None:
        """Start without a memory."""
        self.is_enabled = True
        """Whether memories are used; tests compare both."""
        self._key: TrialKey | None = None
        self._memory = TrialMemory()

    def find_memory(self, key: TrialKey) -> TrialMemory:
        """Return the memory of *key*: that of the run before if its key is equal, else a new one."""
        if not self.is_enabled or self._key is None or self._key != key:
            self._key, self._memory = key, TrialMemory()
        return self._memory


LAST_TRIALS: Final = LastTrials()


def build_trial_key(
    cluster: ClusterSnapshot,
    setup: SimulationSetup,
    options: SchedulingOptions,
    settings: DisruptionSettings,
    removed_nodes: Iterable[str],
    node_by_pod: Mapping[str, str],
) -> TrialKey:
    """Return the key of the trials in the simulation of *setup*, in which nothing was moved yet."""
    simulation, now = setup.simulation, cluster.taken_at
    return TrialKey(
        cluster=msgspec.structs.replace(
            cluster,
            taken_at=_FIXED_TIME,
            problems=(),
            launch_groups=(),
            nodes=tuple([_drop_version(node) for node in cluster.nodes]),
            node_claims=tuple([_drop_pod_changes(claim) for claim in cluster.node_claims]),
        ),
        available_again=tuple(offering.until <= now for offering in cluster.unavailable),
        options=options,
        settings=msgspec.structs.replace(settings, forecasts=()),
        removed_nodes=frozenset(removed_nodes),
        node_by_pod=node_by_pod,
        node_numbers=simulation.node_numbers,
        closed_nodes=simulation.packing.closed_nodes,
        queue=tuple((name, number) for name, (number, _) in simulation.queued_class_by_pod.items()),
        resident_pods=tuple((number, tuple(pods)) for number, pods in simulation.resident_pods.items()),
        unplannable_pods=setup.unplannable_pods,
    )


def _drop_version(node: Node) -> Node:
    """Return *node* without its version, which changes whenever the kubelet reports."""
    return msgspec.structs.replace(node, meta=msgspec.structs.replace(node.meta, resource_version=""))


def _drop_pod_changes(claim: NodeClaim) -> NodeClaim:
    """Return *claim* without the fields that record changes of its pods: no simulation reads them."""
    annotations = tuple([pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST])
    return msgspec.structs.replace(
        claim,
        meta=msgspec.structs.replace(claim.meta, resource_version="", annotations=annotations),
        conditions=tuple([condition for condition in claim.conditions if condition.type != "Consolidatable"]),
        last_pod_event_at=None,
    )
