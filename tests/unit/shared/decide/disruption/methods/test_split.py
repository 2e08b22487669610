"""Several nodes replace one: a pod that restricts the others gets a node of its own."""

from shared.model.core.labels import CAPACITY_TYPE
from tests.support.catalogues import make_instance_type, make_node_pool
from tests.support.disruption_fleet import (
    decide_disruption,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

CAPACITY_TYPES = ("spot", "on-demand")
TYPES = (
    make_instance_type("m.02", 2, capacity_types=CAPACITY_TYPES),
    make_instance_type("m.16", 16, capacity_types=CAPACITY_TYPES, price=0.5),
)
"""The large instance type has the lowest price for its capacity."""


def test_on_demand_pod_gets_its_own_small_node_so_other_pods_move_to_spot() -> None:
    large = [make_web_pod(name, "4500m") for name in ("a", "b", "c")]
    small = make_web_pod("small", "100m", node_selector=((CAPACITY_TYPE, "on-demand"),))
    cluster_nodes = (make_node_with_pods("n", *large, small, cpu=16),)
    decision = decide_disruption(make_fleet(*cluster_nodes, pools=(make_node_pool(budgets=()),), types=TYPES))
    ((_, nodes, kinds),) = summarize_commands(decision)
    assert (nodes, sorted(kinds)) == (["n"], ["m.02", "m.16"])
