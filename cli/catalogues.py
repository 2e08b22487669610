"""The catalogue a plan buys from: a file, the bucket of a deployment, or the account itself."""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from cli.clouds import region_here
from cli.files import JSON, InputError, body_of
from cli.inputs import documents_of
from cli.progress import progress
from shared.errors import Fault
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.labels import REGION
from shared.model.objects import Problem
from shared.snapshot.catalogue import decode_catalogue

AWS: Final = "aws"
_S3: Final = "s3://"
_PACKED: Final = ".gz"
_EKS: Final = re.compile(r"\.(?P<host>[a-z0-9-]+)\.eks\.amazonaws\.com|^arn:aws[^:]*:eks:(?P<arn>[^:]+):")
HOW: Final = """a plan needs a catalogue, what is sold and for how much (--instance-types). One of:
  --instance-types FILE                  a catalogue as file, JSON or YAML; `joiner catalog build -o FILE` writes one
  --instance-types s3://BUCKET           the newest one of a deployment, whose functions write it there every hour
  --instance-types aws or aws:REGION     asked from the account: EC2 types, offerings and spot prices, list prices"""


def catalogue_at(source: str, cluster: Cluster, hints: Iterable[str], now: datetime) -> tuple[Catalogue, list[Problem]]:
    """Read the catalogue at *source*, and what is wrong with it; *hints* may tell the region of *cluster*.

    Raises:
        InputError: there is none.
    """
    problems: list[Problem] = []
    try:
        if source.startswith(_S3):
            with progress(f"reading the catalogue in {source}"):
                return _from_bucket(source, problems), problems
        if source.partition(":")[0] == AWS:
            region = source.partition(":")[2] or _region(cluster, hints)
            with progress(f"asking the account what {region} sells"):
                return _from_account(region, cluster, now, problems), problems
    except Fault as fault:
        raise InputError(
            f"{source}: {type(fault).__name__}: {fault}: check credentials and region, or else {HOW}"
        ) from None
    return catalogue_in(source), problems


def catalogue_in(source: str) -> Catalogue:
    """Read the catalogue in the file *source*.

    Raises:
        InputError: there is none in it.
    """
    try:
        body = _packed_in(source) or body_of(source, Path(source))
    except InputError as error:
        raise InputError(f"{error}\n{HOW}" if not Path(source).exists() else str(error)) from None
    told: list[str] = []
    if body.lstrip()[:1] not in JSON and not source.endswith(_PACKED):
        found = [one.value for one in documents_of(source, body, told.append) if one.value is not None]
        if told or len(found) != 1:
            raise InputError(
                "; ".join(told) or f"{source}: not a catalogue: {len(found)} documents, where one is expected"
            )
        body = msgspec.json.encode(found[0])
    try:
        return decode_catalogue(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not a catalogue: {error}") from None


def _packed_in(source: str) -> bytes:
    """Answer the file *source* as it is if it is compressed, else nothing.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return Path(source).read_bytes() if source.endswith(_PACKED) else b""
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}: check the path") from None


def _from_bucket(source: str, problems: list[Problem]) -> Catalogue:
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415
    from shared.snapshot.take import newest_catalogue  # noqa: PLC0415

    name, _, key = source.removeprefix(_S3).partition("/")
    bucket = S3Bucket(Clients(region_here() or "us-east-1"), name)
    if key.endswith((".json", ".json.gz")):
        try:
            return decode_catalogue(bucket.get(key))
        except ValueError as error:
            raise InputError(f"{source}: not a catalogue: {error}") from None
    found = newest_catalogue(bucket, problems)
    if found is None:
        raise InputError(f"{source}: holds no catalogue under catalogue/: run the catalog function, or else {HOW}")
    return found


def _from_account(region: str, cluster: Cluster, now: datetime, problems: list[Problem]) -> Catalogue:
    """Ask EC2 and the price list; types are as the node classes of *cluster* see them."""
    from cli.account import of_account  # noqa: PLC0415 - botocore takes a fifth of a second
    from shared.aws.clients import Clients  # noqa: PLC0415

    told: list[str] = []
    made, _ = of_account(Clients(region), cluster.node_classes, now, told.append)
    problems.extend(Problem(kind="Catalogue", name=region, message=line) for line in told)
    return made


def _region(cluster: Cluster, hints: Iterable[str]) -> str:
    """Answer where *cluster* is: as its nodes say, else as *hints* (ARN, endpoint) say, else as the environment says.

    Raises:
        InputError: nobody says.
    """
    labelled = (node.meta.label(REGION) for node in cluster.nodes)
    matched = (match["host"] or match["arn"] for hint in hints if (match := _EKS.search(hint)))
    found = next((one for one in (*labelled, *matched, region_here()) if one), "")
    if not found:
        raise InputError("aws: which region is not known: write --instance-types aws:REGION")
    return found
