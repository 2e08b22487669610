"""The region and credentials that a command uses, and its errors where no endpoint responds."""

import os
from datetime import UTC

import pytest

from cli.aws.session import describe_fault, get_default_region, open_apis, open_clients
from cli.terminal.errors import InputError
from shared.errors import Fault, Forbidden, NotFound, Throttled, Unreachable


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")


@pytest.mark.parametrize(
    ("region", "environment", "expected_region"),
    [
        ("eu-west-1", {"AWS_REGION": "us-west-1", "AWS_DEFAULT_REGION": "us-west-2"}, "eu-west-1"),
        ("", {"AWS_REGION": "us-west-1", "AWS_DEFAULT_REGION": "us-west-2"}, "us-west-1"),
        ("", {"AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
    ],
)
@pytest.mark.usefixtures("nowhere")
def test_region_comes_from_the_flag_then_the_environment(
    region: str, environment: dict[str, str], expected_region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with open_clients(region) as (clients, now):
        assert (clients.region, now.tzinfo) == (expected_region, UTC)


@pytest.mark.usefixtures("nowhere")
def test_missing_region_is_rejected_with_a_hint() -> None:
    assert get_default_region() == ""
    with pytest.raises(InputError, match=r"add --region, or set \$AWS_REGION"), open_clients(""):
        pass


@pytest.mark.parametrize("region", ["xx", "../us-east-1", "us east 1", "US-EAST-1", "us-east-1a"])
@pytest.mark.parametrize("is_embedded", [True, False])
def test_malformed_region_is_rejected(region: str, *, is_embedded: bool) -> None:
    with pytest.raises(InputError, match="is not a region: write it"), open_apis(region, embedded=is_embedded):
        pass


@pytest.mark.parametrize("region", ["mars-north-1", "us-gov-west-1"])
def test_embedded_cloud_rejects_unknown_regions(region: str) -> None:
    with pytest.raises(InputError, match="has no such region: try us-east-1"), open_apis(region, embedded=True):
        pass


def test_embedded_cloud_needs_neither_credentials_nor_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "a profile that does not exist")
    before = dict(os.environ)
    with open_apis("", embedded=True, cluster="shop") as apis:
        assert (apis.region, apis.eks.describe_cluster("shop").name, apis.call_counts) == ("us-east-1", "shop", None)
        assert apis.list_published_prices("us-east-1") == apis.prices.get_on_demand_prices("us-east-1")
    assert dict(os.environ) == before


@pytest.mark.usefixtures("nowhere")
def test_account_apis_call_the_given_region() -> None:
    with open_apis("eu-west-1", embedded=False) as apis:
        assert (apis.region, apis.queried_at.tzinfo) == ("eu-west-1", UTC)
        assert apis.call_counts is not None
        assert apis.call_counts() == {}


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (Forbidden("ec2"), "Forbidden: ec2: check your identity with `aws sts get-caller-identity`"),
        (Unreachable("ec2"), "Unreachable: ec2: check --region"),
        (Throttled("ec2"), "Throttled: ec2: try again in a minute"),
        (NotFound("it"), "NotFound: it"),
    ],
)
def test_aws_fault_is_described_with_its_fix(fault: Fault, remedy: str) -> None:
    assert describe_fault(fault).startswith(remedy)
