"""Spot shares of NodePools in disruption: no removal and no replacement exceeds a share by more than before."""

import pytest
from msgspec.structs import replace

from shared.decide.disruption.disruption_controller import DisruptionDecision
from shared.decide.disruption.events import describe_verdicts
from shared.decide.disruption.input_problems import find_disruption_problems
from shared.decide.disruption.orchestration.validation import validate_command
from shared.model.core.labels import CAPACITY_TYPE, ON_DEMAND_BASE, SPOT_SHARE
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import PublishEvent
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_node_pool, make_pod
from tests.support.disruption_fleet import BOTH, Machine, decide_disruption, make_fleet, make_node_with_pods


def make_shared_pool(percent: str, base: str = "0") -> NodePool:
    annotations = ((ON_DEMAND_BASE, base), (SPOT_SHARE, percent)) if percent else ()
    return make_node_pool(meta=ObjectMeta(name="default", annotations=annotations), budgets=())


def make_pool_of_empty_nodes(percent: str, base: str = "0") -> NodePool:
    """Return a NodePool of which only empty nodes are removed."""
    return replace(make_shared_pool(percent, base), consolidation_policy="WhenEmpty")


def make_machine(name: str, capacity_type: str, *cpus: str, cpu: int = 4) -> Machine:
    pods = (make_pod(f"{name}-{number}", size) for number, size in enumerate(cpus))
    return make_node_with_pods(name, *pods, cpu=cpu, capacity_type=capacity_type)


def list_removed(decision: DisruptionDecision) -> list[str]:
    return sorted(name for command in decision.commands for name in command.list_node_names())


def get_reasons(decision: DisruptionDecision) -> dict[str, str]:
    return {verdict.node: verdict.reason for verdict in decision.verdicts}


FULL_PAIR = (make_machine("od", "on-demand", "4"), make_machine("spot", "spot", "4"))


@pytest.mark.parametrize(("percent", "removed"), [("", ["empty-od"]), ("50", []), ("100", ["empty-od"])])
def test_empty_on_demand_node_stays_if_its_removal_would_exceed_the_share(percent: str, removed: list[str]) -> None:
    machines = (*FULL_PAIR, make_machine("spot-2", "spot", "4"), make_machine("empty-od", "on-demand"))
    decision = decide_disruption(make_fleet(*machines, pools=(make_pool_of_empty_nodes(percent),), types=BOTH))
    assert list_removed(decision) == removed
    if not removed:
        assert get_reasons(decision)["empty-od"] == "SpotShare"
        message = next(verdict.message for verdict in decision.verdicts if verdict.node == "empty-od")
        assert message == (
            "NodePool default would have too few on-demand nodes for its Spot share: 2 of 4 nodes are Spot, at most 2 "
            "may be (50 %)"
        )


def test_empty_on_demand_node_is_removed_after_an_empty_spot_node() -> None:
    machines = (*FULL_PAIR, make_machine("a-od", "on-demand"), make_machine("b-spot", "spot"))
    decision = decide_disruption(make_fleet(*machines, pools=(make_pool_of_empty_nodes("50"),), types=BOTH))
    assert list_removed(decision) == ["a-od", "b-spot"]


def test_all_on_demand_nodes_are_removed_if_no_spot_node_is_left() -> None:
    machines = (make_machine("a", "on-demand"), make_machine("b", "on-demand"))
    decision = decide_disruption(make_fleet(*machines, pools=(make_pool_of_empty_nodes("50", "5"),), types=BOTH))
    assert list_removed(decision) == ["a", "b"]


def test_empty_command_is_validated_again() -> None:
    machines = (*FULL_PAIR, make_machine("spot-2", "spot", "4"), make_machine("empty-od", "on-demand"))
    free_fleet = make_fleet(*machines, pools=(make_pool_of_empty_nodes(""),), types=BOTH)
    (command,) = decide_disruption(free_fleet).commands
    assert validate_command(ClusterState(free_fleet), command) is None
    invalidation = validate_command(
        ClusterState(replace(free_fleet, node_pools=(make_pool_of_empty_nodes("50"),))), command
    )
    assert invalidation is not None
    assert invalidation.nodes == {"empty-od"}


@pytest.mark.parametrize(
    ("percent", "base", "problem"),
    [
        ("50", "0", ""),
        ("half", "0", f"{SPOT_SHARE}: 'half' is not a whole number from 0 to 100: write a number like 50"),
        ("50", "-1", f"{ON_DEMAND_BASE}: '-1' is not a whole number from 0 to 1,000,000: write a number like 50"),
    ],
)
def test_invalid_share_is_reported_and_holds_the_voluntary_disruption_of_the_node_pool(
    percent: str, base: str, problem: str
) -> None:
    cluster = make_fleet(make_machine("empty", "spot"), pools=(make_shared_pool(percent, base),), types=BOTH)
    decision, cluster_state = decide_disruption(cluster), ClusterState(cluster)
    events = [
        event
        for event in describe_verdicts((), (), cluster_state)
        if isinstance(event, PublishEvent) and event.reason == "DisruptionBlocked"
    ]
    assert list_removed(decision) == ([] if problem else ["empty"])
    assert [verdict.reason for verdict in decision.verdicts] == ["Budget" if problem else "Empty"]
    assert [(event.kind, event.name, event.message) for event in events] == (
        [("NodePool", "default", f"No disruption is allowed: {problem}")] if problem else []
    )
    assert [found.message for found in find_disruption_problems(cluster_state)] == (
        [f"{problem}; voluntary disruption of its nodes stops until the field is corrected"] if problem else []
    )


def test_share_that_becomes_invalid_stops_a_command_before_it_starts() -> None:
    cluster = make_fleet(make_machine("empty", "spot"), pools=(make_shared_pool("50"),), types=BOTH)
    (command,) = decide_disruption(cluster).commands
    assert validate_command(ClusterState(cluster), command) is None
    invalid = replace(cluster, node_pools=(make_shared_pool("half"),))
    assert validate_command(ClusterState(invalid), command) is not None


@pytest.mark.parametrize(("percent", "is_removed"), [("", True), ("50", False), ("70", True)])
def test_on_demand_node_whose_pods_fit_elsewhere_stays_if_the_share_needs_it(percent: str, *, is_removed: bool) -> None:
    machines = (
        make_machine("od-1", "on-demand", "1"),
        make_machine("od-2", "on-demand", "3"),
        make_machine("spot-1", "spot", "4"),
        make_machine("spot-2", "spot", "4"),
    )
    decision = decide_disruption(make_fleet(*machines, pools=(make_shared_pool(percent),), types=BOTH))
    deleted = [command for command in decision.commands if not command.replacements]
    assert bool(deleted) is is_removed


@pytest.mark.parametrize(("percent", "has_replacements"), [("", True), ("40", False), ("60", True), ("80", True)])
def test_on_demand_nodes_are_replaced_by_spot_only_within_the_share(percent: str, *, has_replacements: bool) -> None:
    capacity_types = {"od-1": "on-demand", "od-2": "on-demand", "od-3": "on-demand", "s-1": "spot", "s-2": "spot"}
    machines = [make_machine(name, capacity_type, "4") for name, capacity_type in capacity_types.items()]
    fleet = make_fleet(*machines, pools=(make_shared_pool(percent),), types=BOTH)
    commands = decide_disruption(fleet).commands
    kept_types = [
        capacity_types[name] for name in capacity_types if not any(name in c.list_node_names() for c in commands)
    ]
    new_types = [
        max(replacement.claim.requirements[CAPACITY_TYPE].values)
        for command in commands
        for replacement in command.replacements
    ]
    after = [*kept_types, *new_types]
    assert bool(new_types) is has_replacements
    assert 100 * after.count("spot") <= int(percent or 100) * len(after)
    assert all(validate_command(ClusterState(fleet), command) is None for command in commands)


def test_exceeded_share_is_not_exceeded_by_more_but_spot_nodes_are_removed() -> None:
    machines = (
        make_machine("od", "on-demand", "1"),
        make_machine("spot-1", "spot", "1"),
        make_machine("spot-2", "spot", "1"),
    )
    decision = decide_disruption(make_fleet(*machines, pools=(make_shared_pool("50"),), types=BOTH))
    removed = list_removed(decision)
    assert "od" not in removed
    assert removed
