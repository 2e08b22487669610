"""The production World: boto3 and the Kubernetes client behind the ports, configured by the deployment's settings.

Clients are created once per container; everything that they remember is a cache.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

import msgspec

from shared.aws.clients import Clients
from shared.aws.commitments.payer_account import BotoPayerAccount
from shared.aws.commitments.savings_plans import BotoSavingsPlans
from shared.aws.dynamodb import DynamoTable, get_table_region
from shared.aws.ec2.client import BotoEc2
from shared.aws.eks import BotoEks, BotoZonalShift
from shared.aws.eventbridge import EventBridgeBus
from shared.aws.on_demand_prices import BotoPricingService, UnreachablePricing
from shared.aws.partitions import build_regional_host
from shared.aws.prometheus.remote_write import RemoteWriteEndpoint
from shared.aws.s3 import S3Bucket
from shared.aws.sns import SnsTopic
from shared.aws.sqs import SqsMessageQueue
from shared.aws.ssm import BotoParameterStore
from shared.kubernetes.backoff import Backoff
from shared.kubernetes.client import MAX_CONNECTIONS, KubeClient
from shared.kubernetes.eks_token import EksToken
from shared.ports.tracing import OpenSegment, open_no_segment
from shared.ports.world import World
from shared.settings import Settings

MAX_IDLE_TIME: Final = timedelta(seconds=20)
"""Time after which the connections of a container are closed before its next invocation starts.

Lambda freezes a container between two invocations, so that it does not see that a server closes a connection. Load
balancers and AWS endpoints close idle connections after about 1m, which is also the interval of the scheduled runs: a
scheduled run opens new connections, and runs that follow within seconds keep them. The time counts from when the
connections were opened, not from the last run: parallel calls open many connections, and the next runs may use only one
of them. A new TLS connection takes 4 ms on loopback instead of 0.4 ms, so that a scheduled run with ten connections
takes about 40 ms longer.
"""


class ConnectionOwner(Protocol):
    """A client with a pool of connections."""

    def close_idle_connections(self) -> None:
        """Close the connections that no request uses."""


def build_world(environ: Mapping[str, str], name: str, clock: Callable[[], datetime]) -> World:
    """Build the World of this deployment; *name* is the invocation's request id, *clock* the trigger's clock.

    Raises:
        KeyError: a variable is missing; the message is its name.
        Fault: eks:DescribeCluster did not respond.
    """
    container = _build_container(Settings.from_environment(environ), clock)
    is_cold_start = container.start_invocation(clock())
    return msgspec.structs.replace(container.world, name=name, is_cold_start=is_cold_start)


class Container:
    """The World of one Lambda container, and the connections that it keeps open from one invocation to the next."""

    def __init__(self, world: World, connection_owners: tuple[ConnectionOwner, ...]) -> None:
        """Wait for the first invocation; the connections belong to *connection_owners*."""
        self.world = world
        self._connection_owners = connection_owners
        self._connected_at: datetime | None = None

    def start_invocation(self, now: datetime) -> bool:
        """Return whether this is the first invocation of the container.

        Close the idle connections if some may have been opened more than `MAX_IDLE_TIME` ago.
        """
        is_cold_start = self._connected_at is None
        if self._connected_at is not None and abs(now - self._connected_at) > MAX_IDLE_TIME:
            for owner in self._connection_owners:
                owner.close_idle_connections()
            self._connected_at = now
        self._connected_at = self._connected_at or now
        return is_cold_start


@lru_cache(maxsize=1)
def _build_container(settings: Settings, clock: Callable[[], datetime]) -> Container:
    open_segment = _build_open_segment(settings)
    clients = Clients(settings.region)
    eks = BotoEks(clients)
    facts = eks.describe_cluster(settings.cluster_name)
    endpoint = settings.kube_endpoint or facts.endpoint
    session = clients.get_session()
    host = build_regional_host(session, "sts", settings.region)
    token = EksToken(session, cluster=settings.cluster_name, region=settings.region, host=host, clock=clock)
    kube = KubeClient(
        endpoint,
        certificate_authority=facts.certificate_authority,
        token=token,
        renew=token.renew,
        backoff=Backoff(clock),
        open_segment=open_segment,
    )
    remote_write = (
        RemoteWriteEndpoint(settings.remote_write_url, session.get_credentials) if settings.remote_write_url else None
    )
    world = World(
        settings=settings,
        kube=kube,
        ec2=BotoEc2(clients, clock),
        parameters=BotoParameterStore(clients, clock),
        prices=BotoPricingService(clients) if settings.price_service == "reachable" else UnreachablePricing(),
        eks=eks,
        mailbox=SqsMessageQueue(clients, settings.queue_prefix),
        table=DynamoTable(clients, settings.table_name),
        bucket=S3Bucket(clients, settings.bucket_name),
        clock=clock,
        group_table=_build_group_table(settings, clients),
        savings_plans=BotoSavingsPlans(clients) if settings.commitments == "account" else None,
        zonal_shifts=BotoZonalShift(clients) if settings.zonal_shift != "off" else None,
        payer=_build_payer_account(clients, settings),
        topic=SnsTopic(clients, settings.report_topic) if settings.report_topic else None,
        event_bus=EventBridgeBus(clients, settings.event_bus) if settings.event_bus else None,
        remote_write=remote_write,
        emit=write_to_stdout,
        memory={},
        calls=clients.get_call_counts,
        read_packaged_file=_read_packaged_file,
        max_parallel_calls=MAX_CONNECTIONS,
        open_segment=open_segment,
    )
    return Container(world, (clients, kube, *([remote_write] if remote_write is not None else [])))


def _build_payer_account(clients: Clients, settings: Settings) -> BotoPayerAccount | None:
    if settings.commitments != "account" or not settings.commitments_role:
        return None
    return BotoPayerAccount(
        clients,
        role_arn=settings.commitments_role,
        external_id=settings.commitments_external_id,
        cluster=settings.cluster_name,
    )


def _build_group_table(settings: Settings, clients: Clients) -> DynamoTable | None:
    """Return the table of the group, in its region; DynamoDB accepts its ARN as its name, also in another account."""
    if not settings.group:
        return None
    region = get_table_region(settings.group_table)
    return DynamoTable(clients if region == settings.region else Clients(region), settings.group_table)


def _build_open_segment(settings: Settings) -> OpenSegment:
    if settings.tracing == "off":
        return open_no_segment
    from shared.aws.tracing import build_open_segment  # noqa: PLC0415 - the layer has the library only with tracing

    return build_open_segment()


def _read_packaged_file(name: str) -> bytes:
    return (Path(__file__).parent.parent / name).read_bytes()


def write_to_stdout(line: str) -> None:
    """Write *line* to the log of the function."""
    sys.stdout.write(line + "\n")
