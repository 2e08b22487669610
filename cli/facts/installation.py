"""The installation of a cluster: its operating mode, the last success of its functions, its dashboard."""

import argparse
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from cli.cluster.eks_name import parse_eks_name
from cli.facts.cluster_group import read_group_of
from cli.facts.mode import OperatingMode, describe_mode
from cli.facts.model import ReadFailure
from shared.model.cloud_provider.cluster_group import GroupUsage
from shared.model.cloud_provider.zonal_shift import ZonalShiftRecord
from shared.model.decisions.month_costs import MonthCosts
from shared.settings import Settings
from shared.stack_name import format_stack_name

if TYPE_CHECKING:
    from shared.aws.clients import Clients

SUCCESS_LOOKBACK: Final = timedelta(hours=3)
"""How far back a success is searched for."""
READ_INTERVAL: Final = timedelta(minutes=1)
"""CloudWatch has a new value once a minute: reading more often returns the same."""
CLOUDWATCH_DELAY: Final = timedelta(minutes=5)
"""CloudWatch metrics are some minutes late."""
MAX_MISSED_CALLS: Final = 3
"""A function is late after this number of missed calls, at its usual interval."""
SCHEDULED_FUNCTIONS: Final = ("provision", "lifecycle", "disrupt", "catalog")
ABSENT: Final = "ABSENT"
UNSEEN: Final = "UNSEEN"
_CONSOLE_HOSTS: Final = {"cn": "console.amazonaws.cn", "us-gov": "console.amazonaws-us-gov.com"}


class FunctionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a function that runs on a schedule."""

    function: str
    last_success: datetime | None
    """The minute of its last success; None: there was none within `SUCCESS_LOOKBACK`."""
    is_late: bool


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """A CloudFormation stack of Joiner, or why it could not be read."""

    stack: str
    cluster: str
    region: str
    status: str
    """CloudFormation's status; `ABSENT` if there is no stack of that name, `UNSEEN` if it could not be read."""
    reason: str = ""
    """Why the stack, or its functions, could not be read."""
    settings: Settings | None = None
    function_health: tuple[FunctionHealth, ...] = ()
    dashboard_url: str = ""
    """URL of the dashboard; "" if there is none."""
    month_costs: MonthCosts | None = None
    """The costs of the month, if there is a monthly budget and its row could be read."""
    group_usage: GroupUsage | None = None
    """What the clusters of its group use; None without a group."""

    zonal_shifts: ZonalShiftRecord | None = None
    """The zonal shifts that the functions read last; None if the setting is off, or their row could not be read."""

    @property
    def operating_mode(self) -> OperatingMode | None:
        """The operating mode; None: it is unknown."""
        return None if self.settings is None else describe_mode(self.settings)


def add_account_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select the installation of a live cluster."""
    parser.add_argument(
        "--cluster", metavar="NAME", default="", help="name of the EKS cluster (default: from the kubeconfig)"
    )
    parser.add_argument(
        "--region", default="", help="AWS region (default: from the ARN of the cluster, or your AWS configuration)"
    )
    parser.add_argument(
        "--stack", metavar="NAME", default="", help="CloudFormation stack of Joiner (default: joiner-<cluster>)"
    )
    parser.add_argument("--no-account", action="store_true", help="do not read the installation from AWS")


class InstallationReader:
    """Reads the installation of a cluster again and again, but not more often than its metrics change."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Read the installation that *args* selects."""
        self._args = args
        self._read_at: datetime | None = None
        self._installation: Installation | None = None

    def __call__(self, hints: Iterable[str], now: datetime) -> Installation | None:
        """Return the installation; None with --no-account, or if neither *hints* nor the arguments name the cluster.

        *hints* are names and addresses from a kubeconfig.
        """
        if self._read_at is None or now - self._read_at > READ_INTERVAL:
            self._read_at, self._installation = now, self._read(tuple(hints), now)
        return self._installation

    def _read(self, hints: tuple[str, ...], now: datetime) -> Installation | None:
        eks_cluster = next((candidate for hint in hints if (candidate := parse_eks_name(hint))), None)
        cluster = self._args.cluster or (eks_cluster.name if eks_cluster else "")
        if self._args.no_account or not cluster:
            return None
        from cli.aws.session import open_clients  # noqa: PLC0415 - boto3 takes half a second
        from cli.terminal.errors import InputError  # noqa: PLC0415

        stack = self._args.stack or format_stack_name(cluster)
        region = self._args.region or (eks_cluster.region if eks_cluster else "")
        try:
            with open_clients(region) as (clients, _):
                return read_installation(clients, stack, cluster, now)
        except InputError as error:
            return Installation(stack=stack, cluster=cluster, region=region, status=UNSEEN, reason=str(error))


def read_installation(clients: "Clients", stack: str, cluster: str, now: datetime) -> Installation:
    """Read *stack*; the result contains the reason for what could not be read."""
    from cli.facts.cluster import query_or_unseen  # noqa: PLC0415 - botocore takes a fifth of a second
    from cli.facts.stack import list_stack_resources, read_stack_description  # noqa: PLC0415
    from cli.terminal.stderr import show_progress  # noqa: PLC0415

    base = Installation(stack=stack, cluster=cluster, region=clients.region, status=UNSEEN)
    with show_progress(f"reading {stack} in {clients.region}"):
        stack_description = query_or_unseen(lambda: read_stack_description(clients, stack))
        if isinstance(stack_description, ReadFailure):
            return msgspec.structs.replace(base, reason=stack_description.reason)
        if stack_description is None:
            return msgspec.structs.replace(base, status=ABSENT)
        installation = msgspec.structs.replace(base, status=stack_description["StackStatus"])
        stack_resources = query_or_unseen(lambda: list_stack_resources(clients, stack))
        if isinstance(stack_resources, ReadFailure):
            return msgspec.structs.replace(installation, reason=stack_resources.reason)
        names = _find_lambda_names(stack_resources)
        settings = _read_settings(clients, names)
        function_health = query_or_unseen(lambda: measure_function_health(clients, names, now))
        failures = [part for part in (settings, function_health) if isinstance(part, ReadFailure)]
        return msgspec.structs.replace(
            installation,
            reason=failures[0].reason if failures else "",
            settings=None if isinstance(settings, ReadFailure) else settings,
            function_health=() if isinstance(function_health, ReadFailure) else function_health,
            dashboard_url=_build_dashboard_url(stack_resources, clients.region),
            group_usage=None if isinstance(settings, ReadFailure) else read_group_of(clients, settings),
            month_costs=None if isinstance(settings, ReadFailure) else _read_month_costs(clients, settings),
            zonal_shifts=None if isinstance(settings, ReadFailure) else _read_zonal_shifts(clients, settings),
        )


def measure_function_health(clients: "Clients", functions: dict[str, str], now: datetime) -> tuple[FunctionHealth, ...]:
    """Return the health of the scheduled functions; *functions* are their names in Lambda by our names.

    Raises:
        Fault: CloudWatch cannot be read.
    """
    from cli.facts.stack import count_calls_by_minute  # noqa: PLC0415 - botocore takes a fifth of a second

    names = {name: functions[name] for name in SCHEDULED_FUNCTIONS if name in functions}
    minutes = count_calls_by_minute(clients, names.values(), now - SUCCESS_LOOKBACK, now)
    return tuple(_compute_function_health(name, minutes[physical], now) for name, physical in names.items())


def _compute_function_health(
    name: str, minutes: tuple[tuple[datetime, int, int], ...], now: datetime
) -> FunctionHealth:
    """Compute a function's health from its calls and errors by minute; it is late relative to its usual interval."""
    success_times = [at for at, calls, errors in minutes if calls > errors]
    calls = sum(calls for _, calls, _ in minutes)
    last = max(success_times, default=None)
    usual_interval = SUCCESS_LOOKBACK / calls if calls else SUCCESS_LOOKBACK
    is_late = last is None or now - last > max(CLOUDWATCH_DELAY, MAX_MISSED_CALLS * usual_interval)
    return FunctionHealth(function=name, last_success=last, is_late=is_late)


def _read_settings(clients: "Clients", functions: dict[str, str]) -> "Settings | ReadFailure | None":
    """Return the settings of a scheduled function, from its environment variables; None if it has none."""
    from cli.facts.cluster import query_or_unseen  # noqa: PLC0415 - botocore takes a fifth of a second
    from cli.facts.stack import read_function_settings  # noqa: PLC0415

    function_name = next((functions[name] for name in SCHEDULED_FUNCTIONS if name in functions), "")
    return query_or_unseen(lambda: read_function_settings(clients, function_name)) if function_name else None


def _read_month_costs(clients: "Clients", settings: "Settings | None") -> MonthCosts | None:
    """Return the costs of the month; None without a monthly budget, or if the table cannot be read."""
    if settings is None or not settings.monthly_budget_usd or not settings.table_name:
        return None
    from cli.facts.cluster import query_or_unseen  # noqa: PLC0415 - botocore takes a fifth of a second
    from shared.aws.dynamodb import DynamoTable  # noqa: PLC0415
    from shared.report.costs.month_costs import read_costs_row  # noqa: PLC0415

    row = query_or_unseen(lambda: read_costs_row(DynamoTable(clients, settings.table_name)))
    return None if row is None or isinstance(row, ReadFailure) else row[0]


def _read_zonal_shifts(clients: "Clients", settings: "Settings | None") -> ZonalShiftRecord | None:
    """Return the stored zonal shifts; None if the setting is off, or the table cannot be read."""
    if settings is None or settings.zonal_shift == "off" or not settings.table_name:
        return None
    from cli.facts.cluster import query_or_unseen  # noqa: PLC0415 - botocore takes a fifth of a second
    from shared.aws.dynamodb import DynamoTable  # noqa: PLC0415
    from shared.store.zonal_shifts import read_stored_shifts  # noqa: PLC0415

    record = query_or_unseen(lambda: read_stored_shifts(DynamoTable(clients, settings.table_name)))
    return None if isinstance(record, ReadFailure) else record


def _find_lambda_names(stack_resources: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the functions' names in Lambda by our names; their logical IDs begin with our names."""
    return {
        name: physical
        for kind, logical, physical in stack_resources
        for name in SCHEDULED_FUNCTIONS
        if kind == "AWS::Lambda::Function" and physical and logical.startswith(f"Functions{name.title()}")
    }


def _build_dashboard_url(stack_resources: Iterable[tuple[str, str, str]], region: str) -> str:
    name = next(
        (physical for kind, _, physical in stack_resources if kind == "AWS::CloudWatch::Dashboard" and physical), ""
    )
    console = next((host for prefix, host in _CONSOLE_HOSTS.items() if region.startswith(f"{prefix}-")), "")
    host = console or f"{region}.console.aws.amazon.com"
    return f"https://{host}/cloudwatch/home?region={region}#dashboards/dashboard/{name}" if name else ""
