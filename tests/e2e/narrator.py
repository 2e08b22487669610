"""Progress output of the end-to-end test: one line for each event."""

import sys
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

import msgspec

from shared.model.decisions.action import CreateNodeClaim, RegisterNode
from shared.report.journal.journal import JOURNAL_PREFIX, JournalEntry, decode_entry
from sim.cloud.cloud import Cloud
from sim.lambda_processes.sandboxes import SandboxInvocation
from sim.scenarios.action_messages import ActionFormatter
from tests.e2e.cpu_meter import Meter, Reading

LINE_WIDTH: Final = 150
_ACTOR_WIDTH: Final = 22
_WHOLE_SECONDS: Final = timedelta(seconds=1)
"""Resolution of the instants that S3 reports: fractions of a second are missing."""
STATES: Final = ("running", "shutting-down", "terminated")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim that was created."""

    claim: str
    pods: tuple[str, ...]
    written_at: datetime
    """When the journal entry existed, or slightly later; the decision itself is older."""


class Narrator:
    """Prints; safe to share between threads."""

    def __init__(self, meter: Meter) -> None:
        """Begin now."""
        self.acts: list[tuple[str, Reading]] = []
        self._meter, self._began, self._lock = meter, meter.read(), Lock()
        self._act = ("", self._began)

    def start_act(self, title: str) -> None:
        """Start the next act; end the previous one and print its duration."""
        self.close()
        self._act = (title, self._meter.read())
        self._print(f"\n{len(self.acts) + 1}. {title}")

    def close(self) -> None:
        """End the current act, if there is one."""
        title, began = self._act
        if title:
            took = self._meter.read() - began
            self.acts.append((title, took))
            self._print(f"   {took}")
        self._act = ("", began)

    def print_line(self, actor: str, message: str, detail: str = "") -> None:
        """Print an event that *actor* caused."""
        seconds = self._meter.read().wall_seconds - self._began.wall_seconds
        text = f"{message}   ({detail})" if detail else message
        self._print(f"{seconds:7.1f}  {actor:{_ACTOR_WIDTH}.{_ACTOR_WIDTH}}  {text}"[:LINE_WIDTH])

    def print_summary(self, verdict: str) -> None:
        """Print the duration of each act, and *verdict*."""
        self.close()
        total = self._meter.read() - self._began
        rows = [*self.acts, ("total", total)]
        self._print("\n" + "\n".join(f"  {title:58} {took}" for title, took in rows))
        self._print(f"\n{verdict}")

    def _print(self, text: str) -> None:
        with self._lock:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


class Witness:
    """Observes instances, nodes, and the journal entries of the functions."""

    def __init__(self, narrator: Narrator, cloud: Cloud) -> None:
        """Start to observe."""
        self.launched: list[str] = []
        """Ids of instances that were started."""
        self.planned: list[Planned] = []
        self.registered: dict[str, datetime] = {}
        """By NodeClaim, the start of the cycle that registered its Node."""
        self.failed: list[SandboxInvocation] = []
        self.entries: list[JournalEntry] = []
        self._narrator, self._cloud, self._formatter = narrator, cloud, ActionFormatter()
        self._read: set[str] = set()
        cloud.events.subscribe(self._print_ec2_event)

    def print_node_event(self, name: str, event: str) -> None:
        """Print an event of a Node."""
        self._narrator.print_line("cluster", f"node {name.partition('.')[0]} {event}")

    def record_invocation(self, call: SandboxInvocation) -> None:
        """Record a finished invocation; print only failures."""
        if call.result.status != "success":
            self.failed.append(call)
            detail = call.result.payload.decode(errors="replace")
            self._narrator.print_line(f"{call.function[-_ACTOR_WIDTH:]}", f"call failed ({call.result.status})", detail)

    def read(self, s3: Any, bucket: str) -> None:
        """Print the journal entries in *bucket* that were not printed yet, oldest first."""
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=JOURNAL_PREFIX)
        modified_at_by_key = {item["Key"]: item["LastModified"] for page in pages for item in page.get("Contents", ())}
        keys = sorted(modified_at_by_key.keys() - self._read)
        self._read |= modified_at_by_key.keys()
        journal_entries = [
            (decode_entry(s3.get_object(Bucket=bucket, Key=key)["Body"].read()), modified_at_by_key[key])
            for key in keys
        ]
        for entry, written_at in sorted(journal_entries, key=lambda one: one[0].at):
            self._print_entry(entry, written_at + _WHOLE_SECONDS)

    def list_pods_planned_twice(self) -> list[str]:
        """Return the pods for which a second NodeClaim was created before the node of the first was registered.

        Once that node is registered, kube-scheduler may give a pod's place to another pod, and the first pod needs a
        node again.
        """
        messages, first_claims = [], dict[str, str]()
        for planned in sorted(self.planned, key=lambda one: (one.written_at, one.claim)):
            for pod in planned.pods:
                first_claim = first_claims.setdefault(pod, planned.claim)
                registered = self.registered.get(first_claim)
                if first_claim != planned.claim and registered is not None and planned.written_at < registered:
                    messages.append(f"{pod}: {first_claim}, then {planned.claim}")
        return sorted(messages)

    def _print_entry(self, entry: JournalEntry, written_at: datetime) -> None:
        self.entries.append(entry)
        actor = f"{entry.function} ({entry.trigger})"
        if entry.error:
            self._narrator.print_line(actor, "error", entry.error)
        for problem in entry.problems:
            self._narrator.print_line(actor, f"problem with {problem.kind} {problem.name}", problem.message)
        actions = [action_result.action for action_result in entry.results if action_result.result == "done"]
        for action in actions:
            if isinstance(action, CreateNodeClaim):
                self.planned.append(Planned(claim=action.claim.name, pods=action.pods, written_at=written_at))
            if isinstance(action, RegisterNode):
                for owner in action.owners:
                    self.registered.setdefault(owner.name, entry.at)
        for message, detail in self._formatter.format_actions(actions):
            self._narrator.print_line(actor, message, detail)

    def _print_ec2_event(self, event: dict[str, Any]) -> None:
        kind, detail = event["detail-type"], event["detail"]
        name = str(detail.get("instance-id", ""))
        if kind != "EC2 Instance State-change Notification":
            self._narrator.print_line("EC2", kind, name)
            return
        if detail["state"] == "pending":
            self.launched.append(name)
        if detail["state"] in STATES:
            instance = self._cloud.instances.describe(name)
            self._narrator.print_line(
                "EC2", f"{name} {instance.instance_type} {instance.capacity_type} {detail['state']}", instance.zone
            )
