"""EC2NodeClasses: wire JSON -> model."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shared.model.core.metadata import Pairs, build_pairs
from shared.model.core.units import BYTES_PER_GIB, is_quantity, parse_quantity
from shared.model.ec2.account import CapacityReservation, SecurityGroup, SelectorTerm, Subnet
from shared.model.ec2.launch_template import BlockDevice, ConnectionTracking, NetworkInterface
from shared.model.karpenter.node_class import FAMILY_BY_ALIAS, EC2NodeClass, KubeletConfiguration, ResolvedImage
from shared.wire.decode.core import parse_conditions, parse_object_meta, parse_requirements
from shared.wire.decode.field_errors import QUANTITY_FIX, add_field_path
from shared.wire.node_class_hash import compute_static_digest
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import Quantities


def parse_node_class(node_class: wire.NodeClassJson) -> EC2NodeClass:
    """Parse an EC2NodeClass.

    Raises:
        ValueError: a part of its spec or status cannot be parsed; the message names the field.
    """
    spec, status = _parse_spec(node_class.spec), node_class.status
    images = tuple(parse_selector_term(term) for term in spec.ami_selector_terms)
    family = spec.ami_family or find_alias_family(images)
    options = spec.metadata_options
    return EC2NodeClass(
        meta=parse_object_meta(node_class.metadata),
        ami_family=family,
        spec_ami_family=spec.ami_family,
        image_selectors=images,
        subnet_selectors=tuple(parse_selector_term(term) for term in spec.subnet_selector_terms),
        security_group_selectors=tuple(parse_selector_term(term) for term in spec.security_group_selector_terms),
        capacity_reservation_selectors=tuple(
            parse_selector_term(term) for term in spec.capacity_reservation_selector_terms
        ),
        placement_group_selector=parse_selector_term(spec.placement_group_selector)
        if spec.placement_group_selector is not None
        else None,
        role=spec.role,
        instance_profile=spec.instance_profile,
        user_data=spec.user_data,
        tags=build_pairs(spec.tags),
        kubelet=parse_kubelet(spec.kubelet),
        kubelet_text=_encode_kubelet(node_class.spec.get("kubelet")),
        block_devices=tuple(
            _parse_block_device(number, mapping) for number, mapping in enumerate(spec.block_device_mappings)
        ),
        root_devices=tuple(mapping.device_name for mapping in spec.block_device_mappings if mapping.root_volume),
        instance_store_policy=spec.instance_store_policy,
        detailed_monitoring=spec.detailed_monitoring,
        associate_public_ip_address=spec.associate_public_ip_address,
        ip_prefix_count=spec.ip_prefix_count,
        network_interfaces=tuple(
            msgspec.convert(interface, NetworkInterface, from_attributes=True) for interface in spec.network_interfaces
        ),
        connection_tracking=msgspec.convert(spec.connection_tracking, ConnectionTracking, from_attributes=True)
        if spec.connection_tracking is not None
        else None,
        nested_virtualization=spec.cpu_options.nested_virtualization,
        http_endpoint=options.http_endpoint,
        http_protocol_ipv6=options.http_protocol_ipv6,
        http_put_response_hop_limit=options.http_put_response_hop_limit,
        http_tokens=options.http_tokens,
        context=spec.context,
        spec_hash=compute_static_digest(node_class.spec, family),
        resolved_subnets=tuple(
            Subnet(subnet_id=subnet.id, zone=subnet.zone, zone_id=subnet.zone_id, available_ip_count=0)
            for subnet in status.subnets
        ),
        resolved_security_groups=tuple(
            SecurityGroup(group_id=security_group.id, name=security_group.name)
            for security_group in status.security_groups
        ),
        resolved_images=tuple(_parse_image(number, image) for number, image in enumerate(status.amis)),
        resolved_profile=status.instance_profile,
        resolved_capacity_reservations=tuple(
            _parse_reservation(reservation) for reservation in status.capacity_reservations
        ),
        conditions=parse_conditions(status.conditions),
    )


def find_alias_family(images: Iterable[SelectorTerm]) -> str:
    """Return the AMI family of the first alias in *images*, or ``Custom`` if there is no alias or it is unknown."""
    alias = next((image.alias for image in images if image.alias), "")
    return FAMILY_BY_ALIAS.get(alias.partition("@")[0].lower(), "Custom")


def parse_selector_term(term: wire.SelectorTermJson) -> SelectorTerm:
    """Parse a selector term."""
    return SelectorTerm(
        id=term.id,
        name=term.name,
        owner=term.owner or term.owner_id,
        instance_match_criteria=term.instance_match_criteria,
        alias=term.alias,
        ssm_parameter=term.ssm_parameter,
        tags=build_pairs(term.tags),
    )


def parse_kubelet(kubelet: wire.KubeletConfigurationJson) -> KubeletConfiguration:
    """Parse spec.kubelet; expressions for maxPods and reserved amounts count as unset."""
    return KubeletConfiguration(
        cluster_dns=kubelet.cluster_dns,
        max_pods=kubelet.max_pods if isinstance(kubelet.max_pods, int) else None,
        pods_per_core=kubelet.pods_per_core,
        kube_reserved=_select_reserved_quantities(kubelet.kube_reserved),
        system_reserved=_select_reserved_quantities(kubelet.system_reserved),
        eviction_hard=_convert_quantities(kubelet.eviction_hard),
        eviction_soft=_convert_quantities(kubelet.eviction_soft),
        eviction_soft_grace_period=build_pairs(kubelet.eviction_soft_grace_period),
        eviction_max_pod_grace_period=kubelet.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent=kubelet.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent=kubelet.image_gc_low_threshold_percent,
        cpu_cfs_quota=kubelet.cpu_cfs_quota,
    )


def _parse_spec(spec: Mapping[str, Any]) -> wire.NodeClassSpecJson:
    try:
        return msgspec.convert(spec, type=wire.NodeClassSpecJson)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$", "`$.spec")) from None


def _parse_block_device(number: int, mapping: wire.BlockDeviceMappingJson) -> BlockDevice:
    ebs = mapping.ebs
    return BlockDevice(
        device_name=mapping.device_name,
        volume_size_gib=_parse_gib(f"spec.blockDeviceMappings[{number}].ebs.volumeSize", ebs.volume_size),
        volume_type=ebs.volume_type,
        encrypted=ebs.encrypted,
        delete_on_termination=ebs.delete_on_termination,
        iops=ebs.iops,
        throughput=ebs.throughput,
        kms_key_id=ebs.kms_key_id,
        snapshot_id=ebs.snapshot_id,
        volume_initialization_rate=ebs.volume_initialization_rate,
    )


def _parse_gib(path: str, size: str | int | None) -> int | None:
    if size is None:
        return None
    with add_field_path(path, QUANTITY_FIX):
        return math.ceil(parse_quantity(str(size)) / BYTES_PER_GIB)


def _parse_image(number: int, image: wire.StatusImageJson) -> ResolvedImage:
    return ResolvedImage(
        image_id=image.id,
        name=image.name,
        requirements=parse_requirements(f"status.amis[{number}].requirements", image.requirements),
        deprecated=image.deprecated,
    )


def _parse_reservation(reservation: wire.StatusReservationJson) -> CapacityReservation:
    return CapacityReservation(
        reservation_id=reservation.id,
        instance_type=reservation.instance_type,
        zone=reservation.availability_zone,
        owner_id=reservation.owner_id,
        instance_match_criteria=reservation.instance_match_criteria,
        reservation_type=reservation.reservation_type,
        is_interruptible=reservation.interruptible,
        ends_at=reservation.end_time,
        state=reservation.state,
    )


def _encode_kubelet(kubelet: object) -> str:
    return msgspec.json.encode(kubelet, order="sorted").decode() if kubelet else ""


def _select_reserved_quantities(quantities: Quantities) -> Pairs:
    return tuple((name, text) for name, text in _convert_quantities(quantities) if is_quantity(text))


def _convert_quantities(quantities: Quantities) -> Pairs:
    return build_pairs({name: str(amount) for name, amount in quantities.items()})
