"""One VPC: subnets with real addresses, which launches take and terminations give back, and security groups."""

from ipaddress import IPv4Address, IPv4Network
from typing import Final

from shared.errors import Gone, Invalid
from shared.model.ec2 import SecurityGroup, Selector, Subnet, Tags
from sim.cloud import chance
from sim.cloud.selectors import has_tags, matches
from sim.cloud.types import zone_id

VPC_CIDR: Final = IPv4Network("10.0.0.0/16")
PREFIX: Final = 19
RESERVED_FIRST: Final = 4
RESERVED: Final = RESERVED_FIRST + 1
"""EC2 keeps the first four addresses of a subnet and the last one."""


class SubnetAddresses:
    """A subnet and its addresses; one that was given back is the last to be taken again."""

    def __init__(self, subnet_id: str, zone: str, zone_id: str, cidr: IPv4Network, tags: Tags) -> None:
        """Begin with every address free but those that EC2 keeps."""
        self.subnet_id = subnet_id
        self.zone = zone
        self.zone_id = zone_id
        self.cidr = cidr
        self.tags = dict(tags)
        self._size = cidr.num_addresses - RESERVED
        self._taken: set[int] = set()
        self._next = 0
        self._foreign = 0

    @property
    def free(self) -> int:
        """How many addresses can be taken."""
        return self._size - self._foreign - len(self._taken)

    @property
    def is_used(self) -> bool:
        """Whether instances have addresses of it."""
        return bool(self._taken)

    def set_free(self, count: int) -> None:
        """Let others hold so many addresses that *count* are free.

        Raises:
            ValueError: the subnet is not that large, or ours are in use.
        """
        foreign = self._size - len(self._taken) - count
        if count < 0 or foreign < 0:
            raise ValueError(f"{self.subnet_id} cannot have {count} free addresses")
        self._foreign = foreign

    def take(self) -> IPv4Address:
        """Answer an address that nobody has.

        Raises:
            ValueError: none is free.
        """
        if self.free <= 0:
            raise ValueError(f"{self.subnet_id} has no free address")
        while self._next in self._taken:
            self._next = (self._next + 1) % self._size
        self._taken.add(self._next)
        address = self.cidr[self._next + RESERVED_FIRST]
        self._next = (self._next + 1) % self._size
        return address

    def give_back(self, address: IPv4Address) -> None:
        """Let *address* be taken again."""
        self._taken.remove(int(address) - int(self.cidr.network_address) - RESERVED_FIRST)

    def described(self) -> Subnet:
        """Answer DescribeSubnets' view."""
        return Subnet(
            subnet_id=self.subnet_id, zone=self.zone, zone_id=self.zone_id, available_ip_count=max(self.free, 0)
        )


class Network:
    """The subnets and security groups of one VPC."""

    def __init__(self, region: str, zones: tuple[str, ...], seed: int) -> None:
        """Begin empty; *zones* are the names, in the order of their ids."""
        self.region = region
        self.subnets: dict[str, SubnetAddresses] = {}
        self._zone_ids = {zone: zone_id(region, number) for number, zone in enumerate(zones, 1)}
        self._groups: dict[str, tuple[SecurityGroup, dict[str, str]]] = {}
        self._seed = seed

    def add_subnet(self, zone: str, tags: Tags, cidr: str = "") -> str:
        """Make a subnet and answer its id; without *cidr* it is the next free /19 of the VPC.

        Raises:
            Invalid: there is no such zone, or *cidr* is not in the VPC or overlaps.
        """
        if zone not in self._zone_ids:
            raise Invalid(f"Value ({zone}) for parameter availabilityZone is invalid.", code="InvalidParameterValue")
        block = IPv4Network(cidr) if cidr else self._free_block()
        if not block.subnet_of(VPC_CIDR):
            raise Invalid(f"The CIDR '{block}' is invalid.", code="InvalidSubnet.Range")
        if self._overlaps(block):
            raise Invalid(f"The CIDR '{block}' conflicts with another subnet", code="InvalidSubnet.Conflict")
        subnet_id = chance.identity("subnet", self._seed, self.region, block)
        self.subnets[subnet_id] = SubnetAddresses(subnet_id, zone, self._zone_ids[zone], block, tags)
        return subnet_id

    def add_security_group(self, name: str, tags: Tags) -> str:
        """Make a security group and answer its id."""
        group_id = chance.identity("sg", self._seed, self.region, name)
        self._groups[group_id] = (SecurityGroup(group_id=group_id, name=name), dict(tags))
        return group_id

    def remove_subnet(self, subnet_id: str) -> None:
        """Delete a subnet.

        Raises:
            Gone: there is none.
            Invalid: instances are in it.
        """
        if self.subnet(subnet_id).is_used:
            text = f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
            raise Invalid(text, code="DependencyViolation")
        del self.subnets[subnet_id]

    def subnet(self, subnet_id: str) -> SubnetAddresses:
        """Answer one.

        Raises:
            Gone: there is none.
        """
        if subnet_id not in self.subnets:
            raise Gone(f"InvalidSubnetID.NotFound: The subnet ID '{subnet_id}' does not exist")
        return self.subnets[subnet_id]

    def select_subnets(self, selectors: tuple[Selector, ...]) -> tuple[Subnet, ...]:
        """Answer the union, most free addresses first, then by id."""
        chosen = [subnet.described() for subnet in self.subnets.values() if any(_fits(subnet, s) for s in selectors)]
        return tuple(sorted(chosen, key=lambda subnet: (-subnet.available_ip_count, subnet.subnet_id)))

    def select_security_groups(self, selectors: tuple[Selector, ...]) -> tuple[SecurityGroup, ...]:
        """Answer the union, sorted by id."""
        chosen = {g.group_id: g for g, tags in self._groups.values() if any(_fits_group(g, tags, s) for s in selectors)}
        return tuple(chosen[group_id] for group_id in sorted(chosen))

    def has_security_group(self, group_id: str) -> bool:
        """Say whether there is one."""
        return group_id in self._groups

    def _free_block(self) -> IPv4Network:
        for block in VPC_CIDR.subnets(new_prefix=PREFIX):
            if not self._overlaps(block):
                return block
        raise Invalid("The VPC is full.", code="InvalidSubnet.Conflict")

    def _overlaps(self, block: IPv4Network) -> bool:
        return any(block.overlaps(subnet.cidr) for subnet in self.subnets.values())


def _fits(subnet: SubnetAddresses, selector: Selector) -> bool:
    return subnet.subnet_id == selector.id if selector.id else has_tags(subnet.tags, selector.tags)


def _fits_group(group: SecurityGroup, tags: dict[str, str], selector: Selector) -> bool:
    if selector.id:
        return group.group_id == selector.id
    return matches(group.name, selector.name) if selector.name else has_tags(tags, selector.tags)
