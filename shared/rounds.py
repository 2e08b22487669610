"""Launching: EC2 is asked for every claim without an instance, in rounds, since one answer may leave some over."""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.actions.addresses import known_addresses
from shared.actions.apply import Outcome, apply
from shared.actions.ledger import promise, read_books
from shared.launch.breaker import Fuses
from shared.launch.groups import LaunchPlan, Terms, plan_launches
from shared.launch.ledger import Book
from shared.launch.outcome import BREAKER_OPEN, blown, given_up, outcome, unanswered
from shared.model.action import Action, LaunchInstances, PublishEvent
from shared.model.cluster import Cluster
from shared.ports import Fence, World
from shared.report.journal import Note
from shared.snapshot.features import gates_of
from shared.snapshot.take import retake

ROUNDS: Final = 4
"""How often one invocation asks EC2 for claims that an answer left without an instance."""
SPOT_ROUNDS: Final = 2
"""After so many rounds a claim that may be on-demand is, though other spot offerings were not tried yet."""


def launched(cluster: Cluster, world: World, fence: Fence) -> Iterator[Outcome]:
    """Ask EC2 for every claim that has no instance; what one answer leaves over is asked for in another way at once.

    The ledger is read before the claims are: what is gone from it is seen among them.
    """
    left: frozenset[str] = frozenset()
    for round_ in range(ROUNDS):
        books = read_books(world, cluster)
        cluster = retake(world, cluster)
        steady = left if round_ >= SPOT_ROUNDS else frozenset()
        wanted = plan_launches(cluster, _terms(world, cluster, books, steady))
        plan = promise(wanted, cluster, world, fence)
        sent = apply(plan.launches, world, fence)
        yield from sent
        yield from apply(_told(plan, sent, cluster), world)
        answers = [*plan.answered, *(one.group for one in sent if one.group is not None)]
        results = [outcome(group, cluster) for group in answers]
        yield from apply([action for result in results for action in result.actions], world)
        left = frozenset(name for result in results for name in result.left)
        if not left and len(plan.launches) == len(wanted.launches):
            return


def trips(done: Iterable[Outcome]) -> Iterator[Note]:
    """Say which NodePools the launch breaker holds back."""
    for one in done:
        if isinstance(one.action, PublishEvent) and one.action.reason == BREAKER_OPEN:
            name, why = one.action.name, one.action.message
            yield Note(kind="NodePool", name=name, verdict=BREAKER_OPEN, why=why)


def _terms(world: World, cluster: Cluster, books: tuple[Book, ...], steady: frozenset[str]) -> Terms:
    """Answer what launches are held to; addresses are asked for only where subnets are to choose from."""
    settings = world.settings
    waiting = any(not claim.is_launched() and not claim.is_deleting() for claim in cluster.node_claims)
    return Terms(
        addresses=known_addresses(world) if waiting else None,
        books=books,
        fuses=Fuses(
            nodes_per_minute=int(settings.launch_nodes_per_minute),
            usd_per_hour=float(settings.launch_usd_per_hour),
            pool_nodes_per_minute=int(settings.launch_pool_nodes_per_minute),
            pool_usd_per_hour=float(settings.launch_pool_usd_per_hour),
        ),
        steady=steady,
        uses_open_reservations=not gates_of(world).reserved_capacity,
        best_effort=settings.min_values_policy == "BestEffort",
    )


def _told(plan: LaunchPlan, sent: Iterable[Outcome], cluster: Cluster) -> list[Action]:
    """Answer what claims and NodePools are told that were not launched, or of which nobody knows."""
    told = [action for trip in plan.trips for action in blown(trip, cluster)]
    told += [action for one in plan.unlaunchable for action in given_up(one, cluster.taken_at)]
    for one in sent:
        if one.result == "failed" and isinstance(one.action, LaunchInstances):
            told += unanswered(one.action.group, one.message, cluster)
    return told
