"""Whom a command asks: the account of the caller's credentials, or the embedded cloud; over HTTP both."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cli.files import InputError
from cli.remedies import in_account
from shared.errors import Fault
from shared.model.nodeclasses import EC2NodeClass

if TYPE_CHECKING:
    from shared.aws.clients import Clients

CLUSTER: Final = "demo"
"""Whose subnets the embedded cloud has, unless a node class names another."""
_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "embedded", "AWS_SECRET_ACCESS_KEY": "embedded"}
_DISCOVERY: Final = "karpenter.sh/discovery"
_REGION: Final = "us-east-1"
_NAME: Final = re.compile(r"[a-z]+(-[a-z]+)+-\d+")


@contextmanager
def opened(region: str, *, embedded: bool, cluster: str = CLUSTER) -> Iterator[tuple["Clients", datetime]]:
    """Open the account, or the embedded cloud with subnets and a group tagged for *cluster*; say what time it is there.

    Raises:
        InputError: nobody says which region, or there is no such region.
    """
    here = "" if embedded else region_here()  # also with a region: a profile that is not there is found before any call
    named = region or (_REGION if embedded else here)
    if not named:
        raise InputError("which region is not known: write --region, or set $AWS_REGION")
    if not _NAME.fullmatch(named):
        raise InputError(f"{named!r} is no region: write --region as in us-east-1")
    with _embedded(named, cluster) if embedded else _account(named) as found:
        yield found


def region_here() -> str:
    """Answer the region of the caller's environment or profile, "" if neither has one.

    Raises:
        InputError: there is no such profile, or where profiles are cannot be read.
    """
    import boto3  # noqa: PLC0415 - half a second
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        found = str(boto3.Session().region_name or "")
    except BotoCoreError as error:
        raise InputError(f"$AWS_PROFILE: {error}: `aws configure list-profiles` shows what there is") from None
    # boto3 passes this one over; the other kits and the AWS CLI take it first.
    return os.environ.get("AWS_REGION") or found


def discovered_cluster(classes: Iterable[EC2NodeClass]) -> str:
    """Answer the cluster whose subnets *classes* select by the usual tag; `CLUSTER` if none does."""
    tags = (dict(term.tags).get(_DISCOVERY, "") for one in classes for term in one.subnet_selectors)
    return next((tag for tag in tags if tag and "*" not in tag), CLUSTER)


def said(fault: Fault, *, embedded: bool = False) -> str:
    """Answer what *fault* is, and what the caller of a command can do about it, who may do without an account."""
    remedy = in_account(fault, embedded=embedded)
    return f"{type(fault).__name__}: {fault}{f': {remedy}' if remedy else ''}"


@contextmanager
def _account(region: str) -> Iterator[tuple["Clients", datetime]]:
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second

    clients = Clients(region)
    try:
        yield clients, datetime.now(UTC)
    finally:
        clients.close()


@contextmanager
def _embedded(region: str, cluster: str) -> Iterator[tuple["Clients", datetime]]:
    from shared.aws.clients import Clients  # noqa: PLC0415 - botocore takes a fifth of a second
    from sim.clock import Clock  # noqa: PLC0415 - the simulator takes a second
    from sim.cloud.cloud import Cloud  # noqa: PLC0415
    from sim.http.server import EmbeddedAws  # noqa: PLC0415

    try:
        cloud = Cloud(Clock(), region=region, cluster=cluster)
    except (OSError, ValueError):
        raise InputError(f"--region {region}: the embedded cloud has no such region: {_REGION} is one") from None
    with _credentials(), EmbeddedAws(cloud) as server:
        clients = Clients(region, endpoint_url=server.url)
        try:
            yield clients, cloud.clock.now()
        finally:
            clients.close()


@contextmanager
def _credentials() -> Iterator[None]:
    """Be somebody while it lasts: who has no account has no credentials, and what is not signed is not answered."""
    before = {name: os.environ.get(name) for name in _CREDENTIALS}
    os.environ.update(_CREDENTIALS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
