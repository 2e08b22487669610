"""The ports of a function in this process, with a check in front: would AWS accept the request of this call?

The ports of the embedded world answer without requests. Here each call is also made with the adapter of `shared.aws`
that a deployed function uses, on clients that check the request: what AWS would reject fails in the same way, and
reaches the port only if AWS accepts it. A read that was checked once is not checked again.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from shared.aws.commitments.payer_account import BotoPayerAccount
from shared.aws.commitments.savings_plans import BotoSavingsPlans
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2.client import BotoEc2
from shared.aws.eks import BotoEks, BotoZonalShift
from shared.aws.eventbridge import EventBridgeBus
from shared.aws.on_demand_prices import BotoPricingService
from shared.aws.s3 import S3Bucket
from shared.aws.sns import SnsTopic
from shared.aws.sqs import SqsMessageQueue
from shared.aws.ssm import BotoParameterStore
from shared.errors import Fault
from shared.ports.world import World
from shared.settings import Settings
from sim.aws_rules.clients import RecordingClients
from sim.aws_rules.request_log import RequestLog

READ_PREFIXES: Final = ("describe_", "get", "list_", "read")
"""The beginnings of the names of methods that change nothing: the same arguments make the same request."""
MAX_REMEMBERED_READS: Final = 10_000


class _MetricLine(msgspec.Struct, frozen=True):
    aws: dict[str, Any] = msgspec.field(name="_aws")


class RequestChecks:
    """The request checks of one account."""

    def __init__(self) -> None:
        """Start without requests."""
        self.log = RequestLog()
        self._adapters_by_function: dict[tuple[str, Settings], Mapping[str, object]] = {}
        self._checked_reads: set[tuple[object, ...]] = set()

    def wrap_world(self, world: World, function: str) -> World:
        """Return *world* with a check in front of every port that calls AWS."""
        key = (function, world.settings)
        adapters = self._adapters_by_function.get(key)
        if adapters is None:
            adapters = self._adapters_by_function[key] = self._build_adapters(world, function)
        checked_ports = {
            name: self.wrap_port((function, name), port, adapter)
            for name, adapter in adapters.items()
            if (port := getattr(world, name)) is not None
        }
        return msgspec.structs.replace(world, emit=self._check_log_lines(world.emit, function), **checked_ports)

    def wrap_port(self, caller: tuple[str, str], port: object, adapter: object) -> Any:  # noqa: ANN401 - any port
        """Return *port* with a check in front: *adapter* makes the request of each call; *caller* identifies both."""
        return _CheckedPort(self, caller, port, adapter)

    def check_call(
        self,
        caller: tuple[str, str],
        method: str,
        adapter_method: Callable[..., object],
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> tuple[bool, object]:
        """Make the call with the adapter; return whether AWS would reject a request, and the adapter's result.

        Raises:
            Fault: AWS would reject a request, and the adapter raises this.
        """
        key: tuple[object, ...] = ()
        if method.startswith(READ_PREFIXES):
            key = (*caller, method, arguments, *sorted(options.items()))
            if key in self._checked_reads:
                return False, None
        rejection_count = len(self.log.rejections)
        result = None
        try:
            result = adapter_method(*arguments, **options)
        except Fault:
            if len(self.log.rejections) > rejection_count:
                raise
        is_rejected = len(self.log.rejections) > rejection_count
        if key and not is_rejected and len(self._checked_reads) < MAX_REMEMBERED_READS:
            self._checked_reads.add(key)
        return is_rejected, result

    def _build_adapters(self, world: World, function: str) -> Mapping[str, object]:
        settings = world.settings
        clients = RecordingClients(settings.region, function, self.log)
        return {
            "ec2": BotoEc2(clients, world.clock),
            "parameters": BotoParameterStore(clients),
            "prices": BotoPricingService(clients),
            "eks": BotoEks(clients),
            "mailbox": SqsMessageQueue(clients, settings.queue_prefix),
            "table": DynamoTable(clients, settings.table_name),
            "bucket": S3Bucket(clients, settings.bucket_name),
            "topic": SnsTopic(clients, settings.report_topic),
            "event_bus": EventBridgeBus(clients, settings.event_bus),
            "savings_plans": BotoSavingsPlans(clients),
            "zonal_shifts": BotoZonalShift(clients),
            "payer": BotoPayerAccount(
                clients,
                role_arn=settings.commitments_role,
                external_id=settings.commitments_external_id,
                cluster=settings.cluster_name,
            ),
            "group_table": DynamoTable(clients, settings.group_table),
        }

    def _check_log_lines(self, emit: Callable[[str], None], function: str) -> Callable[[str], None]:
        def emit_checked(line: str) -> None:
            if '"_aws"' in line:
                directive = msgspec.json.decode(line, type=_MetricLine).aws
                self.log.check_request(function, "logs", "EmbeddedMetrics", {"_aws": directive})
            emit(line)

        return emit_checked


class _CheckedPort:
    def __init__(self, checks: RequestChecks, caller: tuple[str, str], port: object, adapter: object) -> None:
        self._checks, self._caller, self._port, self._adapter = checks, caller, port, adapter

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - stands for any port
        port_method, adapter_method = getattr(self._port, method), getattr(self._adapter, method)

        def call(*arguments: Any, **options: Any) -> object:  # noqa: ANN401 - any port
            reusable_arguments = tuple(
                tuple(argument) if isinstance(argument, Iterator) else argument for argument in arguments
            )
            is_rejected, result = self._checks.check_call(
                self._caller, method, adapter_method, reusable_arguments, options
            )
            return result if is_rejected else port_method(*reusable_arguments, **options)

        return call
