"""A deployed stack in this process: the embedded cloud, table and bucket, and the product's handlers on a clock.

The stack is what its synthesised template says. What cluster there is beside it is for the subclasses to say. A tap
sees every call that a handler makes to the outside, and may fail it or kill the handler.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from shared.model.ec2 import Instance
from shared.ports import Ec2, Kube, World
from shared.report.journal import PREFIX, Entry, read_entry
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.faults import Call, Tap, tapped_world
from sim.lambdas.runtime import LambdaRuntime
from sim.lambdas.template import ACTIVE, synthesised
from sim.lambdas.wiring import Wiring
from sim.machines import living
from sim.memory import MemoryBucket, MemoryTable, MemoryTopic


class Deployed(ABC):
    """Everything but the cluster, wired; it wakes up once it is switched on."""

    runtime: LambdaRuntime

    def __init__(self, clock: Clock, seed: int, template: Mapping[str, Any] | None, tap: Tap | None = None) -> None:
        """Read the stack of *template* (what the app synthesises, if None) and make the account."""
        self.on_journal: Callable[[Entry], None] = lambda _: None
        """Hears every journal entry as it is written."""
        self.wiring = Wiring.parse(template if template is not None else synthesised(context=ACTIVE))
        settings = Settings.from_environment(dict(self.wiring.functions[0].environment))
        self.cloud = Cloud(clock, seed, region=settings.region, cluster=settings.cluster_name)
        self.table, self.bucket = MemoryTable(), Journalled(self._hear)
        self.topic = MemoryTopic()
        """What people are told, where `joiner:report-topic` names a topic."""
        self.lines: list[str] = []
        """What the functions logged, oldest first."""
        self.tap: Tap = tap if tap is not None else _unseen

    def living(self) -> tuple[Instance, ...]:
        """Answer the instances that have not begun to end, sorted by id."""
        return living(self.cloud)

    def switch_on(self, clock: Clock, seed: int) -> None:
        """Let schedules ring and queues deliver from now on."""
        self.runtime = LambdaRuntime(clock, self.wiring, self._world, seed)
        self.cloud.subscribe_events(self.runtime.put_event)

    @abstractmethod
    def _kube(self) -> Kube:
        """Answer the cluster's API as a handler reaches it."""

    def _ec2(self) -> Ec2:
        """Answer EC2 as a handler reaches it."""
        return CloudEc2(self.cloud)

    def _memory(self, function: str) -> MutableMapping[str, object] | None:
        """Answer what the container of *function* keeps between invocations; None: nothing."""
        del function
        return None

    def _world(self, function: str, environment: dict[str, str]) -> World:
        settings = Settings.from_environment(environment)
        world = World(
            settings=settings,
            kube=self._kube(),
            ec2=self._ec2(),
            parameters=CloudParameters(self.cloud),
            prices=CloudPrices(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.runtime.mailbox(),
            table=self.table,
            bucket=self.bucket,
            clock=self.cloud.clock.now,
            topic=self.topic if settings.report_topic else None,
            emit=self.lines.append,
            name=f"{function}-{len(self.runtime.records):06d}",
            memory=self._memory(function),
        )
        return tapped_world(world, self._tapped)

    def _tapped(self, call: Call) -> None:
        self.tap(call)

    def _hear(self, entry: Entry) -> None:
        self.on_journal(entry)


class Journalled(MemoryBucket):
    """A bucket that tells of the journal entries in it."""

    def __init__(self, tell: Callable[[Entry], None]) -> None:
        """Begin empty; *tell* hears every entry as it is written."""
        super().__init__()
        self._tell = tell

    def put(self, key: str, body: bytes) -> None:
        """Write one object, whole."""
        super().put(key, body)
        if key.startswith(PREFIX):
            self._tell(read_entry(body))


def _unseen(call: Call) -> None:
    del call
