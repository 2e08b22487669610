"""One VPC: subnets with IP addresses, which launches allocate and terminations release, and security groups."""

from ipaddress import IPv4Address, IPv4Network
from typing import Final

from shared.errors import Invalid, NotFound
from shared.model.ec2.account import SecurityGroup, SelectorTerm, Subnet
from shared.model.ec2.types import Tags
from sim.cloud import seeded_random
from sim.cloud.catalog.instance_types import build_zone_id
from sim.cloud.resources.selector_terms import has_tags, is_match

VPC_CIDR: Final = IPv4Network("10.0.0.0/16")
SUBNET_PREFIX_LENGTH: Final = 19
RESERVED_ADDRESSES_AT_START: Final = 4
RESERVED_ADDRESSES_PER_SUBNET: Final = RESERVED_ADDRESSES_AT_START + 1
"""EC2 reserves the first four addresses of a subnet and the last one."""


class SubnetAddresses:
    """A subnet and its addresses; a released address is the last to be allocated again."""

    def __init__(self, subnet_id: str, zone: str, zone_id: str, cidr: IPv4Network, tags: Tags) -> None:
        """Create the subnet with all addresses free, except those that EC2 reserves."""
        self.subnet_id = subnet_id
        self.zone = zone
        self.zone_id = zone_id
        self.cidr = cidr
        self.tags = dict(tags)
        self._size = cidr.num_addresses - RESERVED_ADDRESSES_PER_SUBNET
        self._allocated_offsets: set[int] = set()
        self._next_offset = 0
        self._foreign_count = 0

    @property
    def free(self) -> int:
        """Number of addresses that can be allocated."""
        return self._size - self._foreign_count - len(self._allocated_offsets)

    @property
    def has_instances(self) -> bool:
        """Whether instances have addresses of the subnet."""
        return bool(self._allocated_offsets)

    def set_free(self, count: int) -> None:
        """Mark addresses as used outside the simulation so that *count* are free.

        Raises:
            ValueError: the subnet is not that large, or too many addresses are allocated to instances.
        """
        foreign_count = self._size - len(self._allocated_offsets) - count
        if count < 0 or foreign_count < 0:
            raise ValueError(f"{self.subnet_id} cannot have {count} free addresses")
        self._foreign_count = foreign_count

    def allocate_address(self) -> IPv4Address:
        """Return a free address and mark it as used.

        Raises:
            ValueError: no address is free.
        """
        if self.free <= 0:
            raise ValueError(f"{self.subnet_id} has no free address")
        while self._next_offset in self._allocated_offsets:
            self._next_offset = (self._next_offset + 1) % self._size
        self._allocated_offsets.add(self._next_offset)
        address = self.cidr[self._next_offset + RESERVED_ADDRESSES_AT_START]
        self._next_offset = (self._next_offset + 1) % self._size
        return address

    def release_address(self, address: IPv4Address) -> None:
        """Make *address* available again."""
        self._allocated_offsets.remove(int(address) - int(self.cidr.network_address) - RESERVED_ADDRESSES_AT_START)

    def describe(self) -> Subnet:
        """Return the subnet as DescribeSubnets shows it."""
        return Subnet(
            subnet_id=self.subnet_id, zone=self.zone, zone_id=self.zone_id, available_ip_count=max(self.free, 0)
        )


class Network:
    """The subnets and security groups of one VPC."""

    def __init__(self, region: str, zones: tuple[str, ...], seed: int) -> None:
        """Create an empty VPC; *zones* are the zone names, in the order of their ids."""
        self.region = region
        self.subnets: dict[str, SubnetAddresses] = {}
        self.zone_ids = {zone: build_zone_id(region, number) for number, zone in enumerate(zones, 1)}
        self._groups: dict[str, tuple[SecurityGroup, dict[str, str]]] = {}
        self._seed = seed

    def add_subnet(self, zone: str, tags: Tags = (), cidr: str = "") -> str:
        """Create a subnet and return its id; without *cidr* it is the next free /19 of the VPC.

        Raises:
            Invalid: there is no such zone, or *cidr* is not in the VPC or overlaps.
        """
        if zone not in self.zone_ids:
            raise Invalid(f"Value ({zone}) for parameter availabilityZone is invalid.", code="InvalidParameterValue")
        block = IPv4Network(cidr) if cidr else self._find_free_block()
        if not block.subnet_of(VPC_CIDR):
            raise Invalid(f"The CIDR '{block}' is invalid.", code="InvalidSubnet.Range")
        if self._has_overlap(block):
            raise Invalid(f"The CIDR '{block}' conflicts with another subnet", code="InvalidSubnet.Conflict")
        subnet_id = seeded_random.build_resource_id("subnet", self._seed, self.region, block)
        self.subnets[subnet_id] = SubnetAddresses(subnet_id, zone, self.zone_ids[zone], block, tags)
        return subnet_id

    def add_security_group(self, name: str, tags: Tags = ()) -> str:
        """Create a security group and return its id."""
        group_id = seeded_random.build_resource_id("sg", self._seed, self.region, name)
        self._groups[group_id] = (SecurityGroup(group_id=group_id, name=name), dict(tags))
        return group_id

    def remove_subnet(self, subnet_id: str) -> None:
        """Delete a subnet.

        Raises:
            NotFound: there is no such subnet.
            Invalid: instances are in it.
        """
        if self.get_subnet(subnet_id).has_instances:
            text = f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
            raise Invalid(text, code="DependencyViolation")
        del self.subnets[subnet_id]

    def get_subnet(self, subnet_id: str) -> SubnetAddresses:
        """Return one subnet.

        Raises:
            NotFound: there is no such subnet.
        """
        if subnet_id not in self.subnets:
            raise NotFound(f"InvalidSubnetID.NotFound: The subnet ID '{subnet_id}' does not exist")
        return self.subnets[subnet_id]

    def select_subnets(self, selectors: tuple[SelectorTerm, ...]) -> tuple[Subnet, ...]:
        """Return the union of the subnets that match *selectors*, most free addresses first, then by id."""
        selected_subnets = [
            subnet.describe()
            for subnet in self.subnets.values()
            if any(_is_subnet_selected(subnet, s) for s in selectors)
        ]
        return tuple(sorted(selected_subnets, key=lambda subnet: (-subnet.available_ip_count, subnet.subnet_id)))

    def select_security_groups(self, selectors: tuple[SelectorTerm, ...]) -> tuple[SecurityGroup, ...]:
        """Return the union of the security groups that match *selectors*, sorted by id."""
        selected_groups = {
            g.group_id: g for g, tags in self._groups.values() if any(_is_group_selected(g, tags, s) for s in selectors)
        }
        return tuple(selected_groups[group_id] for group_id in sorted(selected_groups))

    def has_security_group(self, group_id: str) -> bool:
        """Return whether the security group exists."""
        return group_id in self._groups

    def _find_free_block(self) -> IPv4Network:
        for block in VPC_CIDR.subnets(new_prefix=SUBNET_PREFIX_LENGTH):
            if not self._has_overlap(block):
                return block
        raise Invalid("The VPC is full.", code="InvalidSubnet.Conflict")

    def _has_overlap(self, block: IPv4Network) -> bool:
        return any(block.overlaps(subnet.cidr) for subnet in self.subnets.values())


def _is_subnet_selected(subnet: SubnetAddresses, selector: SelectorTerm) -> bool:
    return subnet.subnet_id == selector.id if selector.id else has_tags(subnet.tags, selector.tags)


def _is_group_selected(group: SecurityGroup, tags: dict[str, str], selector: SelectorTerm) -> bool:
    if selector.id:
        return group.group_id == selector.id
    return is_match(group.name, selector.name) if selector.name else has_tags(tags, selector.tags)
