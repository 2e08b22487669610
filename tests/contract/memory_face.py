"""The fast face of the cloud, and what every face has."""

import msgspec

from shared.ports import Ec2, Eks, Parameters, Prices
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudEks, CloudParameters, CloudPrices


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """The ports, and the cloud behind them, which a test may move by its clock."""

    cloud: Cloud
    ec2: Ec2
    parameters: Parameters
    prices: Prices
    eks: Eks


def in_memory(cloud: Cloud) -> Face:
    """Speak for *cloud* in this process."""
    return Face(
        cloud=cloud,
        ec2=CloudEc2(cloud),
        parameters=CloudParameters(cloud),
        prices=CloudPrices(cloud),
        eks=CloudEks(cloud),
    )
