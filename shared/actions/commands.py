"""The rows of commands, and the steps that are taken under them: written down first, done then.

Every write names the planner's lease: whoever lost it writes nothing down, and so does nothing that counts.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from shared.actions.apply import Outcome, apply
from shared.disruption.commands import advance, asked_for, proposed, time_for
from shared.disruption.leftovers import tidy
from shared.disruption.pauses import long_waiting, pauses, switches
from shared.disruption.scenes import Scene, busy, homes, scene_of, touched
from shared.errors import Conflict, Invalid
from shared.model.action import Action, CreateNodeClaim, FollowUp
from shared.model.cluster import Cluster
from shared.model.commands import Command, Pauses, Standing
from shared.model.commands import Invalid as Invalidity
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta, Problem
from shared.ports import Fence, Row, World
from shared.settings import Settings

KIND: Final = "command"
CURSOR: Final = "cursor"
DISRUPT: Final = "disrupt"
KEPT_FOR: Final = timedelta(hours=1)
"""So long a command that came to its end is remembered: what went wrong of late pauses what is to come."""
LEASE_LOST: Final = "another cycle had taken over before all was written down"
MOST_REMOVED: Final = 25
"""Rows that are past, a cycle."""


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
            "DisruptionPauses": float(len(self.paused.items)),
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


def read_commands(world: World, problems: list[Problem]) -> dict[str, Standing]:
    """Answer the rows by id; those that cannot be read join *problems*, and their nodes are nobody's.

    Raises:
        Fault: the table did not answer.
    """
    found: dict[str, Standing] = {}
    for row in world.table.rows(KIND):
        try:
            read = msgspec.json.decode(row.body, type=Standing)
        except msgspec.DecodeError as error:
            message = f"body: {error}; remove the row, what it was about is taken back"
            problems.append(Problem(kind=KIND, name=row.name, message=message))
            continue
        found[row.name] = replace(read, version=row.version)
    return found


def forget_past(standings: dict[str, Standing], world: World) -> None:
    """Remove rows of commands that ended long ago, and from *standings*; some in each cycle.

    Raises:
        Fault: the table did not answer.
    """
    now = world.clock()
    past = [name for name, one in sorted(standings.items()) if not one.is_open and now - one.phase_since > KEPT_FOR]
    for name in past[:MOST_REMOVED]:
        world.table.remove(KIND, name, version=standings.pop(name).version)


def write_command(standing: Standing, world: World, fence: Fence) -> Standing:
    """Write the row, `outlined`.

    Raises:
        Conflict: the lease was lost, or somebody else wrote the row.
        Invalid: it is too large.
    """
    name = standing.command.command_id
    kept = outlined(standing)
    fresh = replace(kept, fence=fence.version, version=0)
    body = msgspec.json.encode(fresh, order="deterministic").decode()
    until = None if standing.is_open else standing.phase_since + KEPT_FOR
    row = world.table.write(KIND, name, body, version=standing.version, expires_at=until, fence=fence)
    return replace(kept, fence=fence.version, version=row.version)


def outlined(standing: Standing) -> Standing:
    """Answer *standing* as it is written down: of what came to its end its replacements have no more than names."""
    return standing if standing.is_open else replace(standing, command=_outline(standing.command))


def read_cursor(world: World) -> Row:
    """Answer where the last sweep came to; a body of "" is the beginning.

    Raises:
        Fault: the table did not answer.
    """
    return world.table.read(CURSOR, DISRUPT) or Row(kind=CURSOR, name=DISRUPT, version=0, body="")


def write_cursor(row: Row, cursor: str, world: World, fence: Fence) -> None:
    """Remember where a sweep came to, if that is another place; who lost the lease leaves it to whoever has it.

    Raises:
        Fault: the table did not answer.
    """
    if cursor == row.body or world.settings.mode == "plan":
        return
    with suppress(Conflict):
        world.table.write(CURSOR, DISRUPT, cursor, version=row.version, fence=fence)


def _outline(command: Command) -> Command:
    """Answer *command* with no more of its replacements than their names."""
    outlined = (
        CreateNodeClaim(claim=NodeClaim(meta=Meta(name=one.claim.name), node_class=one.claim.node_class))
        for one in command.replacements
    )
    return replace(command, replacements=tuple(outlined), homes=())
