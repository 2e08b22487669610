"""An account whose functions run: everything that wakes them, wired to their sandboxes.

with Running(account, machine, clock) as running:
    account.invoker, account.dispatcher = running.service.invoker, running.service.take
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self

from botocore.exceptions import ClientError

from sim.account.contract import Credentials, Function
from sim.sandboxes.bus import Bus
from sim.sandboxes.deliveries import Deliveries
from sim.sandboxes.measured import measured, throttled
from sim.sandboxes.queues import Mapping, Poller, Pollers
from sim.sandboxes.reading import Reading
from sim.sandboxes.sandboxes import Call, Machine, Sandboxes
from sim.sandboxes.schedules import Schedules
from sim.sandboxes.service import LambdaService, Later
from sim.sandboxes.wires import Account, Wires, lambda_as
from sim.sandboxes.workers import Heart, Workers


class Running:
    """The functions of one account. A context manager: at its end no process and no thread is left."""

    def __init__(self, account: Account, machine: Machine, clock: Callable[[], datetime], *, owner: str) -> None:
        """Run them on *machine*; *owner* is the account's number. Nothing happens before the `with`."""
        self.calls: list[Call] = []
        """Every call that is over, oldest first."""
        self.refused: list[str] = []
        """What queues said to their readers when they did not let them."""
        self.given_up: list[str] = []
        """Calls that were taken and will not be made again, with the reason."""
        self.on_call: Callable[[Call], None] = lambda _: None
        """Hears of each call when it is over, in the thread that made it."""
        self.workers, self._lock, self._clock = Workers(), Lock(), clock
        self._wires, self.reading = Wires(account, clock), Reading(account, clock)
        self._account, self._watch = account, account.watch
        self.sandboxes = Sandboxes(
            machine,
            clock=clock,
            credentials_of=partial(_own, account),
            on_call=self._hear,
            on_throttle=lambda function: self._watch.metrics.record(throttled(function, clock())),
        )
        self.service = LambdaService(account, self.sandboxes, clock, self.workers, give_up=self._give_up)
        self._deliveries = Deliveries(self._wires, self.workers, clock)
        self.schedules = Schedules(self.reading.schedules, self._deliveries, clock)
        self.bus = Bus(self.reading.rules, self._deliveries, clock, account=owner, region=machine.region)
        self._pollers = Pollers(self.reading.mappings, self._poller)
        self._heart: Heart | None = None

    def __enter__(self) -> Self:
        """Begin."""
        looks = (self.service, self.schedules, self._deliveries, self._pollers, self._watch)
        self._heart = Heart([one.look for one in looks])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill all processes; return when no thread is left."""
        if self._heart is not None:
            self._heart.stop()
        self._pollers.stop()
        self.sandboxes.end()
        self.workers.end()

    def problems(self) -> list[str]:
        """Answer what nobody foresaw, and what was refused or given up."""
        beaten = self._heart.broken if self._heart is not None else []
        return [*beaten, *self.workers.broken, *self.refused, *self.given_up]

    def _poller(self, mapping: Mapping) -> Poller:
        def invoke(arn: str, payload: bytes, by: str) -> Call:
            return self.service.invoke(arn, "", payload, by=by)

        return Poller(mapping, self._wires, invoke, self.workers, self._clock, self.refused.append)

    def _hear(self, function: Function, stream: str, call: Call) -> None:
        with self._lock:
            self.calls.append(call)
        self._watch.metrics.record(measured(function, call))
        try:
            self._wires.write_log(function, stream, call)
        except ClientError as error:
            if self._is_there(function):
                self.refused.append(f"{function.log_group}: {error}")
        self.on_call(call)

    def _is_there(self, function: Function) -> bool:
        """Whether it has not been deleted while it worked: then its role and its log may be gone too."""
        try:
            self._account.function(function.name)
        except LookupError:
            return False
        return True

    def _give_up(self, function: Function, later: Later, why: str) -> None:
        self.given_up.append(f"{function.name} ({later.by}): {why}")
        if function.on_failure_arn:
            self._wires.post(function.on_failure_arn, later.payload.decode(), who=lambda_as(function), because=why)


def _own(account: Account, function: Function) -> Credentials:
    """Answer what the code of *function* calls AWS with."""
    return account.credentials_of(function.role_arn, function.name, function_arn=function.arn)
