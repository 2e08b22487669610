"""EC2NodeClasses: wire -> model."""

import math
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from shared.model.ec2 import (
    BlockDevice,
    CapacityReservation,
    ConnectionTracking,
    NetworkInterface,
    SecurityGroup,
    Selector,
    Subnet,
)
from shared.model.nodeclasses import EC2NodeClass, Kubelet, ResolvedImage
from shared.model.objects import Pairs, pairs
from shared.model.units import is_quantity, parse_quantity
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.core import conditions_from_wire, meta_from_wire, requirements_from_wire
from shared.snapshot.fields import QUANTITY, at
from shared.snapshot.wire_core import Quantities

ALIAS_FAMILIES: Final = {
    "al2": "AL2",
    "al2023": "AL2023",
    "bottlerocket": "Bottlerocket",
    "windows2019": "Windows2019",
    "windows2022": "Windows2022",
    "windows2025": "Windows2025",
}
_GIB: Final = 1024**3
_NOT_HASHED: Final = frozenset(
    (
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "capacityReservationSelectorTerms",
        "amiSelectorTerms",
        "ipPrefixCount",
        "amiFamily",
    )
)
_METADATA_DEFAULTS: Final = {
    "httpEndpoint": "enabled",
    "httpProtocolIPv6": "disabled",
    "httpPutResponseHopLimit": 1,
    "httpTokens": "required",
}


def node_class_from_wire(node_class: wire.NodeClass) -> EC2NodeClass:
    """Read an EC2NodeClass.

    Raises:
        ValueError: a part of its spec or status cannot be read; the message names the field.
    """
    spec, status = _spec(node_class.spec), node_class.status
    images = tuple(selector_from_term(term) for term in spec.ami_selector_terms)
    family = spec.ami_family or alias_family(images)
    options = spec.metadata_options
    return EC2NodeClass(
        meta=meta_from_wire(node_class.metadata),
        ami_family=family,
        written_family=spec.ami_family,
        image_selectors=images,
        subnet_selectors=tuple(selector_from_term(term) for term in spec.subnet_selector_terms),
        security_group_selectors=tuple(selector_from_term(term) for term in spec.security_group_selector_terms),
        capacity_reservation_selectors=tuple(
            selector_from_term(term) for term in spec.capacity_reservation_selector_terms
        ),
        placement_group_selector=selector_from_term(spec.placement_group_selector)
        if spec.placement_group_selector is not None
        else None,
        role=spec.role,
        instance_profile=spec.instance_profile,
        user_data=spec.user_data,
        tags=pairs(spec.tags),
        kubelet=kubelet_from_wire(spec.kubelet),
        kubelet_text=_text(node_class.spec.get("kubelet")),
        block_devices=tuple(_block_device(number, one) for number, one in enumerate(spec.block_device_mappings)),
        root_devices=tuple(one.device_name for one in spec.block_device_mappings if one.root_volume),
        instance_store_policy=spec.instance_store_policy,
        detailed_monitoring=spec.detailed_monitoring,
        associate_public_ip_address=spec.associate_public_ip_address,
        ip_prefix_count=spec.ip_prefix_count,
        network_interfaces=tuple(
            msgspec.convert(one, NetworkInterface, from_attributes=True) for one in spec.network_interfaces
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
        hashed=static_digest(node_class.spec, family),
        resolved_subnets=tuple(
            Subnet(subnet_id=one.id, zone=one.zone, zone_id=one.zone_id, available_ip_count=0) for one in status.subnets
        ),
        resolved_security_groups=tuple(SecurityGroup(group_id=one.id, name=one.name) for one in status.security_groups),
        resolved_images=tuple(_image(number, one) for number, one in enumerate(status.amis)),
        resolved_profile=status.instance_profile,
        resolved_capacity_reservations=tuple(_reservation(one) for one in status.capacity_reservations),
        conditions=conditions_from_wire(status.conditions),
    )


def alias_family(images: Iterable[Selector]) -> str:
    """Answer the family of the first alias among *images*, ``Custom`` if there is none that is known."""
    alias = next((image.alias for image in images if image.alias), "")
    return ALIAS_FAMILIES.get(alias.partition("@")[0].lower(), "Custom")


def selector_from_term(term: wire.Term) -> Selector:
    """Read a selector term."""
    return Selector(
        id=term.id,
        name=term.name,
        owner=term.owner or term.owner_id,
        instance_match_criteria=term.instance_match_criteria,
        alias=term.alias,
        ssm_parameter=term.ssm_parameter,
        tags=pairs(term.tags),
    )


def kubelet_from_wire(kubelet: wire.Kubelet) -> Kubelet:
    """Read spec.kubelet; expressions, which may stand for maxPods and reserved amounts, count as unset."""
    return Kubelet(
        cluster_dns=kubelet.cluster_dns,
        max_pods=kubelet.max_pods if isinstance(kubelet.max_pods, int) else None,
        pods_per_core=kubelet.pods_per_core,
        kube_reserved=_reserved(kubelet.kube_reserved),
        system_reserved=_reserved(kubelet.system_reserved),
        eviction_hard=_texts(kubelet.eviction_hard),
        eviction_soft=_texts(kubelet.eviction_soft),
        eviction_soft_grace_period=pairs(kubelet.eviction_soft_grace_period),
        eviction_max_pod_grace_period=kubelet.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent=kubelet.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent=kubelet.image_gc_low_threshold_percent,
        cpu_cfs_quota=kubelet.cpu_cfs_quota,
    )


def static_digest(spec: Mapping[str, Any], family: str) -> str:
    """Answer what changes when the part of *spec* changes that nodes are made of.

    Selectors do not count, since what they select is compared itself. Neither does the order of a list or a map, nor
    whether an empty value is written or left out.
    """
    counted = {key: value for key, value in spec.items() if key not in _NOT_HASHED}
    counted["metadataOptions"] = _METADATA_DEFAULTS | (counted.get("metadataOptions") or {})
    text = msgspec.json.encode([family, _canonical(counted)], order="deterministic")
    return sha256(text).hexdigest()[:32]


def _spec(spec: Mapping[str, Any]) -> wire.NodeClassSpec:
    try:
        return msgspec.convert(spec, type=wire.NodeClassSpec)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$", "`$.spec")) from None


def _block_device(number: int, mapping: wire.BlockDeviceMapping) -> BlockDevice:
    ebs = mapping.ebs
    return BlockDevice(
        device_name=mapping.device_name,
        volume_size_gib=_gib(f"spec.blockDeviceMappings[{number}].ebs.volumeSize", ebs.volume_size),
        volume_type=ebs.volume_type,
        encrypted=ebs.encrypted,
        delete_on_termination=ebs.delete_on_termination,
        iops=ebs.iops,
        throughput=ebs.throughput,
        kms_key_id=ebs.kms_key_id,
        snapshot_id=ebs.snapshot_id,
        volume_initialization_rate=ebs.volume_initialization_rate,
    )


def _gib(path: str, size: str | int | None) -> int | None:
    if size is None:
        return None
    with at(path, QUANTITY):
        return math.ceil(parse_quantity(str(size)) / _GIB)


def _image(number: int, image: wire.StatusImage) -> ResolvedImage:
    return ResolvedImage(
        image_id=image.id,
        name=image.name,
        requirements=requirements_from_wire(f"status.amis[{number}].requirements", image.requirements),
        deprecated=image.deprecated,
    )


def _reservation(one: wire.StatusReservation) -> CapacityReservation:
    return CapacityReservation(
        reservation_id=one.id,
        instance_type=one.instance_type,
        zone=one.availability_zone,
        owner_id=one.owner_id,
        instance_match_criteria=one.instance_match_criteria,
        reservation_type=one.reservation_type,
        is_interruptible=one.interruptible,
        ends_at=one.end_time,
        state=one.state,
    )


def _text(kubelet: object) -> str:
    return msgspec.json.encode(kubelet, order="sorted").decode() if kubelet else ""


def _reserved(quantities: Quantities) -> Pairs:
    return tuple((name, text) for name, text in _texts(quantities) if is_quantity(text))


def _texts(quantities: Quantities) -> Pairs:
    return pairs({name: str(amount) for name, amount in quantities.items()})


def _canonical(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        parts = {key: _canonical(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part}
    if isinstance(value, list):
        return sorted((_canonical(part) for part in value), key=lambda part: msgspec.json.encode(part, order="sorted"))
    return value
