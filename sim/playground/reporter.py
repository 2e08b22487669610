"""Reports the events of a playground as they happen, in the demo's words."""

from collections.abc import Callable
from typing import Any

from shared.errors import Fault
from shared.model.decisions.action import CreateNodeClaim, LaunchInstances
from shared.report.journal.journal import JournalEntry
from sim.lambda_runtime.invocation import Invocation
from sim.playground.playground import Playground
from sim.scenarios.action_messages import ActionFormatter
from sim.scenarios.runner import TimelineEntry
from sim.world.measurements import ClusterSample


class PlaygroundReporter:
    """Reports the events of one playground, and counts the important ones."""

    def __init__(self, playground: Playground, on_entry: Callable[[TimelineEntry], None]) -> None:
        """Subscribe to the events of *playground*; *on_entry* is called with every timeline entry."""
        self.sample: ClusterSample | None = None
        """The last sample, taken by `update_sample`."""
        self.launched_count = 0
        """Number of launched instances."""
        self.terminated_count = 0
        """Number of instances that were terminated or are shutting down."""
        self.failed_invocations: list[Invocation] = []
        """Failed invocations."""
        self.node_claim_actions: list[CreateNodeClaim] = []
        """All NodeClaims that were created."""
        self.launch_actions: list[LaunchInstances] = []
        """All CreateFleet calls that succeeded."""
        self._playground, self._on_entry, self._action_formatter = playground, on_entry, ActionFormatter()
        self._reported_problems: set[str] = set()
        self._reported_boot_failures = 0
        playground.runtime.on_invocation = self._handle_invocation
        playground.cloud.events.subscribe(self._handle_event)
        playground.on_journal_entry = self._handle_journal_entry
        playground.nodes.on_change = self._handle_node

    def update_sample(self) -> bool:
        """Take a sample; return whether it differs from the last one (an unreachable API server changes nothing)."""
        for boot_failure in self._playground.instance_booter.boot_failures[self._reported_boot_failures :]:
            self._reported_boot_failures += 1
            self.report("EC2", "an instance cannot join", boot_failure)
        try:
            current_sample = self._playground.take_sample()
        except Fault:
            return False
        previous_sample, self.sample = self.sample, current_sample
        return previous_sample is None or _get_sample_counts(previous_sample) != _get_sample_counts(current_sample)

    def report(self, source: str, message: str, reason: str = "") -> None:
        """Report a timeline entry for an action of *source*."""
        self._on_entry(
            TimelineEntry(
                at=self._playground.clock.get_time(), source=source, message=message, reason=reason, sample=self.sample
            )
        )

    def _handle_invocation(self, invocation: Invocation) -> None:
        if invocation.outcome != "ok":
            self.failed_invocations.append(invocation)
            self.report(invocation.function, f"failed ({invocation.outcome})", invocation.error)

    def _handle_event(self, event: dict[str, Any]) -> None:
        detail_type, detail = event["detail-type"], event["detail"]
        if detail_type != "EC2 Instance State-change Notification":
            self.report("EC2", detail_type, str(detail.get("instance-id", "")))
            return
        self.launched_count += detail["state"] == "pending"
        self.terminated_count += detail["state"] == "shutting-down"
        if detail["state"] in ("running", "shutting-down"):
            instance = self._playground.cloud.instances.describe(detail["instance-id"])
            instance_text = (
                f"{instance.instance_id[-6:]} {instance.instance_type} {instance.capacity_type} {detail['state']}"
            )
            self.report("EC2", instance_text, instance.zone)

    def _handle_node(self, name: str, description: str) -> None:
        self.report("cluster", f"node {name.partition('.')[0]} {description}")

    def _handle_journal_entry(self, entry: JournalEntry) -> None:
        if entry.error:
            return
        for problem in entry.problems:
            text = f"{problem.kind} {problem.name}: {problem.message}"
            if text not in self._reported_problems:
                self._reported_problems.add(text)
                self.report(entry.function, "problem", text)
        completed_actions = [action_result.action for action_result in entry.results if action_result.result == "done"]
        self.node_claim_actions += [action for action in completed_actions if isinstance(action, CreateNodeClaim)]
        self.launch_actions += [action for action in completed_actions if isinstance(action, LaunchInstances)]
        for message, reason in self._action_formatter.format_actions(completed_actions):
            self.report(f"{entry.function} ({entry.trigger})", message, reason)


def _get_sample_counts(sample: ClusterSample) -> tuple[float, ...]:
    return (
        sample.running_pods,
        sample.pending_pods,
        sample.joiner_nodes,
        sample.managed_nodes,
        sample.cost_usd_per_hour,
    )
