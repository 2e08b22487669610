"""Values of an EC2NodeClass that the API server rejects: enums, numbers, counts; for objects from files."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from shared.model.ec2.account import SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass

_ENABLED_OR_DISABLED: Final = ("enabled", "disabled")
_VOLUME_TYPES: Final = ("gp2", "gp3", "io1", "io2", "sc1", "st1", "standard")
_MAX_SELECTOR_TERMS: Final = 30
_MAX_TAGS_PER_TERM: Final = 20
_MAX_BLOCK_DEVICES: Final = 50
_MAX_NETWORK_INTERFACES: Final = 150
_MAX_ALIAS_LENGTH: Final = 30
_MAX_VOLUME_SIZE_GIB: Final = 59_605
"""64 TB."""
_ACCOUNT_ID: Final = re.compile(r"[0-9]{12}")


def validate_spec_values(node_class: EC2NodeClass) -> Iterator[str]:
    """Yield a problem, with its field, for each value that is not allowed."""
    for path, word, allowed in _list_enum_values(node_class):
        if word not in allowed:
            yield f"spec.{path}: {word!r}: write {' or '.join(value for value in allowed if value)}"
    for path, number, low, high in _list_numbers(node_class):
        if number is not None and not low <= number <= high:
            yield f"spec.{path}: {number:,}: write {low:,} to {high:,}"
    yield from _validate_counts(node_class)
    yield from _validate_terms(node_class)


def _list_enum_values(node_class: EC2NodeClass) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield "metadataOptions.httpEndpoint", node_class.http_endpoint, _ENABLED_OR_DISABLED
    yield "metadataOptions.httpProtocolIPv6", node_class.http_protocol_ipv6, _ENABLED_OR_DISABLED
    yield "metadataOptions.httpTokens", node_class.http_tokens, ("required", "optional")
    yield "cpuOptions.nestedVirtualization", node_class.nested_virtualization, ("", *_ENABLED_OR_DISABLED)
    yield "instanceStorePolicy", node_class.instance_store_policy, ("", "RAID0")
    for number, interface in enumerate(node_class.network_interfaces):
        yield f"networkInterfaces[{number}].interfaceType", interface.interface_type, ("interface", "efa-only")
    for number, device in enumerate(node_class.block_devices):
        yield f"blockDeviceMappings[{number}].ebs.volumeType", device.volume_type, ("", *_VOLUME_TYPES)
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        path = f"capacityReservationSelectorTerms[{number}].instanceMatchCriteria"
        yield path, term.instance_match_criteria, ("", "open", "targeted")


def _list_numbers(node_class: EC2NodeClass) -> Iterator[tuple[str, int | None, int, int]]:
    max_int32 = 2**31 - 1
    yield "ipPrefixCount", node_class.ip_prefix_count, 0, max_int32
    for number, interface in enumerate(node_class.network_interfaces):
        yield f"networkInterfaces[{number}].networkCardIndex", interface.network_card_index, 0, max_int32
        yield f"networkInterfaces[{number}].deviceIndex", interface.device_index, 0, max_int32
    for number, device in enumerate(node_class.block_devices):
        path = f"blockDeviceMappings[{number}].ebs"
        yield f"{path}.volumeSize in GiB", device.volume_size_gib, 1, _MAX_VOLUME_SIZE_GIB
        yield f"{path}.volumeInitializationRate", device.volume_initialization_rate, 100, 300


def _validate_counts(node_class: EC2NodeClass) -> Iterator[str]:
    for name, entries, limit in (
        *((name, terms, _MAX_SELECTOR_TERMS) for name, terms in _list_selectors(node_class)),
        ("blockDeviceMappings", node_class.block_devices, _MAX_BLOCK_DEVICES),
        ("networkInterfaces", node_class.network_interfaces, _MAX_NETWORK_INTERFACES),
    ):
        if len(entries) > limit:
            yield f"spec.{name}: has {len(entries)} entries: write at most {limit}"
    tracking = node_class.connection_tracking
    if tracking is not None and all(
        timeout is None
        for timeout in (tracking.tcp_established_timeout, tracking.udp_stream_timeout, tracking.udp_timeout)
    ):
        yield "spec.connectionTracking: is empty: write a timeout, or remove it"


def _validate_terms(node_class: EC2NodeClass) -> Iterator[str]:
    for name, terms in _list_selectors(node_class):
        for number, term in enumerate(terms):
            yield from _validate_term(f"spec.{name}[{number}]", term)
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        if term.owner and not _ACCOUNT_ID.fullmatch(term.owner):
            path = f"spec.capacityReservationSelectorTerms[{number}].ownerID"
            yield f"{path}: {term.owner!r} is not an AWS account: write 12 digits"
    group = node_class.placement_group_selector
    if group is not None and group.id and not group.id.startswith("pg-"):
        yield (
            f"spec.placementGroupSelector.id: {group.id!r} is not a placement group id: write an id "
            "like pg-0123456789abcdef0"
        )


def _validate_term(path: str, term: SelectorTerm) -> Iterator[str]:
    if len(term.tags) > _MAX_TAGS_PER_TERM:
        yield f"{path}.tags: has {len(term.tags)} entries: write at most {_MAX_TAGS_PER_TERM}"
    if len(term.alias) > _MAX_ALIAS_LENGTH:
        yield f"{path}.alias: is longer than {_MAX_ALIAS_LENGTH} characters: write one like al2023@latest"


def _list_selectors(node_class: EC2NodeClass) -> Iterable[tuple[str, tuple[SelectorTerm, ...]]]:
    return (
        ("subnetSelectorTerms", node_class.subnet_selectors),
        ("securityGroupSelectorTerms", node_class.security_group_selectors),
        ("amiSelectorTerms", node_class.image_selectors),
        ("capacityReservationSelectorTerms", node_class.capacity_reservation_selectors),
    )
