"""The embedded world: a cloud, a cluster and a deployed stack on one virtual clock.

The stack is what its synthesised template says; the handlers are the product's own. A tap sees every call that a
handler makes to the outside, and may fail it or kill the handler.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import yaml

from shared.kube.definitions import definitions
from shared.model.ec2 import Instance
from shared.ports import World
from shared.report.journal import PREFIX, Entry, read_entry
from shared.settings import Settings
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices
from sim.cluster.kube import InMemoryKube
from sim.cluster.live import LiveCluster
from sim.faults import Call, Tap, tapped_world
from sim.lambdas.runtime import LambdaRuntime
from sim.lambdas.template import synthesised
from sim.lambdas.wiring import Wiring
from sim.machines import Machines
from sim.memory import MemoryBucket, MemoryTable


class Embedded:
    """Everything, wired."""

    def __init__(self, seed: int = 0, *, template: Mapping[str, Any] | None = None, tap: Tap | None = None) -> None:
        """Deploy the stack of *template* (what the app synthesises, unless given) into a new account and cluster."""
        self.on_journal: Callable[[Entry], None] = lambda _: None
        """Hears every journal entry as it is written."""
        wiring = Wiring.parse(template if template is not None else synthesised())
        settings = Settings.from_environment(dict(wiring.functions[0].environment))
        self.clock = Clock()
        self.cloud = Cloud(self.clock, seed, region=settings.region, cluster=settings.cluster_name)
        self.live = LiveCluster(self.clock, seed)
        self.machines = Machines(self.cloud, self.live, seed)
        self.table, self.bucket = MemoryTable(), Journalled(self._hear)
        self._memories: dict[str, dict[str, object]] = {}
        self.lines: list[str] = []
        """What the functions logged, oldest first."""
        self.tap: Tap = tap if tap is not None else _unseen
        self.runtime = LambdaRuntime(self.clock, wiring, self._world, seed)
        self.cloud.subscribe_events(self.runtime.put_event)
        for definition in _definitions():
            self.live.apply(definition)

    @property
    def cluster_name(self) -> str:
        """The name of the EKS cluster."""
        return self.cloud.facts.name

    def apply(self, manifests: Iterable[dict[str, Any]]) -> None:
        """`kubectl apply` of *manifests*, in order."""
        for manifest in manifests:
            self.live.apply(manifest)

    def run(self, duration: timedelta) -> None:
        """Let *duration* pass."""
        self.clock.advance(duration)

    def run_until(self, holds: Callable[[], bool], limit: timedelta) -> bool:
        """Let time pass until *holds*, but no longer than *limit*; answer whether it holds."""
        end = self.clock.now() + limit
        while not holds():
            if self.clock.now() >= end:
                return False
            self.clock.run_until(min(end, self.clock.now() + timedelta(seconds=1)))
        return True

    def living(self) -> tuple[Instance, ...]:
        """Answer the instances that have not begun to end, sorted by id."""
        return tuple(one for one in self.cloud.instances() if one.state in ("pending", "running"))

    def _world(self, function: str, environment: dict[str, str]) -> World:
        world = World(
            settings=Settings.from_environment(environment),
            kube=InMemoryKube(self.live.api),
            ec2=CloudEc2(self.cloud),
            parameters=CloudParameters(self.cloud),
            prices=CloudPrices(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.runtime.mailbox(),
            table=self.table,
            bucket=self.bucket,
            clock=self.clock.now,
            emit=self.lines.append,
            name=f"{function}-{len(self.runtime.records):06d}",
            memory=self._memories.setdefault(function, {}),
        )
        return tapped_world(world, self._tapped)

    def _tapped(self, call: Call) -> None:
        self.tap(call)

    def _hear(self, entry: Entry) -> None:
        self.on_journal(entry)


@cache
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load(document) for document in definitions())


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
