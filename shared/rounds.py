"""Launching: EC2 is asked for every claim without an instance, in rounds, since one answer may leave some over."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from shared.actions.apply import Outcome
from shared.launch.breaker import Fuses
from shared.launch.groups import LaunchPlan, Terms, plan_launches
from shared.launch.ledger import Book
from shared.launch.outcome import BREAKER_OPEN, blown, given_up, outcome, unanswered
from shared.launch.subnets import Addresses
from shared.model.action import Action, LaunchInstances, PublishEvent
from shared.model.cluster import Cluster
from shared.report.journal import Note
from shared.settings import Settings, gates_from

ROUNDS: Final = 4
"""How often one invocation asks EC2 for claims that an answer left without an instance."""
SPOT_ROUNDS: Final = 2
"""After so many rounds a claim that may be on-demand is, though other spot offerings were not tried yet."""


class Launcher(Protocol):
    """Who looks and asks between two rounds: the world, or what was kept of it."""

    def look(self, cluster: Cluster) -> tuple[Cluster, tuple[Book, ...], Addresses | None]:
        """Answer *cluster* with its claims as they are now, the ledger as it was before that, and free addresses."""

    def promise(self, plan: LaunchPlan, cluster: Cluster) -> LaunchPlan:
        """Answer *plan* without what another function was quicker with."""

    def perform(self, actions: Iterable[Action]) -> tuple[Outcome, ...]:
        """Do *actions*, launches under the lease, and answer what became of each."""


def launched(cluster: Cluster, settings: Settings, launcher: Launcher) -> Iterator[Outcome]:
    """Ask EC2 for every claim that has no instance; what one answer leaves over is asked for in another way at once."""
    left: frozenset[str] = frozenset()
    for round_ in range(ROUNDS):
        cluster, books, addresses = launcher.look(cluster)
        steady = left if round_ >= SPOT_ROUNDS else frozenset()
        wanted = plan_launches(cluster, _terms(settings, books, addresses, steady))
        plan = launcher.promise(wanted, cluster)
        sent = launcher.perform(plan.launches)
        yield from sent
        yield from launcher.perform(_told(plan, sent, cluster))
        answers = [*plan.answered, *(one.group for one in sent if one.group is not None)]
        results = [outcome(group, cluster) for group in answers]
        yield from launcher.perform([action for result in results for action in result.actions])
        left = frozenset(name for result in results for name in result.left)
        if not left and len(plan.launches) == len(wanted.launches):
            return


def trips(done: Iterable[Outcome]) -> Iterator[Note]:
    """Say which NodePools the launch breaker holds back."""
    for one in done:
        if isinstance(one.action, PublishEvent) and one.action.reason == BREAKER_OPEN:
            name, why = one.action.name, one.action.message
            yield Note(kind="NodePool", name=name, verdict=BREAKER_OPEN, why=why)


def _terms(settings: Settings, books: tuple[Book, ...], addresses: Addresses | None, steady: frozenset[str]) -> Terms:
    """Answer what launches are held to."""
    return Terms(
        addresses=addresses,
        books=books,
        fuses=Fuses(
            nodes_per_minute=int(settings.launch_nodes_per_minute),
            usd_per_hour=float(settings.launch_usd_per_hour),
            pool_nodes_per_minute=int(settings.launch_pool_nodes_per_minute),
            pool_usd_per_hour=float(settings.launch_pool_usd_per_hour),
        ),
        steady=steady,
        uses_open_reservations=not gates_from(settings.feature_gates).reserved_capacity,
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
