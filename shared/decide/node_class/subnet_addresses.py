"""Subnets of a node class without free IP addresses: messages, events, and zones in which nothing can be launched.

DescribeSubnets counts the addresses (`AvailableIpAddressCount`). Prefix delegation is not considered: a subnet may be
too fragmented for a /28 prefix although it has 16 free addresses.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from shared.decide.common.events import build_event
from shared.decide.launch.fleets.fleet_errors import NO_ADDRESSES_CODE
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import find_condition
from shared.model.decisions.action import MarkUnavailable, PublishEvent
from shared.model.ec2.account import Subnet

MIN_FREE_ADDRESSES: Final = 16
"""Per zone. The VPC CNI takes the addresses of a node by network interface (10 of an m5.large) or by /28 prefix (16):
with fewer, the next node may get no addresses for its pods.
"""
EXHAUSTED_ZONE_TTL: Final = timedelta(minutes=6)
"""A little longer than the interval of the catalog function, which reads the free addresses."""
LOW_ADDRESSES_REASON: Final = "SubnetAddressesLow"


def describe_low_addresses(subnets: Iterable[Subnet]) -> str:
    """Return which subnets have no free address and which zones have few; "" if there are none.

    The message has no counts, so that it changes only when there is something new to say.
    """
    subnets = sorted(subnets)
    exhausted_subnets = [subnet for subnet in subnets if subnet.available_ip_count <= 0]
    low_zones = [zone for zone, count in count_addresses_by_zone(subnets).items() if 0 < count < MIN_FREE_ADDRESSES]
    parts = []
    if exhausted_subnets:
        names = ", ".join(f"{subnet.subnet_id} ({subnet.zone})" for subnet in exhausted_subnets)
        parts.append(f"no free IP addresses in {names}")
    if low_zones:
        parts.append(f"fewer than {MIN_FREE_ADDRESSES} free IP addresses in {', '.join(low_zones)}")
    return f"{'; '.join(parts)}: add subnets, or a secondary CIDR block to the VPC" if parts else ""


def count_addresses_by_zone(subnets: Iterable[Subnet]) -> Mapping[str, int]:
    """Return the free addresses of *subnets* by zone, sorted by zone."""
    counts: dict[str, int] = {}
    for subnet in subnets:
        counts[subnet.zone] = counts.get(subnet.zone, 0) + max(0, subnet.available_ip_count)
    return dict(sorted(counts.items()))


def plan_exhausted_zones(
    cluster: ClusterSnapshot, answers_by_class: Iterable[tuple[str, NodeClassAnswers]]
) -> tuple[MarkUnavailable, ...]:
    """Mark each zone as unavailable in which no subnet of any node class has a free address.

    A mark is valid for all node classes. If only one class has no addresses in a zone, its launches skip the zone.
    """
    subnets = sorted({subnet for _, answers in answers_by_class for subnet in answers.subnets or ()})
    until = cluster.taken_at + EXHAUSTED_ZONE_TTL
    return tuple(
        MarkUnavailable(
            offering=UnavailableOffering(capacity_type="", zone=zone, until=until),
            message=f"{NO_ADDRESSES_CODE}: {describe_low_addresses(item for item in subnets if item.zone == zone)}",
        )
        for zone, count in count_addresses_by_zone(subnets).items()
        if count == 0
    )


def build_address_events(
    cluster: ClusterSnapshot, answers_by_class: Iterable[tuple[str, NodeClassAnswers]]
) -> tuple[PublishEvent, ...]:
    """Return a warning event for each node class whose message about free addresses is new."""
    classes = {node_class.name: node_class for node_class in cluster.node_classes}
    events = []
    for name, answers in answers_by_class:
        message = describe_low_addresses(answers.subnets or ())
        node_class = classes.get(name)
        condition = find_condition(node_class.conditions, "SubnetsReady") if node_class is not None else None
        if node_class is not None and message and (condition is None or condition.message != message):
            event = build_event(
                "EC2NodeClass", node_class.meta, LOW_ADDRESSES_REASON, message, cluster.taken_at, type_="Warning"
            )
            events.append(event)
    return tuple(events)
