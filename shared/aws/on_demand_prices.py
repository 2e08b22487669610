"""On-demand prices from the AWS Price List API, which has endpoints in few regions for all regions."""

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec
from boto3.session import Session

from shared.aws.clients import Clients
from shared.aws.errors import translate_errors
from shared.aws.partitions import find_partition, list_service_regions
from shared.errors import Unreachable

_COMMON_FILTERS: Final = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_SHARED_TENANCY_FILTERS: Final = {"tenancy": "Shared", "productFamily": "Compute Instance"}
_BARE_METAL_FILTERS: Final = {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}
_DEFAULT_ENDPOINT_REGION: Final = "us-east-1"


class _PriceDimension(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    price_per_unit: dict[str, str] = msgspec.field(default_factory=dict)


class _OfferTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    price_dimensions: dict[str, _PriceDimension] = msgspec.field(default_factory=dict)


class _OfferTerms(msgspec.Struct, frozen=True, kw_only=True):
    on_demand: dict[str, _OfferTerm] = msgspec.field(name="OnDemand", default_factory=dict)


class _ProductAttributes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    instance_type: str = ""


class _Product(msgspec.Struct, frozen=True, kw_only=True):
    attributes: _ProductAttributes = _ProductAttributes()


class _PriceListItem(msgspec.Struct, frozen=True, kw_only=True):
    product: _Product = _Product()
    terms: _OfferTerms = _OfferTerms()


class UnreachablePricing:
    """`shared.ports.aws.PricingService` for networks without a route to the Price List API.

    The API has VPC endpoints in few regions.
    """

    def get_on_demand_prices(self, region: str) -> Mapping[str, float]:
        """Raise immediately, without a call.

        Raises:
            Unreachable: always.
        """
        raise Unreachable(f"pricing:GetProducts {region}: not reachable, because the network has only VPC endpoints")


class BotoPricingService:
    """`shared.ports.aws.PricingService` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Make no call yet."""
        self._clients = clients

    def get_on_demand_prices(self, region: str) -> Mapping[str, float]:
        """Return the price per hour by instance type; in China the currency is CNY, the only one available.

        Raises:
            Unreachable: no Price List endpoint serves *region*, or the response has no prices.
        """
        session = self._clients.get_session()
        if not list_service_regions(session, "pricing", region):
            partition = find_partition(session, region)
            raise Unreachable(f"pricing:GetProducts: {region} is in partition {partition}, which has no endpoint")
        return self.list_published_prices(region)

    def list_published_prices(self, region: str) -> Mapping[str, float]:
        """Return the prices of any region, also where only callers outside the partition of *region* get a response.

        Raises:
            Unreachable: the service does not respond, or the response has no prices.
        """
        currency = "CNY" if region.startswith("cn-") else "USD"
        items = chain(
            self._list_products(region, _SHARED_TENANCY_FILTERS), self._list_products(region, _BARE_METAL_FILTERS)
        )
        prices = dict(sorted(price for item in items for price in parse_prices(item, currency)))
        if not prices:
            raise Unreachable(f"pricing:GetProducts: no price for {region}")
        return prices

    def _list_products(self, region: str, tenancy_filters: Mapping[str, str]) -> Iterator[str]:
        filter_values = {"regionCode": region, **_COMMON_FILTERS, **tenancy_filters}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filter_values.items()]
        with translate_errors(f"pricing:GetProducts {region}"):
            client = self._clients.get_retrying_client(
                "pricing", get_pricing_region(self._clients.get_session(), region)
            )
            pages = client.get_paginator("get_products").paginate(
                ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": 100}
            )
            for page in pages:
                yield from page["PriceList"]


def get_pricing_region(session: Session, region: str) -> str:
    """Return the region of the Price List endpoint that is used for *region*: in its partition, near it if possible.

    A partition without an endpoint is served by the one of us-east-1, for callers with credentials of `aws`.

    >>> [get_pricing_region(Session(), region) for region in ("eu-west-3", "sa-east-1", "cn-north-1")]
    ['eu-central-1', 'us-east-1', 'cn-northwest-1']
    """
    regions, continent = list_service_regions(session, "pricing", region), region.partition("-")[0]
    near = [endpoint for endpoint in regions if endpoint.startswith(f"{continent}-")]
    if near or not regions:
        return next(iter(near), _DEFAULT_ENDPOINT_REGION)
    return _DEFAULT_ENDPOINT_REGION if _DEFAULT_ENDPOINT_REGION in regions else regions[0]


def parse_prices(item: str, currency: str) -> tuple[tuple[str, float], ...]:
    """Return (instance type, price per hour) pairs of one product; empty if it has no valid price."""
    try:
        product = msgspec.json.decode(item, type=_PriceListItem)
        amounts = [
            float(dimension.price_per_unit[currency])
            for term in product.terms.on_demand.values()
            for dimension in term.price_dimensions.values()
            if currency in dimension.price_per_unit
        ]
    except (msgspec.MsgspecError, ValueError):
        return ()
    name = product.product.attributes.instance_type
    return tuple((name, amount) for amount in amounts if name and 0 < amount < math.inf)
