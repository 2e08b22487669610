"""What an account sells, asked for from here and now: types, zones, spot prices, list prices."""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.clouds import said
from cli.files import InputError, Tell, body_of
from cli.progress import progress
from shared.aws.clients import Clients
from shared.aws.ec2 import BotoEc2
from shared.aws.pricing import BotoPrices
from shared.errors import Fault
from shared.launch.catalogues import catalogue, knobs, unsold
from shared.launch.types import Market, instance_types, unpriced
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import InstanceTypeInfo, Subnet
from shared.model.labels import ON_DEMAND
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Meta
from shared.settings import aws_gates_from
from shared.snapshot.shop import PriceList

Sold: TypeAlias = tuple[tuple[InstanceTypeInfo, ...], Market]
_HOW: Final = "name a list with --prices: `joiner catalog prices` writes one where it can ask"


def of_account(
    clients: Clients, classes: Iterable[EC2NodeClass], now: datetime, tell: Tell, listed: PriceList | None = None
) -> tuple[Catalogue, tuple[str, ...]]:
    """Answer what is sold, as *classes* see it, and as one in any zone would; and the types without on-demand price.

    A class that can start nothing is told.

    Raises:
        Fault: types, zones or spot prices were not answered.
    """
    infos, market = sold(clients, now, tell, listed)
    ec2 = BotoEc2(clients, lambda: now)
    cluster = Cluster(taken_at=now, node_classes=tuple(_with_subnets(one, ec2) for one in classes))
    settings = knobs(
        os.environ.get("VM_MEMORY_OVERHEAD_PERCENT", "0.075"),
        os.environ.get("RESERVED_ENIS", "0"),
        node_class_cel=aws_gates_from(os.environ.get("AWS_FEATURE_GATES", "")).node_class_cel,
    )
    with progress("reckoning what each type has room for"):
        made = catalogue(cluster, infos, market, settings)
        everywhere = instance_types(infos, market, _everywhere(market), settings)
    seen = {name for name, _ in made.by_node_class}
    for name in (one.name for one in cluster.node_classes if one.name not in seen):
        tell(f"EC2NodeClass {name}: spec.subnetSelectorTerms matched nothing in {market.region}: check ids and tags")
    for problem in unsold(made):
        tell(f"{problem.kind} {problem.name}: {problem.message}")
    return replace(made, instance_types=everywhere), unpriced(infos, market)


def sold(clients: Clients, now: datetime, tell: Tell, listed: PriceList | None = None) -> Sold:
    """Answer the types there are and what is on sale; *listed* is used where the pricing service cannot be asked.

    Without either nothing is sold on demand: that is told, no price is made up.

    Raises:
        Fault: types, zones or spot prices were not answered.
    """
    region, ec2 = clients.region, BotoEc2(clients, lambda: now)
    with progress(f"asking {region} for its instance types"):
        infos = ec2.instance_types()
    with progress(f"asking {region} what is sold in which zone, and for how much on the spot market"):
        offerings, spot = ec2.offerings(), ec2.spot_prices()
    market = Market(region=region, offerings=offerings, on_demand={}, spot=spot, priced_at=now)
    with progress(f"reading the price list of {region}"):
        return infos, _priced(market, clients, tell, listed)


def list_prices(clients: Clients, now: datetime) -> PriceList:
    """Answer the price list of the region.

    Raises:
        Fault: it was not answered.
    """
    with progress(f"reading the price list of {clients.region}"):
        prices = BotoPrices(clients).listed(clients.region)
    return PriceList(region=clients.region, priced_at=now, on_demand=dict(prices))


def price_list_in(filename: str, region: str) -> PriceList | None:
    """Read what `joiner catalog prices` wrote; None where no file is named.

    Raises:
        InputError: it is none, or that of another region.
    """
    if not filename:
        return None
    try:
        listed = msgspec.json.decode(body_of(filename, Path(filename)), type=PriceList)
    except ValueError as error:
        raise InputError(f"{filename}: not a price list: {error}: `joiner catalog prices -o FILE` writes one") from None
    if listed.region != region:
        raise InputError(f"{filename}: has the prices of {listed.region}, not of {region}: name that region's")
    return listed


def _priced(market: Market, clients: Clients, tell: Tell, listed: PriceList | None) -> Market:
    try:
        return replace(market, on_demand=BotoPrices(clients).on_demand(clients.region))
    except Fault as fault:
        if listed is None:
            tell(f"on-demand prices: {said(fault)}; without them nothing is sold on demand: {_HOW}")
            return market
    return replace(market, on_demand=listed.on_demand, priced_at=listed.priced_at, estimated=frozenset((ON_DEMAND,)))


def _with_subnets(one: EC2NodeClass, ec2: BotoEc2) -> EC2NodeClass:
    return one if one.resolved_subnets else replace(one, resolved_subnets=ec2.subnets(one.subnet_selectors))


def _everywhere(market: Market) -> EC2NodeClass:
    """Answer a node class that may be in any zone, for pools whose own is not known."""
    zones = sorted({zone for _, zone in market.offerings})
    subnets = tuple(Subnet(subnet_id=zone, zone=zone, zone_id="", available_ip_count=1) for zone in zones)
    return EC2NodeClass(meta=Meta(name="everywhere"), ami_family="AL2023", resolved_subnets=subnets)
