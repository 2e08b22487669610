"""What happens, line by line, as a person would want to read it."""

import sys
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

import msgspec

from shared.model.action import CreateNodeClaim, RegisterNode
from shared.report.journal import PREFIX, Entry, read_entry
from sim.cloud.cloud import Cloud
from sim.sandboxes.sandboxes import Call
from sim.telling import Teller
from tests.e2e.meter import Meter, Reading

WIDTH: Final = 150
_WHO: Final = 22
_WHOLE_SECONDS: Final = timedelta(seconds=1)
"""What S3 leaves off of an instant."""
STATES: Final = ("running", "shutting-down", "terminated")


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeClaim that was made."""

    claim: str
    pods: tuple[str, ...]
    written: datetime
    """When the journal had it, or a moment later: what it was decided from is older."""


class Narrator:
    """Prints; safe to share between threads."""

    def __init__(self, meter: Meter) -> None:
        """Begin now."""
        self.acts: list[tuple[str, Reading]] = []
        self._meter, self._began, self._lock = meter, meter.read(), Lock()
        self._act = ("", self._began)

    def act(self, title: str) -> None:
        """Begin the next act; the one before is over, and its time is told."""
        self.close()
        self._act = (title, self._meter.read())
        self._print(f"\n{len(self.acts) + 1}. {title}")

    def close(self) -> None:
        """End the present act, if there is one."""
        title, began = self._act
        if title:
            took = self._meter.read() - began
            self.acts.append((title, took))
            self._print(f"   {took}")
        self._act = ("", began)

    def say(self, who: str, what: str, why: str = "") -> None:
        """Tell of something that *who* did."""
        seconds = self._meter.read().wall - self._began.wall
        told = f"{what}   ({why})" if why else what
        self._print(f"{seconds:7.1f}  {who:{_WHO}.{_WHO}}  {told}"[:WIDTH])

    def end(self, verdict: str) -> None:
        """Tell how long each act took, and *verdict*."""
        self.close()
        whole = self._meter.read() - self._began
        rows = [*self.acts, ("all of it", whole)]
        self._print("\n" + "\n".join(f"  {title:58} {took}" for title, took in rows))
        self._print(f"\n{verdict}")

    def _print(self, text: str) -> None:
        with self._lock:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


class Witness:
    """Sees instances, nodes, and what the functions wrote into their journal."""

    def __init__(self, narrator: Narrator, cloud: Cloud) -> None:
        """Look on from now on."""
        self.launched: list[str] = []
        """Ids of instances that were started."""
        self.planned: list[Planned] = []
        self.registered: dict[str, datetime] = {}
        """By NodeClaim, when the cycle began that made a Node its own."""
        self.failed: list[Call] = []
        self.entries: list[Entry] = []
        self._narrator, self._cloud, self._teller = narrator, cloud, Teller()
        self._read: set[str] = set()
        cloud.subscribe_events(self._on_event)

    def on_node(self, name: str, what: str) -> None:
        """Hear of a Node."""
        self._narrator.say("cluster", f"node {name.partition('.')[0]} {what}")

    def on_call(self, call: Call) -> None:
        """Hear of a call that is over: only a failure is worth a line."""
        if call.how.status != "success":
            self.failed.append(call)
            why = call.how.payload.decode(errors="replace")
            self._narrator.say(f"{call.function[-_WHO:]}", f"call failed ({call.how.status})", why)

    def read(self, s3: Any, bucket: str) -> None:
        """Tell what of the journal in *bucket* was not told yet, oldest first."""
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX)
        there = {one["Key"]: one["LastModified"] for page in pages for one in page.get("Contents", ())}
        keys = sorted(there.keys() - self._read)
        self._read |= there.keys()
        found = [(read_entry(s3.get_object(Bucket=bucket, Key=key)["Body"].read()), there[key]) for key in keys]
        for entry, written in sorted(found, key=lambda one: one[0].at):
            self._tell(entry, written + _WHOLE_SECONDS)

    def planned_while_covered(self) -> list[str]:
        """Answer the pods that a second NodeClaim was made for before the node of the first was anybody's.

        Once that is there, kube-scheduler may give a pod's place to another, and then the pod needs one again.
        """
        found, first = [], dict[str, str]()
        for one in sorted(self.planned, key=lambda one: (one.written, one.claim)):
            for pod in one.pods:
                before = first.setdefault(pod, one.claim)
                registered = self.registered.get(before)
                if before != one.claim and registered is not None and one.written < registered:
                    found.append(f"{pod}: {before}, then {one.claim}")
        return sorted(found)

    def _tell(self, entry: Entry, written: datetime) -> None:
        self.entries.append(entry)
        who = f"{entry.function} ({entry.trigger})"
        if entry.error:
            self._narrator.say(who, "error", entry.error)
        for problem in entry.problems:
            self._narrator.say(who, f"problem with {problem.kind} {problem.name}", problem.message)
        done = [one.action for one in entry.done if one.result == "done"]
        for action in done:
            if isinstance(action, CreateNodeClaim):
                self.planned.append(Planned(claim=action.claim.name, pods=action.pods, written=written))
            if isinstance(action, RegisterNode):
                for owner in action.owners:
                    self.registered.setdefault(owner.name, entry.at)
        for what, why in self._teller.told(done):
            self._narrator.say(who, what, why)

    def _on_event(self, event: dict[str, Any]) -> None:
        kind, detail = event["detail-type"], event["detail"]
        name = str(detail.get("instance-id", ""))
        if kind != "EC2 Instance State-change Notification":
            self._narrator.say("EC2", kind, name)
            return
        if detail["state"] == "pending":
            self.launched.append(name)
        if detail["state"] in STATES:
            one = self._cloud.instance(name)
            self._narrator.say("EC2", f"{name} {one.instance_type} {one.capacity_type} {detail['state']}", one.zone)
