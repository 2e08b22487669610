"""Where cycles that decide step by step meet the world in between; what they heard there is kept for a replay."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.actions.addresses import known_addresses
from shared.actions.apply import Outcome, apply
from shared.actions.ledger import promise, read_books
from shared.actions.orphans import spared
from shared.errors import Fault
from shared.launch.breaker import MONEY_WINDOW
from shared.launch.groups import LaunchPlan
from shared.launch.ledger import HELD_FOR, Book
from shared.launch.subnets import Addresses
from shared.model.action import Action, LaunchInstances
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetResult, LaunchTemplate
from shared.model.nodes import NodeClaim
from shared.model.objects import Problem
from shared.ports import Fence, World
from shared.report.observed import Kept, Round, known_by, outlines, without_user_data
from shared.snapshot.catalogue import key_of
from shared.snapshot.digest import sifted
from shared.snapshot.features import with_overlays
from shared.snapshot.take import retake

TIDIED_EVERY: Final = timedelta(minutes=10)
"""Between two looks of a container for launch templates that nobody uses: they cost nothing, to list them does."""
_TIDIED: Final = "tidied"


class Look(msgspec.Struct, kw_only=True):
    """One look at claims, and what came of it."""

    before: Cluster
    after: Cluster
    books: tuple[Book, ...]
    addresses: Addresses | None
    overtaken: tuple[str, ...] = ()
    sent: tuple[Outcome, ...] = ()


class Launching:
    """EC2, the table and the API server, for who launches."""

    def __init__(self, world: World, fence: Fence | None) -> None:
        """Launch in *world* under *fence*."""
        self._world, self._fence = world, fence
        self._looks: list[Look] = []

    def look(self, cluster: Cluster) -> tuple[Cluster, tuple[Book, ...], Addresses | None]:
        """Read the ledger, then the claims: what is gone from it is seen among them. Addresses where they matter.

        Raises:
            Fault: something of it could not be read.
        """
        books = read_books(self._world, cluster)
        seen = retake(self._world, cluster)
        is_wanted = any(_waits(claim) for claim in seen.node_claims)
        addresses = known_addresses(self._world) if is_wanted else None
        if is_wanted or self._looks:
            self._looks.append(Look(before=cluster, after=seen, books=books, addresses=addresses))
        return seen, books, addresses

    def promise(self, plan: LaunchPlan, cluster: Cluster) -> LaunchPlan:
        """Write down what *plan* takes of limits.

        Raises:
            Fault: the table did not answer.
        """
        kept = promise(plan, cluster, self._world, self._fence)
        if self._looks:
            names = {one.group.name for one in kept.launches}
            left = (one.group.name for one in plan.launches if one.group.name not in names)
            self._looks[-1].overtaken = tuple(sorted(left))
        return kept

    def perform(self, actions: Iterable[Action]) -> tuple[Outcome, ...]:
        """Do *actions*: launches under the lease."""
        some = tuple(actions)
        is_launch = any(isinstance(one, LaunchInstances) for one in some)
        done = apply(some, self._world, self._fence if is_launch else None)
        if is_launch:
            self._looks[-1].sent += done
        return done

    def rounds(self) -> tuple[Round, ...]:
        """Answer what was seen and heard so far; () if no claim waited."""
        return tuple(_round(one) for one in self._looks)


def _waits(claim: NodeClaim) -> bool:
    return not claim.is_launched() and not claim.is_deleting()


def _round(look: Look) -> Round:
    before = {one.name: one for one in look.before.node_claims}
    after = {one.name for one in look.after.node_claims}
    changed = (one for one in look.after.node_claims if before.get(one.name) != one)
    return Round(
        at=look.after.taken_at,
        claims=sifted(tuple(changed)),
        gone=tuple(sorted(before.keys() - after)),
        unavailable=look.after.unavailable if look.after.unavailable != look.before.unavailable else None,
        launch_groups=tuple(_counting(look)),
        books=look.books,
        addresses=look.addresses,
        overtaken=look.overtaken,
        answers=tuple(_answers(look.sent)),
        written=tuple(_otherwise(look.sent)),
    )


def _counting(look: Look) -> Iterator[LaunchGroup]:
    """Answer the launch groups that a plan of launches looks at, without what it passes over."""
    now = look.after.taken_at
    claims = {one.name for one in look.after.node_claims if not one.provider_id}
    recent = min([now - HELD_FOR, *([look.addresses.at] if look.addresses is not None else [])])
    for one in look.after.launch_groups:
        if one.result is None or not claims.isdisjoint(one.claims):
            yield without_user_data(one)
        elif one.created_at >= recent:
            yield replace(one, templates=())
        elif now - one.created_at < MONEY_WINDOW:
            yield _paid_for(one, one.result)


def _paid_for(group: LaunchGroup, result: FleetResult) -> LaunchGroup:
    """Answer *group* with the offerings that EC2 chose, no other."""
    chosen = {(one.instance_type, one.zone) for one in result.instances}
    configs = tuple(
        replace(
            config,
            overrides=tuple(one for one in config.overrides if (one.instance_type, one.zone) in chosen),
        )
        for config in group.request.configs
    )
    return replace(group, templates=(), request=replace(group.request, configs=configs))


def _answers(sent: Iterable[Outcome]) -> Iterator[tuple[str, FleetResult]]:
    for one in sent:
        if one.group is not None and one.group.result is not None:
            yield one.group.name, one.group.result


def _otherwise(sent: Iterable[Outcome]) -> Iterator[LaunchGroup]:
    """Answer groups that were sent as they had been written down, which is not as they were planned now."""
    for one in sent:
        if one.group is not None and isinstance(one.action, LaunchInstances):
            written = replace(one.group, result=None)
            if written != replace(one.action.group, result=None):
                yield without_user_data(written)


class Keeping:
    """What `lifecycle` asks of the world while it decides."""

    def __init__(self, world: World, cluster: Cluster, *, is_tick: bool) -> None:
        """Ask *world*, in which *cluster* was seen; only a tick tidies."""
        self._world, self._is_tick = world, is_tick
        self.kept = Kept(launch_groups=outlines(cluster.launch_groups))
        self.problems: list[Problem] = []

    def spared(self, actions: Iterable[Action], cluster: Cluster) -> tuple[str, ...]:
        """Answer the instances that *actions* end as nobody's, and that may be somebody's."""
        found = spared(actions, cluster, self._world.kube)
        self.kept = replace(self.kept, spared=found)
        return found

    def templates(self) -> tuple[LaunchTemplate, ...] | None:
        """Answer the launch templates that there are; None: EC2 does not say."""
        name = self._world.settings.cluster_name
        try:
            known = known_by(self._world.ec2.launch_templates(name))
        except Fault as fault:
            message = f"launch templates could not be listed: {type(fault).__name__}: {fault}; none is deleted"
            self.problems.append(Problem(kind="EC2", name=name, message=message))
            return None
        self.kept = replace(self.kept, templates=known)
        return known

    def is_tidying(self, cluster: Cluster) -> bool:
        """Whether it is time to look for launch templates that nobody uses; who asks is taken to look."""
        is_time = self._is_tick and _is_untidy(self._world, cluster)
        self.kept = replace(self.kept, is_tidying=is_time)
        return is_time

    def overlaid(self, cluster: Cluster) -> Cluster:
        """Answer *cluster* with NodeOverlays, where they are on.

        Raises:
            Fault: they could not be read.
        """
        seen = with_overlays(self._world, cluster)
        if seen.node_overlays:
            sold = key_of(seen.catalogue) if seen.catalogue is not None else ""
            overlays = sifted(seen.node_overlays)
            self.kept = replace(self.kept, overlays=overlays, overlaid_at=seen.taken_at, catalogue=sold)
        return seen


def _is_untidy(world: World, cluster: Cluster) -> bool:
    now = cluster.taken_at
    if world.memory is None or not cluster.node_pools:
        return True
    last = world.memory.get(_TIDIED)
    if isinstance(last, datetime) and now - last < TIDIED_EVERY:
        return False
    world.memory[_TIDIED] = now
    return True
