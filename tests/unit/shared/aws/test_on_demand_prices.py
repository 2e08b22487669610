"""Prices parsed from price list documents, and the endpoint that serves the price list."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from boto3.session import Session
from botocore.stub import ANY, Stubber

from shared.aws.clients import Clients
from shared.aws.eks import BotoEks
from shared.aws.on_demand_prices import BotoPricingService, UnreachablePricing, get_pricing_region, parse_prices
from shared.errors import Unreachable


def build_price_document(name: str = "m5.large", **price: str) -> str:
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": name, "vcpu": "2"}},
            "terms": {"OnDemand": {"x": {"priceDimensions": {"y": {"unit": "Hrs", "pricePerUnit": price}}}}},
        }
    )


@pytest.mark.parametrize(
    ("document", "prices"),
    [
        (build_price_document(USD="0.0960000000"), (("m5.large", 0.096),)),
        (build_price_document(USD="0.0000000000"), ()),
        (build_price_document(USD="-1"), ()),
        (build_price_document(USD="inf"), ()),
        (build_price_document(USD="free"), ()),
        (build_price_document(CNY="1"), ()),
        (build_price_document(name="", USD="1"), ()),
        ("{}", ()),
        ("no JSON", ()),
        ('{"terms": 1}', ()),
        ('{"product": {"attributes": {"instanceType": "a"}}, "terms": {"Reserved": {}}}', ()),
    ],
)
def test_price_document_without_a_valid_price_is_skipped(document: str, prices: tuple[tuple[str, float], ...]) -> None:
    assert parse_prices(document, "USD") == prices


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-east-2", "us-east-1"),
        ("ap-northeast-1", "ap-south-1"),
        ("eu-north-1", "eu-central-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("ca-central-1", "us-east-1"),
        ("us-iso-west-1", "us-iso-east-1"),
        ("eusc-de-east-1", "eusc-de-east-1"),
        ("us-gov-west-1", "us-east-1"),
    ],
)
def test_every_region_maps_to_a_pricing_endpoint(region: str, endpoint: str) -> None:
    assert get_pricing_region(Session(), region) == endpoint


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    clients = Clients("us-east-1")
    yield clients
    clients.close()


def build_price_list_page(*documents: str) -> dict[str, Any]:
    return {"FormatVersion": "aws_v1", "PriceList": list(documents)}


def test_shared_and_bare_metal_prices_are_merged(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("pricing", "us-east-1")) as stub:
        expected_params = {"ServiceCode": "AmazonEC2", "Filters": ANY, "MaxResults": 100}
        stub.add_response(
            "get_products",
            {**build_price_list_page(build_price_document("b", USD="2")), "NextToken": "more"},
            expected_params,
        )
        stub.add_response(
            "get_products",
            build_price_list_page(build_price_document("a", USD="1")),
            {**expected_params, "NextToken": "more"},
        )
        stub.add_response(
            "get_products", build_price_list_page(build_price_document("a.metal", USD="3")), expected_params
        )
        assert list(BotoPricingService(clients).get_on_demand_prices("us-east-1").items()) == [
            ("a", 1.0),
            ("a.metal", 3.0),
            ("b", 2.0),
        ]


def test_china_regions_use_prices_in_cny(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("pricing", "cn-northwest-1")) as stub:
        stub.add_response("get_products", build_price_list_page(build_price_document("a", USD="1", CNY="7")))
        stub.add_response("get_products", build_price_list_page())
        assert BotoPricingService(clients).get_on_demand_prices("cn-north-1") == {"a": 7.0}


def test_empty_price_list_raises_unreachable(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("pricing", "us-east-1")) as stub:
        stub.add_response("get_products", build_price_list_page())
        stub.add_response("get_products", build_price_list_page())
        with pytest.raises(Unreachable):
            BotoPricingService(clients).get_on_demand_prices("us-east-1")


def test_govcloud_prices_raise_unreachable(clients: Clients) -> None:
    with pytest.raises(Unreachable):
        BotoPricingService(clients).get_on_demand_prices("us-gov-west-1")


def test_cluster_in_state_creating_raises_unreachable(clients: Clients) -> None:
    with Stubber(clients.get_retrying_client("eks")) as stub:
        stub.add_response("describe_cluster", {"cluster": {"name": "a", "status": "CREATING"}})
        with pytest.raises(Unreachable, match="CREATING"):
            BotoEks(clients).describe_cluster("a")


@pytest.mark.parametrize(
    ("network", "cidr"),
    [
        ({"serviceIpv4Cidr": "10.100.0.0/16"}, "10.100.0.0/16"),
        ({"serviceIpv6Cidr": "fd30:1c53:5f8a::/108"}, "fd30:1c53:5f8a::/108"),
        ({}, ""),
    ],
)
def test_cluster_service_cidr_is_ipv4_or_ipv6(clients: Clients, network: dict[str, str], cidr: str) -> None:
    facts = {
        "name": "a",
        "endpoint": "https://a",
        "certificateAuthority": {"data": "Y2E="},
        "version": "1.34",
        "kubernetesNetworkConfig": network,
    }
    with Stubber(clients.get_retrying_client("eks")) as stub:
        stub.add_response("describe_cluster", {"cluster": facts})
        assert BotoEks(clients).describe_cluster("a").service_cidr == cidr


def test_private_network_pricing_raises_unreachable_without_a_call() -> None:
    with pytest.raises(Unreachable, match="the network has only VPC endpoints"):
        UnreachablePricing().get_on_demand_prices("us-east-1")
