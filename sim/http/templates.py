"""Launch templates on the wire."""

from typing import Any

from shared.model.ec2 import (
    BlockDevice,
    CapacityType,
    ConnectionTracking,
    LaunchTemplate,
    NetworkInterface,
    ReservationType,
    Tags,
)
from sim.cloud.cloud import Cloud
from sim.http.instances import tags_for
from sim.http.protocol import ApiError, NotOurs
from sim.http.queries import Wire, page, tags_to_wire


class TemplateCalls:
    """The handlers; each takes the call's parameters and answers its result."""

    def __init__(self, cloud: Cloud) -> None:
        """Answer from *cloud*."""
        self._cloud = cloud

    def create_launch_template(self, said: Wire) -> Wire:
        """CreateLaunchTemplate."""
        return {"LaunchTemplate": self._wire(self._cloud.create_launch_template(template_from(said)))}

    def describe_launch_templates(self, said: Wire) -> Wire:
        """DescribeLaunchTemplates by names, or by tags.

        Raises:
            ApiError: neither names nor tags are given.
        """
        tags = [(each["Name"], each["Values"]) for each in said.get("Filters", ())]
        if said.get("LaunchTemplateNames"):
            found = [self._cloud.templates.find(name) for name in said["LaunchTemplateNames"]]
        elif tags and all(name.startswith("tag:") for name, _ in tags):
            found = self._tagged([(name.removeprefix("tag:"), values) for name, values in tags])
        else:
            raise ApiError("InvalidParameterValue", "templates are described by name or by tag here")
        return page([self._wire(template) for template in found], said, "LaunchTemplates", 200)

    def delete_launch_template(self, said: Wire) -> Wire:
        """DeleteLaunchTemplate by name."""
        template = self._cloud.templates.find(said.get("LaunchTemplateName", ""))
        self._cloud.templates.delete(template.name)
        return {"LaunchTemplate": self._wire(template)}

    def run_instances(self, said: Wire) -> Wire:
        """RunInstances is judged here, with DryRun, before it comes to this.

        Raises:
            NotOurs: it is meant.
        """
        del said
        raise NotOurs

    def _tagged(self, wanted: list[tuple[str, list[str]]]) -> list[LaunchTemplate]:
        (key, values), *others = wanted
        found = [template for value in values for template in self._cloud.templates.tagged(key, value)]
        return [template for template in found if all(dict(template.tags).get(key) in some for key, some in others)]

    def _wire(self, template: LaunchTemplate) -> Wire:
        return {
            "LaunchTemplateId": self._cloud.templates.template_id(template.name),
            "LaunchTemplateName": template.name,
            "CreateTime": template.created_at,
            "DefaultVersionNumber": 1,
            "LatestVersionNumber": 1,
            "Tags": tags_to_wire(template.tags),
        }


def template_from(said: Wire) -> LaunchTemplate:
    """Answer the template that CreateLaunchTemplate says."""
    return _launch_template(said["LaunchTemplateName"], said["LaunchTemplateData"], tags_for("launch-template", said))


def run_from(said: Wire) -> tuple[LaunchTemplate, str, str]:
    """Answer what RunInstances says, as a template, the type and the subnet."""
    template = _launch_template("inline/run", said, tags_for("instance", said))
    return template, said.get("InstanceType", ""), str(_primary(said).get("SubnetId") or said.get("SubnetId", ""))


def _launch_template(name: str, data: Wire, tags: Tags) -> LaunchTemplate:
    options, interface = data.get("MetadataOptions", {}), _primary(data)
    is_ipv6 = "PrimaryIpv6" in interface
    return LaunchTemplate(
        name=name,
        image_id=data.get("ImageId", ""),
        user_data=data.get("UserData", ""),
        instance_profile=data.get("IamInstanceProfile", {}).get("Name", ""),
        security_group_ids=tuple(interface.get("Groups", ())),
        block_devices=tuple(_block_device(each) for each in data.get("BlockDeviceMappings", ())),
        detailed_monitoring=data.get("Monitoring", {}).get("Enabled", False),
        http_endpoint=options.get("HttpEndpoint", "enabled"),
        http_protocol_ipv6=options.get("HttpProtocolIpv6", "disabled"),
        http_put_response_hop_limit=options.get("HttpPutResponseHopLimit", 1),
        http_tokens=options.get("HttpTokens", "optional"),
        associate_public_ip_address=interface.get("AssociatePublicIpAddress"),
        ip_prefix_count=interface.get("Ipv6PrefixCount" if is_ipv6 else "Ipv4PrefixCount"),
        is_ipv6=is_ipv6,
        network_interfaces=_interfaces(data),
        connection_tracking=_tracking(interface.get("ConnectionTrackingSpecification")),
        nested_virtualization=data.get("CpuOptions", {}).get("NestedVirtualization", ""),
        efa_interfaces=sum(each.get("InterfaceType") == "efa" for each in data.get("NetworkInterfaces", ())),
        enclaves=data.get("EnclaveOptions", {}).get("Enabled", False),
        placement_group_id=data.get("Placement", {}).get("GroupId", ""),
        partition_number=data.get("Placement", {}).get("PartitionNumber"),
        tenancy=data.get("Placement", {}).get("Tenancy", "default"),
        capacity_type=_capacity_type(data),
        reservation_id=_reservation(data).get("CapacityReservationTarget", {}).get("CapacityReservationId", ""),
        reservation_type=_reservation_type(data),
        uses_open_reservations=_reservation(data).get("CapacityReservationPreference", "open") == "open",
        tags=tags,
    )


def _primary(data: Wire) -> dict[str, Any]:
    """Answer the primary interface.

    Raises:
        ApiError: security groups are said in two places.
    """
    interfaces: list[dict[str, Any]] = data.get("NetworkInterfaces", [])
    if interfaces and data.get("SecurityGroupIds"):
        text = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise ApiError("InvalidParameterCombination", text)
    default = {"Groups": data.get("SecurityGroupIds", [])}
    return next((each for each in interfaces if each.get("DeviceIndex") == 0), default)


def _interfaces(data: Wire) -> tuple[NetworkInterface, ...]:
    """Answer the interfaces, if the template says of what type they are."""
    return tuple(
        NetworkInterface(
            network_card_index=each.get("NetworkCardIndex", 0),
            device_index=each.get("DeviceIndex", 0),
            interface_type=each["InterfaceType"],
        )
        for each in data.get("NetworkInterfaces", ())
        if each.get("InterfaceType", "efa") != "efa"
    )


def _tracking(said: Wire | None) -> ConnectionTracking | None:
    if said is None:
        return None
    return ConnectionTracking(
        tcp_established_timeout=said.get("TcpEstablishedTimeout"),
        udp_stream_timeout=said.get("UdpStreamTimeout"),
        udp_timeout=said.get("UdpTimeout"),
    )


def _capacity_type(data: Wire) -> CapacityType:
    """Answer what the template can be used for: its tags and its reservation say it."""
    if tags_for("spot-instances-request", data):
        return "spot"
    only = _reservation(data).get("CapacityReservationPreference") == "capacity-reservations-only"
    return "reserved" if only else "on-demand"


def _reservation(data: Wire) -> Wire:
    said: Wire = data.get("CapacityReservationSpecification", {})
    return said


def _reservation_type(data: Wire) -> ReservationType:
    market = data.get("InstanceMarketOptions", {}).get("MarketType", "")
    if market == "capacity-block":
        return "capacity-block"
    if market == "interruptible-capacity-reservation":
        return "interruptible"
    return "default" if _capacity_type(data) == "reserved" else ""


def _block_device(said: Wire) -> BlockDevice:
    ebs = said.get("Ebs", {})
    return BlockDevice(
        device_name=said.get("DeviceName", ""),
        volume_size_gib=ebs.get("VolumeSize"),
        volume_type=ebs.get("VolumeType", "gp2"),
        encrypted=ebs.get("Encrypted", False),
        delete_on_termination=ebs.get("DeleteOnTermination"),
        iops=ebs.get("Iops"),
        throughput=ebs.get("Throughput"),
        kms_key_id=ebs.get("KmsKeyId", ""),
        snapshot_id=ebs.get("SnapshotId", ""),
        volume_initialization_rate=ebs.get("VolumeInitializationRate"),
    )
