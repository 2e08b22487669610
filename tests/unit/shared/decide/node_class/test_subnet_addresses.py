"""Subnets without free IP addresses: messages, events and unavailable zones."""

import json

import msgspec
import pytest

from shared.decide.node_class.status import resolve_node_class_status
from shared.decide.node_class.subnet_addresses import (
    EXHAUSTED_ZONE_TTL,
    build_address_events,
    describe_low_addresses,
    plan_exhausted_zones,
)
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.core.metadata import Condition
from shared.model.ec2.account import Subnet
from tests.support.launch_cases import NOW, make_cluster, make_node_class

FIX = "add subnets, or a secondary CIDR block to the VPC"


def make_subnets(**counts: int) -> tuple[Subnet, ...]:
    """Return subnets by name; the last letter of a name is the zone."""
    return tuple(
        Subnet(subnet_id=name, zone=f"us-east-1{name[-1]}", zone_id="", available_ip_count=count)
        for name, count in counts.items()
    )


def make_answers(subnets: tuple[Subnet, ...] | None) -> NodeClassAnswers:
    return NodeClassAnswers(subnets=subnets, security_groups=(), images=())


@pytest.mark.parametrize(
    ("subnets", "message"),
    [
        (make_subnets(one_a=16, one_b=400), ""),
        ((), ""),
        (make_subnets(one_a=0, two_a=500, one_b=500), f"no free IP addresses in one_a (us-east-1a): {FIX}"),
        (make_subnets(one_a=15, one_b=500), f"fewer than 16 free IP addresses in us-east-1a: {FIX}"),
        (make_subnets(one_a=8, two_a=8, one_b=500), ""),
        (
            make_subnets(one_a=0, one_b=3),
            f"no free IP addresses in one_a (us-east-1a); fewer than 16 free IP addresses in us-east-1b: {FIX}",
        ),
    ],
)
def test_the_message_names_exhausted_subnets_and_nearly_exhausted_zones(
    subnets: tuple[Subnet, ...], message: str
) -> None:
    assert describe_low_addresses(subnets) == message


def test_the_condition_of_the_class_is_true_and_names_the_subnet() -> None:
    answers = make_answers(make_subnets(one_a=0, one_b=500))
    status = json.loads(resolve_node_class_status(make_node_class(), answers, "p", NOW).status)
    [condition] = [item for item in status["conditions"] if item["type"] == "SubnetsReady"]
    assert (condition["status"], condition["message"]) == (
        "True",
        f"no free IP addresses in one_a (us-east-1a): {FIX}",
    )


def test_a_zone_is_unavailable_if_no_subnet_of_any_class_has_addresses() -> None:
    answers = (
        ("default", make_answers(make_subnets(one_a=0, two_a=0, one_b=0))),
        ("other", make_answers(make_subnets(three_b=5, one_c=1))),
        ("unread", make_answers(None)),
    )
    [mark] = plan_exhausted_zones(make_cluster(), answers)
    assert (mark.offering.zone, mark.offering.until) == ("us-east-1a", NOW + EXHAUSTED_ZONE_TTL)
    assert mark.message.startswith(
        "InsufficientFreeAddressesInSubnet: no free IP addresses in one_a (us-east-1a), two_a"
    )


def test_an_event_is_published_when_the_message_is_new() -> None:
    subnets = make_subnets(one_a=3, one_b=500)
    cluster = make_cluster()
    answers = (("default", make_answers(subnets)),)
    [event] = build_address_events(cluster, answers)
    assert (event.kind, event.name, event.type, event.reason) == (
        "EC2NodeClass",
        "default",
        "Warning",
        "SubnetAddressesLow",
    )
    assert event.message == describe_low_addresses(subnets)
    condition = Condition(type="SubnetsReady", status="True", message=event.message)
    reported = msgspec.structs.replace(cluster.node_classes[0], conditions=(condition,))
    assert build_address_events(msgspec.structs.replace(cluster, node_classes=(reported,)), answers) == ()
    assert build_address_events(cluster, (("default", make_answers(make_subnets(one_a=99))),)) == ()
