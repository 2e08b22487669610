"""The World of production: boto3 and the Kubernetes client behind the ports, from what a deployment decided.

Clients are made once per container; everything they remember is a cache.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import msgspec
from botocore.session import Session

from shared.aws.clients import Clients
from shared.aws.dynamodb import DynamoTable
from shared.aws.ec2 import BotoEc2
from shared.aws.eks import BotoEks
from shared.aws.pricing import BotoPrices, NoPrices
from shared.aws.s3 import S3Bucket
from shared.aws.sns import SnsTopic
from shared.aws.sqs import SqsMailbox
from shared.aws.ssm import BotoParameters
from shared.kube.client import KubeClient
from shared.kube.patience import Patience
from shared.kube.proxies import proxy_of
from shared.kube.token import EksToken
from shared.ports import World
from shared.settings import Settings


def world_from_environment(environ: Mapping[str, str], name: str, clock: Callable[[], datetime]) -> World:
    """Answer the World of this deployment; *name* is the invocation's, *clock* the trigger's.

    Raises:
        KeyError: a variable is missing; the message is its name.
        Fault: eks:DescribeCluster did not answer.
    """
    return msgspec.structs.replace(_world(Settings.from_environment(environ), clock), name=name)


@lru_cache(maxsize=1)
def _world(settings: Settings, clock: Callable[[], datetime]) -> World:
    clients = Clients(settings.region)
    eks = BotoEks(clients)
    facts = eks.cluster(settings.cluster_name)
    endpoint = settings.kube_endpoint or facts.endpoint
    token = EksToken(Session(), cluster=settings.cluster_name, region=settings.region, clock=clock)
    return World(
        settings=settings,
        kube=KubeClient(
            endpoint,
            certificate_authority=facts.certificate_authority,
            proxy=proxy_of(endpoint),
            token=token,
            renew=token.renew,
            patience=Patience(clock),
        ),
        ec2=BotoEc2(clients, clock),
        parameters=BotoParameters(clients, clock),
        prices=BotoPrices(clients) if settings.price_service == "asked" else NoPrices(),
        eks=eks,
        mailbox=SqsMailbox(clients, settings.queue_prefix),
        table=DynamoTable(clients, settings.table_name),
        bucket=S3Bucket(clients, settings.bucket_name),
        clock=clock,
        topic=SnsTopic(clients, settings.report_topic) if settings.report_topic else None,
        emit=_emit,
        memory={},
        calls=clients.calls,
        packaged=_packaged,
    )


def _packaged(name: str) -> bytes:
    return (Path(__file__).parent.parent / name).read_bytes()


def _emit(line: str) -> None:
    sys.stdout.write(line + "\n")
