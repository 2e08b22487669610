"""Host names and endpoints of each partition."""

import pytest
from boto3.session import Session

from shared.aws.partitions import build_regional_host, find_partition, list_service_regions
from shared.errors import Invalid


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


@pytest.mark.parametrize(
    ("region", "partition", "host"),
    [
        ("us-east-1", "aws", "sts.us-east-1.amazonaws.com"),
        ("eu-central-9", "aws", "sts.eu-central-9.amazonaws.com"),
        ("us-gov-east-1", "aws-us-gov", "sts.us-gov-east-1.amazonaws.com"),
        ("cn-northwest-1", "aws-cn", "sts.cn-northwest-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "aws-eusc", "sts.eusc-de-east-1.amazonaws.eu"),
        ("us-iso-east-1", "aws-iso", "sts.us-iso-east-1.c2s.ic.gov"),
        ("us-isob-east-1", "aws-iso-b", "sts.us-isob-east-1.sc2s.sgov.gov"),
    ],
)
def test_a_host_has_the_suffix_of_its_partition(session: Session, region: str, partition: str, host: str) -> None:
    assert find_partition(session, region) == partition
    assert build_regional_host(session, "sts", region) == host


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1", "cn-north-1", "us-iso-east-1", "eusc-de-east-1"])
def test_the_host_is_the_one_that_botocore_connects_to(session: Session, region: str) -> None:
    client = session.client("sts", region, aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106 - no real key
    assert client.meta.endpoint_url == f"https://{build_regional_host(session, 'sts', region)}"


def test_a_region_of_no_partition_is_an_error(session: Session) -> None:
    with pytest.raises(Invalid, match="region 'mars-1' is in no partition"):
        build_regional_host(session, "sts", "mars-1")


def test_govcloud_has_no_endpoint_of_the_price_list(session: Session) -> None:
    assert list_service_regions(session, "pricing", "us-gov-west-1") == ()
    assert list_service_regions(session, "pricing", "cn-north-1") == ("cn-northwest-1",)
