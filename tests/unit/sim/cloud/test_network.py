"""Tests of addresses, subnets and selectors."""

import pytest

from shared.errors import Invalid, NotFound
from shared.model.ec2.account import SelectorTerm
from sim.cloud.resources.network import Network, SubnetAddresses
from sim.cloud.resources.selector_terms import has_tags, is_match, sort_tags

ZONES = ("us-east-1a", "us-east-1b")


@pytest.fixture
def network() -> Network:
    return Network("us-east-1", ZONES, 0)


def add_small_subnet(network: Network) -> SubnetAddresses:
    return network.get_subnet(network.add_subnet("us-east-1a", (), "10.0.255.0/28"))


def test_subnet_reserves_five_addresses(network: Network) -> None:
    assert add_small_subnet(network).free == 11
    assert network.get_subnet(network.add_subnet("us-east-1a", ())).free == 8187


def test_first_allocated_address_is_the_fifth_of_the_subnet(network: Network) -> None:
    assert str(add_small_subnet(network).allocate_address()) == "10.0.255.4"


def test_addresses_are_unique_until_the_subnet_is_full(network: Network) -> None:
    subnet = add_small_subnet(network)
    addresses = {subnet.allocate_address() for _ in range(11)}
    assert len(addresses) == 11
    assert str(max(addresses)) == "10.0.255.14"
    with pytest.raises(ValueError, match="no free address"):
        subnet.allocate_address()


def test_released_address_is_allocated_last(network: Network) -> None:
    subnet = add_small_subnet(network)
    first = subnet.allocate_address()
    subnet.release_address(first)
    other_addresses = [subnet.allocate_address() for _ in range(10)]
    assert first not in other_addresses
    assert subnet.allocate_address() == first


def test_full_subnet_allocates_released_addresses(network: Network) -> None:
    subnet = add_small_subnet(network)
    addresses = [subnet.allocate_address() for _ in range(11)]
    subnet.release_address(addresses[5])
    assert subnet.allocate_address() == addresses[5]


def test_free_address_count_can_be_set(network: Network) -> None:
    subnet = add_small_subnet(network)
    address = subnet.allocate_address()
    subnet.set_free(0)
    assert subnet.free == 0
    subnet.release_address(address)
    assert subnet.free == 1


@pytest.mark.parametrize("count", [-1, 11])
def test_free_address_count_out_of_range_is_rejected(network: Network, count: int) -> None:
    subnet = add_small_subnet(network)
    subnet.allocate_address()
    with pytest.raises(ValueError, match="free addresses"):
        subnet.set_free(count)


@pytest.mark.parametrize(
    ("zone", "cidr", "code"),
    [
        ("us-east-1f", "", "InvalidParameterValue"),
        ("us-east-1a", "10.1.0.0/24", "InvalidSubnet.Range"),
        ("us-east-1a", "10.0.0.0/24", "InvalidSubnet.Conflict"),
    ],
)
def test_invalid_subnet_zone_or_cidr_is_rejected(network: Network, zone: str, cidr: str, code: str) -> None:
    network.add_subnet("us-east-1a", ())
    with pytest.raises(Invalid) as refused:
        network.add_subnet(zone, (), cidr)
    assert refused.value.code == code


def test_vpc_has_address_space_for_eight_subnets(network: Network) -> None:
    blocks = {str(network.get_subnet(network.add_subnet("us-east-1a", ())).cidr) for _ in range(8)}
    assert len(blocks) == 8
    with pytest.raises(Invalid, match="full"):
        network.add_subnet("us-east-1a", ())


def test_only_an_unused_subnet_can_be_removed(network: Network) -> None:
    subnet = add_small_subnet(network)
    address = subnet.allocate_address()
    with pytest.raises(Invalid) as refused:
        network.remove_subnet(subnet.subnet_id)
    assert refused.value.code == "DependencyViolation"
    subnet.release_address(address)
    network.remove_subnet(subnet.subnet_id)
    with pytest.raises(NotFound, match=r"InvalidSubnetID\.NotFound"):
        network.get_subnet(subnet.subnet_id)


def test_selector_term_id_takes_precedence_over_tags(network: Network) -> None:
    subnet_id = network.add_subnet("us-east-1a", (("tier", "web"),))
    term = SelectorTerm(id=subnet_id, tags=(("tier", "data"),))
    assert [subnet.subnet_id for subnet in network.select_subnets((term,))] == [subnet_id]


def test_security_group_matched_by_two_terms_is_returned_once(network: Network) -> None:
    group_id = network.add_security_group("web", (("tier", "web"),))
    groups = network.select_security_groups((SelectorTerm(name="web"), SelectorTerm(tags=(("tier", "*"),))))
    assert [group.group_id for group in groups] == [group_id]
    assert network.has_security_group(group_id)
    assert not network.has_security_group("sg-0")


@pytest.mark.parametrize(
    ("text", "pattern", "fits"),
    [
        ("web-1", "web-1", True),
        ("web-1", "web-?", True),
        ("web-12", "web-?", False),
        ("web-12", "web-*", True),
        ("web-12", "*1*", True),
        ("a.b", "a?b", True),
        ("axb", "a.b", False),
        ("a*b", "a\\*b", True),
        ("axb", "a\\*b", False),
        ("a[1]", "a[1]", True),
        ("Web", "web", False),
        ("", "*", True),
        ("two\nlines", "two*", True),
    ],
)
def test_filter_supports_star_and_question_mark_wildcards(text: str, pattern: str, fits: bool) -> None:  # noqa: FBT001 - a table
    assert is_match(text, pattern) is fits


def test_empty_tag_selector_matches_nothing() -> None:
    assert not has_tags({"a": "b"}, ())


def test_last_of_duplicate_tags_is_used() -> None:
    assert sort_tags([("b", "1"), ("a", "1"), ("b", "2")]) == (("a", "1"), ("b", "2"))
