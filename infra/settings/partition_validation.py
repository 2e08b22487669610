"""Validation of the region before a deployment: outside the partition `aws`, prices must come from a file.

GovCloud has no endpoint of the AWS Price List API. In the other partitions, reading prices was not tested. Without
prices nothing is launched on demand, and no message would appear before the first pod is pending.
"""

import os
from typing import Final

from botocore.exceptions import UnknownRegionError
from botocore.session import Session

from infra.settings.settings import StackOptions

PARTITION_WITH_PRICES: Final = "aws"
"""The partition in which prices are read from the AWS Price List API, without a file."""
CDK_REGION_VARIABLE: Final = "CDK_DEFAULT_REGION"
"""Set by the CDK command to the region of the credentials."""


def get_target_region(options: StackOptions) -> str:
    """Return the region of the stack: region, or that of the credentials; empty if neither is known."""
    return options.region or os.environ.get(CDK_REGION_VARIABLE, "")  # noqa: TID251 - the CDK passes the region this way


def check_partition(options: StackOptions) -> None:
    """Check that a region outside the partition `aws` has a price list.

    Raises:
        ValueError: the region is in no partition, or the price list is missing; the message names the setting.
    """
    region = get_target_region(options)
    if not region:
        return
    session = Session()
    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError:
        raise ValueError(f"region is {region!r}: no partition of AWS has such a region") from None
    if partition == PARTITION_WITH_PRICES or options.price_list:
        return
    has_endpoint = bool(session.get_available_regions("pricing", partition))
    reason = "was not tested" if has_endpoint else "has no endpoint"
    raise ValueError(
        f"region {region} is in partition {partition}, where the AWS Price List API {reason}, and without prices "
        "nothing is launched on demand: price-list must name a file; to fix: create it with "
        f"`joiner catalog prices --region {region} -o FILE`"
    )
