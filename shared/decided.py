"""What the three who decide how many nodes there are make of a snapshot: run by their cycles, and again by a replay.

All that they read is the Cluster and what is `Given` with it. What they do goes out through *perform*, which answers
what became of it, and *write*, which writes the row of a command: a replay answers both as the journal says it was.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from datetime import timedelta
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome
from shared.actions.commands import Course, Judge
from shared.actions.notices import insisting
from shared.disruption.complaints import complaints
from shared.disruption.drifts import describe_drift
from shared.disruption.events import describe_verdicts
from shared.disruption.pauses import as_reasons, describe_pauses
from shared.disruption.planned import as_planned, describe_planned
from shared.disruption.repair import Repairs, repair
from shared.disruption.scenes import homes, leaving, spared
from shared.disruption.sweep import sweep
from shared.disruption.validation import still_holds
from shared.disruption.wakes import wakes
from shared.lifecycle.interruption import decide_notices
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    FollowUp,
    MarkUnavailable,
    PatchMetadata,
    PublishEvent,
    TaintNode,
)
from shared.model.cluster import Cluster
from shared.model.commands import Command, Invalid
from shared.model.state import state_nodes
from shared.report.counts import of_fleet
from shared.report.journal import Note
from shared.report.notes import news, of_commands, of_launches, of_nodes, of_pauses, of_places, voiced
from shared.report.snapshots import Given
from shared.reported import Report
from shared.rounds import Launcher, launched, trips
from shared.scheduling import decide as scheduling_decisions
from shared.scheduling.headroom import Planned, describe_buffers, plan
from shared.scheduling.placement import Placement
from shared.scheduling.static import decide_static
from shared.scheduling.stragglers import given_up, stragglers, without
from shared.settings import Settings, gates_from
from shared.wishes import disruption_terms, options

TIME_WAS_UP: Final = "time was up before all was decided"
URGENT: Final = (TaintNode, MarkUnavailable)
"""What of a notice is done before anything is planned: nobody new goes to the node, nor to more of its kind."""


class Bell:
    """Tells whether time is up, and remembers that it did."""

    def __init__(self, is_over: Callable[[], bool] | None = None) -> None:
        """Ask *is_over*; None: there is all the time in the world."""
        self._is_over = is_over
        self.has_rung = False

    def __call__(self) -> bool:
        """Whether time is up."""
        self.has_rung = self.has_rung or (self._is_over is not None and self._is_over())
        return self.has_rung

    def cut(self) -> str:
        """Say that time ended a decision, if it did."""
        return TIME_WAS_UP if self.has_rung else ""


class Perform(Protocol):
    """Does actions, and answers what became of each."""

    def __call__(
        self, actions: Iterable[Action], *, is_guarded: bool = False, is_last: bool = False
    ) -> tuple[Outcome, ...]:
        """Do *actions*: under the lease if *is_guarded*, only while there is time if *is_last*."""


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """What is done for pods that wait."""

    actions: tuple[Action, ...]
    placement: Placement
    headroom: frozenset[str]
    notes: tuple[Note, ...]


def provisioned(cluster: Cluster, given: Given, bell: Bell) -> Provisioned:
    """Decide about the pods that wait, and about static NodePools."""
    going, late = leaving(given.standings), stragglers(cluster, given.overtaken)
    cluster = without(cluster, late)
    planned = plan(cluster, excluded=going, options=options(given.settings), is_over=bell)
    placement = spared(planned.of_pods(), cluster, going)
    static = decide_static(cluster) if gates_from(given.settings.feature_gates).static_capacity else ()
    actions = (*scheduling_decisions.decide(cluster, placement), *describe_buffers(planned, cluster), *static)
    return Provisioned(
        actions=(*actions, *(() if bell.cut() else given_up(late, actions))),
        placement=placement,
        headroom=planned.headroom,
        notes=tuple(of_places(placement)),
    )


class Bought(msgspec.Struct, frozen=True, kw_only=True):
    """What was launched for claims."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[Note, ...]
    trips: int
    """Of the launch breaker."""


def bought(cluster: Cluster, given: Given, launcher: Launcher) -> Bought:
    """Launch every claim that has no instance, by *launcher*; who waits for one that is given up is woken."""
    done = tuple(launched(cluster, given.settings, launcher))
    if leaving(given.standings) and any(isinstance(one.action, DeleteObject) for one in done):
        told = FollowUp(function="disrupt", after=timedelta(), why="a claim was given up: it may be a replacement")
        done += launcher.perform((told,))
    made = of_launches((one.action for one in done if one.result == "done"), cluster)
    held = tuple(trips(done))
    return Bought(outcomes=done, notes=(*made, *held), trips=len(held))


def judge_by(settings: Settings) -> Judge:
    """Answer who says why a command does not hold any more."""
    given, said = options(settings), disruption_terms(settings)

    def judge(
        cluster: Cluster, command: Command, others: frozenset[str], *, homes: Mapping[str, str]
    ) -> Invalid | None:
        return still_holds(cluster, command, others, homes=homes, options=given, terms=said)

    return judge


def disrupted(
    cluster: Cluster,
    given: Given,
    course: Course,
    perform: Perform,
    memory: MutableMapping[str, object] | None,
    bell: Bell,
) -> tuple[Report, str]:
    """Let commands go on, look at every node, begin what is found; answer the report, and where the sweep came to."""
    said = disruption_terms(given.settings)
    engaged = course.engaged()
    course.advance()
    mended = repair(cluster, course.paused) if gates_from(given.settings.feature_gates).node_repair else Repairs()
    repaired = perform(mended.actions, is_guarded=True)
    engaged |= course.engaged() | mended.nodes
    swept = sweep(
        cluster,
        options=options(given.settings),
        paused=as_reasons(course.paused),
        cursor=given.cursor,
        is_over=bell,
        busy=engaged,
        homes=homes(course.scene, course.standings.values()),
        terms=said,
    )
    is_let = given.settings.disruption != "plan"
    course.propose(swept.commands if is_let else (), bell)
    course.tidy()
    verdicts = mended.with_verdicts(swept.verdicts if is_let else as_planned(swept.verdicts))
    fresh = news(verdicts, memory, cluster.taken_at)
    said_now = voiced(fresh, verdicts, memory, cluster.taken_at)
    told = (*describe_pauses(course.paused, cluster), *describe_verdicts(said_now, verdicts, course.scene))
    told += (*describe_planned(verdicts, course.scene), *describe_drift(cluster), *wakes(course.scene.states, cluster))
    report = Report(
        cluster=cluster,
        outcomes=(*course.outcomes, *repaired, *perform(told)),
        counts=course.counts() | mended.counts() | of_fleet(cluster, course.scene.states),
        notes=(*of_commands(course.moved), *of_pauses(course.paused), *of_nodes(fresh)),
        problems=(*course.problems, *said.problems(), *complaints(cluster, course.scene.states)),
    )
    return report, swept.cursor


class Interrupted(msgspec.Struct, frozen=True, kw_only=True):
    """What was done about notices."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[Note, ...]


def interrupted(cluster: Cluster, given: Given, perform: Perform, bell: Bell) -> Interrupted:
    """Act on the notices that are given: what is urgent, then nodes for the pods that lose theirs, then the rest."""
    actions = decide_notices(cluster, given.notices)
    done = perform(one for one in actions if isinstance(one, URGENT))
    done += perform(insisting(done))
    ends = frozenset(one.name for one in actions if isinstance(one, DeleteObject))
    marked = (one.offering for one in actions if isinstance(one, MarkUnavailable))
    cluster = replace(cluster, unavailable=(*cluster.unavailable, *marked))
    going = frozenset(one.name for one in state_nodes(cluster) if one.claim is not None and one.claim.name in ends)
    # Without the lease somebody else is planning: the follow-up that the notice posts will plan these pods.
    is_planned = given.is_planner and going
    planned = plan(cluster, excluded=going, options=options(given.settings), is_over=bell) if is_planned else Planned()
    placement = planned.of_pods()
    decided = scheduling_decisions.decide(cluster, placement)
    done += perform((one for one in decided if isinstance(one, CreateNodeClaim | PatchMetadata)), is_guarded=True)
    done += perform(words_last(one for one in actions if not isinstance(one, URGENT)), is_last=True)
    return Interrupted(outcomes=done, notes=tuple(of_places(placement)))


def words_last(actions: Iterable[Action]) -> list[Action]:
    """Answer *actions* in their order, those behind all others that only say something."""
    return sorted(actions, key=lambda one: isinstance(one, PublishEvent))
