"""The stage: an account, a real control plane whose callers the account vouches for, and functions that run.

Instances boot and end faster than real ones, and the schedules ring oftener than each minute: the play is to be over in
some minutes. All else takes its time.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.errors import Gone, Invalid
from sim.account.account import Account
from sim.cloud.cloud import Cloud
from sim.cloud.events import ACCOUNT
from sim.playground_desk import NODE_CLAIMS, NODES, PODS
from sim.playground_grounds import Grounds
from sim.realtime import RealTimeClock
from sim.sandboxes.running import Running
from sim.sandboxes.sandboxes import Machine
from sim.scenario import Managed
from tests.controlplane.plane import ControlPlane
from tests.e2e.assembly import Assembly
from tests.e2e.cdk import Cdk, NotSo
from tests.e2e.libraries import ROOT, Libraries
from tests.e2e.meter import Meter
from tests.e2e.sights import Sights
from tests.e2e.told import Narrator, Witness

CLUSTER: Final = "demo"
STACK: Final = f"joiner-{CLUSTER}"
HASTE: Final = 10
RING_EVERY: Final = timedelta(seconds=5)
EACH_MINUTE: Final = "rate(1 minute)"
OTHERS: Final = 5
NODE_GOES: Final = timedelta(seconds=3)
NODE_CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
SECOND: Final = timedelta(seconds=1)
SYSTEM: Final = Managed(labels={"eks.amazonaws.com/nodegroup": "system"})
MOMENT: Final = timedelta(seconds=0.25)
LONGEST: Final = timedelta(minutes=20)
"""Of real time, for whatever has to come about: no machine is as slow."""
KNOBS: Final = tuple(
    word
    for knob in (f"cluster={CLUSTER}", "on-destroy=purge", "disruption=active")
    for word in ("-c", f"joiner:{knob}")
)


class Stage(Sights):
    """All of it, wired."""

    def __init__(self, libraries: Libraries, stack: ExitStack, *, synthesises: bool = False) -> None:
        """Begin; *stack* ends it. If it *synthesises* the application, that begins at once, and goes on meanwhile."""
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="joiner-e2e-")))
        self.assembly = Assembly(self.folder, KNOBS, self._surroundings(), stack)
        if synthesises:
            self.assembly.begin(ROOT)
        clock = RealTimeClock(_now)
        self.cloud = Cloud(clock, seed=7, cluster=CLUSTER)
        self.account = stack.enter_context(Account(self.cloud, clock))
        self._plane = stack.enter_context(ControlPlane(authenticator=self.account.authenticator_url))
        self.grounds = Grounds(
            clock,
            self.cloud,
            self._plane.client(),
            endpoint=self._plane.endpoint,
            certificate_authority=self._plane.certificate_authority,
            seed=7,
            node_deletion=NODE_GOES,
            haste=HASTE,
        )
        self.grounds.drive.lock = self.account.lock
        super().__init__(self.account, self.grounds.desk, self.cloud, STACK)
        machine = Machine(
            python=libraries.python,
            libraries=libraries.folder,
            folder=self.folder,
            region=self.cloud.region,
            further={"AWS_ENDPOINT_URL": self.account.url},
            slowness=10,
        )
        self.running = stack.enter_context(Running(self.account, machine, _now, owner=self.account.number))
        self.account.invoker, self.account.dispatcher = self.running.service.invoker, self.running.service.take
        self.cloud.subscribe_events(self._put_event)
        self.meter = Meter(self._pids)
        self.narrator = Narrator(self.meter)
        self.witness = Witness(self.narrator, self.cloud)
        self.running.on_call = self.witness.on_call
        self.grounds.nodes.on_change = self.witness.on_node
        self.struck = ""
        """The node that EC2 takes back."""
        self.furniture: set[str] = set()
        """What lies in the account before Joiner comes."""
        self._looked, self._rings = _now(), count()
        self._ring()

    def _pids(self) -> list[int]:
        return [*self._plane.processes.pids().values(), *self.running.sandboxes.pids()]

    def _put_event(self, event: dict[str, Any]) -> None:
        """Put an announcement of EC2 on the bus, in a thread that does not hold the cloud's lock."""
        self.running.workers.start(partial(self.running.bus.put, event))

    def ring_all(self) -> None:
        """Ring all schedules that there are now."""
        self.running.reading.forget()
        self.running.workers.start(self.running.schedules.ring)

    def _ring(self) -> None:
        """Ring what rings each minute; everything else at every fifth time, which is seldom enough."""
        often = EACH_MINUTE if next(self._rings) % OTHERS else ""
        self.running.workers.start(partial(self.running.schedules.ring, often))
        self.grounds.clock.call_after(RING_EVERY, self._ring, "ring the schedules")

    def furnish(self) -> None:
        """Put into the cluster what is there before Joiner."""
        self.grounds.start_managed_node(SYSTEM)
        self.until(lambda: len(self.nodes()) == 1, "the managed node joins")

    def until(self, holds: Callable[[], bool], what: str, every: timedelta = SECOND) -> None:
        """Let time pass until *holds*.

        Raises:
            NotSo: it does not within `LONGEST`, or a part of the control plane died.
        """
        began = _now()
        last = [began - every]

        def looked() -> bool:
            if _now() - last[0] < every:
                return False
            last[0] = _now()
            self._look()
            return holds()

        if not self.grounds.drive.run(looked, LONGEST):
            raise NotSo(f"not within {LONGEST}: {what}")
        self.narrator.say("so", what, f"after {(_now() - began).total_seconds():.1f} s")

    def _look(self) -> None:
        if _now() - self._looked < SECOND:
            return
        self._looked = _now()
        died = self._plane.processes.died()
        if died:
            raise NotSo(died)
        bucket = self.outputs().get("JoinerBucketName")
        if bucket:
            self.witness.read(self.account.client("s3"), bucket)

    @contextmanager
    def cdk(self, *words: str) -> Iterator[Cdk]:
        """Run the CDK's command line; the block may do something meanwhile, then its end is waited for.

        Raises:
            NotSo: it failed, or took longer than `LONGEST`.
        """
        log = self.folder / f"cdk-{len(list(self.folder.glob('cdk-*.log')))}-{words[0]}.log"
        with Cdk(words, self.folder, self.environment(), log) as running:
            yield running
            self.see_out(running)

    def see_out(self, running: Cdk) -> None:
        """Wait for the end of *running*.

        Raises:
            NotSo: it failed, or takes longer than `LONGEST` from now on.
        """
        self.until(running.has_ended, f"{running.name} ends", MOMENT)
        running.judge()

    def keep_logs(self) -> Path:
        """Copy what all programs and functions have written to a new folder; answer which."""
        kept = Path(tempfile.mkdtemp(prefix="joiner-e2e-logs-"))
        self._plane.keep_logs(kept)
        for log in self.folder.glob("cdk-*.log"):
            shutil.copy(log, kept)
        for call in self.running.calls[:]:
            with (kept / f"{call.function}.log").open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in (f"{call.began} {call.by}", *call.lines))
        for path in (NODE_CLASSES, NODE_POOLS, NODE_CLAIMS, NODES, PODS):
            with suppress(Gone):
                found = msgspec.json.format(msgspec.json.encode(self.desk.look(path)))
                (kept / f"{path.rpartition('/')[2]}.json").write_bytes(found)
        return kept

    def kubeconfig(self) -> str:
        """Answer an administrator's kubeconfig, with the names that EKS gives it."""
        arn = f"arn:aws:eks:us-east-1:{ACCOUNT}:cluster/{CLUSTER}"
        return self._plane.kubeconfig().replace('"joiner"', f'"{arn}"')

    def environment(self) -> dict[str, str]:
        """Answer a person's environment with the account's credentials in it."""
        return self._surroundings() | self.account.environment()

    def _surroundings(self) -> dict[str, str]:
        """Answer a person's environment without any account."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        quiet = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "CDK_HOME": str(self.folder / "cdk")}
        return kept | quiet

    def strike(self) -> str:
        """Let EC2 take the busiest node back in two minutes; answer its name, "" if it is about to go by itself."""
        with suppress(ValueError, Gone, Invalid):
            node = self.grounds.busiest()
            with self.account.lock:
                self.cloud.interrupt_spot(self.grounds.instance_of(node))
            self.struck = node
        return self.struck


def _now() -> datetime:
    return datetime.now(UTC)
