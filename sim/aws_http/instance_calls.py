"""EC2's instance calls: CreateFleet, DescribeInstances, DescribeInstanceStatus, TerminateInstances, CreateTags."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.instance import Instance, InstanceStatus
from shared.model.ec2.types import AllocationStrategy, CapacityType, ReservationType, Tags
from sim.aws_http.filters_and_pages import build_page, encode_tags, filter_items
from sim.aws_http.protocol import ApiDict, ApiError, NotOurs
from sim.cloud.cloud import Cloud

STATE_CODES: Final = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
FILTER_PATHS: Final = {
    "availability-zone": "Placement.AvailabilityZone",
    "image-id": "ImageId",
    "instance-id": "InstanceId",
    "instance-lifecycle": "InstanceLifecycle",
    "instance-state-name": "State.Name",
    "instance-type": "InstanceType",
    "platform-details": "PlatformDetails",
    "private-dns-name": "PrivateDnsName",
    "subnet-id": "SubnetId",
    "tenancy": "Placement.Tenancy",
}

LINUX_PLATFORM: Final = "Linux/UNIX"
STATUS_FILTER_PATHS: Final = {
    "event.code": "Events.Code",
    "instance-status.status": "InstanceStatus.Status",
    "system-status.status": "SystemStatus.Status",
}


class InstanceApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud

    def create_fleet(self, parameters: ApiDict) -> ApiDict:
        """CreateFleet; only `instant` fleets are modeled.

        Raises:
            ApiError: the fleet has another type.
        """
        if parameters.get("Type") != "instant":
            raise ApiError("InvalidParameterValue", "only fleets of type instant are modelled")
        request = self.parse_fleet_request(parameters)
        result = self._cloud.fleets.create(request)
        lifecycle = "spot" if request.capacity_type == "spot" else "on-demand"
        return {
            "FleetId": result.fleet_id,
            "Instances": [
                _encode_launched(instance_group, lifecycle) for instance_group in _group_by_offering(result.instances)
            ],
            "Errors": [_encode_error(error, lifecycle) for error in result.errors],
        }

    def describe_instances(self, parameters: ApiDict) -> ApiDict:
        """DescribeInstances by IDs or in pages; includes `terminated` instances as long as EC2 knows them.

        Raises:
            ApiError: IDs and a page size are given together.
        """
        if parameters.get("InstanceIds"):
            if parameters.get("MaxResults"):
                text = "The parameter instancesSet cannot be used with the parameter maxResults"
                raise ApiError("InvalidParameterCombination", text)
            found_instances = [self._cloud.instances.describe(instance_id) for instance_id in parameters["InstanceIds"]]
        else:
            found_instances = list(self._cloud.instances.describe_all())
        instances = filter_items(
            [self._encode_instance(instance) for instance in found_instances], parameters, FILTER_PATHS
        )
        reservations = [
            {"ReservationId": f"r-{instance['InstanceId'][2:]}", "Instances": [instance]} for instance in instances
        ]
        return build_page(reservations, parameters, "Reservations", 1000)

    def describe_instance_status(self, parameters: ApiDict) -> ApiDict:
        """DescribeInstanceStatus of running instances, in pages."""
        impaired_by_id = {
            instance_status.instance_id: instance_status
            for instance_status in self._cloud.instances.describe_statuses()
        }
        running_ids = (
            instance.instance_id for instance in self._cloud.instances.describe_all() if instance.state == "running"
        )
        statuses = [
            _encode_status(impaired_by_id.get(instance_id, InstanceStatus(instance_id=instance_id)))
            for instance_id in running_ids
        ]
        return build_page(filter_items(statuses, parameters, STATUS_FILTER_PATHS), parameters, "InstanceStatuses", 1000)

    def terminate_instances(self, parameters: ApiDict) -> ApiDict:
        """TerminateInstances: all or none."""
        ids = parameters["InstanceIds"]
        previous_states = {instance_id: self._cloud.instances.find(instance_id).state for instance_id in ids}
        self._cloud.terminate_instances(ids)
        return {
            "TerminatingInstances": [
                {
                    "InstanceId": instance_id,
                    "PreviousState": _encode_state(previous_states[instance_id]),
                    "CurrentState": _encode_state(self._cloud.instances.find(instance_id).state),
                }
                for instance_id in ids
            ]
        }

    def create_tags(self, parameters: ApiDict) -> ApiDict:
        """CreateTags of instances.

        Raises:
            NotOurs: another resource is to be tagged.
        """
        if not all(resource.startswith("i-") for resource in parameters["Resources"]):
            raise NotOurs
        tags = tuple((tag["Key"], tag.get("Value", "")) for tag in parameters["Tags"])
        for instance_id in parameters["Resources"]:
            self._cloud.instances.tag(instance_id, tags)
        return {}

    def parse_fleet_request(self, parameters: ApiDict) -> FleetRequest:
        """Return the request of a CreateFleet call.

        Raises:
            NotFound: it names a launch template that does not exist.
        """
        configs = tuple(self._parse_config(config) for config in parameters.get("LaunchTemplateConfigs", ()))
        capacity_type = self._get_capacity_type(parameters, configs)
        options = parameters.get("SpotOptions" if capacity_type == "spot" else "OnDemandOptions", {})
        target_type = parameters["TargetCapacitySpecification"].get("DefaultTargetCapacityType", "on-demand")
        reservation_types: dict[str, ReservationType] = {
            "capacity-block": "capacity-block",
            "reserved-capacity": "interruptible",
        }
        strategy: AllocationStrategy = options.get("AllocationStrategy", "lowest-price")
        return FleetRequest(
            client_token=parameters.get("ClientToken", ""),
            capacity=parameters["TargetCapacitySpecification"]["TotalTargetCapacity"],
            capacity_type=capacity_type,
            allocation_strategy=strategy,
            configs=configs,
            tags=parse_tags("instance", parameters),
            context=parameters.get("Context", ""),
            reservation_type=reservation_types.get(target_type, "default" if capacity_type == "reserved" else ""),
        )

    def _get_capacity_type(self, parameters: ApiDict, configs: Iterable[LaunchTemplateConfig]) -> CapacityType:
        """Return the requested capacity type; on-demand means reserved if the templates allow nothing else."""
        if parameters["TargetCapacitySpecification"].get("DefaultTargetCapacityType") == "spot":
            return "spot"
        names = {config.launch_template_name for config in configs}
        is_reserved = {self._cloud.templates.find(name).capacity_type for name in names} == {"reserved"}
        return "reserved" if is_reserved else "on-demand"

    def _parse_config(self, parameters: ApiDict) -> LaunchTemplateConfig:
        return LaunchTemplateConfig(
            launch_template_name=parameters["LaunchTemplateSpecification"].get("LaunchTemplateName", ""),
            overrides=tuple(self._parse_override(override) for override in parameters.get("Overrides", ())),
        )

    def _parse_override(self, parameters: ApiDict) -> Override:
        subnet = self._cloud.network.subnets.get(parameters.get("SubnetId", ""))
        return Override(
            instance_type=parameters.get("InstanceType", ""),
            zone=parameters.get("AvailabilityZone") or (subnet.zone if subnet else ""),
            subnet_id=parameters.get("SubnetId", ""),
            image_id=parameters.get("ImageId", ""),
            priority=parameters.get("Priority"),
        )

    def _encode_instance(self, instance: Instance) -> ApiDict:
        return {
            "InstanceId": instance.instance_id,
            "InstanceType": instance.instance_type,
            "ImageId": instance.image_id,
            "SubnetId": instance.subnet_id,
            "State": _encode_state(instance.state),
            "LaunchTime": instance.launched_at,
            "Placement": {"AvailabilityZone": instance.zone, "Tenancy": "default"},
            "PlatformDetails": LINUX_PLATFORM,
            "PrivateDnsName": instance.private_dns_name,
            "SecurityGroups": [self._encode_group(group_id) for group_id in instance.security_group_ids],
            "Tags": encode_tags(instance.tags),
            **_encode_purchase_option(instance),
            **_encode_state_reason(instance),
        }

    def _encode_group(self, group_id: str) -> dict[str, str]:
        groups = self._cloud.network.select_security_groups((SelectorTerm(id=group_id),))
        return {"GroupId": group_id, "GroupName": groups[0].name if groups else ""}


def _encode_state_reason(instance: Instance) -> ApiDict:
    if not instance.state_reason:
        return {}
    return {"StateReason": {"Code": instance.state_reason.partition(": ")[0], "Message": instance.state_reason}}


def parse_tags(resource_type: str, parameters: ApiDict) -> Tags:
    """Return the tags that *parameters* has for *resource_type*, sorted by key."""
    specifications = [
        specification
        for specification in parameters.get("TagSpecifications", ())
        if specification["ResourceType"] == resource_type
    ]
    return tuple(
        sorted((tag["Key"], tag.get("Value", "")) for specification in specifications for tag in specification["Tags"])
    )


def _encode_purchase_option(instance: Instance) -> dict[str, Any]:
    """Return the fields that distinguish spot and reserved instances."""
    id_suffix = instance.instance_id.removeprefix("i-")
    if instance.capacity_type == "spot":
        return {"InstanceLifecycle": "spot", "SpotInstanceRequestId": f"sir-{id_suffix}"}
    if instance.capacity_type == "reserved":
        specification = {"CapacityReservationPreference": "capacity-reservations-only"}
        return {"CapacityReservationId": f"cr-{id_suffix}", "CapacityReservationSpecification": specification}
    return {}


def _encode_state(name: str) -> dict[str, Any]:
    return {"Code": STATE_CODES[name], "Name": name}


def _group_by_offering(instances: Iterable[FleetInstance]) -> list[list[FleetInstance]]:
    def get_offering(instance: FleetInstance) -> tuple[str, ...]:
        return (instance.instance_type, instance.zone, instance.subnet_id, instance.image_id)

    return [list(group) for _, group in groupby(sorted(instances, key=get_offering), key=get_offering)]


def _encode_launched(group: list[FleetInstance], lifecycle: str) -> ApiDict:
    first_instance = group[0]
    overrides = {
        "InstanceType": first_instance.instance_type,
        "AvailabilityZone": first_instance.zone,
        "SubnetId": first_instance.subnet_id,
        "ImageId": first_instance.image_id,
    }
    return {
        "InstanceIds": sorted(instance.instance_id for instance in group),
        "InstanceType": first_instance.instance_type,
        "Lifecycle": lifecycle,
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
    }


def _encode_error(error: FleetError, lifecycle: str) -> ApiDict:
    overrides = {"InstanceType": error.instance_type, "AvailabilityZone": error.zone, "SubnetId": error.subnet_id}
    return {
        "ErrorCode": error.code,
        "ErrorMessage": error.message,
        "Lifecycle": lifecycle,
        "LaunchTemplateAndOverrides": {"Overrides": overrides},
    }


def _encode_status(instance_status: InstanceStatus) -> dict[str, Any]:
    events = [
        {"InstanceEventId": event.event_id, "Code": event.code, "Description": "The hardware is to be retired."}
        | ({"NotBefore": event.begins_at} if event.begins_at is not None else {})
        for event in instance_status.events
    ]
    checks = {
        f"{check_name.title()}Status": _encode_check(instance_status, check_name)
        for check_name in ("instance", "system")
    }
    return {"InstanceId": instance_status.instance_id, "Events": events, **checks}


def _encode_check(instance_status: InstanceStatus, check_name: str) -> dict[str, Any]:
    since = next((check.since for check in instance_status.failed if check.kind == check_name), None)
    if since is None:
        return {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    details = [{"Name": "reachability", "Status": "failed", "ImpairedSince": since}]
    return {"Status": "impaired", "Details": details}
