"""Limits of NodePools while nodes are replaced."""

import pytest

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.model.core.resources import NODES, Resources, parse_resources
from tests.support.catalogues import make_node_pool
from tests.support.disruption_fleet import (
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cpu": "8"}, [("SingleNode", ["big"], ["m.02", "m.04"])]),
        ({"cpu": "3"}, [("SingleNode", ["big"], ["m.02"])]),
        ({"cpu": "1"}, []),
        ({"nodes": "1"}, [("SingleNode", ["big"], ["m.02", "m.04"])]),
    ],
)
def test_replaced_nodes_free_their_share_of_the_limits_with_frees_limits(
    limits: dict[str, str], expected: list[tuple[str, list[str], list[str]]]
) -> None:
    cluster = make_fleet(
        make_node_with_pods("big", make_web_pod("a"), cpu=8),
        pools=(make_node_pool(budgets=(), limits=parse_resources(limits)),),
    )
    assert summarize_commands(decide_disruption(cluster, DisruptionSettings(frees_limits=True))) == expected


@pytest.mark.parametrize(("cpu", "commands"), [("8", 0), ("9", 0), ("10", 1)])
def test_replacement_and_old_node_together_must_fit_the_limits(cpu: str, commands: int) -> None:
    limited = make_node_pool(budgets=(), limits=parse_resources({"cpu": cpu}))
    assert (
        len(
            summarize_commands(
                decide_disruption(make_fleet(make_node_with_pods("big", make_web_pod("a"), cpu=8), pools=(limited,)))
            )
        )
        == commands
    )


def test_kept_nodes_free_no_share_of_the_limits() -> None:
    """Each node is tried and restored before the last one is; its share of the limit is not free for that one."""
    full = [make_node_with_pods(f"n{number}", make_web_pod(f"a{number}", "3500m")) for number in range(3)]
    limited = make_node_pool(budgets=(), limits=parse_resources({"cpu": "4"}))
    assert (
        summarize_commands(
            decide_disruption(make_fleet(*full, pools=(limited,)), DisruptionSettings(frees_limits=True))
        )
        == []
    )


@pytest.mark.parametrize("limits", [Resources(amounts=((NODES, 0),)), parse_resources({"cpu": "1"})])
def test_empty_nodes_are_deleted_when_limits_allow_no_new_node(limits: Resources) -> None:
    """No offering is available to compute advice with."""
    nodes = (
        make_node_with_pods("n1", make_web_pod("a", "3500m")),
        make_node_with_pods("n2", make_web_pod("b", "3500m")),
        make_node_with_pods("n3", cpu=8),
    )
    decision = decide_disruption(
        make_fleet(*nodes, pools=(make_node_pool(budgets=(), limits=limits),)), DisruptionSettings(frees_limits=True)
    )
    assert summarize_commands(decision) == [("Emptiness", ["n3"], [])]
    assert get_verdict(decision, "n1")[1] == "NoRoom"
