"""The production World: boto3 and the Kubernetes client behind the ports, configured by the deployment's settings.

Clients are created once per container; everything that they remember is a cache.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2.client import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.on_demand_prices import BotoPricingService, UnreachablePricing
from shared.aws.partitions import build_regional_host
from shared.aws.s3 import S3Bucket
from shared.aws.sns import SnsTopic
from shared.aws.sqs import SqsMessageQueue
from shared.aws.ssm import BotoParameterStore
from shared.kubernetes.backoff import Backoff
from shared.kubernetes.client import KubeClient
from shared.kubernetes.eks_token import EksToken
from shared.kubernetes.proxy import find_proxy
from shared.ports.world import World
from shared.settings import Settings


def build_world(environ: Mapping[str, str], name: str, clock: Callable[[], datetime]) -> World:
    """Build the World of this deployment; *name* is the invocation's request id, *clock* the trigger's clock.

    Raises:
        KeyError: a variable is missing; the message is its name.
        Fault: eks:DescribeCluster did not respond.
    """
    return msgspec.structs.replace(_build_cached_world(Settings.from_environment(environ), clock), name=name)


@lru_cache(maxsize=1)
def _build_cached_world(settings: Settings, clock: Callable[[], datetime]) -> World:
    clients = Clients(settings.region)
    eks = BotoEks(clients)
    facts = eks.describe_cluster(settings.cluster_name)
    endpoint = settings.kube_endpoint or facts.endpoint
    session = clients.get_session()
    host = build_regional_host(session, "sts", settings.region)
    token = EksToken(session, cluster=settings.cluster_name, region=settings.region, host=host, clock=clock)
    return World(
        settings=settings,
        kube=KubeClient(
            endpoint,
            certificate_authority=facts.certificate_authority,
            proxy=find_proxy(endpoint),
            token=token,
            renew=token.renew,
            backoff=Backoff(clock),
        ),
        ec2=BotoEc2(clients, clock),
        parameters=BotoParameterStore(clients, clock),
        prices=BotoPricingService(clients) if settings.price_service == "asked" else UnreachablePricing(),
        eks=eks,
        mailbox=SqsMessageQueue(clients, settings.queue_prefix),
        table=DynamoTable(clients, settings.table_name),
        bucket=S3Bucket(clients, settings.bucket_name),
        clock=clock,
        topic=SnsTopic(clients, settings.report_topic) if settings.report_topic else None,
        emit=_write_line,
        memory={},
        calls=clients.get_call_counts,
        read_packaged_file=_read_packaged_file,
    )


def _read_packaged_file(name: str) -> bytes:
    return (Path(__file__).parent.parent / name).read_bytes()


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")
