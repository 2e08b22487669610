"""The catalog of an AWS account, read from this computer: instance types, zones, spot prices, list prices."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.aws.account_api import AccountApis
from cli.aws.session import describe_fault
from cli.inputs.environment import read_environment_settings
from cli.inputs.files import ErrorReporter, read_utf8
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.cycles.setup.options_from_settings import build_capacity_settings
from shared.decide.launch.instance_types.catalog import build_catalog, find_unsold_node_classes
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.errors import Fault
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cloud_provider.regional_offerings import RegionalOfferings, list_unpriced_types
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ON_DEMAND
from shared.model.core.metadata import ObjectMeta
from shared.model.ec2.account import Subnet
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import EC2NodeClass
from shared.ports.aws import Ec2
from shared.take.regional_offerings import PriceListFile

TypesAndOfferings: TypeAlias = tuple[tuple[InstanceTypeInfo, ...], RegionalOfferings]
_PRICE_LIST_HINT: Final = (
    "add --prices FILE: `joiner catalog prices` writes the file on a machine with access to the pricing API"
)


def read_account_catalog(
    apis: AccountApis,
    node_classes: Iterable[EC2NodeClass],
    tell: ErrorReporter,
    price_list: PriceListFile | None = None,
) -> tuple[Catalog, tuple[str, ...]]:
    """Return the catalog as *node_classes* see it and as seen from all zones, and the types without on-demand price.

    A node class that cannot launch anything is reported by *tell*.

    Raises:
        Fault: Instance types, zones or spot prices cannot be read.
    """
    infos, regional_offerings = read_types_and_offerings(apis, tell, price_list)
    cluster = ClusterSnapshot(
        taken_at=apis.queried_at, node_classes=tuple(_with_subnets(node_class, apis.ec2) for node_class in node_classes)
    )
    settings = build_capacity_settings(read_environment_settings())
    with show_progress("computing the capacity of each instance type"):
        catalog = build_catalog(cluster, infos, regional_offerings, settings)
        all_zone_types = build_instance_types(
            infos, regional_offerings, _build_all_zones_class(regional_offerings), settings
        )
    resolved_names = {name for name, _ in catalog.by_node_class}
    for name in (node_class.name for node_class in cluster.node_classes if node_class.name not in resolved_names):
        tell(
            f"EC2NodeClass {name}: spec.subnetSelectorTerms matched nothing in {regional_offerings.region}: "
            "check ids and tags"
        )
    for problem in find_unsold_node_classes(catalog):
        tell(f"{problem.kind} {problem.name}: {problem.message}")
    return replace(catalog, instance_types=all_zone_types), list_unpriced_types(infos, regional_offerings)


def read_types_and_offerings(
    apis: AccountApis, tell: ErrorReporter, price_list: PriceListFile | None = None
) -> TypesAndOfferings:
    """Return the instance types and offerings of the region; *price_list* replaces an unreachable pricing service.

    If neither is available, nothing is offered on demand: *tell* reports it, and no price is invented.

    Raises:
        Fault: Instance types, zones or spot prices cannot be read.
    """
    region, ec2 = apis.region, apis.ec2
    with show_progress(f"asking {region} for its instance types"):
        infos = ec2.describe_instance_types()
    with show_progress(f"reading offerings and spot prices of {region}"):
        offerings, spot = ec2.describe_offerings(), ec2.describe_spot_prices()
    regional_offerings = RegionalOfferings(
        region=region, offerings=offerings, on_demand={}, spot=spot, priced_at=apis.queried_at
    )
    with show_progress(f"reading the price list of {region}"):
        return infos, _with_prices(regional_offerings, apis, tell, price_list)


def list_prices(apis: AccountApis) -> PriceListFile:
    """Return the on-demand price list of the region.

    Raises:
        Fault: The price list cannot be read.
    """
    with show_progress(f"reading the price list of {apis.region}"):
        prices = apis.list_published_prices(apis.region)
    return PriceListFile(region=apis.region, priced_at=apis.queried_at, on_demand=dict(prices))


def load_price_list(filename: str, region: str) -> PriceListFile | None:
    """Load a file that `joiner catalog prices` wrote; return None if *filename* is empty.

    Raises:
        InputError: The file is not a price list, or belongs to another region.
    """
    if not filename:
        return None
    try:
        price_list = msgspec.json.decode(read_utf8(filename, Path(filename), "a price list"), type=PriceListFile)
    except ValueError as error:
        raise InputError(
            f"{filename}: not a price list: {error}: to fix: create it with `joiner catalog prices -o FILE`"
        ) from None
    if price_list.region != region:
        raise InputError(f"{filename}: has the prices of {price_list.region}, not of {region}: name that region's")
    return price_list


def _with_prices(
    regional_offerings: RegionalOfferings, apis: AccountApis, tell: ErrorReporter, price_list: PriceListFile | None
) -> RegionalOfferings:
    try:
        return replace(regional_offerings, on_demand=apis.prices.get_on_demand_prices(apis.region))
    except Fault as fault:
        if price_list is None:
            tell(
                f"on-demand prices: {describe_fault(fault)}; without them nothing is sold on demand: {_PRICE_LIST_HINT}"
            )
            return regional_offerings
    return replace(
        regional_offerings,
        on_demand=price_list.on_demand,
        priced_at=price_list.priced_at,
        estimated_capacity_types=frozenset((ON_DEMAND,)),
    )


def _with_subnets(node_class: EC2NodeClass, ec2: Ec2) -> EC2NodeClass:
    return (
        node_class
        if node_class.resolved_subnets
        else replace(node_class, resolved_subnets=ec2.describe_subnets(node_class.subnet_selectors))
    )


def _build_all_zones_class(regional_offerings: RegionalOfferings) -> EC2NodeClass:
    """Return a node class with a subnet in every zone, for NodePools with an unknown node class."""
    zones = sorted({zone for _, zone in regional_offerings.offerings})
    subnets = tuple(Subnet(subnet_id=zone, zone=zone, zone_id="", available_ip_count=1) for zone in zones)
    return EC2NodeClass(meta=ObjectMeta(name="everywhere"), ami_family="AL2023", resolved_subnets=subnets)
