"""The source of the catalog: a file, the bucket of an installation, or the AWS account."""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from cli.aws.session import get_default_region
from cli.inputs.documents import parse_documents
from cli.inputs.files import JSON_PREFIXES, read_utf8
from cli.planning.arguments import ACCOUNT_SOURCE, CATALOG_HELP
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.errors import Fault
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import REGION
from shared.model.core.metadata import Problem
from shared.store.catalog_format import decode_catalog

_S3_SCHEME: Final = "s3://"
_GZIP_SUFFIX: Final = ".gz"
_EKS_REGION_PATTERN: Final = re.compile(
    r"\.(?P<host>[a-z0-9-]+)\.eks\.amazonaws\.com|^arn:aws[^:]*:eks:(?P<arn>[^:]+):"
)


def load_catalog(
    source: str, cluster: ClusterSnapshot, hints: Iterable[str], now: datetime
) -> tuple[Catalog, list[Problem]]:
    """Load the catalog from *source*, and its problems; *hints* may contain the region of *cluster*.

    Raises:
        InputError: There is no catalog.
    """
    problems: list[Problem] = []
    try:
        if source.startswith(_S3_SCHEME):
            with show_progress(f"reading the catalog from {source}"):
                return _load_from_bucket(source, problems), problems
        if source.partition(":")[0] == ACCOUNT_SOURCE:
            region = source.partition(":")[2] or determine_region(cluster, hints)
            with show_progress(f"reading instance types and prices of {region} from AWS"):
                return _load_from_account(region, cluster, now, problems), problems
    except Fault as fault:
        message = f"{source}: {type(fault).__name__}: {fault}: check credentials and region. {CATALOG_HELP}"
        raise InputError(message) from None
    return load_catalog_file(source), problems


def load_catalog_file(source: str) -> Catalog:
    """Load the catalog from the file *source*.

    Raises:
        InputError: The file contains no catalog.
    """
    try:
        if source.endswith(_GZIP_SUFFIX):
            return _decode_catalog(source, Path(source).read_bytes())
        body = read_utf8(source, Path(source), "a catalog as JSON or YAML")
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}: check the path") from None
    except InputError as error:
        raise InputError(f"{error}\n{CATALOG_HELP}" if not Path(source).exists() else str(error)) from None
    if body.lstrip()[:1] not in JSON_PREFIXES:
        messages: list[str] = []
        values = [document.value for document in parse_documents(source, body, messages.append)]
        documents = [value for value in values if value is not None]
        if messages or len(documents) != 1:
            message = f"{source}: not a catalog: expected 1 document, found {len(documents)}"
            raise InputError("; ".join(messages) or message)
        body = msgspec.json.encode(documents[0])
    return _decode_catalog(source, body)


def _decode_catalog(source: str, body: bytes) -> Catalog:
    """Decode the catalog in *body*.

    Raises:
        InputError: *body* is no catalog.
    """
    try:
        return decode_catalog(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not a catalog: {error}") from None


def _load_from_bucket(source: str, problems: list[Problem]) -> Catalog:
    from shared.aws.clients import Clients  # noqa: PLC0415 - boto3 takes half a second
    from shared.aws.s3 import S3Bucket  # noqa: PLC0415
    from shared.take.snapshot import read_newest_catalog  # noqa: PLC0415

    name, _, key = source.removeprefix(_S3_SCHEME).partition("/")
    bucket = S3Bucket(Clients(get_default_region() or "us-east-1"), name)
    if key.endswith((".json", ".json.gz")):
        return _decode_catalog(source, bucket.get(key))
    catalog = read_newest_catalog(bucket, problems)
    if catalog is None:
        raise InputError(f"{source}: no catalog under catalogue/: run the catalog function. {CATALOG_HELP}")
    return catalog


def _load_from_account(region: str, cluster: ClusterSnapshot, now: datetime, problems: list[Problem]) -> Catalog:
    """Read the catalog from EC2 and the price list, for each of the node classes of *cluster*."""
    from cli.aws.account_api import build_account_apis  # noqa: PLC0415 - boto3 takes half a second
    from cli.aws.market import read_account_catalog  # noqa: PLC0415
    from shared.aws.clients import Clients  # noqa: PLC0415

    messages: list[str] = []
    catalog, _ = read_account_catalog(build_account_apis(Clients(region), now), cluster.node_classes, messages.append)
    problems.extend(Problem(kind="Catalogue", name=region, message=line) for line in messages)
    return catalog


def determine_region(cluster: ClusterSnapshot, hints: Iterable[str]) -> str:
    """Return the region of *cluster*: from its nodes, else from *hints* (ARN, endpoint), else from the environment.

    Raises:
        InputError: None of these contains a region.
    """
    node_regions = (node.meta.get_label(REGION) for node in cluster.nodes)
    hint_regions = (match["host"] or match["arn"] for hint in hints if (match := _EKS_REGION_PATTERN.search(hint)))
    region = next((candidate for candidate in (*node_regions, *hint_regions, get_default_region()) if candidate), "")
    if not region:
        raise InputError("aws: the region is unknown: write --instance-types aws:REGION")
    return region
