"""Plays a scenario in the embedded world: does what it says, watches, and judges every act."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.errors import Fault
from shared.model.action import CreateNodeClaim, DeletePod, EvictPod, LaunchInstances
from shared.model.units import parse_duration
from shared.report.journal import Entry
from sim.embedded import Embedded
from sim.lambdas.invocation import Invocation
from sim.measure import Sample, Tally, Waits, measured, percentile, sample
from sim.misfortune import Misfortune
from sim.scenario import Act, Scenario, ScenarioError, holds
from sim.staff import start_managed_node
from sim.telling import Teller

WARM_UP: Final = timedelta(seconds=90)
"""Before the first act: the managed node is ready, node classes are resolved, the catalogue is made."""
LOOK_EVERY: Final = timedelta(seconds=1)
SAMPLE_EVERY: Final = timedelta(seconds=5)


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the timeline."""

    at: datetime
    who: str
    what: str
    why: str = ""
    state: Sample | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One act and what became of it."""

    name: str
    says: str
    began: datetime
    ended: datetime
    held_after: float | None
    """Seconds from the act's beginning until all that was expected held; None: it never did."""
    failures: tuple[str, ...]
    measures: dict[str, float]

    @property
    def passed(self) -> bool:
        """Whether all that was expected held, and went on to hold."""
        return not self.failures


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A whole play."""

    scenario: Scenario
    began: datetime
    acts: tuple[Judged, ...]
    samples: tuple[Sample, ...]
    moments: tuple[Moment, ...]
    to_launch: tuple[float | None, float | None]
    """Seconds from a pod's creation to the CreateFleet for it: median, 95th percentile."""
    to_running: tuple[float | None, float | None]
    """Seconds from the creation of a pod that no node had room for until it ran."""
    calls: int
    """Invocations of functions."""

    @property
    def passed(self) -> bool:
        """Whether every act met its expectation."""
        return all(act.passed for act in self.acts)


class Stage:
    """One play as it goes on."""

    def __init__(self, scenario: Scenario, seed: int, tell: Callable[[Moment], None]) -> None:
        """Set the stage up; *tell* hears every moment as it happens."""
        self.scenario = scenario
        self.world = Embedded(seed)
        self.moments: list[Moment] = []
        self.samples: list[Sample] = []
        self.tally = Tally()
        self._tell = tell
        self._planned: dict[str, tuple[str, ...]] = {}
        self._teller = Teller()
        self._misfortune = Misfortune(self.world)
        self.waits = Waits(self.world)

    def play(self) -> Played:
        """Play all acts, one after the other; a failed one does not stop the next.

        Raises:
            ScenarioError: something cannot be done; the message names the act and the step.
        """
        if self.scenario.managed is not None:
            with _named("managed: instanceType"):
                start_managed_node(self.world, self.scenario.managed)
        for number, manifest in enumerate(self.scenario.set_up, 1):
            with _named(f"setUp: manifest {number}"):
                self.world.apply([manifest])
        self._pass(WARM_UP)
        began = self.world.clock.now()
        self._listen()
        acts = tuple(self._act(act) for act in self.scenario.acts)
        return Played(
            scenario=self.scenario,
            began=began,
            acts=acts,
            samples=tuple(self.samples),
            moments=tuple(self.moments),
            to_launch=_median_and_tail(self.waits.to_launch),
            to_running=_median_and_tail(self.waits.to_running),
            calls=len(self.world.runtime.records),
        )

    def _act(self, act: Act) -> Judged:
        self.tally = Tally()
        began = self.world.clock.now()
        self._say("act", act.name, act.says)
        for number, step in enumerate(act.do, 1):
            with _named(f"act {act.name!r}: step {number}"):
                self._step(step)
        deadline = self.world.clock.now() + parse_duration(act.within)
        while self._unmet(act) and self.world.clock.now() < deadline:
            self._pass(LOOK_EVERY)
        failures = self._unmet(act)
        held_after = None if failures else (self.world.clock.now() - began).total_seconds()
        self._pass(parse_duration(act.hold))
        if not failures:
            failures = tuple(
                f"held after {held_after:.0f} s, but not for {act.hold}: {one}" for one in self._unmet(act)
            )
        self._say("act", f"{act.name}: {'as expected' if not failures else 'NOT as expected'}", "; ".join(failures))
        return Judged(
            name=act.name,
            says=act.says,
            began=began,
            ended=self.world.clock.now(),
            held_after=held_after,
            failures=failures,
            measures=measured(self.world, self.tally),
        )

    def _step(self, step: Any) -> None:  # noqa: ANN401 - a Step; its fields are told apart here
        if step.scale is not None:
            one = step.scale
            self._say("you", f"scale {one.kind.lower()} {one.name} to {one.replicas}")
            self.world.live.scale(one.kind, one.namespace, one.name, one.replicas)
        elif step.apply is not None:
            self._say("you", f"apply {step.apply['kind'].lower()} {step.apply['metadata']['name']}")
            self.world.apply([step.apply])
        elif step.delete is not None:
            one = step.delete
            self._say("you", f"delete {one.kind.lower()} {one.name}")
            resource = self.world.live.resource_of(one.kind)
            namespaced = self.world.live.api.resource(resource).namespaced
            self.world.live.api.delete(resource, one.name, one.namespace if namespaced else "")
        elif step.fault is not None:
            self._say("fate", self._misfortune.strike(step.fault))
        else:
            self._pass(parse_duration(step.wait))

    def _unmet(self, act: Act) -> tuple[str, ...]:
        now = measured(self.world, self.tally)
        return tuple(
            f"{name} is {now[name]:g}, expected {wanted if isinstance(wanted, str) else f'{wanted:g}'}"
            for name, wanted in act.expect.items()
            if not holds(wanted, now[name])
        )

    def _pass(self, duration: timedelta) -> None:
        end = self.world.clock.now() + duration
        while self.world.clock.now() < end:
            if not self.samples or self.world.clock.now() - self.samples[-1].at >= SAMPLE_EVERY:
                self.samples.append(sample(self.world))
            self.world.clock.run_until(min(end, self.world.clock.now() + LOOK_EVERY))

    def _say(self, who: str, what: str, why: str = "") -> None:
        moment = Moment(at=self.world.clock.now(), who=who, what=what, why=why, state=sample(self.world))
        self.moments.append(moment)
        self._tell(moment)

    def _listen(self) -> None:
        self.world.runtime.on_invocation = self._on_invocation
        self.world.cloud.subscribe_events(self._on_event)
        self.world.live.api.subscribe("nodes", self._on_node)
        self.world.on_journal = self._on_journal

    def _on_invocation(self, call: Invocation) -> None:
        if call.outcome != "ok":
            self.tally.failed_calls += 1
            self._say(call.function, f"failed ({call.outcome})", call.error)

    def _on_event(self, event: dict[str, Any]) -> None:
        kind, detail = event["detail-type"], event["detail"]
        if kind == "EC2 Instance State-change Notification":
            self.tally.launched += detail["state"] == "pending"
            self.tally.terminated += detail["state"] == "shutting-down"
            if detail["state"] in ("running", "shutting-down"):
                one = self.world.cloud.instance(detail["instance-id"])
                self._say(
                    "EC2", f"{one.instance_id[-6:]} {one.instance_type} {one.capacity_type} {detail['state']}", one.zone
                )
        else:
            self._say("EC2", kind, str(detail.get("instance-id", "")))

    def _on_node(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        some = new or old
        if some is None or event == "MODIFIED":
            return
        word = "joins the cluster" if event == "ADDED" else "is gone"
        self._say("cluster", f"node {some['metadata']['name'].partition('.')[0]} {word}")

    def _on_journal(self, entry: Entry) -> None:
        for problem in entry.problems:
            text = f"{problem.kind} {problem.name}: {problem.message}"
            if text not in self.tally.problems:
                self.tally.problems.add(text)
                self._say(entry.function, "problem", text)
        done = [one.action for one in entry.done if one.result == "done"]
        self.tally.evicted += sum(isinstance(action, EvictPod | DeletePod) for action in done)
        self._planned |= {one.claim.name: one.pods for one in done if isinstance(one, CreateNodeClaim)}
        for action in done:
            if isinstance(action, LaunchInstances):
                self.waits.launched({pod for claim in action.group.claims for pod in self._planned.get(claim, ())})
        for what, why in self._teller.told(done):
            self._say(f"{entry.function} ({entry.trigger})", what, why)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Let what refuses to be done say *where* it stands."""
    try:
        yield
    except (Fault, ValueError) as error:
        raise ScenarioError(f"{where}: {error}") from error


def _median_and_tail(waits: dict[str, float]) -> tuple[float | None, float | None]:
    return percentile(waits.values(), 0.5), percentile(waits.values(), 0.95)
