"""Plays a script from its first event to an empty account, and judges it all the way."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared.errors import Gone
from sim.chaos import ends
from sim.chaos.events import Kill, Pause
from sim.chaos.fate import Fate
from sim.chaos.invariants import Invariants
from sim.chaos.script import Script
from sim.chaos.sites import Coverage, Target
from sim.chaos.world import ChaosWorld
from sim.lambdas.invocation import Invocation

WARM_UP: Final = timedelta(seconds=60)
LOOK_EVERY: Final = timedelta(seconds=5)
CALLS_AT_ONCE: Final = 200
"""More than a storm of messages makes."""
MOST: Final = 5
"""So many violations end a play: what follows is said of a world that is broken already."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a play."""

    script: Script
    violations: tuple[str, ...]
    """Oldest first."""
    timeline: tuple[str, ...]
    simulated_seconds: int
    happened: tuple[tuple[str, int], ...]
    """What struck and what people did, by kind, and how often; sorted."""
    dead_letters: int
    """Messages that were given up."""
    calls: int
    """Invocations of functions."""
    met: tuple[Target, ...]
    struck: tuple[Target, ...]

    def kinds(self) -> frozenset[str]:
        """Answer what kinds of promises were broken, such as ``doubled`` and ``limit``."""
        return frozenset(one.partition(":")[0] for one in self.violations)

    def faults(self) -> Counter[str]:
        """Count what struck, by kind."""
        return Counter(dict(self.happened))


class Broken(Exception):
    """Enough is known: the play ends."""


def play(script: Script) -> Verdict:
    """Play *script* in a world of its own."""
    stage = _Stage(script)
    try:
        stage.play()
    except Broken:
        stage.say("judge", "that is enough")
    now = stage.world.clock.now()
    return Verdict(
        script=script,
        violations=tuple(stage.violations),
        timeline=tuple(stage.timeline),
        simulated_seconds=int((now - stage.began).total_seconds()),
        happened=tuple(sorted(stage.happened.items())),
        dead_letters=stage.dead_letters(),
        calls=len(stage.world.runtime.records),
        met=tuple(sorted(stage.coverage.met)),
        struck=tuple(sorted(stage.coverage.struck)),
    )


class _Stage:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.violations: list[str] = []
        self.timeline: list[str] = []
        self.coverage = Coverage()
        self.happened: Counter[str] = Counter()
        self.world = ChaosWorld(script.seed, script.setting.reaction)
        self.began = self._last_call = self.world.clock.now()
        self._calls_at_once = 0
        self.invariants = Invariants(self.world, script.setting, self._violated)
        self.world.on_call = self._on_call
        self.world.cloud.subscribe_events(self._on_event)
        self.world.live.api.subscribe("nodes", self._on_node)

    def play(self) -> None:
        """Work and faults; then all is well; then nobody wants anything.

        Raises:
            Broken: too many promises were broken.
        """
        self.world.furnish(self.script.setting)
        self._pass(WARM_UP)
        fate = Fate(self.world, self.script, self.say, self.coverage)
        self.happened = fate.happened
        windows = [one for one in self.script.faults() if not isinstance(one, Kill | Pause)]
        end = max([self.script.length, *(one.until for one in windows)])
        while self.world.clock.now() < fate.at(end):
            second = (self.world.clock.now() - fate.at(0)).total_seconds()
            if any(one.at <= second <= one.until + LOOK_EVERY.total_seconds() for one in windows):
                self.invariants.last_fault = self.world.clock.now()
            self._pass(LOOK_EVERY)
        fate.lift()
        self._settle()
        self._leave()

    def dead_letters(self) -> int:
        """Answer how many messages were given up."""
        dead = sorted({one.dead_letters for one in self.world.wiring.queues if one.dead_letters})
        return sum(len(self.world.runtime.queue(name).messages) for name in dead)

    def say(self, who: str, what: str) -> None:
        """Add a line to the timeline."""
        seconds = (self.world.clock.now() - self.began - WARM_UP).total_seconds()
        self.timeline.append(f"{seconds:+9.1f} {who}: {what}")
        if who == "fate":
            self.invariants.last_fault = self.world.clock.now()

    def _settle(self) -> None:
        self.say("people", "nothing goes wrong any more")
        within = ends.settles_within(self.script)
        if not self._until(lambda: not ends.unplaced(self.world, self.script), within):
            names = ", ".join(ends.unplaced(self.world, self.script))
            self._violated(f"unplaced: {names} after {within}")
        if not self._until(lambda: not ends.marked(self.world), ends.SETTLED_WITHIN):
            self._violated(f"marked: {', '.join(ends.marked(self.world))} though nobody takes them away")

    def _leave(self) -> None:
        self.say("people", "nobody wants anything any more")
        ends.wish_nothing(self.world)
        if not self._until(lambda: not ends.left_over(self.world), ends.LEFT_WITHIN):
            self._violated(f"left: {', '.join(ends.left_over(self.world))} after {ends.LEFT_WITHIN}")
            return
        self.say("people", "nothing is left")
        if not self._until(lambda: not ends.untidy(self.world), ends.TIDIED_WITHIN):
            self._violated(f"untidy: {', '.join(ends.untidy(self.world))}")

    def _until(self, holds: Callable[[], bool], within: timedelta) -> bool:
        end = self.world.clock.now() + within
        while not holds():
            if self.world.clock.now() >= end:
                return False
            self._pass(LOOK_EVERY)
        return True

    def _pass(self, duration: timedelta) -> None:
        end = self.world.clock.now() + duration
        while self.world.clock.now() < end:
            self.world.clock.run_until(min(end, self.world.clock.now() + LOOK_EVERY))
            self.invariants.look()
            if len(self.violations) >= MOST:
                raise Broken

    def _violated(self, words: str) -> None:
        self.violations.append(words)
        self.say("VIOLATION", words)

    def _on_call(self, call: Invocation) -> None:
        self._judge_haste(call)
        if call.outcome != "ok":
            self.say(call.function, f"{call.outcome} ({call.trigger}): {call.error}"[:200])

    def _judge_haste(self, call: Invocation) -> None:
        """See that functions do not wake each other without end; time stands still while they do."""
        self._calls_at_once = self._calls_at_once + 1 if call.at == self._last_call else 0
        self._last_call = call.at
        if self._calls_at_once > CALLS_AT_ONCE:
            self._violated(f"spinning: {call.function} is called by {call.trigger}, and again, at the same moment")
            raise Broken

    def _on_event(self, event: dict[str, Any]) -> None:
        detail = event["detail"]
        if "state" not in detail:
            self.say("EC2", f"{event['detail-type']} {detail.get('instance-id', '')}")
        elif detail["state"] in ("pending", "shutting-down", "terminated"):
            try:
                one = self.world.cloud.machines.find(detail["instance-id"]).described(self.world.cloud.region)
            except Gone:
                return
            words = f"{one.instance_type} {one.capacity_type} {one.zone}"
            self.say("EC2", f"{one.instance_id} {words} {detail['state']}")

    def _on_node(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        some = new or old
        if some is not None and event != "MODIFIED":
            self.say("cluster", f"node {some['metadata']['name']} {'joins' if event == 'ADDED' else 'is gone'}")
