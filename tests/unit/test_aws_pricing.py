"""Prices out of the price list's documents, and where the list is asked for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from shared.aws.clients import Clients
from shared.aws.eks import BotoEks
from shared.aws.pricing import BotoPrices, NoPrices, prices_of, pricing_region
from shared.errors import Unreachable


def item(name: str = "m5.large", **price: str) -> str:
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": name, "vcpu": "2"}},
            "terms": {"OnDemand": {"x": {"priceDimensions": {"y": {"unit": "Hrs", "pricePerUnit": price}}}}},
        }
    )


@pytest.mark.parametrize(
    ("document", "prices"),
    [
        (item(USD="0.0960000000"), (("m5.large", 0.096),)),
        (item(USD="0.0000000000"), ()),
        (item(USD="-1"), ()),
        (item(USD="inf"), ()),
        (item(USD="free"), ()),
        (item(CNY="1"), ()),
        (item(name="", USD="1"), ()),
        ("{}", ()),
        ("no JSON", ()),
        ('{"terms": 1}', ()),
        ('{"product": {"attributes": {"instanceType": "a"}}, "terms": {"Reserved": {}}}', ()),
    ],
)
def test_a_document_without_a_usable_price_is_passed_over(document: str, prices: tuple[tuple[str, float], ...]) -> None:
    assert prices_of(document, "USD") == prices


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-east-2", "us-east-1"),
        ("ap-northeast-1", "ap-south-1"),
        ("eu-north-1", "eu-central-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("ca-central-1", "us-east-1"),
    ],
)
def test_every_region_has_an_endpoint_that_knows_its_prices(region: str, endpoint: str) -> None:
    assert pricing_region(region) == endpoint


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    clients = Clients("us-east-1")
    yield clients
    clients.close()


def pages(*documents: str) -> dict[str, Any]:
    return {"FormatVersion": "aws_v1", "PriceList": list(documents)}


def test_shared_and_metal_prices_are_one_list(clients: Clients) -> None:
    with Stubber(clients.patient("pricing", "us-east-1")) as stub:
        said = {"ServiceCode": "AmazonEC2", "Filters": ANY, "MaxResults": 100}
        stub.add_response("get_products", {**pages(item("b", USD="2")), "NextToken": "more"}, said)
        stub.add_response("get_products", pages(item("a", USD="1")), {**said, "NextToken": "more"})
        stub.add_response("get_products", pages(item("a.metal", USD="3")), said)
        assert list(BotoPrices(clients).on_demand("us-east-1").items()) == [("a", 1.0), ("a.metal", 3.0), ("b", 2.0)]


def test_china_pays_in_its_own_money(clients: Clients) -> None:
    with Stubber(clients.patient("pricing", "cn-northwest-1")) as stub:
        stub.add_response("get_products", pages(item("a", USD="1", CNY="7")))
        stub.add_response("get_products", pages())
        assert BotoPrices(clients).on_demand("cn-north-1") == {"a": 7.0}


def test_a_list_without_prices_is_no_list(clients: Clients) -> None:
    with Stubber(clients.patient("pricing", "us-east-1")) as stub:
        stub.add_response("get_products", pages())
        stub.add_response("get_products", pages())
        with pytest.raises(Unreachable):
            BotoPrices(clients).on_demand("us-east-1")


def test_nobody_knows_the_prices_of_govcloud(clients: Clients) -> None:
    with pytest.raises(Unreachable):
        BotoPrices(clients).on_demand("us-gov-west-1")


def test_a_cluster_that_is_being_created_cannot_be_reached(clients: Clients) -> None:
    with Stubber(clients.patient("eks")) as stub:
        stub.add_response("describe_cluster", {"cluster": {"name": "a", "status": "CREATING"}})
        with pytest.raises(Unreachable, match="CREATING"):
            BotoEks(clients).cluster("a")


@pytest.mark.parametrize(
    ("network", "cidr"),
    [
        ({"serviceIpv4Cidr": "10.100.0.0/16"}, "10.100.0.0/16"),
        ({"serviceIpv6Cidr": "fd30:1c53:5f8a::/108"}, "fd30:1c53:5f8a::/108"),
        ({}, ""),
    ],
)
def test_a_cluster_has_one_service_range(clients: Clients, network: dict[str, str], cidr: str) -> None:
    facts = {
        "name": "a",
        "endpoint": "https://a",
        "certificateAuthority": {"data": "Y2E="},
        "version": "1.34",
        "kubernetesNetworkConfig": network,
    }
    with Stubber(clients.patient("eks")) as stub:
        stub.add_response("describe_cluster", {"cluster": facts})
        assert BotoEks(clients).cluster("a").service_cidr == cidr


def test_where_no_network_leads_to_it_nobody_waits() -> None:
    with pytest.raises(Unreachable, match="nowhere but to VPC endpoints"):
        NoPrices().on_demand("us-east-1")
