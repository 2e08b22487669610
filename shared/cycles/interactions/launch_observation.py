"""What launching reads and writes between two rounds, and the parts of it that a replay needs."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from shared.decide.launch.fleets.circuit_breaker import COST_WINDOW
from shared.decide.launch.fleets.launch_limits import RESERVATION_TTL, list_launch_scopes
from shared.decide.launch.fleets.launch_retries import LaunchObservation
from shared.model.cloud_provider.launch_group import LaunchGroup, get_node_pool_name
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import Action, LaunchInstances
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_answers import FleetResults, LimitConflicts, ObservedChanges
from shared.model.decisions.decision_requests import ReserveLimits
from shared.model.ec2.fleet import FleetResult
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.journal.replay_inputs import without_user_data
from shared.report.journal.snapshot_digest import strip_unread_annotations
from shared.store.limits.cluster_group import read_group_usage, try_write_amount
from shared.store.limits.limit_reservations import read_limit_reservations, try_write_reservations
from shared.store.subnet_addresses import read_free_addresses
from shared.take.snapshot import refresh_snapshot


def observe_launches(world: World, cluster: ClusterSnapshot) -> LaunchObservation:
    """Read the group, the limit reservations, the claims, and the free addresses if claims are waiting for a launch.

    In this order a claim that has left the reservations is among the claims that were read, and a reservation that
    another function made before it wrote the entry of the group is among the reservations that were read.

    Raises:
        Fault: one of them could not be read.
    """
    group_usage = read_group_usage(world)
    reservations = read_limit_reservations(world, cluster)
    current = replace(refresh_snapshot(world, cluster), group_usage=group_usage)
    addresses = read_free_addresses(world) if has_pending_launches(current) else None
    return LaunchObservation(cluster=current, reservations=reservations, addresses=addresses)


def has_pending_launches(cluster: ClusterSnapshot) -> bool:
    """Return whether a claim needs a launch."""
    return any(not claim.is_launched() and not claim.is_deleting() for claim in cluster.node_claims)


def write_limit_reservations(request: ReserveLimits, world: World, fence: FencingToken | None) -> LimitConflicts:
    """Write the limit reservations; return the launches whose limits another function or cluster reserved first.

    These are the limits of their NodePool, of the cluster and of its group. The entry of the group is written last: it
    contains the reservations.

    Raises:
        Fault: the table did not respond; nothing was launched.
    """
    if world.settings.mode == "plan":
        return LimitConflicts()
    conflicting_scopes = {
        book.pool for book in request.limit_reservations if not try_write_reservations(book, world, fence)
    }
    group_names = {
        launch.group.name
        for launch in request.launches
        if conflicting_scopes.intersection(list_launch_scopes(get_node_pool_name(launch.group.request)))
    }
    launched_names = {launch.group.name for launch in request.launches} - group_names
    if world.settings.group and not _reserve_group(request, world, is_launch=bool(launched_names)):
        group_names |= launched_names
    return LimitConflicts(launch_groups=tuple(sorted(group_names)))


def _reserve_group(request: ReserveLimits, world: World, *, is_launch: bool) -> bool:
    """Write what the cluster uses of the limit of its group; return whether launches may be sent."""
    amount = request.group_amount
    return amount is not None and try_write_amount(world, amount, is_launch=is_launch)


def build_observed_changes(before: ClusterSnapshot, observation: LaunchObservation) -> ObservedChanges:
    """Return what a replay needs of *observation*, which followed *before*."""
    cluster = observation.cluster
    previous_claims = {claim.name: claim for claim in before.node_claims}
    changed_claims = (claim for claim in cluster.node_claims if previous_claims.get(claim.name) != claim)
    return ObservedChanges(
        at=cluster.taken_at,
        claims=strip_unread_annotations(tuple(changed_claims)),
        removed_claims=tuple(sorted(previous_claims.keys() - {claim.name for claim in cluster.node_claims})),
        unavailable=cluster.unavailable if cluster.unavailable != before.unavailable else None,
        launch_groups=tuple(_select_counted_groups(observation)),
        books=observation.reservations,
        addresses=observation.addresses,
        group_usage=cluster.group_usage,
    )


def build_fleet_results(outcomes: Iterable[Outcome]) -> FleetResults:
    """Return the parts of the *outcomes* of launches that a replay needs and the journal lacks."""
    sent_groups = [(outcome.action, outcome.group) for outcome in outcomes if outcome.group is not None]
    return FleetResults(
        fleet_results=tuple((group.name, group.result) for _, group in sent_groups if group.result is not None),
        stored_groups=tuple(_find_rewritten_groups(sent_groups)),
    )


def _select_counted_groups(observation: LaunchObservation) -> Iterator[LaunchGroup]:
    """Yield the launch groups that launch planning reads, without the parts that it does not need."""
    now = observation.cluster.taken_at
    claims = {claim.name for claim in observation.cluster.node_claims if not claim.provider_id}
    recent = min([now - RESERVATION_TTL, *([observation.addresses.at] if observation.addresses is not None else [])])
    for group in observation.cluster.launch_groups:
        if group.result is None or not claims.isdisjoint(group.claims):
            yield without_user_data(group)
        elif group.created_at >= recent:
            yield replace(group, templates=())
        elif now - group.created_at < COST_WINDOW:
            yield _keep_launched_offerings(group, group.result)


def _keep_launched_offerings(group: LaunchGroup, result: FleetResult) -> LaunchGroup:
    """Return *group* with only the offerings that EC2 chose."""
    launched_pairs = {(instance.instance_type, instance.zone) for instance in result.instances}
    configs = tuple(
        replace(
            config,
            overrides=tuple(
                override for override in config.overrides if (override.instance_type, override.zone) in launched_pairs
            ),
        )
        for config in group.request.configs
    )
    return replace(group, templates=(), request=replace(group.request, configs=configs))


def _find_rewritten_groups(sent_groups: Iterable[tuple[Action, LaunchGroup]]) -> Iterator[LaunchGroup]:
    """Yield the groups that were sent as stored by an earlier cycle, where that differs from the current plan."""
    for action, group in sent_groups:
        stored_group = _forget_progress(group)
        if isinstance(action, LaunchInstances) and stored_group != _forget_progress(action.group):
            yield without_user_data(stored_group)


def _forget_progress(group: LaunchGroup) -> LaunchGroup:
    return replace(group, result=None, unconfirmed_since=None)
