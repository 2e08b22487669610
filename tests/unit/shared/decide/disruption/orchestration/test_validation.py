"""Validation of a proposed command."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import Condition, build_pairs
from shared.model.decisions.command import DisruptionCommand
from shared.model.karpenter.node_pool import DisruptionBudget
from tests.support.catalogues import NOW, make_node_pool, make_pod
from tests.support.disruption_fleet import (
    FREE,
    STAGES,
    Machine,
    decide_disruption,
    make_budgeted_pool,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
)
from tests.support.snapshot_decisions import validate_command

EMPTY = make_fleet(make_node_with_pods("a"), make_node_with_pods("b"))
MOVES = make_fleet(
    make_node_with_pods("a", make_web_pod("1")),
    make_node_with_pods("b", make_web_pod("2", "2"), annotations={DO_NOT_DISRUPT: "true"}),
)
BUYS = make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16))


def get_first_command(cluster: ClusterSnapshot) -> DisruptionCommand:
    return decide_disruption(cluster).commands[0]


@pytest.mark.parametrize("cluster", [EMPTY, MOVES, BUYS])
def test_new_command_is_valid_against_the_same_snapshot(cluster: ClusterSnapshot) -> None:
    assert validate_command(cluster, get_first_command(cluster)) is None


def with_pods(cluster: ClusterSnapshot, *pods: object) -> ClusterSnapshot:
    return replace(cluster, pods=(*cluster.pods, *pods))


def with_pool(cluster: ClusterSnapshot, **fields: object) -> ClusterSnapshot:
    return replace(cluster, node_pools=(replace(FREE, **fields),))


def with_protected_node(cluster: ClusterSnapshot, name: str) -> ClusterSnapshot:
    annotations = build_pairs({DO_NOT_DISRUPT: "true"})
    nodes = [
        replace(node, meta=replace(node.meta, annotations=annotations)) if node.name == name else node
        for node in cluster.nodes
    ]
    return replace(cluster, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("before", "after", "message_part", "nodes"),
    [
        (EMPTY, with_pods(EMPTY, make_pod("x", on="a")), "NotEmpty", {"a"}),
        (EMPTY, with_protected_node(EMPTY, "b"), "DoNotDisrupt", {"b"}),
        (EMPTY, with_pool(EMPTY, budgets=(DisruptionBudget(nodes="1"),)), "allows 1", {"b"}),
        (EMPTY, with_pool(EMPTY, consolidate_after=None), "ConsolidationDisabled", {"a", "b"}),
        (EMPTY, replace(EMPTY, nodes=EMPTY.nodes[1:], node_claims=EMPTY.node_claims[1:]), "Gone", {"a"}),
        (MOVES, with_pods(MOVES, make_pod("x", "1500m", on="b")), "can no longer be scheduled", set()),
        (MOVES, with_pods(MOVES, make_pod("x", "1500m")), "", {"a"}),
        (
            MOVES,
            replace(MOVES, budgets=(make_pod_disruption_budget("g", {"app": "web"}, 0),)),
            "PodBlocksEviction",
            {"a"},
        ),
        (MOVES, with_pool(MOVES, consolidation_policy="WhenEmpty"), "PolicyWhenEmpty", {"a"}),
        (MOVES, replace(MOVES, pods=MOVES.pods[1:]), "Empty", {"a"}),
        (BUYS, with_pods(BUYS, make_pod("x", "1", on="a")), "some instance types", set()),
        (BUYS, replace(BUYS, catalog=None), "", {"a"}),
    ],
)
def test_command_is_invalidated_with_the_change_and_its_nodes(
    before: ClusterSnapshot, after: ClusterSnapshot, message_part: str, nodes: set[str]
) -> None:
    invalidation = validate_command(after, get_first_command(before))
    assert invalidation is not None
    assert message_part in invalidation.message
    assert invalidation.nodes == nodes


def test_command_is_invalid_for_a_recreated_node_with_the_same_name() -> None:
    replaced_claims = [
        replace(node_claim, meta=replace(node_claim.meta, uid="another")) for node_claim in EMPTY.node_claims
    ]
    invalidation = validate_command(replace(EMPTY, node_claims=tuple(replaced_claims)), get_first_command(EMPTY))
    assert invalidation is not None
    assert "the node changed since the command was computed" in invalidation.message


def test_nodes_of_other_commands_count_against_budgets_and_accept_no_pods() -> None:
    nodes = [make_node_with_pods(f"n{number}") for number in range(3)]
    cluster = make_fleet(*nodes, pools=(make_budgeted_pool("2"),))
    command = replace(get_first_command(cluster), targets=get_first_command(cluster).targets[:1])
    assert validate_command(cluster, command, frozenset({"n2"})) is None
    invalidation = validate_command(cluster, command, frozenset({"n1", "n2"}))
    assert invalidation is not None
    moved = validate_command(MOVES, get_first_command(MOVES), frozenset({"b"}))
    assert moved is not None


def test_pods_of_other_commands_are_expected_on_their_nominated_nodes() -> None:
    roomy = make_node_with_pods("z", make_web_pod("3", "1"), cpu=8, annotations={DO_NOT_DISRUPT: "true"})
    cluster = make_fleet(
        make_node_with_pods("a", make_web_pod("1")), make_node_with_pods("b", make_web_pod("2", "2")), roomy
    )
    [command] = decide_disruption(cluster).commands
    narrowed_command = replace(command, targets=tuple(target for target in command.targets if target.node == "a"))
    assert validate_command(cluster, narrowed_command, frozenset({"b"}), node_by_pod={"shop/2": "z"}) is None


def build_drifting_cluster(*fields: Machine) -> ClusterSnapshot:
    drifted_condition = Condition(type="Drifted", status="True", reason="AMIDrift", since=NOW - timedelta(hours=1))
    return make_fleet(
        make_node_with_pods("a", make_web_pod("1"), conditions=(*make_conditions(*STAGES[:3]), drifted_condition)),
        *fields,
    )


def test_drift_command_is_valid_while_the_node_is_drifted() -> None:
    command = get_first_command(build_drifting_cluster())
    assert validate_command(build_drifting_cluster(), command) is None
    calm = make_fleet(make_node_with_pods("a", make_web_pod("1")), pools=(make_node_pool(budgets=()),))
    invalidation = validate_command(calm, command)
    assert invalidation is not None
    assert "NotDrifted" in invalidation.message
