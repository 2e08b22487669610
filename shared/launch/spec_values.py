"""Values of an EC2NodeClass that the API server refuses, for objects that come from files: words, numbers, counts."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from shared.model.ec2 import Selector
from shared.model.nodeclasses import EC2NodeClass

_SWITCH: Final = ("enabled", "disabled")
_VOLUMES: Final = ("gp2", "gp3", "io1", "io2", "sc1", "st1", "standard")
_MOST_TERMS: Final = 30
_MOST_TAGS: Final = 20
_MOST_DEVICES: Final = 50
_MOST_INTERFACES: Final = 150
_LONGEST_ALIAS: Final = 30
_LARGEST_GIB: Final = 59_605
"""64 TB."""
_OWNER: Final = re.compile(r"[0-9]{12}")


def value_problems(node_class: EC2NodeClass) -> Iterator[str]:
    """Iterate over values that are none of those allowed, each with its field."""
    for path, word, allowed in _words(node_class):
        if word not in allowed:
            yield f"spec.{path}: {word!r}: write {' or '.join(one for one in allowed if one)}"
    for path, number, low, high in _numbers(node_class):
        if number is not None and not low <= number <= high:
            yield f"spec.{path}: {number:,}: write {low:,} to {high:,}"
    yield from _counts(node_class)
    yield from _terms(node_class)


def _words(node_class: EC2NodeClass) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield "metadataOptions.httpEndpoint", node_class.http_endpoint, _SWITCH
    yield "metadataOptions.httpProtocolIPv6", node_class.http_protocol_ipv6, _SWITCH
    yield "metadataOptions.httpTokens", node_class.http_tokens, ("required", "optional")
    yield "cpuOptions.nestedVirtualization", node_class.nested_virtualization, ("", *_SWITCH)
    yield "instanceStorePolicy", node_class.instance_store_policy, ("", "RAID0")
    for number, one in enumerate(node_class.network_interfaces):
        yield f"networkInterfaces[{number}].interfaceType", one.interface_type, ("interface", "efa-only")
    for number, device in enumerate(node_class.block_devices):
        yield f"blockDeviceMappings[{number}].ebs.volumeType", device.volume_type, _VOLUMES
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        path = f"capacityReservationSelectorTerms[{number}].instanceMatchCriteria"
        yield path, term.instance_match_criteria, ("", "open", "targeted")


def _numbers(node_class: EC2NodeClass) -> Iterator[tuple[str, int | None, int, int]]:
    many = 2**31 - 1
    yield "ipPrefixCount", node_class.ip_prefix_count, 0, many
    for number, one in enumerate(node_class.network_interfaces):
        yield f"networkInterfaces[{number}].networkCardIndex", one.network_card_index, 0, many
        yield f"networkInterfaces[{number}].deviceIndex", one.device_index, 0, many
    for number, device in enumerate(node_class.block_devices):
        path = f"blockDeviceMappings[{number}].ebs"
        yield f"{path}.volumeSize in GiB", device.volume_size_gib, 1, _LARGEST_GIB
        yield f"{path}.volumeInitializationRate", device.volume_initialization_rate, 100, 300


def _counts(node_class: EC2NodeClass) -> Iterator[str]:
    for name, some, most in (
        *((name, terms, _MOST_TERMS) for name, terms in _lists(node_class)),
        ("blockDeviceMappings", node_class.block_devices, _MOST_DEVICES),
        ("networkInterfaces", node_class.network_interfaces, _MOST_INTERFACES),
    ):
        if len(some) > most:
            yield f"spec.{name}: has {len(some)} entries: write at most {most}"
    tracking = node_class.connection_tracking
    if tracking is not None and all(
        one is None for one in (tracking.tcp_established_timeout, tracking.udp_stream_timeout, tracking.udp_timeout)
    ):
        yield "spec.connectionTracking: says nothing: write a timeout, or remove it"


def _terms(node_class: EC2NodeClass) -> Iterator[str]:
    for name, terms in _lists(node_class):
        for number, term in enumerate(terms):
            yield from _term(f"spec.{name}[{number}]", term)
    for number, term in enumerate(node_class.capacity_reservation_selectors):
        if term.owner and not _OWNER.fullmatch(term.owner):
            path = f"spec.capacityReservationSelectorTerms[{number}].ownerID"
            yield f"{path}: {term.owner!r} is no account: write its twelve digits"
    group = node_class.placement_group_selector
    if group is not None and group.id and not group.id.startswith("pg-"):
        yield f"spec.placementGroupSelector.id: {group.id!r} is no id: write one like pg-0123456789abcdef0"


def _term(path: str, term: Selector) -> Iterator[str]:
    if len(term.tags) > _MOST_TAGS:
        yield f"{path}.tags: has {len(term.tags)} entries: write at most {_MOST_TAGS}"
    if len(term.alias) > _LONGEST_ALIAS:
        yield f"{path}.alias: is longer than {_LONGEST_ALIAS} characters: write one like al2023@latest"


def _lists(node_class: EC2NodeClass) -> Iterable[tuple[str, tuple[Selector, ...]]]:
    return (
        ("subnetSelectorTerms", node_class.subnet_selectors),
        ("securityGroupSelectorTerms", node_class.security_group_selectors),
        ("amiSelectorTerms", node_class.image_selectors),
        ("capacityReservationSelectorTerms", node_class.capacity_reservation_selectors),
    )
