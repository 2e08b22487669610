"""What happens in a playground, told as it happens, in the demo's words."""

from collections.abc import Callable
from typing import Any

from shared.errors import Fault
from shared.model.action import CreateNodeClaim, LaunchInstances
from shared.report.journal import Entry
from sim.lambdas.invocation import Invocation
from sim.measure import Sample
from sim.play import Moment
from sim.playground import Playground
from sim.telling import Teller


class Commentary:
    """Tells one playground, and counts what matters of it."""

    def __init__(self, playground: Playground, tell: Callable[[Moment], None]) -> None:
        """Listen from now on; *tell* hears every moment."""
        self.state: Sample | None = None
        """The last sample: `look` takes one."""
        self.launched = 0
        """Instances started."""
        self.ended = 0
        """Instances whose end has begun."""
        self.failed: list[Invocation] = []
        """Calls that failed."""
        self.planned: list[CreateNodeClaim] = []
        """Every NodeClaim that was created."""
        self.launches: list[LaunchInstances] = []
        """Every CreateFleet that was answered."""
        self._playground, self._tell, self._teller = playground, tell, Teller()
        self._problems: set[str] = set()
        self._broken = 0
        playground.runtime.on_invocation = self._on_invocation
        playground.cloud.subscribe_events(self._on_event)
        playground.on_journal = self._on_journal
        playground.nodes.on_change = self._on_node

    def look(self) -> bool:
        """Take a sample; answer whether it differs from the last one (an API server that is away changes nothing)."""
        for words in self._playground.machines.broken[self._broken :]:
            self._broken += 1
            self.say("EC2", "a machine cannot join", words)
        try:
            now = self._playground.sample()
        except Fault:
            return False
        before, self.state = self.state, now
        return before is None or _counts(before) != _counts(now)

    def say(self, who: str, what: str, why: str = "") -> None:
        """Tell of something that *who* did."""
        self._tell(Moment(at=self._playground.clock.now(), who=who, what=what, why=why, state=self.state))

    def _on_invocation(self, call: Invocation) -> None:
        if call.outcome != "ok":
            self.failed.append(call)
            self.say(call.function, f"failed ({call.outcome})", call.error)

    def _on_event(self, event: dict[str, Any]) -> None:
        kind, detail = event["detail-type"], event["detail"]
        if kind != "EC2 Instance State-change Notification":
            self.say("EC2", kind, str(detail.get("instance-id", "")))
            return
        self.launched += detail["state"] == "pending"
        self.ended += detail["state"] == "shutting-down"
        if detail["state"] in ("running", "shutting-down"):
            one = self._playground.cloud.instance(detail["instance-id"])
            words = f"{one.instance_id[-6:]} {one.instance_type} {one.capacity_type} {detail['state']}"
            self.say("EC2", words, one.zone)

    def _on_node(self, name: str, what: str) -> None:
        self.say("cluster", f"node {name.partition('.')[0]} {what}")

    def _on_journal(self, entry: Entry) -> None:
        if entry.error:
            return
        for problem in entry.problems:
            text = f"{problem.kind} {problem.name}: {problem.message}"
            if text not in self._problems:
                self._problems.add(text)
                self.say(entry.function, "problem", text)
        done = [one.action for one in entry.done if one.result == "done"]
        self.planned += [one for one in done if isinstance(one, CreateNodeClaim)]
        self.launches += [one for one in done if isinstance(one, LaunchInstances)]
        for what, why in self._teller.told(done):
            self.say(f"{entry.function} ({entry.trigger})", what, why)


def _counts(sample: Sample) -> tuple[float, ...]:
    return (sample.running, sample.pending, sample.nodes, sample.managed, sample.cost_usd_per_hour)
