"""What the two who go step by step make of a snapshot and of what they hear on the way: run by cycles and replays."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Protocol

from shared.actions.apply import UNDONE, Outcome
from shared.actions.evictions import tell_evictions
from shared.actions.orphans import reconsidered
from shared.decided import Perform, words_last
from shared.launch import catalogues
from shared.launch.templates import unused
from shared.lifecycle import decide as lifecycle_decisions
from shared.lifecycle.classes import departing, is_farewell
from shared.lifecycle.overlays import describe_overlays
from shared.model.action import Action, FollowUp
from shared.model.cluster import Cluster
from shared.model.ec2 import LaunchTemplate
from shared.report.observed import Resolved
from shared.report.snapshots import Given
from shared.scheduling.hashes import node_pool_hash
from shared.scheduling.homes import awaited
from shared.scheduling.nominations import Reservations, reservations
from shared.scheduling.overlays import evaluate


class Keeper(Protocol):
    """Who is asked between two steps: the world, or what was kept of its answers."""

    def spared(self, actions: Iterable[Action], cluster: Cluster) -> tuple[str, ...]:
        """Answer the instances that *actions* end as nobody's, and that may be somebody's."""

    def templates(self) -> tuple[LaunchTemplate, ...] | None:
        """Answer the launch templates that there are; None: that cannot be said."""

    def is_tidying(self, cluster: Cluster) -> bool:
        """Whether it is time to look for launch templates that nobody uses."""

    def overlaid(self, cluster: Cluster) -> Cluster:
        """Answer *cluster* with NodeOverlays, where they are on."""


def stepped(cluster: Cluster, given: Given, keeper: Keeper, perform: Perform) -> tuple[Outcome, ...]:
    """Let every claim and node take the steps that are possible; answer what became of each."""
    told = reservations(cluster) if given.settings.hints == "Given" else Reservations()
    actions = lifecycle_decisions.decide(
        cluster,
        hashes={pool.name: node_pool_hash(pool) for pool in cluster.node_pools},
        cluster_name=given.settings.cluster_name,
        closed=told.closed,
        places=told.places,
        awaited=awaited(cluster),
    )
    actions = reconsidered(actions, cluster, keeper.spared(actions, cluster))
    gone = departing(cluster)
    going = _unused_templates(cluster, given, keeper, gone) if gone else ()
    swept = perform(going or (), is_last=True)
    if going is None or any(one.result != "done" for one in swept):  # a class stays until nothing is left of it
        actions = tuple(one for one in actions if not is_farewell(one, gone))
    done = swept + perform((*told.hints, *words_last(actions)), is_guarded=True, is_last=True)
    done += perform((*tell_evictions(done, cluster), *_overlay_words(keeper.overlaid(cluster))), is_last=True)
    if not gone and keeper.is_tidying(cluster):
        done += perform(_unused_templates(cluster, given, keeper) or (), is_last=True)
    if any(one.message == UNDONE for one in done):
        why = "time was up before all was done"
        done += perform((FollowUp(function="lifecycle", after=timedelta(), why=why),))
    return done


def resolved(cluster: Cluster, given: Given) -> tuple[Action, ...]:
    """Answer the status of every node class of which the account said something."""
    asked = given.resolved or Resolved()
    return catalogues.statuses(cluster, asked.found, asked.profile)


def _overlay_words(seen: Cluster) -> tuple[Action, ...]:
    """Answer what NodeOverlays are to say of themselves."""
    return describe_overlays(seen.node_overlays, evaluate(seen).verdicts, seen.taken_at)


def _unused_templates(
    cluster: Cluster, given: Given, keeper: Keeper, gone: Collection[str] = ()
) -> tuple[Action, ...] | None:
    """Answer which launch templates go; none while a launch cannot be read, None where EC2 does not answer."""
    if any(one.kind == "launch-group" for one in cluster.problems):
        return ()
    known = keeper.templates()
    if known is None:
        return None
    return unused(known, cluster.launch_groups, given.settings.cluster_name, cluster.taken_at, gone)
