"""The Lambda service: resolves aliases to versions, and makes synchronous and asynchronous invocations.

Asynchronous invocations that are not retried any more go to the function's on-failure destination.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import count
from threading import Lock
from typing import Final, Protocol

import msgspec

from sim.aws_account.function_runtime import DeployedFunction, InvocationResult, Throttled
from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.lambda_processes.sandboxes import SandboxInvocation, SandboxPool
from sim.lambda_processes.workers import WorkerPool
from sim.lambda_runtime.async_retry import compute_retry_delay, compute_throttle_delay

_ROLL_DIVISOR: Final = 16**8


class FunctionDirectory(Protocol):
    """The functions of an account."""

    def get_function(self, name: str, qualifier: str = "", roll: float = 0.0) -> DeployedFunction:
        """Return the version of the function *name* that *qualifier* selects.

        If an alias routes to two versions, *roll*, from [0, 1), selects one of them.

        Raises:
            LookupError: there is no such function, version or alias.
        """


class QueuedInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted asynchronous invocation."""

    name: str
    qualifier: str
    payload: bytes
    source: str
    request_id: str
    accepted_at: datetime
    due_at: datetime
    failures: int = 0
    throttles: int = 0


DiscardCallback = Callable[[DeployedFunction, QueuedInvocation, str], None]
"""Called with an invocation that is not retried any more, and the reason: too many failures, or too old."""


class LambdaService:
    """The Lambda service of one account; call `tick` regularly. Safe to share between threads."""

    def __init__(
        self,
        directory: FunctionDirectory,
        sandbox_pool: SandboxPool,
        clock: Callable[[], datetime],
        workers: WorkerPool,
        *,
        on_discard: DiscardCallback = lambda _function, _later, _reason: None,
    ) -> None:
        """Run functions of *directory* in *sandbox_pool*, asynchronous invocations in threads of *workers*."""
        self._directory, self._sandbox_pool, self._clock = directory, sandbox_pool, clock
        self._workers, self._on_discard = workers, on_discard
        self._request_numbers, self._lock = count(1), Lock()
        self._queued_invocations: list[QueuedInvocation] = []
        self._running_count = 0

    @property
    def pending(self) -> int:
        """Number of asynchronous invocations that are accepted and not finished."""
        with self._lock:
            return len(self._queued_invocations) + self._running_count

    def invoke(
        self, name: str, qualifier: str, payload: bytes, *, source: str = "a call", request_id: str = ""
    ) -> SandboxInvocation:
        """Make a synchronous invocation, and return the finished invocation.

        Raises:
            LookupError: there is no such function, version or alias.
            Throttled: the reserved concurrency of the function is reached.
        """
        name, qualifier = split_function_reference(name, qualifier)
        request_identity = request_id or self._build_request_id(name)
        function = self._directory.get_function(name, qualifier, int(request_identity[:8], 16) / _ROLL_DIVISOR)
        invoked_function = msgspec.structs.replace(function, arn=_build_invoked_arn(function.arn, qualifier))
        return self._sandbox_pool.invoke(invoked_function, payload, request_id=request_identity, source=source)

    def invoke_for_api(self, name: str, qualifier: str, payload: bytes) -> InvocationResult:
        """Implement `sim.aws_account.function_runtime.Invoker`."""
        invocation = self.invoke(name, qualifier, payload)
        error = "" if invocation.result.status == "success" else "Unhandled"
        return InvocationResult(
            payload=invocation.result.payload, error=error, log=invocation.get_log_tail(), version=invocation.version
        )

    def invoke_asynchronously(self, name: str, qualifier: str, payload: bytes, source: str = "an event") -> None:
        """Accept an asynchronous invocation; the next `tick` makes it.

        Raises:
            LookupError: there is no such function, version or alias.
        """
        name, qualifier = split_function_reference(name, qualifier)
        self._directory.get_function(name, qualifier)
        now = self._clock()
        self._enqueue(
            QueuedInvocation(
                name=name,
                qualifier=qualifier,
                payload=payload,
                source=source,
                request_id=self._build_request_id(name),
                accepted_at=now,
                due_at=now,
            )
        )

    def tick(self) -> None:
        """Make the due asynchronous invocations, each in its own thread."""
        now = self._clock()
        with self._lock:
            due_invocations = [queued_call for queued_call in self._queued_invocations if queued_call.due_at <= now]
            self._queued_invocations = [
                queued_call for queued_call in self._queued_invocations if queued_call.due_at > now
            ]
            self._running_count += len(due_invocations)
        for queued_call in due_invocations:
            self._workers.submit(partial(self._process, queued_call))

    def _process(self, queued_call: QueuedInvocation) -> None:
        retry = None
        try:
            retry = self._attempt(self._directory.get_function(queued_call.name, queued_call.qualifier), queued_call)
        except LookupError:
            return  # the function was deleted in the meantime
        finally:
            with self._lock:
                self._running_count -= 1
                self._queued_invocations += [retry] if retry is not None else []

    def _attempt(self, function: DeployedFunction, queued_call: QueuedInvocation) -> QueuedInvocation | None:
        """Make the invocation; return its retry, None if there is none."""
        failures, throttles = queued_call.failures, queued_call.throttles
        retry_delay: timedelta | None
        try:
            invocation = self.invoke(
                queued_call.name,
                queued_call.qualifier,
                queued_call.payload,
                source=queued_call.source,
                request_id=queued_call.request_id,
            )
        except Throttled as error:
            reason, throttles = str(error), throttles + 1
            retry_delay = compute_throttle_delay(throttles)
        else:
            if invocation.result.status == "success":
                return None
            reason, failures = invocation.result.payload.decode(errors="replace"), failures + 1
            retry_delay = compute_retry_delay(failures, function.async_retries)
        expires_at = queued_call.accepted_at + timedelta(seconds=function.max_event_age_seconds)
        if retry_delay is None or (due_at := self._clock() + retry_delay) > expires_at:
            self._on_discard(function, queued_call, reason)
            return None
        return msgspec.structs.replace(queued_call, failures=failures, throttles=throttles, due_at=due_at)

    def _enqueue(self, queued_call: QueuedInvocation) -> None:
        with self._lock:
            self._queued_invocations.append(queued_call)

    def _build_request_id(self, name: str) -> str:
        """Return a unique request id in the format of a UUID."""
        with self._lock:
            number = next(self._request_numbers)
        digest = sha256(f"{name} {number}".encode()).hexdigest()
        return "-".join((digest[:8], digest[8:12], f"4{digest[13:16]}", f"a{digest[17:20]}", digest[20:32]))


def split_function_reference(name: str, qualifier: str = "") -> tuple[str, str]:
    """Return the name and the qualifier of a function; *name* can be an ARN, and can contain the qualifier."""
    function_name, embedded_qualifier = parse_function_name(name)
    return function_name, embedded_qualifier or qualifier


def _build_invoked_arn(arn: str, qualifier: str) -> str:
    """Return the ARN by which a function was invoked: with the alias, if there was one.

    >>> _build_invoked_arn("arn:aws:lambda:us-east-1:111122223333:function:web:7", "live")
    'arn:aws:lambda:us-east-1:111122223333:function:web:live'
    """
    function_arn = ":".join(arn.split(":")[:7])
    return f"{function_arn}:{qualifier}" if qualifier else function_arn
