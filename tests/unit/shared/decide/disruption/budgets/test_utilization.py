"""Utilization threshold and delete-only consolidation of a NodePool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.utilization import compute_utilization
from shared.model.core.labels import CONSOLIDATION_MODE, UTILIZATION_THRESHOLD
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.decisions.command import DisruptionCommand
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_node_pool, make_pod
from tests.support.disruption_fleet import (
    FREE,
    Machine,
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)
from tests.support.snapshot_decisions import validate_command

SIZES = st.lists(st.tuples(st.sampled_from((2, 4, 8, 16)), st.integers(100, 1900)), min_size=1, max_size=7)


def make_annotated_pool(**annotations: str) -> NodePool:
    return make_node_pool(budgets=(), meta=ObjectMeta(name="default", annotations=build_pairs(annotations)))


DELETE_ONLY_POOL = make_annotated_pool(**{CONSOLIDATION_MODE: "delete-only"})


def make_nodes(sizes: list[tuple[int, int]]) -> list[Machine]:
    return [
        make_node_with_pods(f"n{number}", make_web_pod(str(number), f"{cpu_milli}m"), cpu=cpu)
        for number, (cpu, cpu_milli) in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("threshold", "goes", "message"),
    [
        ("50", True, ""),
        ("26%", True, ""),
        ("25", False, "uses 25% of its cpu, at the threshold of 25%"),
        ("20", False, "uses 25% of its cpu, above the threshold of 20%"),
        ("0", False, "is not a percentage from 1 to 100"),
        ("nan", False, "is not a percentage from 1 to 100"),
        ("half", False, "joiner.dev/utilization-threshold: 'half' is not a percentage"),
    ],
)
def test_only_nodes_below_the_utilization_threshold_are_consolidated(
    threshold: str, message: str, *, goes: bool
) -> None:
    pool = make_annotated_pool(**{UTILIZATION_THRESHOLD: threshold})
    nodes = [make_node_with_pods("a", make_web_pod("1", "1"), cpu=4)]
    nodes.append(make_node_with_pods("b", make_web_pod("2", "2"), cpu=8, pool="other"))
    decision = decide_disruption(make_fleet(*nodes, pools=(pool, make_node_pool("other", consolidate_after=None))))
    assert bool(decision.commands) is goes
    assert message in get_verdict(decision, "a")[2]


def test_utilization_is_the_highest_share_of_cpu_or_memory_with_daemonset_pods() -> None:
    daemon = make_pod("agent", "100m", "12Gi")
    node = make_node_with_pods("a", make_web_pod("1", "1"), daemon, cpu=4)
    [state] = ClusterState(make_fleet(node)).nodes
    assert (compute_utilization(state).resource, round(compute_utilization(state).percent)) == ("memory", 81)


def test_utilization_of_a_gpu_node_is_that_of_its_gpus() -> None:
    node, claim, pods = make_node_with_pods("a", make_web_pod("1", "3"), cpu=4)
    node = replace(node, allocatable=parse_resources({"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2"}))
    [state] = ClusterState(make_fleet((node, claim, pods))).nodes
    assert (compute_utilization(state).resource, compute_utilization(state).percent) == ("nvidia.com/gpu", 0)


def test_empty_node_is_removed_whatever_its_threshold() -> None:
    pool = make_annotated_pool(**{UTILIZATION_THRESHOLD: "1", CONSOLIDATION_MODE: "delete-only"})
    assert decide_disruption(make_fleet(make_node_with_pods("a"), pools=(pool,))).commands


def test_delete_only_node_is_not_replaced_and_says_so() -> None:
    node = make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16)
    assert decide_disruption(make_fleet(node)).commands
    decision = decide_disruption(make_fleet(node, pools=(DELETE_ONLY_POOL,)))
    assert decision.commands == ()
    assert get_verdict(decision, "a")[1:] == (
        "DeleteOnly",
        "its pods fit on no other nodes, and NodePool default has joiner.dev/consolidation-mode: delete-only",
    )


def test_delete_only_node_is_deleted_when_its_pods_fit_elsewhere() -> None:
    nodes = (make_node_with_pods("a", make_web_pod("1")), make_node_with_pods("b", make_web_pod("2", "2")))
    [command] = decide_disruption(make_fleet(*nodes, pools=(DELETE_ONLY_POOL,))).commands
    assert (command.list_node_names(), command.replacements) == (frozenset({"a"}), ())


def test_replacement_that_was_proposed_before_delete_only_is_invalid() -> None:
    node = make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16)
    [command] = decide_disruption(make_fleet(node)).commands
    assert validate_command(make_fleet(node), command) is None
    invalidation = validate_command(make_fleet(node, pools=(DELETE_ONLY_POOL,)), command)
    assert invalidation is not None
    assert "DeleteOnly" in invalidation.message


def test_invalid_consolidation_mode_blocks_disruption_and_names_the_fix() -> None:
    pool = make_annotated_pool(**{CONSOLIDATION_MODE: "never"})
    decision = decide_disruption(make_fleet(make_node_with_pods("a"), pools=(pool,)))
    assert (
        "'never' is not a consolidation mode: write delete-and-replace or delete-only" in get_verdict(decision, "a")[2]
    )


@given(sizes=SIZES)
def test_delete_only_consolidation_never_launches_a_node(sizes: list[tuple[int, int]]) -> None:
    commands = decide_disruption(make_fleet(*make_nodes(sizes), pools=(DELETE_ONLY_POOL,))).commands
    assert [command.replacements for command in commands if command.replacements] == []


@given(sizes=SIZES, threshold=st.integers(1, 100))
def test_consolidated_nodes_are_below_the_threshold(sizes: list[tuple[int, int]], threshold: int) -> None:
    cluster = make_fleet(*make_nodes(sizes), pools=(make_annotated_pool(**{UTILIZATION_THRESHOLD: str(threshold)}),))
    states = {state.name: state for state in ClusterState(cluster).nodes}

    def list_percents(command: DisruptionCommand) -> list[float]:
        return [compute_utilization(states[name]).percent for name in command.list_node_names()]

    percents = [percent for command in decide_disruption(cluster).commands for percent in list_percents(command)]
    assert all(percent < threshold for percent in percents)


def test_threshold_of_100_percent_changes_nothing_for_nodes_below_it() -> None:
    nodes = make_nodes([(4, 700)] * 5)
    pool = replace(FREE, meta=make_annotated_pool(**{UTILIZATION_THRESHOLD: "100"}).meta)
    commands = decide_disruption(make_fleet(*nodes, pools=(pool,))).commands
    assert commands == decide_disruption(make_fleet(*nodes)).commands != ()
