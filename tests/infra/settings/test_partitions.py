"""A region without prices is refused before a deployment."""

import pytest

from infra.settings.load import load_options

SETTINGS = {"cluster": "prod"}


@pytest.mark.parametrize(
    ("region", "error_pattern"),
    [
        (
            "us-gov-west-1",
            r"us-gov-west-1 is in partition aws-us-gov, .* has no endpoint, .*price-list must name",
        ),
        ("us-gov-east-1", r"to fix: create it with `joiner catalog prices --region us-gov-east-1 -o FILE`"),
        ("cn-north-1", "partition aws-cn, .* was not tested"),
        ("us-iso-east-1", "partition aws-iso, .* was not tested"),
        ("xx-mars-1", "region is 'xx-mars-1': no partition of AWS"),
    ],
)
def test_a_region_without_prices_is_refused(region: str, error_pattern: str) -> None:
    with pytest.raises(ValueError, match=error_pattern):
        load_options({**SETTINGS, "region": region})


def test_the_region_of_the_credentials_counts_if_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_DEFAULT_REGION", "us-gov-west-1")
    with pytest.raises(ValueError, match="us-gov-west-1"):
        load_options(SETTINGS)
    assert load_options({**SETTINGS, "region": "eu-west-1"}).region == "eu-west-1"


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-northwest-1"])
def test_a_price_list_is_enough(region: str) -> None:
    options = load_options({**SETTINGS, "region": region, "price-list": "prices.json"})
    assert options.price_list == "prices.json"


def test_the_commercial_partition_needs_no_price_list() -> None:
    assert load_options({**SETTINGS, "region": "eu-central-1"}).price_list == ""
