"""An account with running functions: connects all triggers to the sandboxes.

Usage::

    with AccountRuntime(account, host, clock, owner=account_id) as runtime:
        account.invoker, account.dispatcher = runtime.service.invoke_for_api, runtime.service.invoke_asynchronously
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self

from botocore.exceptions import ClientError

from sim.aws_account.function_runtime import Credentials, DeployedFunction
from sim.lambda_processes.event_sources.account_connector import AccountConnector, SandboxAccount, build_lambda_caller
from sim.lambda_processes.event_sources.event_bus import DefaultEventBus
from sim.lambda_processes.event_sources.event_deliveries import EventDeliveries
from sim.lambda_processes.event_sources.queue_pollers import QueueMapping, QueuePoller, QueuePollers
from sim.lambda_processes.event_sources.schedules import ScheduleRunner
from sim.lambda_processes.invocation_metrics import build_invocation_metrics, build_throttle_metrics
from sim.lambda_processes.lambda_service import LambdaService, QueuedInvocation
from sim.lambda_processes.sandboxes import SandboxHost, SandboxInvocation, SandboxPool
from sim.lambda_processes.trigger_reader import TriggerReader
from sim.lambda_processes.workers import Ticker, WorkerPool


class AccountRuntime:
    """The running functions of one account. A context manager: it ends with no process and no thread left."""

    def __init__(
        self, account: SandboxAccount, host: SandboxHost, clock: Callable[[], datetime], *, owner: str
    ) -> None:
        """Run the functions on *host*; *owner* is the account id. Nothing starts before the `with` statement."""
        self.invocations: list[SandboxInvocation] = []
        """All finished invocations, oldest first."""
        self.access_errors: list[str] = []
        """Errors of SQS and CloudWatch Logs when roles have no permission."""
        self.discarded_invocations: list[str] = []
        """Asynchronous invocations that were discarded, with the reason."""
        self.on_invocation: Callable[[SandboxInvocation], None] = lambda _: None
        """Called with each invocation when it has ended, in the thread that made it."""
        self.workers, self._lock, self._clock = WorkerPool(), Lock(), clock
        self._connector, self.triggers = AccountConnector(account, clock), TriggerReader(account, clock)
        self._account, self._cloudwatch = account, account.cloudwatch
        self.sandbox_pool = SandboxPool(
            host,
            clock=clock,
            credentials_of=partial(_issue_function_credentials, account),
            on_invocation=self._handle_invocation,
            on_throttle=lambda function: self._cloudwatch.metrics.record_data(
                build_throttle_metrics(function, clock())
            ),
        )
        self.service = LambdaService(account, self.sandbox_pool, clock, self.workers, on_discard=self._handle_discarded)
        self._deliveries = EventDeliveries(self._connector, self.workers, clock)
        self.schedules = ScheduleRunner(self.triggers.list_schedules, self._deliveries, clock)
        self.bus = DefaultEventBus(self.triggers.list_rules, self._deliveries, clock, account=owner, region=host.region)
        self._pollers = QueuePollers(self.triggers.list_mappings, self._start_poller)
        self._ticker: Ticker | None = None

    def __enter__(self) -> Self:
        """Start."""
        components = (self.service, self.schedules, self._deliveries, self._pollers, self._cloudwatch)
        self._ticker = Ticker([component.tick for component in components])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill all processes; return when no thread is left."""
        if self._ticker is not None:
            self._ticker.stop()
        self._pollers.stop()
        self.sandbox_pool.shut_down()
        self.workers.shut_down()

    def list_problems(self) -> list[str]:
        """Return unexpected errors, refused calls and discarded invocations."""
        tick_errors = self._ticker.errors if self._ticker is not None else []
        return [*tick_errors, *self.workers.errors, *self.access_errors, *self.discarded_invocations]

    def _start_poller(self, mapping: QueueMapping) -> QueuePoller:
        def invoke_by_arn(arn: str, payload: bytes, source: str) -> SandboxInvocation:
            return self.service.invoke(arn, "", payload, source=source)

        return QueuePoller(
            mapping, self._connector, invoke_by_arn, self.workers, self._clock, self.access_errors.append
        )

    def _handle_invocation(self, function: DeployedFunction, log_stream: str, invocation: SandboxInvocation) -> None:
        with self._lock:
            self.invocations.append(invocation)
        self._cloudwatch.metrics.record_data(build_invocation_metrics(function, invocation))
        try:
            self._connector.write_log(function, log_stream, invocation)
        except ClientError as error:
            if self._is_deployed(function):
                self.access_errors.append(f"{function.log_group}: {error}")
        self.on_invocation(invocation)

    def _is_deployed(self, function: DeployedFunction) -> bool:
        """Return whether the function still exists.

        If it was deleted while it ran, its role and log may be gone too.
        """
        try:
            self._account.get_function(function.name)
        except LookupError:
            return False
        return True

    def _handle_discarded(self, function: DeployedFunction, queued_invocation: QueuedInvocation, reason: str) -> None:
        self.discarded_invocations.append(f"{function.name} ({queued_invocation.source}): {reason}")
        if function.on_failure_arn:
            self._connector.send_message(
                function.on_failure_arn,
                queued_invocation.payload.decode(),
                caller=build_lambda_caller(function),
                reason=reason,
            )


def _issue_function_credentials(account: SandboxAccount, function: DeployedFunction) -> Credentials:
    """Return the credentials that the code of *function* uses for AWS."""
    return account.issue_role_credentials(function.role_arn, function.name, function_arn=function.arn)
