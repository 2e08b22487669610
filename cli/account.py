"""The catalogue of an account, asked for from here and now: types, zones, spot prices, list prices."""

import os
from datetime import datetime

import msgspec
from msgspec.structs import replace

from cli.progress import progress
from shared.aws.clients import Clients
from shared.aws.ec2 import BotoEc2
from shared.aws.pricing import BotoPrices
from shared.errors import Fault
from shared.launch.catalogues import catalogue, knobs
from shared.launch.types import Market, instance_types
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import Subnet
from shared.model.labels import ON_DEMAND
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Meta
from shared.snapshot.shop import PriceList


def of_account(clients: Clients, cluster: Cluster, now: datetime, listed: PriceList | None = None) -> Catalogue:
    """Answer what is sold, as the node classes of *cluster* see it, and as one in any zone would.

    *listed* is used, and said to be, where the pricing service cannot be asked.

    Raises:
        Fault: something was not answered.
    """
    region, ec2 = clients.region, BotoEc2(clients, lambda: now)
    with progress(f"asking {region} for its instance types"):
        infos = ec2.instance_types()
    with progress(f"asking {region} what is sold in which zone, and for how much on the spot market"):
        offerings, spot = ec2.offerings(), ec2.spot_prices()
    with progress(f"reading the price list of {region}"):
        market = _priced(Market(region=region, offerings=offerings, on_demand={}, spot=spot), clients, now, listed)
    classes = tuple(_with_subnets(one, ec2) for one in cluster.node_classes)
    settings = knobs(os.environ.get("VM_MEMORY_OVERHEAD_PERCENT", "0.075"), os.environ.get("RESERVED_ENIS", "0"))
    with progress("reckoning what each type has room for"):
        made = catalogue(replace(cluster, node_classes=classes, taken_at=now), infos, market, settings)
        return replace(made, instance_types=instance_types(infos, market, _everywhere(market), settings))


def list_prices(clients: Clients, now: datetime) -> PriceList:
    """Answer the price list of the region.

    Raises:
        Fault: it was not answered.
    """
    with progress(f"reading the price list of {clients.region}"):
        prices = BotoPrices(clients).on_demand(clients.region)
    return PriceList(region=clients.region, priced_at=now, on_demand=dict(prices))


def price_list_from(body: bytes) -> PriceList:
    """Read what `joiner catalog prices` wrote.

    Raises:
        ValueError: it is none.
    """
    return msgspec.json.decode(body, type=PriceList)


def _priced(market: Market, clients: Clients, now: datetime, listed: PriceList | None) -> Market:
    try:
        return replace(market, on_demand=BotoPrices(clients).on_demand(clients.region), priced_at=now)
    except Fault:
        if listed is None:
            raise
    return replace(market, on_demand=listed.on_demand, priced_at=listed.priced_at, estimated=frozenset((ON_DEMAND,)))


def _with_subnets(one: EC2NodeClass, ec2: BotoEc2) -> EC2NodeClass:
    return one if one.resolved_subnets else replace(one, resolved_subnets=ec2.subnets(one.subnet_selectors))


def _everywhere(market: Market) -> EC2NodeClass:
    """Answer a node class that may be in any zone, for pools whose own is not known."""
    zones = sorted({zone for _, zone in market.offerings})
    subnets = tuple(Subnet(subnet_id=zone, zone=zone, zone_id="", available_ip_count=1) for zone in zones)
    return EC2NodeClass(meta=Meta(name="everywhere"), ami_family="AL2023", resolved_subnets=subnets)
