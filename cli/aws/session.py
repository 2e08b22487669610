"""The AWS account that a command uses: the caller's, or the embedded cloud."""

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
    from cli.aws.account_api import AccountApis
    from shared.aws.clients import Clients

DEFAULT_CLUSTER_NAME: Final = "demo"
"""The embedded cloud has subnets of this cluster, unless a node class names another."""
_DISCOVERY_TAG: Final = "karpenter.sh/discovery"
_REGION_PATTERN: Final = re.compile(r"[a-z]+(-[a-z]+)+-\d+")


@contextmanager
def open_clients(region: str) -> Iterator[tuple["Clients", datetime]]:
    """Open the caller's account. The context value is its boto3 clients and the current time.

    Raises:
        InputError: The region is unknown or does not exist.
    """
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second

    # also if a region is given: a missing profile is reported before any call
    default_region = get_default_region()
    clients = Clients(_check_region(region or default_region))
    try:
        yield clients, datetime.now(UTC)
    finally:
        clients.close()


@contextmanager
def open_apis(region: str, *, embedded: bool, cluster: str = DEFAULT_CLUSTER_NAME) -> Iterator["AccountApis"]:
    """Open the account, or the embedded cloud with subnets and a security group tagged for *cluster*.

    Raises:
        InputError: The region is unknown or does not exist.
    """
    if embedded:
        from cli.aws.embedded_api import DEFAULT_REGION, build_embedded_apis  # noqa: PLC0415 - --help needs none of it

        yield build_embedded_apis(_check_region(region or DEFAULT_REGION), cluster)
        return
    from cli.aws.account_api import build_account_apis  # noqa: PLC0415

    with open_clients(region) as (clients, now):
        yield build_account_apis(clients, now)


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


def _check_region(region: str) -> str:
    """Return *region*.

    Raises:
        InputError: It is empty, or not written as regions are.
    """
    if not region:
        raise InputError("the region is unknown: add --region, or set $AWS_REGION")
    if not _REGION_PATTERN.fullmatch(region):
        raise InputError(f"{region!r} is not a region: write it as in us-east-1")
    return region
