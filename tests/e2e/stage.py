"""The stage: an account, a real control plane that authenticates with the account, and functions that run.

Instances boot and terminate faster than real ones, and the schedules fire more often than each minute, so that the test
takes only minutes. Everything else takes its real time.
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

from shared.errors import Invalid, NotFound
from sim.aws_account.account import Account
from sim.cloud.cloud import Cloud
from sim.cloud.eventbridge_events import ACCOUNT_ID
from sim.lambda_processes.account_runtime import AccountRuntime
from sim.lambda_processes.sandboxes import SandboxHost
from sim.playground.external_cluster import ExternalCluster
from sim.playground.kubectl import NODE_CLAIMS_PATH, NODES_PATH, PODS_PATH
from sim.scenarios.scenario import ManagedNode
from sim.time.real_clock import RealTimeClock
from tests.controlplane.plane import ControlPlane
from tests.e2e.account_queries import Sights
from tests.e2e.cdk import Cdk, ExpectationFailed
from tests.e2e.cpu_meter import Meter
from tests.e2e.libraries import Libraries
from tests.e2e.narrator import Narrator, Witness

CLUSTER: Final = "demo"
STACK: Final = f"joiner-{CLUSTER}"
NODE_SPEED_FACTOR: Final = 10
SCHEDULE_INTERVAL: Final = timedelta(seconds=5)
MINUTELY_RATE: Final = "rate(1 minute)"
TICKS_PER_SLOW_SCHEDULE: Final = 5
NODE_DELETION_DELAY: Final = timedelta(seconds=3)
NODE_CLASSES: Final = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
NODE_POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
ONE_SECOND: Final = timedelta(seconds=1)
SYSTEM_NODE: Final = ManagedNode(labels={"eks.amazonaws.com/nodegroup": "system"})
SHORT_POLL_INTERVAL: Final = timedelta(seconds=0.25)
WAIT_TIMEOUT: Final = timedelta(minutes=20)
"""Real time to wait for any event; enough even on a slow computer."""


class Stage(Sights):
    """The account, the control plane and the functions, connected."""

    def __init__(self, libraries: Libraries, stack: ExitStack, *, stack_name: str = STACK) -> None:
        """Start everything; *stack* stops it. *stack_name* is the name of Joiner's CloudFormation stack."""
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="joiner-e2e-")))
        clock = RealTimeClock(_get_now)
        self.cloud = Cloud(clock, seed=7, cluster=CLUSTER)
        self.account = stack.enter_context(Account(self.cloud, clock))
        self._plane = stack.enter_context(ControlPlane(authenticator=self.account.authenticator_url))
        self.grounds = ExternalCluster(
            clock,
            self.cloud,
            self._plane.get_client(),
            endpoint=self._plane.endpoint,
            certificate_authority=self._plane.certificate_authority,
            seed=7,
            node_deletion_delay=NODE_DELETION_DELAY,
            node_speed=NODE_SPEED_FACTOR,
        )
        self.grounds.drive.lock = self.account.lock
        self.grounds.instance_booter.can_assign_ipv6_addresses = (
            self.account.service_permissions.can_assign_ipv6_addresses
        )
        super().__init__(self.account, self.grounds.kubectl, self.cloud, stack_name)
        machine = SandboxHost(
            python=libraries.python,
            libraries=libraries.folder,
            folder=self.folder,
            region=self.cloud.region,
            extra_variables={"AWS_ENDPOINT_URL": self.account.url},
            timeout_factor=10,
        )
        self.running = stack.enter_context(
            AccountRuntime(self.account, machine, _get_now, owner=self.account.account_id)
        )
        self.account.invoker, self.account.dispatcher = (
            self.running.service.invoke_for_api,
            self.running.service.invoke_asynchronously,
        )
        self.cloud.events.subscribe(self._put_event)
        self.meter = Meter(self._list_pids)
        self.narrator = Narrator(self.meter)
        self.witness = Witness(self.narrator, self.cloud)
        self.running.on_invocation = self.witness.record_invocation
        self.grounds.nodes.on_change = self.witness.print_node_event
        self.interrupted_node = ""
        """The node that EC2 interrupts."""
        self.initial_resources: set[str] = set()
        """Resources in the account before Joiner is deployed."""
        self._checked_at, self._ticks = _get_now(), count()
        self._fire_schedules()

    def _list_pids(self) -> list[int]:
        return [*self._plane.processes.get_pids().values(), *self.running.sandbox_pool.list_pids()]

    def _put_event(self, event: dict[str, Any]) -> None:
        """Put an EC2 event on the bus, in a thread that does not hold the cloud's lock."""
        self.running.workers.submit(partial(self.running.bus.put_event, event))

    def fire_all_schedules(self) -> None:
        """Fire all current schedules."""
        self.running.triggers.invalidate()
        self.running.workers.submit(self.running.schedules.fire_all)

    def _fire_schedules(self) -> None:
        """Fire the schedules of each minute; at every `TICKS_PER_SLOW_SCHEDULE`-th tick, all schedules."""
        rate = MINUTELY_RATE if next(self._ticks) % TICKS_PER_SLOW_SCHEDULE else ""
        self.running.workers.submit(partial(self.running.schedules.fire_all, rate))
        self.grounds.clock.call_after(SCHEDULE_INTERVAL, self._fire_schedules, "ring the schedules")

    def prepare_cluster(self) -> None:
        """Create what the cluster has before Joiner is installed."""
        self.grounds.start_managed_node(SYSTEM_NODE)
        self.wait_until(lambda: len(self.list_nodes()) == 1, "the managed node joins")

    def wait_until(self, condition: Callable[[], bool], description: str, interval: timedelta = ONE_SECOND) -> None:
        """Let time pass until *condition* holds.

        Raises:
            ExpectationFailed: it does not hold within `WAIT_TIMEOUT`, or a part of the control plane died.
        """
        started_at = _get_now()
        last_check = [started_at - interval]

        def check_condition() -> bool:
            if _get_now() - last_check[0] < interval:
                return False
            last_check[0] = _get_now()
            self.check_processes()
            return condition()

        if not self.grounds.drive.run(check_condition, WAIT_TIMEOUT):
            raise ExpectationFailed(f"not within {WAIT_TIMEOUT}: {description}")
        self.narrator.print_line("check", description, f"after {(_get_now() - started_at).total_seconds():.1f} s")

    def check_processes(self) -> None:
        """Check, at most once a second, that all programs run, and print the new journal entries.

        Raises:
            ExpectationFailed: a part of the control plane died.
        """
        if _get_now() - self._checked_at < ONE_SECOND:
            return
        self._checked_at = _get_now()
        failures = self._plane.processes.describe_dead()
        if failures:
            raise ExpectationFailed(failures)
        bucket = self.get_outputs().get("JoinerBucketName")
        if bucket:
            self.witness.read(self.account.get_client("s3"), bucket)

    @contextmanager
    def run_cdk(self, *words: str) -> Iterator[Cdk]:
        """Run the CDK CLI; the block runs meanwhile, then the end of the command is awaited.

        Raises:
            ExpectationFailed: the command failed, or took longer than `WAIT_TIMEOUT`.
        """
        log = self.folder / f"cdk-{len(list(self.folder.glob('cdk-*.log')))}-{words[0]}.log"
        with Cdk(words, self.folder, self.build_environment(), log) as running:
            yield running
            self.wait_for_cdk(running)

    def wait_for_cdk(self, running: Cdk) -> None:
        """Wait for the end of *running*.

        Raises:
            ExpectationFailed: the command failed, or takes longer than `WAIT_TIMEOUT` from now on.
        """
        self.wait_until(running.has_ended, f"{running.name} ends", SHORT_POLL_INTERVAL)
        running.raise_for_failure()

    def keep_logs(self) -> Path:
        """Copy the logs of all programs and functions to a new folder; return the folder."""
        logs_folder = Path(tempfile.mkdtemp(prefix="joiner-e2e-logs-"))
        self._plane.keep_logs(logs_folder)
        for log in self.folder.glob("cdk-*.log"):
            shutil.copy(log, logs_folder)
        for call in self.running.invocations[:]:
            with (logs_folder / f"{call.function}.log").open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in (f"{call.started_at} {call.source}", *call.log_lines))
        for path in (NODE_CLASSES, NODE_POOLS, NODE_CLAIMS_PATH, NODES_PATH, PODS_PATH):
            with suppress(NotFound):
                objects = msgspec.json.format(msgspec.json.encode(self.kubectl.list_objects(path)))
                (logs_folder / f"{path.rpartition('/')[2]}.json").write_bytes(objects)
        return logs_folder

    def build_kubeconfig(self) -> str:
        """Return an administrator's kubeconfig, with the names that EKS gives it."""
        arn = f"arn:aws:eks:us-east-1:{ACCOUNT_ID}:cluster/{CLUSTER}"
        return self._plane.build_kubeconfig().replace('"joiner"', f'"{arn}"')

    def build_environment(self) -> dict[str, str]:
        """Return an operator's environment with the account's credentials."""
        return self._build_base_environment() | self.account.build_environment()

    def _build_base_environment(self) -> dict[str, str]:
        """Return an operator's environment without AWS settings."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        settings = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20", "CDK_HOME": str(self.folder / "cdk")}
        return variables | settings

    def interrupt_busiest_node(self) -> str:
        """Interrupt the busiest node, which ends in two minutes.

        Return its name, "" if that node is about to go anyway.
        """
        with suppress(ValueError, NotFound, Invalid):
            node = self.grounds.find_busiest_node()
            with self.account.lock:
                self.cloud.instances.interrupt(self.grounds.find_instance_id(node))
            self.interrupted_node = node
        return self.interrupted_node


def _get_now() -> datetime:
    return datetime.now(UTC)
