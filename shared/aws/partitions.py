"""Partitions of AWS: their DNS suffixes and the regions of their services, from botocore's data.

A host name that is built by hand is wrong in China, in the isolated partitions and in the European Sovereign Cloud:
each of them has its own DNS suffix.
"""

from functools import lru_cache

from boto3.session import Session
from botocore.exceptions import UnknownRegionError
from botocore.loaders import Loader

from shared.errors import Invalid


def find_partition(session: Session, region: str) -> str:
    """Return the partition of *region*; a region that botocore does not list is found by its name.

    >>> find_partition(Session(), "us-gov-west-1"), find_partition(Session(), "eu-central-9")
    ('aws-us-gov', 'aws')

    Raises:
        Invalid: no partition has regions with such names.
    """
    try:
        return str(session.get_partition_for_region(region))
    except UnknownRegionError as error:
        raise Invalid(f"region {region!r} is in no partition of AWS: {error}") from error


def build_regional_host(session: Session, service: str, region: str) -> str:
    """Return the host name of the endpoint of *service* in *region*, for services that name all their hosts alike.

    >>> build_regional_host(Session(), "sts", "cn-north-1")
    'sts.cn-north-1.amazonaws.com.cn'

    Raises:
        Invalid: no partition has regions with such names.
    """
    partition = find_partition(session, region)
    return f"{service}.{region}.{_load_dns_suffixes()[partition]}"


def list_service_regions(session: Session, service: str, region: str) -> tuple[str, ...]:
    """Return the regions with an endpoint of *service* in the partition of *region*, sorted.

    Raises:
        Invalid: no partition has regions with such names.
    """
    return tuple(sorted(session.get_available_regions(service, find_partition(session, region))))


@lru_cache(maxsize=1)
def _load_dns_suffixes() -> dict[str, str]:
    """Return the DNS suffix of each partition, by its id; boto3 has no method for it."""
    partitions = Loader().load_data("partitions")["partitions"]
    return {item["id"]: item["outputs"]["dnsSuffix"] for item in partitions}
