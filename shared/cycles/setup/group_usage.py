"""What the cluster uses of the limit of its group, written also if nothing is launched."""

from typing import Final

from shared.cycles.interactions.launch_observation import observe_launches
from shared.cycles.setup.options_from_settings import build_launch_policy
from shared.cycles.setup.planning_snapshot import take_planning_snapshot
from shared.decide.launch.fleets.launch_limits import build_limit_accounts, find_group_amount
from shared.decide.launch.money.limit_prices import apply_group, find_limit_prices
from shared.errors import Fault
from shared.model.core.metadata import Problem
from shared.ports.world import World
from shared.state.cluster_state import ClusterState
from shared.store.limits.cluster_group import try_write_amount
from shared.take.snapshot import SnapshotRequest

GROUP_REQUEST: Final = SnapshotRequest(lists=("nodes", "node_claims", "node_pools", "node_classes"), catalog=True)


def publish_group_usage(world: World) -> tuple[Problem, ...]:
    """Write what the nodes of the cluster cost now, if that changed, so that other clusters can use what is free.

    Return why it could not be written: then the last known amount keeps counting.
    """
    settings = world.settings
    if settings.mode == "plan":
        return ()
    try:
        observation = observe_launches(world, take_planning_snapshot(world, GROUP_REQUEST))
        cluster, usage = observation.cluster, observation.cluster.group_usage
        if usage is not None and usage.read_error:
            return (Problem(kind="Group", name=settings.group, message=f"could not be read: {usage.read_error}"),)
        cluster_state = ClusterState(cluster)
        money = apply_group(build_launch_policy(settings).money, cluster)
        limit_prices = find_limit_prices(cluster_state, money)
        accounts = build_limit_accounts(cluster_state, observation.reservations, money, limit_prices)
        amount = find_group_amount(cluster, accounts)
        if amount is not None:
            try_write_amount(world, amount, is_launch=False)
    except Fault as fault:
        return (Problem(kind="Group", name=settings.group, message=f"{type(fault).__name__}: {fault}"),)
    return ()
