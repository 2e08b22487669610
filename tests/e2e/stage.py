"""The stage: an account, a real control plane whose callers the account vouches for, and functions that run.

Instances boot and end faster than real ones, and the schedules ring oftener than each minute: the play is to be over in
five minutes. All else takes its time.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.errors import Gone
from sim.account.account import Account
from sim.cloud.cloud import Cloud
from sim.cloud.events import ACCOUNT
from sim.machines import living
from sim.measure import is_ours, is_over, is_running
from sim.playground_desk import NODE_CLAIMS, NODES, PODS, Manifest
from sim.playground_grounds import CUSTODIANS, Grounds
from sim.realtime import RealTimeClock
from sim.sandboxes.running import Running
from sim.sandboxes.sandboxes import Machine
from sim.scenario import Managed
from tests.controlplane.plane import ControlPlane
from tests.e2e.cdk import Cdk, NotSo
from tests.e2e.libraries import ROOT, Libraries
from tests.e2e.meter import Meter
from tests.e2e.told import Narrator, Witness

CLUSTER: Final = "demo"
STACK: Final = f"joiner-{CLUSTER}"
HASTE: Final = 10
RING_EVERY: Final = timedelta(seconds=5)
NODE_GOES: Final = timedelta(seconds=3)
NODE_CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
SECOND: Final = timedelta(seconds=1)
SYSTEM: Final = Managed(labels={"eks.amazonaws.com/nodegroup": "system"})
KNOBS: Final = tuple(
    word
    for knob in (f"cluster={CLUSTER}", "on-destroy=purge", "disruption=active")
    for word in ("-c", f"joiner:{knob}")
)


class Stage:
    """All of it, wired."""

    def __init__(self, libraries: Libraries, stack: ExitStack) -> None:
        """Begin; *stack* ends it."""
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="joiner-e2e-")))
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
        self.desk = self.grounds.desk
        machine = Machine(
            python=libraries.python,
            libraries=libraries.folder,
            folder=self.folder,
            region=self.cloud.region,
            further={"AWS_ENDPOINT_URL": self.account.url},
        )
        self.running = stack.enter_context(Running(self.account, machine, _now, owner=self.account.number))
        self.account.invoker, self.account.dispatcher = self.running.service.invoker, self.running.service.take
        self.cloud.subscribe_events(self._put_event)
        self.meter = Meter(self._pids)
        self.narrator = Narrator(self.meter)
        self.witness = Witness(self.narrator, self.cloud)
        self.running.on_call = self.witness.on_call
        self.grounds.nodes.on_change = self.witness.on_node
        self.furniture: set[str] = set()
        """What lies in the account before Joiner comes."""
        self._ring()

    def _pids(self) -> list[int]:
        return [*self._plane.processes.pids().values(), *self.running.sandboxes.pids()]

    def _put_event(self, event: dict[str, Any]) -> None:
        """Put an announcement of EC2 on the bus, in a thread that does not hold the cloud's lock."""
        self.running.workers.start(partial(self.running.bus.put, event))

    def _ring(self) -> None:
        self.running.workers.start(self.running.schedules.ring)
        self.grounds.clock.call_after(RING_EVERY, self._ring, "ring all schedules")

    def furnish(self) -> None:
        """Put into the cluster what is there before Joiner."""
        self.grounds.start_managed_node(SYSTEM)
        self.until(lambda: len(self.nodes()) == 1, "the managed node joins", 30 * SECOND)

    def until(self, holds: Callable[[], bool], what: str, limit: timedelta, every: timedelta = SECOND) -> None:
        """Let time pass until *holds*.

        Raises:
            NotSo: it does not within *limit*, or a part of the control plane died.
        """
        last = [_now() - every]

        def looked() -> bool:
            if _now() - last[0] < every:
                return False
            last[0] = _now()
            self._look()
            return holds()

        if not self.grounds.drive.run(looked, limit):
            raise NotSo(f"not within {limit.total_seconds():.0f} s: {what}")

    def _look(self) -> None:
        died = self._plane.processes.died()
        if died:
            raise NotSo(died)
        bucket = self.outputs().get("JoinerBucketName")
        if bucket:
            self.witness.read(self.account.client("s3"), bucket)

    @contextmanager
    def cdk(self, *words: str, folder: Path = ROOT) -> Iterator[Cdk]:
        """Run the CDK's command line in *folder*; the block may do something meanwhile, then its end is waited for.

        Raises:
            NotSo: it failed, or took ten minutes.
        """
        number = len(list(self.folder.glob("cdk-*.log")))
        words = (*words, "--output", str(self.folder / "cdk.out"))
        with Cdk(words, folder, self.environment(), self.folder / f"cdk-{number}.log") as running:
            yield running
            self.until(running.has_ended, f"cdk {words[0]} ends", timedelta(minutes=10))
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
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        quiet = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "CDK_HOME": str(self.folder / "cdk")}
        return kept | quiet | self.account.environment()

    # What can be seen from outside

    def outputs(self) -> dict[str, str]:
        """Answer the stack's outputs; none if there is no stack."""
        cloudformation = self.account.client("cloudformation")
        try:
            [stack] = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
        except cloudformation.exceptions.ClientError:
            return {}
        return {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", ())}

    def status(self, stack: str = STACK) -> str:
        """Answer CloudFormation's status of *stack*; "" if there is none."""
        summaries = self.account.client("cloudformation").list_stacks()["StackSummaries"]
        found = [one["StackStatus"] for one in summaries if one["StackName"] == stack]
        return found[0] if found else ""

    def nodes(self) -> list[Manifest]:
        """Answer all Nodes."""
        return self.desk.look(NODES)

    def our_nodes(self) -> list[str]:
        """Answer the names of the Nodes that a NodePool made."""
        return sorted(one["metadata"]["name"] for one in self.nodes() if is_ours(one))

    def claims(self) -> list[Manifest]:
        """Answer all NodeClaims."""
        return self.desk.look(NODE_CLAIMS)

    def pods(self) -> list[Manifest]:
        """Answer the pods of people that are not over."""
        found = [one for one in self.desk.look(PODS) if one["metadata"]["namespace"] not in CUSTODIANS]
        return [one for one in found if not is_over(one)]

    def run(self, count: int) -> bool:
        """Whether *count* pods are there, and all of them run."""
        pods = self.pods()
        return len(pods) == count and all(is_running(one) for one in pods)

    def instances(self) -> list[str]:
        """Answer the ids of what EC2 describes as pending or running."""
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        pages = self.account.client("ec2").get_paginator("describe_instances").paginate(Filters=alive)
        reservations = (one for page in pages for one in page["Reservations"])
        return sorted(each["InstanceId"] for one in reservations for each in one["Instances"])

    def is_in_step(self) -> bool:
        """Whether every instance is a Node and a NodeClaim, and the other way round."""
        ids = [str(one["spec"].get("providerID", "")).rpartition("/")[2] for one in self.nodes() if is_ours(one)]
        claimed = [(one.get("status") or {}).get("providerID", "").rpartition("/")[2] for one in self.claims()]
        described = [one.instance_id for one in living(self.cloud)]
        return sorted(ids) == sorted(claimed) == described == self.instances()

    def dead_letters(self) -> int:
        """Answer how many messages wait in queues of dead letters."""
        sqs = self.account.client("sqs")
        urls = [url for url in sqs.list_queues().get("QueueUrls", ()) if url.endswith("dead-letters")]
        name = "ApproximateNumberOfMessages"
        return sum(
            int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name]) for url in urls
        )

    def strike(self) -> str:
        """Let EC2 take the busiest node back in two minutes; answer the node's name."""
        node = self.grounds.busiest()
        with self.account.lock:
            self.cloud.interrupt_spot(self.grounds.instance_of(node))
        return node


def _now() -> datetime:
    return datetime.now(UTC)
