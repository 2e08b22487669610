"""The face of the cloud in this process, and the type of every face."""

import msgspec

from shared.ports.aws import Ec2, Eks, ParameterStore, PricingService, SavingsPlansService, ZonalShiftService
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import (
    CloudEc2,
    CloudEks,
    CloudParameters,
    CloudPricing,
    CloudSavingsPlans,
    CloudZonalShift,
)


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """The ports, and the cloud behind them, which a test may change through its clock."""

    cloud: Cloud
    ec2: Ec2
    parameters: ParameterStore
    prices: PricingService
    savings_plans: SavingsPlansService
    zonal_shifts: ZonalShiftService
    eks: Eks


def build_memory_face(cloud: Cloud) -> Face:
    """Return the ports on *cloud* in this process."""
    return Face(
        cloud=cloud,
        ec2=CloudEc2(cloud),
        parameters=CloudParameters(cloud),
        prices=CloudPricing(cloud),
        savings_plans=CloudSavingsPlans(cloud),
        zonal_shifts=CloudZonalShift(cloud),
        eks=CloudEks(cloud),
    )
