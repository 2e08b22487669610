"""Runs a scenario in the embedded world: executes its steps, records what happens and checks every act."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from shared.errors import Fault
from shared.model.core.units import parse_duration
from shared.model.decisions.action import CreateNodeClaim, DeletePod, EvictPod, LaunchInstances
from shared.report.journal.journal import JournalEntry
from sim.lambda_runtime.invocation import Invocation
from sim.scenarios.action_messages import ActionFormatter
from sim.scenarios.managed_node_group import start_managed_node
from sim.scenarios.scenario import Act, Scenario, ScenarioError, meets_expectation
from sim.scenarios.scenario_faults import ScenarioFaultInjector
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import (
    ActCounts,
    ClusterSample,
    PodWaitTimes,
    compute_measures,
    compute_percentile,
    take_sample,
)

WARM_UP_DURATION: Final = timedelta(seconds=90)
"""Time before the first act: the managed node is ready, node classes are resolved, the catalog is built."""
CHECK_INTERVAL: Final = timedelta(seconds=1)
SAMPLE_INTERVAL: Final = timedelta(seconds=5)


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the timeline."""

    at: datetime
    source: str
    message: str
    reason: str = ""
    sample: ClusterSample | None = None


class ActResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one act."""

    name: str
    description: str
    started_at: datetime
    ended_at: datetime
    met_after_seconds: float | None
    """Seconds from the start of the act until all expectations were met; None: they never were."""
    failures: tuple[str, ...]
    measures: dict[str, float]

    @property
    def passed(self) -> bool:
        """Whether all expectations were met, and still were after the hold time."""
        return not self.failures


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a whole scenario."""

    scenario: Scenario
    started_at: datetime
    acts: tuple[ActResult, ...]
    samples: tuple[ClusterSample, ...]
    timeline: tuple[TimelineEntry, ...]
    seconds_to_launch: tuple[float | None, float | None]
    """Seconds from a pod's creation to the CreateFleet for it: median and 95th percentile."""
    seconds_to_running: tuple[float | None, float | None]
    """Seconds from the creation of an unschedulable pod until it runs: median and 95th percentile."""
    invocation_count: int
    """Invocations of all functions."""

    @property
    def passed(self) -> bool:
        """Whether every act passed."""
        return all(act.passed for act in self.acts)


class ScenarioRunner:
    """Runs one scenario."""

    def __init__(self, scenario: Scenario, seed: int, on_entry: Callable[[TimelineEntry], None]) -> None:
        """Create the world of *scenario*; *on_entry* is called with every timeline entry when it is added."""
        self.scenario = scenario
        self.world = EmbeddedWorld(seed)
        self.timeline: list[TimelineEntry] = []
        self.samples: list[ClusterSample] = []
        self.act_counts = ActCounts()
        self._on_entry = on_entry
        self._pods_by_node_claim: dict[str, tuple[str, ...]] = {}
        self._action_formatter = ActionFormatter()
        self._rejection_count = 0
        self._fault_injector = ScenarioFaultInjector(self.world)
        self.pod_wait_times = PodWaitTimes(self.world)

    def run_scenario(self) -> ScenarioResult:
        """Run all acts in order; a failed act does not stop the next one.

        Raises:
            ScenarioError: a step cannot be executed; the message names the act and the step.
        """
        if self.scenario.managed is not None:
            with _add_error_context("managed: instanceType"):
                start_managed_node(self.world, self.scenario.managed)
        for number, manifest in enumerate(self.scenario.set_up, 1):
            with _add_error_context(f"setUp: manifest {number}"):
                self.world.apply([manifest])
        self._advance(WARM_UP_DURATION)
        started_at = self.world.clock.get_time()
        self._subscribe()
        act_results = tuple(self._run_act(act) for act in self.scenario.acts)
        return ScenarioResult(
            scenario=self.scenario,
            started_at=started_at,
            acts=act_results,
            samples=tuple(self.samples),
            timeline=tuple(self.timeline),
            seconds_to_launch=_compute_median_and_p95(self.pod_wait_times.seconds_to_launch),
            seconds_to_running=_compute_median_and_p95(self.pod_wait_times.seconds_to_running),
            invocation_count=len(self.world.runtime.invocations),
        )

    def _run_act(self, act: Act) -> ActResult:
        self.act_counts = ActCounts()
        started_at = self.world.clock.get_time()
        self._record("act", act.name, act.says)
        for number, step in enumerate(act.do, 1):
            with _add_error_context(f"act {act.name!r}: step {number}"):
                self._execute_step(step)
        deadline = self.world.clock.get_time() + parse_duration(act.time_limit)
        while self._list_unmet_expectations(act) and self.world.clock.get_time() < deadline:
            self._advance(CHECK_INTERVAL)
        failures = self._list_unmet_expectations(act)
        met_after_seconds = None if failures else (self.world.clock.get_time() - started_at).total_seconds()
        self._advance(parse_duration(act.hold))
        if not failures:
            failures = tuple(
                f"held after {met_after_seconds:.0f} s, but not for {act.hold}: {failure}"
                for failure in self._list_unmet_expectations(act)
            )
        failures += self._take_rejections()
        self._record("act", f"{act.name}: {'as expected' if not failures else 'NOT as expected'}", "; ".join(failures))
        return ActResult(
            name=act.name,
            description=act.says,
            started_at=started_at,
            ended_at=self.world.clock.get_time(),
            met_after_seconds=met_after_seconds,
            failures=failures,
            measures=compute_measures(self.world, self.act_counts),
        )

    def _take_rejections(self) -> tuple[str, ...]:
        """Return the requests that AWS rejects since the last call of this method."""
        rejections = self.world.request_checks.log.rejections[self._rejection_count :]
        self._rejection_count += len(rejections)
        return tuple(rejected.describe() for rejected in rejections)

    def _execute_step(self, step: Any) -> None:  # noqa: ANN401 - a Step; its fields are told apart here
        if step.scale is not None:
            step_argument = step.scale
            self._record("you", f"scale {step_argument.kind.lower()} {step_argument.name} to {step_argument.replicas}")
            self.world.cluster.scale(
                step_argument.kind, step_argument.namespace, step_argument.name, step_argument.replicas
            )
        elif step.apply is not None:
            self._record("you", f"apply {step.apply['kind'].lower()} {step.apply['metadata']['name']}")
            self.world.apply([step.apply])
        elif step.delete is not None:
            step_argument = step.delete
            self._record("you", f"delete {step_argument.kind.lower()} {step_argument.name}")
            resource = self.world.cluster.get_resource_name(step_argument.kind)
            namespaced = self.world.cluster.api.get_resource(resource).namespaced
            self.world.cluster.api.delete(resource, step_argument.name, step_argument.namespace if namespaced else "")
        elif step.fault is not None:
            self._record("fault", self._fault_injector.inject(step.fault))
        else:
            self._advance(parse_duration(step.wait))

    def _list_unmet_expectations(self, act: Act) -> tuple[str, ...]:
        measures = compute_measures(self.world, self.act_counts)
        return tuple(
            f"{name} is {measures[name]:g}, expected "
            f"{expected_value if isinstance(expected_value, str) else f'{expected_value:g}'}"
            for name, expected_value in act.expect.items()
            if not meets_expectation(expected_value, measures[name])
        )

    def _advance(self, duration: timedelta) -> None:
        end_time = self.world.clock.get_time() + duration
        while self.world.clock.get_time() < end_time:
            if not self.samples or self.world.clock.get_time() - self.samples[-1].sampled_at >= SAMPLE_INTERVAL:
                self.samples.append(take_sample(self.world))
            self.world.clock.run_until(min(end_time, self.world.clock.get_time() + CHECK_INTERVAL))

    def _record(self, source: str, message: str, reason: str = "") -> None:
        timeline_entry = TimelineEntry(
            at=self.world.clock.get_time(),
            source=source,
            message=message,
            reason=reason,
            sample=take_sample(self.world),
        )
        self.timeline.append(timeline_entry)
        self._on_entry(timeline_entry)

    def _subscribe(self) -> None:
        self.world.runtime.on_invocation = self._handle_invocation
        self.world.cloud.events.subscribe(self._handle_event)
        self.world.cluster.api.subscribe("nodes", self._handle_node)
        self.world.on_journal_entry = self._handle_journal_entry

    def _handle_invocation(self, invocation: Invocation) -> None:
        if invocation.outcome != "ok":
            self.act_counts.failed_calls += 1
            self._record(invocation.function, f"failed ({invocation.outcome})", invocation.error)

    def _handle_event(self, event: dict[str, Any]) -> None:
        detail_type, detail = event["detail-type"], event["detail"]
        if detail_type == "EC2 Instance State-change Notification":
            self.act_counts.launched += detail["state"] == "pending"
            self.act_counts.terminated += detail["state"] == "shutting-down"
            if detail["state"] in ("running", "shutting-down"):
                instance = self.world.cloud.instances.describe(detail["instance-id"])
                self._record(
                    "EC2",
                    f"{instance.instance_id[-6:]} {instance.instance_type} {instance.capacity_type} {detail['state']}",
                    instance.zone,
                )
        else:
            self._record("EC2", detail_type, str(detail.get("instance-id", "")))

    def _handle_node(self, event_type: str, old_node: dict[str, Any] | None, new_node: dict[str, Any] | None) -> None:
        node = new_node or old_node
        if node is None or event_type == "MODIFIED":
            return
        verb = "joins the cluster" if event_type == "ADDED" else "is gone"
        self._record("cluster", f"node {node['metadata']['name'].partition('.')[0]} {verb}")

    def _handle_journal_entry(self, entry: JournalEntry) -> None:
        for problem in entry.problems:
            text = f"{problem.kind} {problem.name}: {problem.message}"
            if text not in self.act_counts.problems:
                self.act_counts.problems.add(text)
                self._record(entry.function, "problem", text)
        completed_actions = [action_result.action for action_result in entry.results if action_result.result == "done"]
        self.act_counts.evicted += sum(isinstance(action, EvictPod | DeletePod) for action in completed_actions)
        self._pods_by_node_claim |= {
            action.claim.name: action.pods for action in completed_actions if isinstance(action, CreateNodeClaim)
        }
        for action in completed_actions:
            if isinstance(action, LaunchInstances):
                self.pod_wait_times.record_launch(
                    {pod for claim in action.group.claims for pod in self._pods_by_node_claim.get(claim, ())}
                )
        for message, reason in self._action_formatter.format_actions(completed_actions):
            self._record(f"{entry.function} ({entry.trigger})", message, reason)


@contextmanager
def _add_error_context(location: str) -> Iterator[None]:
    """Convert errors of the body into a ScenarioError that begins with *location*."""
    try:
        yield
    except (Fault, ValueError) as error:
        raise ScenarioError(f"{location}: {error}") from error


def _compute_median_and_p95(seconds_by_pod: dict[str, float]) -> tuple[float | None, float | None]:
    return compute_percentile(seconds_by_pod.values(), 0.5), compute_percentile(seconds_by_pod.values(), 0.95)
