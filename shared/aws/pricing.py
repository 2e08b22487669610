"""On-demand prices from the pricing service, which answers in four regions for all the others."""

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import msgspec

from shared.aws.clients import Clients
from shared.aws.errors import faults
from shared.errors import Unreachable

_COMMON: Final = {
    "serviceCode": "AmazonEC2",
    "preInstalledSw": "NA",
    "operatingSystem": "Linux",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_SHARED: Final = {"tenancy": "Shared", "productFamily": "Compute Instance"}
_METAL: Final = {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}
_ENDPOINTS: Final = (("ap-", "ap-south-1"), ("cn-", "cn-northwest-1"), ("eu-", "eu-central-1"))


class _Dimension(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    price_per_unit: dict[str, str] = msgspec.field(default_factory=dict)


class _Term(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    price_dimensions: dict[str, _Dimension] = msgspec.field(default_factory=dict)


class _Terms(msgspec.Struct, frozen=True, kw_only=True):
    on_demand: dict[str, _Term] = msgspec.field(name="OnDemand", default_factory=dict)


class _Attributes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    instance_type: str = ""


class _Product(msgspec.Struct, frozen=True, kw_only=True):
    attributes: _Attributes = _Attributes()


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    product: _Product = _Product()
    terms: _Terms = _Terms()


class NoPrices:
    """`shared.ports.Prices` where no network leads to the pricing service: it has endpoints in few regions."""

    def on_demand(self, region: str) -> Mapping[str, float]:
        """Answer nothing, and at once.

        Raises:
            Unreachable: always.
        """
        raise Unreachable(f"pricing:GetProducts {region}: the network leads nowhere but to VPC endpoints")


class BotoPrices:
    """`shared.ports.Prices` over boto3."""

    def __init__(self, clients: Clients) -> None:
        """Calls nothing yet."""
        self._clients = clients

    def on_demand(self, region: str) -> Mapping[str, float]:
        """Answer the price by type; in China the currency is CNY, the only one there is.

        Raises:
            Unreachable: no pricing service serves *region*, or it answers without a single price.
        """
        if region.startswith("us-gov-"):
            raise Unreachable(f"pricing:GetProducts: no endpoint of its partition serves {region}")
        return self.listed(region)

    def listed(self, region: str) -> Mapping[str, float]:
        """Answer the same, though only a caller from outside the partition of *region* may be answered.

        Raises:
            Unreachable: nobody answers, or without a single price.
        """
        currency = "CNY" if region.startswith("cn-") else "USD"
        items = chain(self._products(region, _SHARED), self._products(region, _METAL))
        prices = dict(sorted(price for item in items for price in prices_of(item, currency)))
        if not prices:
            raise Unreachable(f"pricing:GetProducts: no price for {region}")
        return prices

    def _products(self, region: str, kind: Mapping[str, str]) -> Iterator[str]:
        terms = {"regionCode": region, **_COMMON, **kind}
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in terms.items()]
        with faults(f"pricing:GetProducts {region}"):
            client = self._clients.patient("pricing", pricing_region(region))
            pages = client.get_paginator("get_products").paginate(
                ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": 100}
            )
            for page in pages:
                yield from page["PriceList"]


def pricing_region(region: str) -> str:
    """Answer where the prices of *region* are asked for.

    >>> pricing_region("eu-west-3"), pricing_region("sa-east-1")
    ('eu-central-1', 'us-east-1')
    """
    return next((endpoint for prefix, endpoint in _ENDPOINTS if region.startswith(prefix)), "us-east-1")


def prices_of(item: str, currency: str) -> tuple[tuple[str, float], ...]:
    """Answer (instance type, price per hour) of one product; nothing if it has no price that can be read."""
    try:
        product = msgspec.json.decode(item, type=_Item)
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
