"""Run a script from its first event to an empty account, and check the invariants throughout."""

import traceback
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.errors import NotFound
from sim.authorization.access_checks import AccessDeniedError
from sim.fault_simulation.checks import eventual_invariants
from sim.fault_simulation.checks.invariants import InvariantChecker
from sim.fault_simulation.events.call_sites import KillCoverage, KillTarget
from sim.fault_simulation.events.event_executor import EventExecutor
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import Script
from sim.fault_simulation.events.script_events import Kill, Pause
from sim.lambda_runtime.invocation import Invocation

WARM_UP_DURATION: Final = timedelta(seconds=60)
CHECK_INTERVAL: Final = timedelta(seconds=5)
MAX_CALLS_PER_INSTANT: Final = 200
"""More than a burst of messages causes."""
MAX_VIOLATIONS: Final = 5
"""A run ends after this many violations: later ones would describe a world that is already broken."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    script: Script
    violations: tuple[str, ...]
    """Oldest first."""
    timeline: tuple[str, ...]
    simulated_seconds: int
    event_counts: tuple[tuple[str, int], ...]
    """Faults that took effect and user actions, by kind, sorted."""
    dead_letters: int
    """Messages in dead-letter queues."""
    invocations: int
    """Invocations of functions."""
    reached_targets: tuple[KillTarget, ...]
    killed_targets: tuple[KillTarget, ...]

    def list_violated_kinds(self) -> frozenset[str]:
        """Return the kinds of the violated invariants, such as ``doubled`` and ``limit``."""
        return frozenset(violation.partition(":")[0] for violation in self.violations)

    def count_events(self) -> Counter[str]:
        """Count the events by kind."""
        return Counter(dict(self.event_counts))


class Broken(Exception):
    """The run ends early: further checks would add nothing."""


def run_script(script: Script) -> RunResult:
    """Run *script* in its own world; a denied call and any other error end the run and are violations."""
    script_run = _ScriptRun(script)
    try:
        script_run.run()
    except Broken:
        script_run.add_to_timeline("judge", "that is enough")
    except AccessDeniedError as denial:
        script_run.add_violation(f"denied: {denial}")
    except Exception as error:  # noqa: BLE001 - of the product or of the simulator: the other seeds still run
        script_run.add_violation(f"crashed: {type(error).__name__}: {error}")
        script_run.add_to_timeline("simulator", traceback.format_exc())
    now = script_run.world.clock.get_time()
    return RunResult(
        script=script,
        violations=tuple(script_run.violations),
        timeline=tuple(script_run.timeline),
        simulated_seconds=int((now - script_run.started_at).total_seconds()),
        event_counts=tuple(sorted(script_run.event_counts.items())),
        dead_letters=script_run.count_dead_letters(),
        invocations=len(script_run.world.runtime.invocations),
        reached_targets=tuple(sorted(script_run.coverage.reached)),
        killed_targets=tuple(sorted(script_run.coverage.killed)),
    )


def build_failed_result(script: Script, violation: str) -> RunResult:
    """Return the result of a run that ended without one."""
    return RunResult(
        script=script,
        violations=(violation,),
        timeline=(),
        simulated_seconds=0,
        event_counts=(),
        dead_letters=0,
        invocations=0,
        reached_targets=(),
        killed_targets=(),
    )


class _ScriptRun:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.violations: list[str] = []
        self.timeline: list[str] = []
        self.coverage = KillCoverage()
        self.event_counts: Counter[str] = Counter()
        self.world = FaultWorld(
            script.seed,
            script.setup.reaction,
            has_surge_drain=script.setup.has_surge_drain,
            zonal_shift=script.setup.zonal_shift,
            features=script.setup.features,
        )
        self.started_at = self._last_call_at = self.world.clock.get_time()
        self._calls_at_instant = 0
        self.invariants = InvariantChecker(self.world, script.setup, self.add_violation)
        self.world.request_checks.log.on_rejection = lambda rejected: self.add_violation(rejected.describe())
        self.world.on_call = self._handle_invocation
        self.world.cloud.events.subscribe(self._handle_cloud_event)
        self.world.cluster.api.subscribe("nodes", self._handle_node)

    def run(self) -> None:
        """Run work and faults; then wait until all pods run; then scale everything to zero.

        Raises:
            Broken: too many invariants were violated.
        """
        self.world.set_up(self.script.setup)
        self._advance(WARM_UP_DURATION)
        executor = EventExecutor(self.world, self.script, self.add_to_timeline, self.coverage)
        self.event_counts = executor.event_counts
        timed_faults = [event for event in self.script.list_faults() if not isinstance(event, Kill | Pause)]
        end = max([self.script.length_seconds, *(event.until for event in timed_faults)])
        while self.world.clock.get_time() < executor.compute_instant(end):
            second = (self.world.clock.get_time() - executor.compute_instant(0)).total_seconds()
            if any(event.at <= second <= event.until + CHECK_INTERVAL.total_seconds() for event in timed_faults):
                self.invariants.last_fault = self.world.clock.get_time()
            self._advance(CHECK_INTERVAL)
        executor.disarm()
        self._check_settled()
        self._check_removal()

    def count_dead_letters(self) -> int:
        """Return how many messages are in dead-letter queues."""
        dead_letter_queues = sorted(
            {queue.dead_letter_queue for queue in self.world.wiring.queues if queue.dead_letter_queue}
        )
        return sum(len(self.world.runtime.get_queue(name).messages) for name in dead_letter_queues)

    def add_to_timeline(self, actor: str, message: str) -> None:
        """Add a line to the timeline."""
        seconds = (self.world.clock.get_time() - self.started_at - WARM_UP_DURATION).total_seconds()
        self.timeline.append(f"{seconds:+9.1f} {actor}: {message}")
        if actor == "fault":
            self.invariants.last_fault = self.world.clock.get_time()

    def add_violation(self, violation: str) -> None:
        """Record a violation, also in the timeline."""
        self.violations.append(violation)
        self.add_to_timeline("VIOLATION", violation)

    def _check_settled(self) -> None:
        self.add_to_timeline("user", "no more faults")
        timeout = eventual_invariants.compute_settle_timeout(self.script)
        find_unplaced_pods = partial(eventual_invariants.find_unplaced_pods, self.world, self.script)
        self._expect_none(find_unplaced_pods, timeout, f"unplaced: {{}} after {timeout}")
        find_tainted_nodes = partial(eventual_invariants.find_tainted_nodes, self.world)
        text = "still tainted: {}"
        self._expect_none(find_tainted_nodes, eventual_invariants.SETTLE_TIMEOUT, text)

    def _check_removal(self) -> None:
        self.add_to_timeline("user", "all workloads are deleted")
        eventual_invariants.scale_to_zero(self.world)
        timeout = eventual_invariants.REMOVAL_TIMEOUT
        find_leftovers = partial(eventual_invariants.find_leftovers, self.world)
        if self._expect_none(find_leftovers, timeout, f"left: {{}} after {timeout}"):
            self.add_to_timeline("user", "nothing is left")
            find_uncleaned = partial(eventual_invariants.find_uncleaned, self.world)
            self._expect_none(find_uncleaned, eventual_invariants.CLEANUP_TIMEOUT, "untidy: {}")

    def _expect_none(self, find: Callable[[], list[str]], timeout: timedelta, violation: str) -> bool:
        """Wait until *find* returns nothing; otherwise add *violation* with the names that it returns."""
        end = self.world.clock.get_time() + timeout
        while find():
            if self.world.clock.get_time() >= end:
                self.add_violation(violation.format(", ".join(find())))
                return False
            self._advance(CHECK_INTERVAL)
        return True

    def _advance(self, duration: timedelta) -> None:
        end = self.world.clock.get_time() + duration
        while self.world.clock.get_time() < end:
            self.world.clock.run_until(min(end, self.world.clock.get_time() + CHECK_INTERVAL))
            self.invariants.check_state()
            if len(self.violations) >= MAX_VIOLATIONS:
                raise Broken

    def _handle_invocation(self, invocation: Invocation) -> None:
        self._check_invocation_loop(invocation)
        self.invariants.observe_invocation(invocation)
        if invocation.outcome != "ok":
            self.add_to_timeline(
                invocation.function, f"{invocation.outcome} ({invocation.trigger}): {invocation.error}"[:200]
            )

    def _check_invocation_loop(self, invocation: Invocation) -> None:
        """Check that functions do not invoke each other endlessly; the clock does not advance while they do."""
        self._calls_at_instant = self._calls_at_instant + 1 if invocation.started_at == self._last_call_at else 0
        self._last_call_at = invocation.started_at
        if self._calls_at_instant > MAX_CALLS_PER_INSTANT:
            self.add_violation(
                f"spinning: {invocation.function} is called by {invocation.trigger}, and again, at the same moment"
            )
            raise Broken

    def _handle_cloud_event(self, event: dict[str, Any]) -> None:
        detail = event["detail"]
        if "state" not in detail:
            self.add_to_timeline("EC2", f"{event['detail-type']} {detail.get('instance-id', '')}")
        elif detail["state"] in ("pending", "shutting-down", "terminated"):
            try:
                instance = self.world.cloud.instances.find(detail["instance-id"]).describe(self.world.cloud.region)
            except NotFound:
                return
            words = f"{instance.instance_type} {instance.capacity_type} {instance.zone}"
            self.add_to_timeline("EC2", f"{instance.instance_id} {words} {detail['state']}")

    def _handle_node(self, event: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        node = new or old
        if node is not None and event != "MODIFIED":
            self.add_to_timeline(
                "cluster", f"node {node['metadata']['name']} {'joins' if event == 'ADDED' else 'is gone'}"
            )
