"""A command that was proposed, looked at again."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.disruption.validation import still_holds
from shared.model.cluster import Cluster
from shared.model.commands import Command
from shared.model.labels import DO_NOT_DISRUPT
from shared.model.nodepools import Budget
from shared.model.objects import Condition, pairs
from tests.unit.catalogues import NOW, pod, pool
from tests.unit.disruption_fleet import FREE, STAGES, Machine, fleet, guard, machine, percent, swept, true, web

EMPTY = fleet(machine("a"), machine("b"))
MOVES = fleet(machine("a", web("1")), machine("b", web("2", "2"), annotations={DO_NOT_DISRUPT: "true"}))
BUYS = fleet(machine("a", web("1", "1500m"), cpu=16))


def first(cluster: Cluster) -> Command:
    return swept(cluster).commands[0]


@pytest.mark.parametrize("cluster", [EMPTY, MOVES, BUYS])
def test_what_was_just_proposed_still_holds(cluster: Cluster) -> None:
    assert still_holds(cluster, first(cluster)) is None


def with_pods(cluster: Cluster, *pods: object) -> Cluster:
    return replace(cluster, pods=(*cluster.pods, *pods))


def with_pool(cluster: Cluster, **fields: object) -> Cluster:
    return replace(cluster, node_pools=(replace(FREE, **fields),))


def annotated(cluster: Cluster, name: str) -> Cluster:
    held = pairs({DO_NOT_DISRUPT: "true"})
    nodes = [
        replace(one, meta=replace(one.meta, annotations=held)) if one.name == name else one for one in cluster.nodes
    ]
    return replace(cluster, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("before", "after", "why", "nodes"),
    [
        (EMPTY, with_pods(EMPTY, pod("x", on="a")), "NotEmpty", {"a"}),
        (EMPTY, annotated(EMPTY, "b"), "DoNotDisrupt", {"b"}),
        (EMPTY, with_pool(EMPTY, budgets=(Budget(nodes="1"),)), "allows 1", {"b"}),
        (EMPTY, with_pool(EMPTY, consolidate_after=None), "ConsolidationDisabled", {"a", "b"}),
        (EMPTY, replace(EMPTY, nodes=EMPTY.nodes[1:], node_claims=EMPTY.node_claims[1:]), "Gone", {"a"}),
        (MOVES, with_pods(MOVES, pod("x", "1500m", on="b")), "no place any more", set()),
        (MOVES, with_pods(MOVES, pod("x", "1500m")), "", {"a"}),
        (MOVES, replace(MOVES, budgets=(guard("g", {"app": "web"}, 0),)), "PodBlocksEviction", {"a"}),
        (MOVES, with_pool(MOVES, consolidation_policy="WhenEmpty"), "PolicyWhenEmpty", {"a"}),
        (MOVES, replace(MOVES, pods=MOVES.pods[1:]), "Empty", {"a"}),
        (BUYS, with_pods(BUYS, pod("x", "1", on="a")), "not every type", set()),
        (BUYS, replace(BUYS, catalogue=None), "", {"a"}),
    ],
)
def test_what_has_changed_is_told(before: Cluster, after: Cluster, why: str, nodes: set[str]) -> None:
    found = still_holds(after, first(before))
    assert found is not None
    assert why in found.why
    assert found.nodes == nodes


def test_another_node_of_the_same_name_is_not_meant() -> None:
    other = [replace(one, meta=replace(one.meta, uid="another")) for one in EMPTY.node_claims]
    found = still_holds(replace(EMPTY, node_claims=tuple(other)), first(EMPTY))
    assert found is not None
    assert "it is not the node that it was" in found.why


def test_nodes_of_other_commands_count_for_budgets_and_take_nothing() -> None:
    some = [machine(f"n{number}") for number in range(3)]
    cluster = fleet(*some, pools=(percent("2"),))
    command = replace(first(cluster), targets=first(cluster).targets[:1])
    assert still_holds(cluster, command, frozenset({"n2"})) is None
    found = still_holds(cluster, command, frozenset({"n1", "n2"}))
    assert found is not None
    moved = still_holds(MOVES, first(MOVES), frozenset({"b"}))
    assert moved is not None


def test_pods_of_other_commands_are_where_they_are_expected() -> None:
    roomy = machine("z", web("3", "1"), cpu=8, annotations={DO_NOT_DISRUPT: "true"})
    cluster = fleet(machine("a", web("1")), machine("b", web("2", "2")), roomy)
    [both] = swept(cluster).commands
    one = replace(both, targets=tuple(target for target in both.targets if target.node == "a"))
    assert still_holds(cluster, one, frozenset({"b"}), homes={"shop/2": "z"}) is None


def drifting(*fields: Machine) -> Cluster:
    why = Condition(type="Drifted", status="True", reason="AMIDrift", since=NOW - timedelta(hours=1))
    return fleet(machine("a", web("1"), conditions=(*true(*STAGES[:3]), why)), *fields)


def test_drift_holds_for_as_long_as_it_is_there() -> None:
    command = first(drifting())
    assert still_holds(drifting(), command) is None
    calm = fleet(machine("a", web("1")), pools=(pool(budgets=()),))
    found = still_holds(calm, command)
    assert found is not None
    assert "NotDrifted" in found.why
