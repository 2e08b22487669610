"""The rows of commands, and the steps that are taken under them: written down first, done then.

Every write names the planner's lease: whoever lost it writes nothing down, and so does nothing that counts.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome, apply
from shared.actions.command_rows import KIND, forget_past, read_commands, write_command
from shared.disruption.commands import advance
from shared.disruption.leftovers import tidy
from shared.disruption.pauses import long_waiting, pauses, switches
from shared.disruption.scenes import Scene, busy, homes, scene_of, touched
from shared.disruption.standings import asked_for, proposed, time_for
from shared.errors import Conflict, Invalid
from shared.model.action import Action, CreateNodeClaim, FollowUp
from shared.model.cluster import Cluster
from shared.model.commands import Command, Pauses, Standing
from shared.model.commands import Invalid as Invalidity
from shared.model.objects import Problem
from shared.ports import Fence, World
from shared.settings import Settings

LEASE_LOST: Final = "another cycle had taken over before all was written down"


class Judge(Protocol):
    """Says why a command does not hold any more."""

    def __call__(
        self, cluster: Cluster, command: Command, others: frozenset[str], *, homes: Mapping[str, str]
    ) -> Invalidity | None:
        """Judge *command*, while *others* are the nodes of other open commands and *homes* where their pods go."""


class Course(msgspec.Struct, kw_only=True):
    """How commands go on in one cycle."""

    scene: Scene
    judge: Judge
    write: Callable[[Standing], Standing]
    """Writes a row, and answers what it is then; raises Conflict once somebody else has the lease."""
    perform: Callable[[Iterable[Action]], tuple[Outcome, ...]]
    standings: dict[str, Standing]
    """By id, as they are now."""
    paused: Pauses = Pauses()
    moved: list[Standing] = []
    """Those that came further, in the order in which they did."""
    outcomes: list[Outcome] = []
    problems: list[Problem] = []
    woken: dict[str, timedelta] = {}
    """How soon functions were woken."""
    is_lost: bool = False
    """Nothing more is done: somebody else has the lease by now, or the mode is plan."""
    unwritten: str = ""
    """Why some step could not be written down."""

    def advance(self) -> None:
        """Take every step that is possible now, of all commands, by name.

        Raises:
            Fault: the table did not answer; what was written down will be done by the next cycle.
        """
        for name in sorted(self.standings):
            self._step(name)

    def propose(self, commands: Iterable[Command], is_over: Callable[[], bool] | None = None) -> None:
        """Begin *commands*: write each down, and mark its nodes. What is paused is not begun.

        Those that are left when time *is_over* are found again by the next sweep.

        Raises:
            Fault: the table did not answer.
        """
        waiting = long_waiting(self.scene.cluster)
        for command in commands:
            if is_over is not None and is_over():
                break
            known = self.standings.get(command.command_id)
            is_paused = any(self.paused.why(target.pool, command.reason) for target in command.targets)
            if is_paused or self.is_lost or (known is not None and known.is_open):
                continue
            fresh = replace(proposed(command, self.scene.now), waiting=waiting)
            if known is not None:
                fresh = replace(fresh, version=known.version, failures=known.failures)
            if self._write(fresh):
                self._step(command.command_id)

    def tidy(self) -> None:
        """Take back what no open command accounts for."""
        if not self.is_lost:
            self._apply(tidy(self.scene, self.standings.values()))

    def engaged(self) -> frozenset[str]:
        """Answer the names of nodes that nothing new is to be decided about in this cycle.

        Those of open commands, and those that bear a mark: it is being taken back, or was when they were looked at.
        """
        return busy(self.standings.values()) | touched(self.scene)

    def counts(self) -> dict[str, float]:
        """Answer what metrics say of it."""
        saved = sum(one.command.savings_usd_per_hour for one in self.moved if one.phase == "INITIALIZED")
        return {
            "OpenCommands": float(sum(one.is_open for one in self.standings.values())),
            "ProposedCommands": float(sum(one.phase == "PROPOSED" for one in self.moved)),
            "RolledBackCommands": float(sum(one.phase == "ROLLED_BACK" for one in self.moved)),
            "DisruptionPauses": float(sum(not one.is_meant for one in self.paused.items)),
            "IntendedPauses": float(sum(one.is_meant for one in self.paused.items)),
            "SavedUsdPerHour": saved,
        }

    def _step(self, name: str) -> None:
        """Take one step; asking for all replacements is a second."""
        if self.is_lost:
            return
        before = self.standings[name]
        others = [one for other, one in self.standings.items() if other != name]
        step = advance(
            self.scene,
            before,
            lambda cluster, command: self.judge(cluster, command, busy(others), homes=homes(self.scene, others)),
            time=time_for(self.standings.values()),
            paused=self.paused,
        )
        if step.standing != before and not self._write(step.standing):
            return
        done = self._apply(step.actions)
        wanted = [one for one in done if isinstance(one.action, CreateNodeClaim)]
        if wanted and all(one.result == "done" for one in wanted):
            self._write(asked_for(self.standings[name], self.scene.now))

    def _write(self, standing: Standing) -> bool:
        """Write *standing* down; answer whether it is."""
        try:
            written = self.write(standing)
        except Conflict:
            self.is_lost, self.unwritten = True, LEASE_LOST
            return False
        except Invalid as refused:
            name = standing.command.command_id
            self.unwritten = f"command {name} could not be written down"
            self.problems.append(Problem(kind=KIND, name=name, message=f"cannot be written down: {refused}"))
            return False
        self.standings[standing.command.command_id] = written
        self.moved.append(written)
        return True

    def _apply(self, actions: Iterable[Action]) -> tuple[Outcome, ...]:
        done = self.perform([one for one in actions if self._is_new(one)])
        self.outcomes.extend(done)
        return done

    def _is_new(self, action: Action) -> bool:
        """Whether *action* is no follow-up, or wakes a function sooner than those before it."""
        if not isinstance(action, FollowUp):
            return True
        known = self.woken.get(action.function)
        if known is None or action.after < known:
            self.woken[action.function] = action.after
            return True
        return False


def begin(cluster: Cluster, world: World, fence: Fence, judge: Judge) -> Course:
    """Read what stands, and what is paused; in mode `plan` nothing goes on from there.

    Raises:
        Fault: the table did not answer.
        ValueError: a setting cannot be read.
    """
    problems: list[Problem] = []
    standings = read_commands(world, problems)
    if world.settings.mode != "plan":
        forget_past(standings, world)

    def write(standing: Standing) -> Standing:
        return write_command(standing, world, fence)

    def perform(actions: Iterable[Action]) -> tuple[Outcome, ...]:
        return apply(actions, world, fence)

    course = course_of(cluster, standings, world.settings, judge, write=write, perform=perform)
    course.problems[:0] = problems
    return course


def course_of(
    cluster: Cluster,
    standings: dict[str, Standing],
    settings: Settings,
    judge: Judge,
    *,
    write: Callable[[Standing], Standing],
    perform: Callable[[Iterable[Action]], tuple[Outcome, ...]],
) -> Course:
    """Answer how *standings*, by id, go on where rows are written by *write* and actions done by *perform*.

    Raises:
        ValueError: a setting cannot be read.
    """
    scene = scene_of(cluster)
    wanted = switches(settings.disruption_paused, settings.drift_pause_percent)
    paused, unread = pauses(cluster, scene.states, standings.values(), wanted)
    return Course(
        scene=scene,
        judge=judge,
        write=write,
        perform=perform,
        standings=standings,
        paused=paused,
        problems=list(unread),
        is_lost=settings.mode == "plan",
    )
