"""Lambda, EventBridge and SQS on the virtual clock: calls the product's own handlers as the template says.

Handlers run in this process, one after the other, and take no virtual time unless *duration* says so; their effects are
those of the instant at which they begin. A handler that raises has failed; one that is `Killed` is gone, which looks
the same to whoever called it: messages come back after their visibility time-out, scheduled calls are repeated as often
as the template allows.
"""

import base64
import gzip
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec

from shared.ports import Mailbox, World
from sim.clock import Clock, Timer
from sim.faults import Killed
from sim.lambdas.chains import LONGEST, Chains
from sim.lambdas.follow_ups import FollowUps
from sim.lambdas.intrinsics import ACCOUNT
from sim.lambdas.invocation import Answer, Event, Handle, Invocation, Outcome, plain
from sim.lambdas.parts import Function, Schedule, Target
from sim.lambdas.pattern import matches
from sim.lambdas.poller import Poller
from sim.lambdas.queue import SqsQueue
from sim.lambdas.schedule import instants
from sim.lambdas.wiring import Wiring

RETRY_AFTER: Final = timedelta(minutes=1)
"""Before the first repetition of a failed asynchronous call; twice as long before the second."""
PUSHED_AFTER: Final = timedelta(seconds=2)
"""What CloudWatch takes from a line to the functions that want it."""

WorldFor = Callable[[str, dict[str, str]], World]
"""Builds the world of one call from the function's name and environment."""


def imported(handler: str) -> Handle:
    """Answer the `handle` beside the handler called *handler*: ``functions.provision.handler.handler``.

    Raises:
        ImportError: there is no such module.
        AttributeError: it has no `handle`.
    """
    handle: Handle = importlib.import_module(handler.rpartition(".")[0]).handle
    return handle


def instantly(function: str, event: Event) -> timedelta:
    """Answer that a call takes no time."""
    del function, event
    return timedelta(0)


class LambdaRuntime:
    """One deployed stack."""

    def __init__(
        self,
        clock: Clock,
        wiring: Wiring,
        world_for: WorldFor,
        seed: int = 0,
        *,
        load: Callable[[str], Handle] = imported,
        duration: Callable[[str, Event], timedelta] = instantly,
    ) -> None:
        """Deploy *wiring* now: rates count from this instant. *seed* shuffles what SQS does not promise to order."""
        self.records: list[Invocation] = []
        """Every call that is over, in the order of its end."""
        self.on_invocation: Callable[[Invocation], None] = lambda _: None
        """Hears of each as it is added."""
        self.copies: Callable[[str, str], int] = lambda _queue, _body: 1
        """Asked, with queue and body, how often a message arrives: 0 loses it, 2 is what "at least once" allows."""
        self.lateness: Callable[[str, str], timedelta] = lambda _queue, _body: timedelta()
        """Asked, with queue and body, how much later than it should a message can be seen."""
        self._clock, self._wiring, self._world_for = clock, wiring, world_for
        self._load, self._duration = load, duration
        self._functions = {function.name: function for function in wiring.functions}
        self._queues = {queue.name: SqsQueue(queue, clock, seed) for queue in wiring.queues}
        self._sent = self._called = self._events = 0
        self._chains = Chains()
        self._timers: dict[str, Timer] = {}
        self._lines: dict[str, list[str]] = {}
        """Of the log, not yet pushed, by the function that wants them."""
        self._connect()

    def _connect(self) -> None:
        for queue in self._queues.values():
            queue.dead_letters = self._queues.get(queue.queue.dead_letters)
        for mapping in self._wiring.mappings:
            Poller(mapping, self._queues[mapping.queue], self._clock, self._call)
        for schedule in self._wiring.schedules:
            self._ring_next(schedule, instants(schedule.expression, self._clock.now()))

    def queue(self, name: str) -> SqsQueue:
        """Answer a queue by its name, for a look inside.

        Raises:
            KeyError: the template has none of that name.
        """
        return self._queues[name]

    def mailbox(self) -> Mailbox:
        """Answer the `Mailbox` whose messages go to the follow-up queues of this stack."""
        prefix = self._wiring.follow_up_prefix()
        return FollowUps(self.send, prefix, {queue.url: queue.name for queue in self._wiring.queues})

    def stop(self) -> None:
        """Ring no schedule any more; messages that wait are still delivered."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Call *function* now, as a person would, and answer what became of it; nothing is repeated."""
        over: list[Invocation] = []
        self._call(function, dict(event), "direct", over.append)
        while not over:
            self._clock.step()
        return over[0]

    def put_event(self, event: Mapping[str, Any]) -> None:
        """Put *event* on the bus; it is delivered as the next thing.

        What every envelope has is filled in where *event* lacks it: id, time, account, region.
        """
        self._events += 1
        envelope = {
            "version": "0",
            "id": f"event-{self._events:06d}",
            "account": ACCOUNT,
            "time": _rfc3339(self._clock.now()),
            "region": self._wiring.region,
            "resources": [],
            "detail": {},
        }
        whole = plain(envelope | dict(event))
        for rule in self._wiring.rules:
            if matches(rule.pattern, whole):
                for target in rule.targets:
                    self._clock.call_at(
                        self._clock.now(), partial(self._deliver, target, whole, f"event:{rule.name}"), rule.name
                    )

    def send(self, queue: str, body: str, delay: timedelta | None = None) -> None:
        """Send *body* to the queue called *queue*, as often as `copies` says."""
        for _ in range(self.copies(queue, body)):
            self._sent += 1
            message = f"message-{self._sent:06d}"
            self._chains.sent(message)
            wanted = self._queues[queue].queue.delay if delay is None else delay
            self._queues[queue].send(message, body, wanted + self.lateness(queue, body))

    def write_log(self, line: str) -> None:
        """Write *line* into the cluster's log: who wants such lines is called with what came until then, soon after."""
        for one in self._wiring.log_filters:
            if one.words not in line:
                continue
            waiting = self._lines.setdefault(one.function, [])
            waiting.append(line)
            if len(waiting) == 1:
                self._clock.call_after(PUSHED_AFTER, partial(self._push, one.function), f"log {one.function}")

    def _push(self, function: str) -> None:
        said = {"logEvents": [{"message": line} for line in self._lines.pop(function)]}
        data = base64.b64encode(gzip.compress(json.dumps(said).encode(), mtime=0)).decode()
        self._call_asynchronously(function, {"awslogs": {"data": data}}, "log", 0)

    def _ring_next(self, schedule: Schedule, ticks: Iterator[datetime]) -> None:
        when = next(ticks, None)
        if when is not None:
            self._timers[schedule.name] = self._clock.call_at(
                when, partial(self._ring, schedule, ticks), f"schedule {schedule.name}"
            )

    def _ring(self, schedule: Schedule, ticks: Iterator[datetime]) -> None:
        self._ring_next(schedule, ticks)
        event = {"detail-type": "Scheduled Event", "source": "aws.scheduler", "time": _rfc3339(self._clock.now())}
        self._deliver(schedule.target, event, f"schedule:{schedule.name}")

    def _deliver(self, target: Target, event: Event, trigger: str) -> None:
        text = target.input or json.dumps(event)
        if target.kind == "queue":
            self.send(target.name, text)
        else:
            self._call_asynchronously(target.name, json.loads(text), trigger, 0)

    def _call_asynchronously(self, name: str, event: Event, trigger: str, repetition: int) -> None:
        def over(invocation: Invocation) -> None:
            if invocation.outcome != "ok" and repetition < self._functions[name].async_retries:
                again = partial(self._call_asynchronously, name, event, trigger, repetition + 1)
                self._clock.call_after(RETRY_AFTER * (repetition + 1), again, f"retry {name}")

        self._call(name, event, trigger, over)

    def _call(self, name: str, event: Event, trigger: str, over: Callable[[Invocation], None]) -> None:
        function, began = self._functions[name], self._clock.now()
        self._called += 1
        request_id = f"{name}-{self._called:06d}"
        outcome, error, answer = self._run(function, event, request_id)
        took = self._duration(name, event)
        if took >= function.timeout:
            outcome, error, answer, took = "timed-out", f"after {function.timeout}", None, function.timeout

        def end() -> None:
            invocation = Invocation(
                request_id=request_id,
                function=name,
                trigger=trigger,
                at=began,
                ended_at=self._clock.now(),
                outcome=outcome,
                error=error,
                event=event,
                answer=answer,
            )
            self.records.append(invocation)
            self.on_invocation(invocation)
            over(invocation)

        if took:
            self._clock.call_after(took, end, f"end of {request_id}")
        else:
            end()

    def _run(self, function: Function, event: Event, request_id: str) -> tuple[Outcome, str, Answer]:
        calls = self._chains.calls(event)
        if calls > LONGEST and not function.may_recur:
            return "failed", f"RecursiveInvocation: call {calls} of a chain", None
        handle = self._load(function.handler)
        world = self._world_for(function.name, dict(function.environment))
        if not world.name:
            world = msgspec.structs.replace(world, name=request_id)
        try:
            with self._chains.running(calls):
                return "ok", "", plain(handle(plain(event), world))
        except Killed as killed:
            return "killed", str(killed), None
        except Exception as error:  # noqa: BLE001 - Lambda takes whatever a handler raises for its failure
            return "failed", f"{type(error).__name__}: {error}", None


def _rfc3339(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
