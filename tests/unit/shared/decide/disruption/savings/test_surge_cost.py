"""A surge drain restarts all pods of its Deployment, so it costs as much as the eviction of all of them."""

from datetime import timedelta

import pytest

from shared.decide.disruption.candidates import Candidate, evaluate_candidate
from shared.decide.disruption.savings.disruption_cost import DisruptionPrices, EvictionCosts, compute_disruption_cost
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW
from tests.support.lifecycle_cases import replace_fields
from tests.support.surge_cases import (
    COMPLETE,
    make_surge_cluster,
    make_surge_deployment,
    make_surge_pdb,
    make_surge_pod,
)

PRICES = DisruptionPrices(eviction_usd=0.5, overlap=timedelta(minutes=3))


def make_candidate(*pods: Pod, replicas: int, allowed: int = 0, has_surge_drain: bool = True) -> Candidate:
    """Return the candidate `node-a` with *pods* of a Deployment with *replicas*, and a PDB that allows *allowed*."""
    rollout = replace_fields(COMPLETE, pods=replicas, updated_pods=replicas, available_pods=replicas)
    cluster = make_surge_cluster(
        *pods,
        deployments=(make_surge_deployment(replicas=replicas, rollout=rollout),),
        budgets=(make_surge_pdb(allowed=allowed),),
        has_surge_drain=has_surge_drain,
    )
    cluster_state = ClusterState(cluster)
    [state] = cluster_state.nodes
    candidate = evaluate_candidate(state, cluster_state)
    assert isinstance(candidate, Candidate), candidate
    return candidate


@pytest.mark.parametrize(
    ("pod_count", "replicas", "allowed", "evictions"),
    [(1, 1, 0, 1), (1, 10, 0, 10), (3, 10, 0, 10), (1, 10, 1, 1), (2, 10, 2, 2)],
    ids=["single-replica", "all-replicas", "three-on-the-node", "evicted-as-usual", "two-evicted-as-usual"],
)
def test_surge_drain_costs_one_eviction_for_each_replica(
    pod_count: int, replicas: int, allowed: int, evictions: int
) -> None:
    pods = tuple(make_surge_pod(f"web-abc-{number}") for number in range(pod_count))
    cost = compute_disruption_cost(
        (make_candidate(*pods, replicas=replicas, allowed=allowed),), EvictionCosts(PRICES, NOW), 0.0
    )
    assert (cost.evictions, cost.evictions_usd) == (evictions, evictions * 0.5)


def test_deployment_with_pods_on_two_nodes_is_restarted_once() -> None:
    candidate = make_candidate(make_surge_pod(), replicas=10)
    cost = compute_disruption_cost((candidate, candidate), EvictionCosts(PRICES, NOW), 0.0)
    assert cost.evictions == 10


def test_without_the_setting_no_rollout_is_priced() -> None:
    candidate = make_candidate(make_surge_pod(), replicas=10, allowed=1, has_surge_drain=False)
    assert candidate.restarts == ()
    assert compute_disruption_cost((candidate,), EvictionCosts(PRICES, NOW), 0.0).evictions == 1
