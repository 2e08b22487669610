"""The launch template calls."""

from typing import Any

from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, LaunchTemplate, NetworkInterface
from shared.model.ec2.types import CapacityType, ReservationType, Tags
from sim.aws_http.filters_and_pages import build_page, encode_tags
from sim.aws_http.instance_calls import parse_tags
from sim.aws_http.protocol import ApiDict, ApiError, NotOurs
from sim.cloud.cloud import Cloud


class LaunchTemplateApi:
    """Handlers of the calls; each takes the parameters of a call and returns its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Use *cloud* as the backend."""
        self._cloud = cloud

    def create_launch_template(self, parameters: ApiDict) -> ApiDict:
        """CreateLaunchTemplate."""
        return {
            "LaunchTemplate": self._encode_template(
                self._cloud.create_launch_template(parse_launch_template(parameters))
            )
        }

    def describe_launch_templates(self, parameters: ApiDict) -> ApiDict:
        """DescribeLaunchTemplates by names or by tags.

        Raises:
            ApiError: neither names nor tags are given.
        """
        tags = [(filter_item["Name"], filter_item["Values"]) for filter_item in parameters.get("Filters", ())]
        if parameters.get("LaunchTemplateNames"):
            templates = [self._cloud.templates.find(name) for name in parameters["LaunchTemplateNames"]]
        elif tags and all(name.startswith("tag:") for name, _ in tags):
            templates = self._find_by_tags([(name.removeprefix("tag:"), values) for name, values in tags])
        else:
            raise ApiError("InvalidParameterValue", "templates are described by name or by tag here")
        return build_page(
            [self._encode_template(template) for template in templates], parameters, "LaunchTemplates", 200
        )

    def delete_launch_template(self, parameters: ApiDict) -> ApiDict:
        """DeleteLaunchTemplate by name."""
        template = self._cloud.templates.find(parameters.get("LaunchTemplateName", ""))
        self._cloud.templates.delete(template.name)
        return {"LaunchTemplate": self._encode_template(template)}

    def run_instances(self, parameters: ApiDict) -> ApiDict:
        """RunInstances; a dry run is decided before this handler is called.

        Raises:
            NotOurs: it is not a dry run.
        """
        del parameters
        raise NotOurs

    def _find_by_tags(self, tag_filters: list[tuple[str, list[str]]]) -> list[LaunchTemplate]:
        (key, values), *other_filters = tag_filters
        templates = [template for value in values for template in self._cloud.templates.list_by_tag(key, value)]
        return [
            template
            for template in templates
            if all(dict(template.tags).get(key) in allowed_values for key, allowed_values in other_filters)
        ]

    def _encode_template(self, template: LaunchTemplate) -> ApiDict:
        return {
            "LaunchTemplateId": self._cloud.templates.build_template_id(template.name),
            "LaunchTemplateName": template.name,
            "CreateTime": template.created_at,
            "DefaultVersionNumber": 1,
            "LatestVersionNumber": 1,
            "Tags": encode_tags(template.tags),
        }


def parse_launch_template(parameters: ApiDict) -> LaunchTemplate:
    """Return the launch template of a CreateLaunchTemplate call."""
    return _build_launch_template(
        parameters["LaunchTemplateName"], parameters["LaunchTemplateData"], parse_tags("launch-template", parameters)
    )


def parse_run_instances(parameters: ApiDict) -> tuple[LaunchTemplate, str, str]:
    """Return the launch template, the instance type and the subnet of a RunInstances call."""
    template = _build_launch_template("inline/run", parameters, parse_tags("instance", parameters))
    return (
        template,
        parameters.get("InstanceType", ""),
        str(_get_primary_interface(parameters).get("SubnetId") or parameters.get("SubnetId", "")),
    )


def _build_launch_template(name: str, data: ApiDict, tags: Tags) -> LaunchTemplate:
    options, interface = data.get("MetadataOptions", {}), _get_primary_interface(data)
    is_ipv6 = "PrimaryIpv6" in interface
    return LaunchTemplate(
        name=name,
        image_id=data.get("ImageId", ""),
        user_data=data.get("UserData", ""),
        instance_profile=data.get("IamInstanceProfile", {}).get("Name", ""),
        security_group_ids=tuple(interface.get("Groups", ())),
        block_devices=tuple(_parse_block_device(mapping) for mapping in data.get("BlockDeviceMappings", ())),
        detailed_monitoring=data.get("Monitoring", {}).get("Enabled", False),
        http_endpoint=options.get("HttpEndpoint", "enabled"),
        http_protocol_ipv6=options.get("HttpProtocolIpv6", "disabled"),
        http_put_response_hop_limit=options.get("HttpPutResponseHopLimit", 1),
        http_tokens=options.get("HttpTokens", "optional"),
        associate_public_ip_address=interface.get("AssociatePublicIpAddress"),
        ip_prefix_count=interface.get("Ipv6PrefixCount" if is_ipv6 else "Ipv4PrefixCount"),
        is_ipv6=is_ipv6,
        network_interfaces=_parse_interfaces(data),
        connection_tracking=_parse_connection_tracking(interface.get("ConnectionTrackingSpecification")),
        nested_virtualization=data.get("CpuOptions", {}).get("NestedVirtualization", ""),
        efa_interfaces=sum(
            interface_spec.get("InterfaceType") == "efa" for interface_spec in data.get("NetworkInterfaces", ())
        ),
        enclaves=data.get("EnclaveOptions", {}).get("Enabled", False),
        placement_group_id=data.get("Placement", {}).get("GroupId", ""),
        partition_number=data.get("Placement", {}).get("PartitionNumber"),
        tenancy=data.get("Placement", {}).get("Tenancy", "default"),
        capacity_type=_get_capacity_type(data),
        reservation_id=_get_reservation_spec(data)
        .get("CapacityReservationTarget", {})
        .get("CapacityReservationId", ""),
        reservation_type=_get_reservation_type(data),
        uses_open_reservations=_get_reservation_spec(data).get("CapacityReservationPreference", "open") == "open",
        tags=tags,
    )


def _get_primary_interface(data: ApiDict) -> dict[str, Any]:
    """Return the primary network interface.

    Raises:
        ApiError: security groups are specified in two places.
    """
    interfaces: list[dict[str, Any]] = data.get("NetworkInterfaces", [])
    if interfaces and data.get("SecurityGroupIds"):
        text = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise ApiError("InvalidParameterCombination", text)
    default = {"Groups": data.get("SecurityGroupIds", [])}
    return next((interface_spec for interface_spec in interfaces if interface_spec.get("DeviceIndex") == 0), default)


def _parse_interfaces(data: ApiDict) -> tuple[NetworkInterface, ...]:
    """Return the network interfaces whose type is specified and is not EFA."""
    return tuple(
        NetworkInterface(
            network_card_index=interface_spec.get("NetworkCardIndex", 0),
            device_index=interface_spec.get("DeviceIndex", 0),
            interface_type=interface_spec["InterfaceType"],
        )
        for interface_spec in data.get("NetworkInterfaces", ())
        if interface_spec.get("InterfaceType", "efa") != "efa"
    )


def _parse_connection_tracking(specification: ApiDict | None) -> ConnectionTracking | None:
    if specification is None:
        return None
    return ConnectionTracking(
        tcp_established_timeout=specification.get("TcpEstablishedTimeout"),
        udp_stream_timeout=specification.get("UdpStreamTimeout"),
        udp_timeout=specification.get("UdpTimeout"),
    )


def _get_capacity_type(data: ApiDict) -> CapacityType:
    """Return the capacity type of the launch template, from its tags and its reservation."""
    if parse_tags("spot-instances-request", data):
        return "spot"
    is_reserved_only = _get_reservation_spec(data).get("CapacityReservationPreference") == "capacity-reservations-only"
    return "reserved" if is_reserved_only else "on-demand"


def _get_reservation_spec(data: ApiDict) -> ApiDict:
    specification: ApiDict = data.get("CapacityReservationSpecification", {})
    return specification


def _get_reservation_type(data: ApiDict) -> ReservationType:
    market = data.get("InstanceMarketOptions", {}).get("MarketType", "")
    if market == "capacity-block":
        return "capacity-block"
    if market == "interruptible-capacity-reservation":
        return "interruptible"
    return "default" if _get_capacity_type(data) == "reserved" else ""


def _parse_block_device(mapping: ApiDict) -> BlockDevice:
    ebs = mapping.get("Ebs", {})
    return BlockDevice(
        device_name=mapping.get("DeviceName", ""),
        volume_size_gib=ebs.get("VolumeSize"),
        volume_type=ebs.get("VolumeType", ""),
        encrypted=ebs.get("Encrypted"),
        delete_on_termination=ebs.get("DeleteOnTermination"),
        iops=ebs.get("Iops"),
        throughput=ebs.get("Throughput"),
        kms_key_id=ebs.get("KmsKeyId", ""),
        snapshot_id=ebs.get("SnapshotId", ""),
        volume_initialization_rate=ebs.get("VolumeInitializationRate"),
    )
