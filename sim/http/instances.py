"""EC2's instances on the wire: CreateFleet, DescribeInstances, TerminateInstances, CreateTags."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from shared.model.ec2 import (
    AllocationStrategy,
    CapacityType,
    FleetError,
    FleetInstance,
    FleetRequest,
    Instance,
    LaunchTemplateConfig,
    Override,
    ReservationType,
    Selector,
    Tags,
)
from sim.cloud.cloud import Cloud
from sim.http.protocol import ApiError, NotOurs
from sim.http.queries import Wire, filtered, page, tags_to_wire

STATES: Final = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
PATHS: Final = {
    "availability-zone": "Placement.AvailabilityZone",
    "image-id": "ImageId",
    "instance-id": "InstanceId",
    "instance-lifecycle": "InstanceLifecycle",
    "instance-state-name": "State.Name",
    "instance-type": "InstanceType",
    "private-dns-name": "PrivateDnsName",
    "subnet-id": "SubnetId",
}


class InstanceCalls:
    """The handlers; each takes the call's parameters and answers its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Answer from *cloud*."""
        self._cloud = cloud

    def create_fleet(self, said: Wire) -> Wire:
        """CreateFleet; only `instant` fleets are modelled.

        Raises:
            ApiError: it is of another type.
        """
        if said.get("Type") != "instant":
            raise ApiError("InvalidParameterValue", "only fleets of type instant are modelled")
        request = self.fleet(said)
        result = self._cloud.create_fleet(request)
        lifecycle = "spot" if request.capacity_type == "spot" else "on-demand"
        return {
            "FleetId": result.fleet_id,
            "Instances": [_started(group, lifecycle) for group in _alike(result.instances)],
            "Errors": [_refused(error, lifecycle) for error in result.errors],
        }

    def describe_instances(self, said: Wire) -> Wire:
        """DescribeInstances, by ids or in pages; `terminated` ones as long as EC2 remembers them.

        Raises:
            ApiError: ids and a page size are given together.
        """
        if said.get("InstanceIds"):
            if said.get("MaxResults"):
                text = "The parameter instancesSet cannot be used with the parameter maxResults"
                raise ApiError("InvalidParameterCombination", text)
            found = [self._cloud.instance(instance_id) for instance_id in said["InstanceIds"]]
        else:
            found = list(self._cloud.instances())
        instances = filtered([self._wire(instance) for instance in found], said, PATHS)
        reservations = [{"ReservationId": f"r-{each['InstanceId'][2:]}", "Instances": [each]} for each in instances]
        return page(reservations, said, "Reservations", 1000)

    def terminate_instances(self, said: Wire) -> Wire:
        """TerminateInstances: all or none."""
        ids = said["InstanceIds"]
        before = {instance_id: self._cloud.machines.find(instance_id).state for instance_id in ids}
        self._cloud.terminate(ids)
        return {
            "TerminatingInstances": [
                {
                    "InstanceId": instance_id,
                    "PreviousState": _state(before[instance_id]),
                    "CurrentState": _state(self._cloud.machines.find(instance_id).state),
                }
                for instance_id in ids
            ]
        }

    def create_tags(self, said: Wire) -> Wire:
        """CreateTags of instances.

        Raises:
            NotOurs: something else is to be tagged.
        """
        if not all(resource.startswith("i-") for resource in said["Resources"]):
            raise NotOurs
        tags = tuple((tag["Key"], tag.get("Value", "")) for tag in said["Tags"])
        for instance_id in said["Resources"]:
            self._cloud.tag(instance_id, tags)
        return {}

    def fleet(self, said: Wire) -> FleetRequest:
        """Answer what CreateFleet says.

        Raises:
            Gone: it names a template that is not there.
        """
        configs = tuple(self._config(config) for config in said.get("LaunchTemplateConfigs", ()))
        capacity_type = self._capacity_type(said, configs)
        options = said.get("SpotOptions" if capacity_type == "spot" else "OnDemandOptions", {})
        target = said["TargetCapacitySpecification"].get("DefaultTargetCapacityType", "on-demand")
        kinds: dict[str, ReservationType] = {"capacity-block": "capacity-block", "reserved-capacity": "interruptible"}
        strategy: AllocationStrategy = options.get("AllocationStrategy", "lowest-price")
        return FleetRequest(
            client_token=said.get("ClientToken", ""),
            capacity=said["TargetCapacitySpecification"]["TotalTargetCapacity"],
            capacity_type=capacity_type,
            allocation_strategy=strategy,
            configs=configs,
            tags=tags_for("instance", said),
            context=said.get("Context", ""),
            reservation_type=kinds.get(target, "default" if capacity_type == "reserved" else ""),
        )

    def _capacity_type(self, said: Wire, configs: Iterable[LaunchTemplateConfig]) -> CapacityType:
        """Answer what is asked for; on demand means reserved if the templates leave nothing else."""
        if said["TargetCapacitySpecification"].get("DefaultTargetCapacityType") == "spot":
            return "spot"
        names = {config.launch_template_name for config in configs}
        reserved = {self._cloud.templates.find(name).capacity_type for name in names} == {"reserved"}
        return "reserved" if reserved else "on-demand"

    def _config(self, said: Wire) -> LaunchTemplateConfig:
        return LaunchTemplateConfig(
            launch_template_name=said["LaunchTemplateSpecification"].get("LaunchTemplateName", ""),
            overrides=tuple(self._override(override) for override in said.get("Overrides", ())),
        )

    def _override(self, said: Wire) -> Override:
        subnet = self._cloud.network.subnets.get(said.get("SubnetId", ""))
        return Override(
            instance_type=said.get("InstanceType", ""),
            zone=said.get("AvailabilityZone") or (subnet.zone if subnet else ""),
            subnet_id=said.get("SubnetId", ""),
            image_id=said.get("ImageId", ""),
            priority=said.get("Priority"),
        )

    def _wire(self, instance: Instance) -> Wire:
        return {
            "InstanceId": instance.instance_id,
            "InstanceType": instance.instance_type,
            "ImageId": instance.image_id,
            "SubnetId": instance.subnet_id,
            "State": _state(instance.state),
            "LaunchTime": instance.launched_at,
            "Placement": {"AvailabilityZone": instance.zone, "Tenancy": "default"},
            "PrivateDnsName": instance.private_dns_name,
            "SecurityGroups": [self._group(group_id) for group_id in instance.security_group_ids],
            "Tags": tags_to_wire(instance.tags),
            **_purchase(instance),
        }

    def _group(self, group_id: str) -> dict[str, str]:
        known = self._cloud.network.select_security_groups((Selector(id=group_id),))
        return {"GroupId": group_id, "GroupName": known[0].name if known else ""}


def tags_for(resource_type: str, said: Wire) -> Tags:
    """Answer the tags that *said* has for *resource_type*, sorted by key."""
    specifications = [each for each in said.get("TagSpecifications", ()) if each["ResourceType"] == resource_type]
    return tuple(sorted((tag["Key"], tag.get("Value", "")) for each in specifications for tag in each["Tags"]))


def _purchase(instance: Instance) -> dict[str, Any]:
    """Answer what tells spot and reserved instances from others."""
    unique = instance.instance_id.removeprefix("i-")
    if instance.capacity_type == "spot":
        return {"InstanceLifecycle": "spot", "SpotInstanceRequestId": f"sir-{unique}"}
    if instance.capacity_type == "reserved":
        only = {"CapacityReservationPreference": "capacity-reservations-only"}
        return {"CapacityReservationId": f"cr-{unique}", "CapacityReservationSpecification": only}
    return {}


def _state(name: str) -> dict[str, Any]:
    return {"Code": STATES[name], "Name": name}


def _alike(instances: Iterable[FleetInstance]) -> list[list[FleetInstance]]:
    def offering(instance: FleetInstance) -> tuple[str, ...]:
        return (instance.instance_type, instance.zone, instance.subnet_id, instance.image_id)

    return [list(group) for _, group in groupby(sorted(instances, key=offering), key=offering)]


def _started(group: list[FleetInstance], lifecycle: str) -> Wire:
    one = group[0]
    overrides = {
        "InstanceType": one.instance_type,
        "AvailabilityZone": one.zone,
        "SubnetId": one.subnet_id,
        "ImageId": one.image_id,
    }
    return {
        "InstanceIds": sorted(instance.instance_id for instance in group),
        "InstanceType": one.instance_type,
        "Lifecycle": lifecycle,
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
    }


def _refused(error: FleetError, lifecycle: str) -> Wire:
    overrides = {
        "InstanceType": error.instance_type,
        "AvailabilityZone": error.zone,
        "SubnetId": error.subnet_id,
    }
    return {
        "ErrorCode": error.code,
        "ErrorMessage": error.message,
        "Lifecycle": lifecycle,
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
    }
