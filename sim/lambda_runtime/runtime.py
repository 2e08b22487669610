"""Lambda, EventBridge and SQS on the virtual clock: invokes Joiner's own handlers as the template configures it.

Handlers run in this process, one at a time, and take no virtual time unless *duration* says so; their effects happen at
the time at which the invocation starts. A handler that raises has failed; a handler that is `Killed` was stopped, which
is the same for its caller: messages become visible again after their visibility timeout, scheduled invocations are
retried as often as the template allows.
"""

import base64
import gzip
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, Final

import msgspec

from shared.ports.messaging import MessageQueue
from shared.ports.world import World
from sim.fault_tap import Killed
from sim.lambda_runtime.async_retry import compute_retry_delay
from sim.lambda_runtime.event_pattern import matches_pattern
from sim.lambda_runtime.event_payloads import build_event_envelope, convert_to_json
from sim.lambda_runtime.event_source_poller import EventSourcePoller
from sim.lambda_runtime.follow_up_queues import FollowUpQueues
from sim.lambda_runtime.invocation import Event, HandleFunction, HandlerResponse, Invocation, InvocationOutcome
from sim.lambda_runtime.recursive_loop_detection import MAX_CHAINED_INVOCATIONS, InvocationChains
from sim.lambda_runtime.schedule_expressions import list_firing_times
from sim.lambda_runtime.service_calls import ServiceCalls
from sim.lambda_runtime.sqs_queue import SqsQueue
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.stack_parts import EventTarget, ScheduleSpec, StackFunction
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.time.virtual_clock import Clock, Timer

LOG_DELIVERY_DELAY: Final = timedelta(seconds=2)
"""Time from a log line to the invocation of the subscribed function, as in CloudWatch Logs."""

WorldBuilder = Callable[[str, dict[str, str]], World]
"""Builds the world of one invocation from the function's name and environment."""


def import_handle(handler: str) -> HandleFunction:
    """Return the function `handle` of the module of *handler*, e.g. ``functions.provision.handler.handler``.

    Raises:
        ImportError: the module does not exist.
        AttributeError: the module has no `handle`.
    """
    handle: HandleFunction = importlib.import_module(handler.rpartition(".")[0]).handle
    return handle


def get_zero_duration(function: str, event: Event) -> timedelta:
    """Return zero: invocations take no virtual time."""
    del function, event
    return timedelta(0)


class LambdaRuntime:
    """One deployed stack."""

    def __init__(
        self,
        clock: Clock,
        wiring: StackWiring,
        build_world: WorldBuilder,
        seed: int = 0,
        *,
        load_handle: Callable[[str], HandleFunction] = import_handle,
        get_duration: Callable[[str, Event], timedelta] = get_zero_duration,
    ) -> None:
        """Deploy *wiring* now: rate expressions count from this time.

        *seed* shuffles the order of SQS messages, which SQS does not guarantee.
        """
        self.invocations: list[Invocation] = []
        """All finished invocations, in the order of their end."""
        self.on_invocation: Callable[[Invocation], None] = lambda _: None
        """Called with each invocation when it is recorded."""
        self.count_copies: Callable[[str, str], int] = lambda _queue, _body: 1
        """Returns, for a queue and a body, how often a message arrives: 0 loses it, 2 duplicates it ("at least
        once").
        """
        self.get_extra_delay: Callable[[str, str], timedelta] = lambda _queue, _body: timedelta()
        """Returns, for a queue and a body, the extra delay until a message becomes visible."""
        self.service_calls = ServiceCalls()
        """The requests of AWS services with the roles of the stack."""
        self.load_handle = load_handle
        """Returns the function that handles the events of a handler string."""
        self.throttled_functions: set[str] = set()
        """Functions that Lambda throttles, so that schedules cannot deliver events to them."""
        self._clock, self._wiring, self._build_world = clock, wiring, build_world
        self._get_duration = get_duration
        self._functions = {function.name: function for function in wiring.functions}
        self._queues = {queue.name: SqsQueue(queue, clock, seed) for queue in wiring.queues}
        self._message_count = self._invocation_count = self._event_count = 0
        self._invocation_chains = InvocationChains()
        self._timer_by_schedule: dict[str, Timer] = {}
        self._pending_lines_by_function: dict[str, list[str]] = {}
        """Log lines that are not yet delivered, by subscribed function."""
        self._connect()

    def _connect(self) -> None:
        for queue in self._queues.values():
            queue.dead_letter_queue = self._queues.get(queue.spec.dead_letter_queue)
        for mapping in self._wiring.mappings:
            queue = self._queues[mapping.queue]
            EventSourcePoller(mapping, queue, self._clock, self._start_invocation, self.service_calls)
        for schedule in self._wiring.schedules:
            self._schedule_next_firing(schedule, list_firing_times(schedule.expression, self._clock.get_time()))

    def get_queue(self, name: str) -> SqsQueue:
        """Return a queue by its name, for inspection.

        Raises:
            KeyError: the template has no queue of that name.
        """
        return self._queues[name]

    def build_message_queue(self) -> MessageQueue:
        """Return the `MessageQueue` port that sends to the follow-up queues of this stack."""
        prefix, queue_name_by_url = self._follow_up_addresses
        return FollowUpQueues(self.add, prefix, queue_name_by_url)

    @cached_property
    def _follow_up_addresses(self) -> tuple[str, dict[str, str]]:
        return self._wiring.get_follow_up_prefix(), {queue.url: queue.name for queue in self._wiring.queues}

    def stop(self) -> None:
        """Stop all schedules; pending messages are still delivered."""
        for timer in self._timer_by_schedule.values():
            timer.cancel()
        self._timer_by_schedule.clear()

    def deploy_version(self) -> bool:
        """Deploy a new version: CodeDeploy moves the aliases to it, and new containers start.

        Return whether its role allows it; if not, the aliases stay.
        """
        functions = [self._functions[name] for name in self._wiring.deployed_functions]
        is_allowed = all(self.service_calls.can_deploy(function, "live") for function in functions)
        if is_allowed:
            self.service_calls.forget_streams()
        return is_allowed

    def invoke(self, function: str, event: Mapping[str, Any]) -> Invocation:
        """Invoke *function* now, as a person would, and return its record; it is not retried."""
        finished_invocations: list[Invocation] = []
        self._start_invocation(function, dict(event), "direct", finished_invocations.append)
        while not finished_invocations:
            self._clock.step()
        return finished_invocations[0]

    def put_event(self, event: Mapping[str, Any]) -> None:
        """Put *event* on the event bus; it is delivered as the next callback.

        Missing fields of the envelope (id, time, account, region) are added.
        """
        self._event_count += 1
        now, region = self._clock.get_time(), self._wiring.region
        complete_event = convert_to_json(build_event_envelope(event, self._event_count, ACCOUNT_ID, region, now))
        for rule in self._wiring.rules:
            if matches_pattern(rule.pattern, complete_event):
                for target in rule.targets:
                    delivery = partial(self._deliver, target, complete_event, f"event:{rule.name}")
                    self._clock.call_at(now, delivery, rule.name)

    def add(self, queue: str, body: str, delay: timedelta | None = None) -> None:
        """Send *body* to *queue* as often as `count_copies` says."""
        for _ in range(self.count_copies(queue, body)):
            self._message_count += 1
            message_id = f"message-{self._message_count:06d}"
            self._invocation_chains.record_message(message_id)
            message_delay = self._queues[queue].spec.delay if delay is None else delay
            self._queues[queue].add(message_id, body, message_delay + self.get_extra_delay(queue, body))

    def write_log(self, line: str) -> None:
        """Write *line* to the cluster's log.

        Subscribed functions are invoked shortly after with the collected lines.
        """
        for log_filter in self._wiring.log_filters:
            if log_filter.filter_text not in line:
                continue
            pending_lines = self._pending_lines_by_function.setdefault(log_filter.function, [])
            pending_lines.append(line)
            if len(pending_lines) == 1:
                self._clock.call_after(
                    LOG_DELIVERY_DELAY, partial(self._deliver_log, log_filter.function), f"log {log_filter.function}"
                )

    def _deliver_log(self, function: str) -> None:
        log_payload = {"logEvents": [{"message": line} for line in self._pending_lines_by_function.pop(function)]}
        encoded_data = base64.b64encode(gzip.compress(json.dumps(log_payload).encode(), mtime=0)).decode()
        self._invoke_asynchronously(function, {"awslogs": {"data": encoded_data}}, "log")

    def _schedule_next_firing(self, schedule: ScheduleSpec, firing_times: Iterator[datetime]) -> None:
        firing_time = next(firing_times, None)
        if firing_time is not None:
            self._timer_by_schedule[schedule.name] = self._clock.call_at(
                firing_time, partial(self._fire_schedule, schedule, firing_times), f"schedule {schedule.name}"
            )

    def _fire_schedule(self, schedule: ScheduleSpec, firing_times: Iterator[datetime]) -> None:
        self._schedule_next_firing(schedule, firing_times)
        time = f"{self._clock.get_time():%Y-%m-%dT%H:%M:%SZ}"
        event = {"detail-type": "Scheduled Event", "source": "aws.scheduler", "time": time}
        target = schedule.target
        if self.service_calls.can_fire(target) and target.name not in self.throttled_functions:
            self._deliver(target, event, f"schedule:{schedule.name}")
        elif target.dead_letter_queue and self.service_calls.can_send_to_dead_letter_queue(
            self._queues[target.dead_letter_queue].spec.arn
        ):
            self.add(target.dead_letter_queue, target.input or json.dumps(event))

    def _deliver(self, target: EventTarget, event: Event, trigger: str) -> None:
        event_text = target.input or json.dumps(event)
        if target.kind == "queue":
            self.add(target.name, event_text)
        else:
            self._invoke_asynchronously(target.name, json.loads(event_text), trigger)

    def _invoke_asynchronously(self, function_name: str, event: Event, trigger: str, failures: int = 0) -> None:
        def handle_end(invocation: Invocation) -> None:
            retry_delay = compute_retry_delay(failures + 1, self._functions[function_name].async_retries)
            if invocation.outcome != "ok" and retry_delay is not None:
                retry = partial(self._invoke_asynchronously, function_name, event, trigger, failures + 1)
                self._clock.call_after(retry_delay, retry, f"retry {function_name}")

        self._start_invocation(function_name, event, trigger, handle_end)

    def _start_invocation(
        self, function_name: str, event: Event, trigger: str, on_end: Callable[[Invocation], None]
    ) -> None:
        function, started_at = self._functions[function_name], self._clock.get_time()
        self._invocation_count += 1
        request_id = f"{function_name}-{self._invocation_count:06d}"
        outcome, error, response = self._run_handler(function, event, request_id)
        duration = self._get_duration(function_name, event)
        if duration >= function.timeout:
            outcome, error, response, duration = "timed-out", f"after {function.timeout}", None, function.timeout

        def record_end() -> None:
            invocation = Invocation(
                request_id=request_id,
                function=function_name,
                trigger=trigger,
                started_at=started_at,
                ended_at=self._clock.get_time(),
                outcome=outcome,
                error=error,
                event=event,
                response=response,
            )
            self.invocations.append(invocation)
            self.on_invocation(invocation)
            on_end(invocation)

        if duration:
            self._clock.call_after(duration, record_end, f"end of {request_id}")
        else:
            record_end()

    def _run_handler(
        self, function: StackFunction, event: Event, request_id: str
    ) -> tuple[InvocationOutcome, str, HandlerResponse]:
        chain_length = self._invocation_chains.count_invocations(event)
        if chain_length > MAX_CHAINED_INVOCATIONS and not function.allows_recursion:
            return "failed", f"RecursiveInvocation: call {chain_length} of a chain", None
        handle = self.load_handle(function.handler)
        try:
            world = self._build_world(function.name, dict(function.environment))
            if not world.name:
                world = msgspec.structs.replace(world, name=request_id)
            with self._invocation_chains.track_invocation(chain_length):
                return "ok", "", convert_to_json(handle(convert_to_json(event), world))
        except Killed as killed:
            return "killed", str(killed), None
        except Exception as error:  # noqa: BLE001 - Lambda takes every exception of a handler for its failure
            return "failed", f"{type(error).__name__}: {error}", None
        finally:
            self.service_calls.write_log(function)
            self.service_calls.send_trace(function)
