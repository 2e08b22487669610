"""Consolidation and commitments: a node that commitments pay for saves nothing when it is removed."""

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.ec2.commitments import Commitments, ReservedInstances
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_instance_type, make_pod
from tests.support.disruption_fleet import (
    STAGES,
    decide_disruption,
    get_verdict,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    summarize_commands,
)

TYPES = tuple(
    make_instance_type(f"m5.{size}", cpu, capacity_types=("spot", "on-demand"))
    for size, cpu in (("large", 2), ("xlarge", 4), ("2xlarge", 8))
)


def make_cluster(reserved_count: int, *names: str, **fields: object) -> ClusterSnapshot:
    """Return m5.xlarge nodes with one small pod each, and regional Reserved Instances for *reserved_count* of them."""
    reserved = ReservedInstances(reservation_id="ri", instance_type="m5.xlarge", count=reserved_count)
    commitments = Commitments(reserved=(reserved,)) if reserved_count else None
    nodes = [make_node_with_pods(name, make_pod(f"pod-{name}", "1"), kind="m5.xlarge", **fields) for name in names]  # type: ignore[arg-type]
    cluster = make_fleet(*nodes, types=TYPES)
    return replace(cluster, catalog=Catalog(region="nowhere", instance_types=TYPES, commitments=commitments))


def test_without_commitments_pods_move_together() -> None:
    commands = summarize_commands(decide_disruption(make_cluster(0, "a", "b")))
    assert commands


def test_covered_nodes_are_not_consolidated_and_the_reason_says_so() -> None:
    decision = decide_disruption(make_cluster(2, "a", "b"))
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "a")[1] == "Committed"
    assert "Savings Plans or Reserved Instances pay for a" in get_verdict(decision, "a")[2]


def test_only_what_commitments_do_not_cover_is_saved() -> None:
    decision = decide_disruption(make_cluster(1, "a", "b"))
    [(_, names, _)] = summarize_commands(decision)
    assert names == ["b"]


def test_empty_node_is_removed_although_commitments_pay_for_it() -> None:
    cluster = make_cluster(2, "a", "b")
    cluster = replace(cluster, pods=tuple(pod for pod in cluster.pods if pod.node_name == "a"))
    [(method, names, _)] = summarize_commands(decide_disruption(cluster))
    assert (method, names) == ("Emptiness", ["b"])


def test_covered_parts_are_those_of_the_first_nodes_by_name() -> None:
    state = ClusterState(make_cluster(2, "a", "b", "c"))
    assert state.covered_parts == {"a": 1.0, "b": 1.0}
    prices = [state.get_marginal_price(node, "default") for node in state.nodes]
    assert prices == pytest.approx([0.0, 0.0, 0.2])


@pytest.mark.parametrize(("reserved_count", "capacity_types"), [(1, {"on-demand"}), (0, {"spot"})])
def test_replacement_of_a_drifted_node_uses_its_commitment(reserved_count: int, capacity_types: set[str]) -> None:
    cluster = make_cluster(reserved_count, "a", conditions=make_conditions(*STAGES, "Drifted"))
    [command] = decide_disruption(cluster).commands
    [replacement] = command.replacements
    assert replacement.claim.requirements[CAPACITY_TYPE].values >= capacity_types
    assert (replacement.claim.requirements[INSTANCE_TYPE].values == {"m5.xlarge"}) is bool(reserved_count)
