"""The limit of a group in launches, plans and metrics: what the other clusters leave counts as the cluster's limit."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy
from shared.decide.launch.money.limit_prices import LimitUsage, measure_limit_usage
from shared.model.cloud_provider.cluster_group import JOIN_DELAY, GroupEntry, GroupUsage
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, NO_CLUSTER_LIMIT, MoneyPolicy, convert_to_micro_usd
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_cluster_snapshot, make_pod
from tests.support.catalogues import make_node_pool as make_priced_pool
from tests.support.launch_cases import NOW, make_cluster
from tests.support.snapshot_decisions import plan_launches, solve
from tests.unit.shared.decide.launch.fleets.test_money_launch_limits import SPOT, make_claims, make_pool

USD = 1_000_000


def make_usage(limit: float, used_by_others: float, **fields: Any) -> GroupUsage:
    entry = GroupEntry(used=0, limit=convert_to_micro_usd(limit), joined_at=NOW - JOIN_DELAY, written_at=NOW)
    busy_entry = msgspec.structs.replace(entry, used=convert_to_micro_usd(used_by_others))
    values = {"entries": (("me", entry), ("other", busy_entry))} | fields
    return GroupUsage(group="g", member="me", own_limit=convert_to_micro_usd(limit), **values)


def make_group_cluster(usage: GroupUsage | None, claims: int = 4, **fields: Any) -> ClusterSnapshot:
    cluster = make_cluster(*make_claims(claims), node_pools=(make_pool(**fields),))
    return msgspec.structs.replace(cluster, group_usage=usage)


def plan(usage: GroupUsage | None, cluster_limit: int | None = None) -> LaunchPlan:
    return plan_launches(make_group_cluster(usage), LaunchPolicy(money=MoneyPolicy(cluster_limit=cluster_limit)))


def count_launched(launch_plan: LaunchPlan) -> int:
    return sum(len(launch.group.claims) for launch in launch_plan.launches)


def test_launches_use_what_the_other_clusters_leave() -> None:
    launch_plan = plan(make_usage(10.0, 10.0 - 3 * SPOT - 0.001))
    assert count_launched(launch_plan) == 3
    assert [row.pool for row in launch_plan.limit_reservations] == [CLUSTER_SCOPE]
    assert launch_plan.group_amount is not None
    assert launch_plan.group_amount.used == pytest.approx(3 * convert_to_micro_usd(SPOT), abs=6)
    assert launch_plan.group_amount.revision == 1
    assert launch_plan.unlaunchable[0].message == (
        "group g would exceed its limit of $10.0000/h: a node costs up to $0.0822/h, $0.2476/h is left; "
        "to fix: increase group-limit-usd-per-hour in all clusters of the group"
    )


def test_lower_limit_of_the_cluster_decides() -> None:
    launch_plan = plan(make_usage(10.0, 0.0), convert_to_micro_usd(SPOT + 0.001))
    assert count_launched(launch_plan) == 1
    assert launch_plan.unlaunchable[0].message.startswith("the cluster would exceed its limit")


def test_claims_wait_while_the_group_cannot_be_read() -> None:
    launch_plan = plan(make_usage(10.0, 0.0, read_error="Unreachable: timeout"))
    assert count_launched(launch_plan) == 0
    assert launch_plan.group_amount is None
    assert {(refused.final, refused.message) for refused in launch_plan.unlaunchable} == {
        (False, "group g: table could not be read: Unreachable: timeout; no node is launched until it can be read")
    }


def test_cluster_waits_after_it_joined() -> None:
    usage = make_usage(10.0, 0.0)
    new_entries = tuple(
        (name, msgspec.structs.replace(entry, joined_at=NOW - JOIN_DELAY + timedelta(seconds=1)))
        for name, entry in usage.entries
    )
    launch_plan = plan(msgspec.structs.replace(usage, entries=new_entries))
    assert count_launched(launch_plan) == 0
    assert launch_plan.group_amount is not None
    joined_at, launches_at = NOW - JOIN_DELAY + timedelta(seconds=1), NOW + timedelta(seconds=1)
    assert launch_plan.unlaunchable[0].message == (
        f"the cluster joined group g at {joined_at:%H:%M:%SZ}; it launches no nodes until {launches_at:%H:%M:%SZ}"
    )


def test_amount_is_unknown_without_prices() -> None:
    cluster = msgspec.structs.replace(make_group_cluster(make_usage(10.0, 0.0)), catalog=None)
    assert plan_launches(cluster).group_amount is None


def test_without_a_group_launches_are_unchanged() -> None:
    launch_plan = plan(None)
    assert launch_plan == plan_launches(make_group_cluster(None))
    assert (launch_plan.group_amount, launch_plan.limit_reservations) == (None, ())
    assert [launch.group for launch in plan(make_usage(10.0, 0.0)).launches] == [
        launch.group for launch in launch_plan.launches
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {},
            (
                "$0.0500/h is left of the limit of group g of $1.0000/h: increase group-limit-usd-per-hour in all "
                "clusters of the group"
            ),
        ),
        (
            {"read_error": "Forbidden: no", "table": "ARN"},
            (
                "group g: table ARN could not be read: Forbidden: no; no node is launched until it can be read; "
                "to fix: allow dynamodb:GetItem and dynamodb:PutItem on group-table for provision"
            ),
        ),
        ({"entries": ()}, "the cluster joins group g; it launches no nodes for 3m"),
    ],
)
def test_refused_pod_names_the_group_and_the_amounts(fields: dict[str, Any], message: str) -> None:
    cluster = make_cluster_snapshot(make_pod("p", "4"), node_pools=(make_priced_pool(),))
    usage = make_usage(1.0, 0.95, **fields)
    placement = solve(msgspec.structs.replace(cluster, group_usage=usage, taken_at=NOW), options=SchedulingOptions())
    assert not placement.new_nodes
    assert message in placement.unschedulable[0].message


def test_used_part_of_the_group_is_measured_and_unknown_if_it_cannot_be_read() -> None:
    state = ClusterState(make_group_cluster(make_usage(10.0, 8.0), claims=0))
    assert measure_limit_usage(state, NO_CLUSTER_LIMIT) == (LimitUsage(scope="group/g", used=8 * USD, limit=10 * USD),)
    unknown = ClusterState(make_group_cluster(make_usage(10.0, 8.0, read_error="no"), claims=0))
    assert measure_limit_usage(unknown, NO_CLUSTER_LIMIT) == ()
