"""Launch rounds: fleet requests for claims without an instance, repeated because a result can leave claims over."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.decide.launch.fleets.fleet_result import (
    plan_fleet_outcome,
    report_breaker_trip,
    report_failed_request,
    report_unlaunchable,
)
from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy, plan_launches
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import Action, LaunchInstances
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_answers import LimitConflicts
from shared.model.decisions.decision_requests import DecisionProcess, ObserveLaunches, PerformActions, ReserveLimits
from shared.state.cluster_state import ClusterState

MAX_LAUNCH_ROUNDS: Final = 4
"""Rounds of one invocation for claims that a fleet result left without an instance."""
MAX_SPOT_ROUNDS: Final = 2
"""After this many rounds a claim that allows on-demand gets it, even if other spot offerings have not been tried."""


class LaunchObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What is read before each round."""

    cluster: ClusterSnapshot
    """With its current claims, launch groups and unavailable offerings."""
    reservations: tuple[LimitReservations, ...]
    """Read before the claims."""
    addresses: SubnetAddresses | None


def launch_in_rounds(policy: LaunchPolicy) -> DecisionProcess[tuple[Outcome, ...]]:
    """Launch every claim that has no instance; claims that a result leaves over are requested differently at once."""
    outcomes: tuple[Outcome, ...] = ()
    remaining_claims: frozenset[str] = frozenset()
    for round_ in range(MAX_LAUNCH_ROUNDS):
        observation: LaunchObservation = yield ObserveLaunches()
        cluster = observation.cluster
        round_policy = replace(
            policy,
            subnet_addresses=observation.addresses,
            limit_reservations=observation.reservations,
            on_demand_first_claims=remaining_claims if round_ >= MAX_SPOT_ROUNDS else frozenset(),
        )
        launch_plan = plan_launches(ClusterState(cluster), round_policy)
        reserved_plan = yield from reserve_limits(launch_plan, cluster)
        launch_outcomes: tuple[Outcome, ...] = yield PerformActions(actions=reserved_plan.launches, is_guarded=True)
        outcomes += launch_outcomes
        outcomes += yield PerformActions(actions=_describe_failures(reserved_plan, launch_outcomes, cluster))
        groups = [
            *reserved_plan.answered_groups,
            *(launch_outcome.group for launch_outcome in launch_outcomes if launch_outcome.group is not None),
        ]
        results = [plan_fleet_outcome(group, cluster) for group in groups]
        outcomes += yield PerformActions(actions=tuple(action for result in results for action in result.actions))
        remaining_claims = frozenset(name for result in results for name in result.unserved_claims)
        if not remaining_claims and len(reserved_plan.launches) == len(launch_plan.launches):
            break
    return outcomes


def reserve_limits(plan: LaunchPlan, cluster: ClusterSnapshot) -> DecisionProcess[LaunchPlan]:
    """Reserve the limits of *plan*; return it without new launches that lost a race for their NodePool."""
    written_groups = {group.name for group in cluster.launch_groups}
    new_launches = tuple(launch for launch in plan.launches if launch.group.name not in written_groups)
    conflicts: LimitConflicts = yield ReserveLimits(
        limit_reservations=plan.limit_reservations, launches=new_launches, group_amount=plan.group_amount
    )
    launches = (launch for launch in plan.launches if launch.group.name not in conflicts.launch_groups)
    return replace(plan, launches=tuple(launches))


def _describe_failures(plan: LaunchPlan, outcomes: Iterable[Outcome], cluster: ClusterSnapshot) -> tuple[Action, ...]:
    """Return the actions that report launches that were not made, or that have no known result."""
    actions = [action for trip in plan.trips for action in report_breaker_trip(trip, cluster)]
    actions += [
        action for unlaunchable in plan.unlaunchable for action in report_unlaunchable(unlaunchable, cluster.taken_at)
    ]
    for launch_outcome in outcomes:
        if launch_outcome.result == "failed" and isinstance(launch_outcome.action, LaunchInstances):
            actions += report_failed_request(launch_outcome.action.group, launch_outcome.message, cluster)
    return tuple(actions)
