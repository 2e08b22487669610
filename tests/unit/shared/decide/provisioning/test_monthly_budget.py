"""The monthly budget: its steps, what they refuse, and what pods are told."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from shared.decide.provisioning.capacity_buffers import BufferedPlacement, plan_with_buffers
from shared.decide.provisioning.monthly_budget import describe_budget, plan_within_budget, restrict_capacity_types
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, SPOT_SHARE
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.month_costs import (
    BudgetPolicy,
    BudgetState,
    BudgetStep,
    MonthCosts,
    find_budget_state,
    parse_budget_steps,
)
from shared.model.decisions.placement import Placement
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
POLICY = BudgetPolicy(budget_usd=1000)
BOTH = (make_instance_type("m.04", 4, capacity_types=("on-demand", "spot")),)


def make_costs(usd: float, month: str = "2026-11") -> MonthCosts:
    return MonthCosts(month=month, until=NOW, past_days=((f"{month}-20", usd - 1),), today_usd=1)


def make_state(step: BudgetStep) -> BudgetState:
    return BudgetState(policy=POLICY, used_usd=950, step=step)


def make_high_pod(name: str, cpu: str = "1") -> Pod:
    return replace(make_pod(name, cpu), priority=1)


def plan(cluster: ClusterSnapshot, step: BudgetStep) -> Placement:
    """Return the placement at *step* of the budget, planned as the cycle plans it."""
    budget = make_state(step)
    state = ClusterState(restrict_capacity_types(cluster, budget))

    def plan_without(withheld: frozenset[str]) -> BufferedPlacement:
        return plan_with_buffers(state, withheld=withheld)

    return plan_within_budget(plan_without, cluster, budget).placement


@pytest.mark.parametrize(
    ("costs", "step"),
    [
        (None, ""),
        (make_costs(799), ""),
        (make_costs(800), "spot-only"),
        (make_costs(900), "high-priority-only"),
        (make_costs(1000), "no-new-nodes"),
        (make_costs(5000), "no-new-nodes"),
        (make_costs(5000, "2026-10"), ""),
    ],
    ids=["no costs", "below", "first step", "second step", "third step", "exceeded", "costs of the last month"],
)
def test_used_part_of_the_budget_selects_the_step(costs: MonthCosts | None, step: BudgetStep) -> None:
    assert find_budget_state(POLICY, costs, NOW).step == step


def test_without_a_budget_there_is_no_step() -> None:
    assert find_budget_state(BudgetPolicy(), make_costs(9999), NOW).step == ""


def test_first_step_launches_no_on_demand_nodes_where_spot_is_allowed() -> None:
    cluster = make_cluster_snapshot(make_pod("any"), types=BOTH)
    assert plan(cluster, "").new_nodes[0].requirements[CAPACITY_TYPE].values == {"on-demand", "spot"}
    assert plan(cluster, "spot-only").new_nodes[0].requirements[CAPACITY_TYPE].values == {"spot"}


def test_first_step_keeps_node_pools_without_spot() -> None:
    pool = make_node_pool(requirements=make_requirements((CAPACITY_TYPE, "In", ("on-demand",))))
    placement = plan(make_cluster_snapshot(make_pod("any"), types=BOTH, node_pools=(pool,)), "spot-only")
    assert placement.new_nodes[0].requirements[CAPACITY_TYPE].values == {"on-demand"}


def test_first_step_keeps_the_on_demand_nodes_of_node_pools_with_a_spot_share() -> None:
    meta = ObjectMeta(name="default", annotations=((SPOT_SHARE, "50"),))
    pods = tuple(make_pod(name, "4") for name in "abcd")
    placement = plan(make_cluster_snapshot(*pods, types=BOTH, node_pools=(make_node_pool(meta=meta),)), "spot-only")
    assert sorted(node.cheapest.capacity_type for node in placement.new_nodes) == [
        "on-demand",
        "on-demand",
        "spot",
        "spot",
    ]


def test_message_of_a_pod_that_the_first_step_refuses_has_the_budget() -> None:
    pod = make_pod("fixed", node_selector=((CAPACITY_TYPE, "on-demand"),))
    (refused_pod,) = plan(make_cluster_snapshot(pod, types=BOTH), "spot-only").unschedulable
    assert refused_pod.message.endswith(
        "; $950.00 of the monthly budget of $1,000.00 is used (95%): from 80% on, NodePools that allow spot launch no "
        "on-demand nodes; wait for the next month, or raise monthly-budget-usd"
    )


def test_second_step_gives_new_nodes_to_pods_of_high_priority_only() -> None:
    pods = (make_high_pod("high", "3"), make_pod("low", "3"), make_pod("tiny", "500m"))
    placement = plan(make_cluster_snapshot(*pods), "high-priority-only")
    assert locate_pods(placement) == {"high": "default", "low": "LimitExceeded", "tiny": "LimitExceeded"}
    assert "only pods with a priority of 1 or more get new nodes" in placement.unschedulable[0].message


def test_second_step_makes_nodes_no_larger_for_pods_of_low_priority() -> None:
    pods = (make_high_pod("high", "1500m"), *(make_pod(f"low-{number}", "1500m") for number in range(9)))
    (node,) = plan(make_cluster_snapshot(*pods), "high-priority-only").new_nodes
    assert node.cheapest.instance_type == "m.02"


@pytest.mark.parametrize("step", ["high-priority-only", "no-new-nodes"])
def test_existing_nodes_are_filled_at_every_step(step: BudgetStep) -> None:
    cluster = make_cluster_snapshot(make_pod("low"), nodes=(make_node("running"),))
    assert locate_pods(plan(cluster, step)) == {"low": "running"}


def test_last_step_launches_nothing() -> None:
    placement = plan(make_cluster_snapshot(make_high_pod("high"), make_pod("low")), "no-new-nodes")
    assert locate_pods(placement) == {"high": "LimitExceeded", "low": "LimitExceeded"}
    assert "no pod gets a new node" in placement.unschedulable[0].message


def test_used_part_is_described_without_a_step() -> None:
    assert describe_budget(find_budget_state(POLICY, make_costs(100), NOW)) == (
        "$100.00 of the monthly budget of $1,000.00 is used (10%)"
    )


@pytest.mark.parametrize("text", ["80,90", "90,80,100", "a,b,c", "0,90,100", "80,90,1001", ""])
def test_invalid_steps_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a list like 80,90,100"):
        parse_budget_steps(text)
