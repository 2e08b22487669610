"""Check of the price source: outside the partition `aws`, prices come from a file deployed with the functions."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.facts.model import DoctorFacts

PARTITION_WITH_PRICES: Final = "aws"
"""The partition in which prices are read from the AWS Price List API, without a file."""


def check_price_source(facts: DoctorFacts) -> Iterator[CheckResult]:
    """Check that a price list is deployed, unless the region is in the partition `aws`."""
    if facts.account is None:
        return
    region, check = facts.account.region, CheckReporter("prices")
    partition = find_partition_of(region)
    if partition == PARTITION_WITH_PRICES:
        return
    subject = f"{region} is in partition {partition}"
    remedy = f"run `joiner catalog prices --region {region} -o FILE` and deploy with the setting price-list: FILE"
    if facts.stack is None:
        yield check.defer(f"{subject}: the deployment needs a price list", remedy)
    elif facts.stack.settings is not None and not facts.stack.settings.price_list:
        yield check.fail(f"{subject}, and no price list is deployed: nothing is launched on demand", remedy)
    elif facts.stack.settings is not None:
        yield check.accept(f"{subject}: a price list is deployed")


def find_partition_of(region: str) -> str:
    """Return the partition of *region*, for example ``aws-cn``."""
    from boto3.session import Session  # noqa: PLC0415 - boto3 takes a fifth of a second

    from shared.aws.partitions import find_partition  # noqa: PLC0415 - the same

    return find_partition(Session(), region)
