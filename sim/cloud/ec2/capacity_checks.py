"""EC2's checks of capacity before a launch: reservations, quotas, free addresses and capacity pools."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from shared.model.ec2.fleet import Override
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.ec2.types import CapacityType
from sim.cloud.ec2.capacity_pools import CapacityPool, CapacityPools
from sim.cloud.ec2.instance_lifecycle import InstanceRegistry
from sim.cloud.ec2.launch_refusal import Refused
from sim.cloud.ec2.reservations import ReservationPool, Reservations, is_scheduled
from sim.cloud.resources.network import Network


class CapacityChecks(msgspec.Struct, frozen=True, kw_only=True):
    """The account's capacity and quotas."""

    types: Mapping[str, InstanceTypeInfo]
    types_by_zone: Mapping[str, frozenset[str]]
    pools: CapacityPools
    network: Network
    instances: InstanceRegistry
    reservations: Reservations

    def get_capacity_pool(
        self, override: Override, capacity_type: CapacityType, reservation_id: str, now: datetime
    ) -> CapacityPool:
        """Return the pool to launch from: the reservation, or without *reservation_id* the regular pool.

        A reservation that starts later has no capacity.

        Raises:
            Refused: the reservation does not exist or is for another offering.
        """
        if not reservation_id:
            return self.pools.get_pool(override.instance_type, override.zone, capacity_type)
        reservation, offering = self.reservations.find(reservation_id), (override.instance_type, override.zone)
        if reservation is None or (reservation.instance_type, reservation.zone) != offering:
            text = (
                f"The capacity reservation '{reservation_id}' does not exist or has other attributes than the request."
            )
            raise Refused("InvalidCapacityReservationId.NotFound", text)
        if is_scheduled(reservation, now):
            return CapacityPool(0)
        return ReservationPool(self.reservations, reservation_id)

    def check_capacity(self, override: Override, capacity_type: CapacityType, pool: CapacityPool) -> None:
        """Refuse a launch for which there is no quota, address or capacity at the moment.

        Raises:
            Refused: one of them is missing.
        """
        instance_type, zone = override.instance_type, override.zone
        self._check_quota(instance_type, capacity_type)
        if self.network.get_subnet(override.subnet_id).free <= 0:
            text = (
                f"There are not enough free addresses in subnet '{override.subnet_id}' to satisfy the requested number"
            )
            raise Refused("InsufficientFreeAddressesInSubnet", f"{text} of instances.")
        if pool.free == 0 and capacity_type == "reserved":
            text = "The requested reservation does not have sufficient capacity."
            raise Refused("ReservationCapacityExceeded", text)
        if pool.free == 0:
            text = (
                f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
                f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
                f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing "
                f"{', '.join(self.list_other_zones(instance_type, zone)) or 'another region'}."
            )
            raise Refused("InsufficientInstanceCapacity", text)

    def _check_quota(self, instance_type: str, capacity_type: CapacityType) -> None:
        is_spot, quota = capacity_type == "spot", self.pools.get_quota(capacity_type)
        if quota is None or self.instances.count_vcpus(is_spot=is_spot) + self.types[instance_type].vcpus <= quota:
            return
        if is_spot:
            raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        text = f"You have requested more vCPU capacity than your current vCPU limit of {quota} allows for the instance"
        raise Refused("VcpuLimitExceeded", f"{text} bucket that the specified instance type belongs to.")

    def list_other_zones(self, instance_type: str, excluded_zone: str) -> list[str]:
        """Return the zones that offer *instance_type*, without *excluded_zone*."""
        return [zone for zone, types in self.types_by_zone.items() if instance_type in types and zone != excluded_zone]
