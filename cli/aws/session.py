"""The AWS account that a command uses: the caller's, or the embedded cloud; both over HTTP."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cli.cluster.fixes import suggest_account_fix
from cli.terminal.errors import InputError
from shared.errors import Fault
from shared.model.karpenter.node_class import EC2NodeClass

if TYPE_CHECKING:
    from shared.aws.clients import Clients

DEFAULT_CLUSTER_NAME: Final = "demo"
"""The embedded cloud has subnets of this cluster, unless a node class names another."""
_EMBEDDED_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}
_DISCOVERY_TAG: Final = "karpenter.sh/discovery"
_EMBEDDED_REGION: Final = "us-east-1"
_REGION_PATTERN: Final = re.compile(r"[a-z]+(-[a-z]+)+-\d+")


@contextmanager
def open_clients(
    region: str, *, embedded: bool, cluster: str = DEFAULT_CLUSTER_NAME
) -> Iterator[tuple["Clients", datetime]]:
    """Open the account, or the embedded cloud with subnets and a security group tagged for *cluster*.

    The context value is the clients and the account's current time.

    Raises:
        InputError: The region is unknown or does not exist.
    """
    # also if a region is given: a missing profile is reported before any call
    default_region = "" if embedded else get_default_region()
    region_name = region or (_EMBEDDED_REGION if embedded else default_region)
    if not region_name:
        raise InputError("the region is unknown: add --region, or set $AWS_REGION")
    if not _REGION_PATTERN.fullmatch(region_name):
        raise InputError(f"{region_name!r} is not a region: write it as in us-east-1")
    with _open_embedded_cloud(region_name, cluster) if embedded else _open_account(region_name) as clients_and_time:
        yield clients_and_time


def get_default_region() -> str:
    """Return the region of the caller's environment or profile, "" if neither has one.

    Raises:
        InputError: The profile does not exist, or the profiles cannot be read.
    """
    import boto3  # noqa: PLC0415 - half a second
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        session_region = str(boto3.Session().region_name or "")
    except BotoCoreError as error:
        raise InputError(f"$AWS_PROFILE: {error}: `aws configure list-profiles` lists the profiles") from None
    # boto3 ignores AWS_REGION; the other SDKs and the AWS CLI read it first.
    return os.environ.get("AWS_REGION") or session_region


def find_discovery_cluster(classes: Iterable[EC2NodeClass]) -> str:
    """Return the cluster in the discovery tag of the subnet selectors, or `DEFAULT_CLUSTER_NAME`."""
    tags = (dict(term.tags).get(_DISCOVERY_TAG, "") for node_class in classes for term in node_class.subnet_selectors)
    return next((tag for tag in tags if tag and "*" not in tag), DEFAULT_CLUSTER_NAME)


def describe_fault(fault: Fault, *, embedded: bool = False) -> str:
    """Return *fault* and its fix as text; if *embedded*, the fix also offers --embedded."""
    fix = suggest_account_fix(fault, embedded=embedded)
    return f"{type(fault).__name__}: {fault}{f': {fix}' if fix else ''}"


@contextmanager
def _open_account(region: str) -> Iterator[tuple["Clients", datetime]]:
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second

    clients = Clients(region)
    try:
        yield clients, datetime.now(UTC)
    finally:
        clients.close()


@contextmanager
def _open_embedded_cloud(region: str, cluster: str) -> Iterator[tuple["Clients", datetime]]:
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second
    from sim.aws_http.server import EmbeddedAws  # noqa: PLC0415
    from sim.cloud.cloud import Cloud  # noqa: PLC0415
    from sim.time.virtual_clock import Clock  # noqa: PLC0415 - the simulator takes a second

    try:
        cloud = Cloud(Clock(), region=region, cluster=cluster)
    except (OSError, ValueError):
        raise InputError(f"--region {region}: the embedded cloud has no such region: try {_EMBEDDED_REGION}") from None
    with _use_embedded_credentials(), EmbeddedAws(cloud) as server:
        clients = Clients(region, endpoint_url=server.url)
        try:
            yield clients, cloud.clock.get_time()
        finally:
            clients.close()


@contextmanager
def _use_embedded_credentials() -> Iterator[None]:
    """Set dummy credentials inside the context: unsigned requests are rejected."""
    previous_values = {name: os.environ.get(name) for name in _EMBEDDED_CREDENTIALS}
    os.environ.update(_EMBEDDED_CREDENTIALS)
    try:
        yield
    finally:
        for name, value in previous_values.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
