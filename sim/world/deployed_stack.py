"""A deployed stack in this process: simulated cloud, table and bucket, and Joiner's handlers on a clock.

The stack is what its synthesized template describes. Subclasses provide the cluster. A tap sees every port call of a
handler, and can fail the call or kill the handler.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

from botocore.credentials import Credentials

from shared.aws.prometheus.remote_write import RemoteWriteEndpoint
from shared.model.ec2.instance import Instance
from shared.ports.aws import Ec2
from shared.ports.kubernetes import Kube
from shared.ports.tracing import open_no_segment
from shared.ports.world import World
from shared.report.journal.journal import JOURNAL_PREFIX, JournalEntry, decode_entry
from shared.settings import Settings
from shared.settings_text import WORKSPACE_URL
from sim.authorization.access_checks import AccessControl
from sim.aws_rules.world_ports import RequestChecks
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import (
    CloudEc2,
    CloudEks,
    CloudParameters,
    CloudPayerAccount,
    CloudPricing,
    CloudSavingsPlans,
    CloudZonalShift,
)
from sim.fault_tap import PortCall, Tap, tap_world
from sim.lambda_runtime.runtime import LambdaRuntime
from sim.lambda_runtime.stack_template.generated_references import ACCOUNT_ID
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring
from sim.remote_write.endpoint import WorkspaceEndpoint
from sim.remote_write.workspace import Workspace
from sim.time.virtual_clock import Clock
from sim.world.instance_boot import list_active_instances
from sim.world.memory_ports import MemoryBucket, MemoryEventBus, MemoryTable, MemoryTopic
from sim.world.trace_log import TraceLog

WRITER_CREDENTIALS: Final = Credentials("ASIAJOINER", "key of the function", "token of the function")
"""With which the requests to the workspace are signed."""


class DeployedStack(ABC):
    """The cloud, the ports and the Lambda functions without the cluster; `start_functions` enables triggers."""

    runtime: LambdaRuntime

    def __init__(self, clock: Clock, seed: int, template: Mapping[str, Any] | None, tap: Tap | None = None) -> None:
        """Read the stack of *template* (None: the template that the CDK app synthesizes) and create the account."""
        self.on_journal_entry: Callable[[JournalEntry], None] = lambda _: None
        """Called with each journal entry when it is written."""
        deployed_template = template if template is not None else synthesize_template(settings=ACTIVE_SETTINGS)
        self.wiring = StackWiring.parse(deployed_template)
        settings = Settings.from_environment(dict(self.wiring.functions[0].environment))
        self.cloud = Cloud(clock, seed, region=settings.region, cluster=settings.cluster_name, account=ACCOUNT_ID)
        self.access_control = AccessControl(deployed_template, self.cloud)
        """Allows the functions what their roles and the installed ClusterRole allow, and fails the run otherwise."""
        self.cloud.instances.volume_keys.can_use_key = self.access_control.can_launch_with_key
        self.table, self.bucket = MemoryTable(), JournalingBucket(self._handle_journal_entry)
        self.topic = MemoryTopic()
        """Receives cost notifications, if `report-topic` names a topic."""
        self.event_bus = MemoryEventBus()
        """Receives events, if `event-bus` names a bus."""
        self.workspace = Workspace(clock.get_time)
        """Receives metrics, if `remote-write-url` is set."""
        self.group_table = MemoryTable()
        """The table of the group of clusters, if the setting `group` is used; several worlds can share one."""
        self.log_lines: list[str] = []
        """Log lines of the functions, oldest first."""
        self.request_checks = RequestChecks()
        """Checks each request of the functions as AWS does, and records it."""
        self.traces = TraceLog()
        """Records the segments of the functions, if `tracing` is on."""
        self._started_functions: set[str] = set()
        self.tap: Tap = tap if tap is not None else _ignore_call

    def list_active_instances(self) -> tuple[Instance, ...]:
        """Return the pending and running instances, sorted by id."""
        return list_active_instances(self.cloud)

    def start_functions(self, clock: Clock, seed: int) -> None:
        """Start to fire schedules and to deliver queue messages."""
        self.runtime = LambdaRuntime(clock, self.wiring, self._build_world, seed)
        self.runtime.service_calls.ask_permission = self.access_control.is_service_call_allowed
        self.cloud.events.subscribe(self.runtime.put_event)

    @abstractmethod
    def _build_kube(self) -> Kube:
        """Return the Kubernetes API that a handler uses."""

    def _build_ec2(self) -> Ec2:
        """Return the EC2 API that a handler uses."""
        return CloudEc2(self.cloud)

    def _get_container_cache(self, function: str) -> MutableMapping[str, object] | None:
        """Return the cache that the container of *function* keeps between invocations; None: there is none."""
        del function
        return None

    def _build_unchecked_world(self, function: str, environment: dict[str, str]) -> World:
        """Return the World of an invocation without checks of its permissions and requests, and without a tap."""
        settings = Settings.from_environment(environment)
        return World(
            settings=settings,
            kube=self._build_kube(),
            ec2=self._build_ec2(),
            parameters=CloudParameters(self.cloud),
            prices=CloudPricing(self.cloud),
            eks=CloudEks(self.cloud),
            mailbox=self.runtime.build_message_queue(),
            table=self.table,
            bucket=self.bucket,
            clock=self.cloud.clock.get_time,
            group_table=self.group_table if settings.group else None,
            savings_plans=CloudSavingsPlans(self.cloud) if settings.commitments == "account" else None,
            zonal_shifts=CloudZonalShift(self.cloud) if settings.zonal_shift != "off" else None,
            payer=CloudPayerAccount(self.cloud) if settings.commitments_role else None,
            topic=self.topic if settings.report_topic else None,
            event_bus=self.event_bus if settings.event_bus else None,
            remote_write=self._build_remote_write(settings) if settings.remote_write_url else None,
            emit=self.log_lines.append,
            name=f"{function}-{len(self.runtime.invocations):06d}",
            memory=self._get_container_cache(function),
            open_segment=self.traces.open_segment if settings.tracing == "on" else open_no_segment,
        )

    def _build_remote_write(self, settings: Settings) -> RemoteWriteEndpoint:
        """Return the adapter that deployed functions use, whose requests the workspace in this process answers."""
        workspace_url = WORKSPACE_URL.fullmatch(settings.remote_write_url)
        region = workspace_url["region"] if workspace_url is not None else ""
        endpoint = WorkspaceEndpoint(self.workspace, WRITER_CREDENTIALS, region)
        return RemoteWriteEndpoint(settings.remote_write_url, lambda: WRITER_CREDENTIALS, endpoint.send)

    def _build_world(self, function: str, environment: dict[str, str]) -> World:
        world = self._build_unchecked_world(function, environment)
        guarded_world = self.access_control.restrict_world(self.request_checks.wrap_world(world, function), function)
        if function not in self._started_functions:
            # As `shared.production_world` does when a container starts.
            guarded_world.eks.describe_cluster(world.settings.cluster_name)
            self._started_functions.add(function)
        # Without a tap, half of the time of a short port call would be spent on objects that describe the call.
        return guarded_world if self.tap is _ignore_call else tap_world(guarded_world, self._intercept_call)

    def _intercept_call(self, call: PortCall) -> None:
        self.tap(call)

    def _handle_journal_entry(self, entry: JournalEntry) -> None:
        self.on_journal_entry(entry)


class JournalingBucket(MemoryBucket):
    """A bucket that reports the journal entries written to it."""

    def __init__(self, on_entry: Callable[[JournalEntry], None]) -> None:
        """Start empty; call *on_entry* with each journal entry that is written."""
        super().__init__()
        self._on_entry = on_entry

    def put(self, key: str, body: bytes) -> None:
        """Write one whole object."""
        super().put(key, body)
        if key.startswith(JOURNAL_PREFIX):
            self._on_entry(decode_entry(body))


def _ignore_call(call: PortCall) -> None:
    del call
