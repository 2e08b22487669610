"""Checks of the cluster and its network before a deployment: version, endpoint, tagged subnets, zones."""

from collections.abc import Iterator
from typing import Final

from cli.doctor.checks.connectivity import ANY_IPV4_CIDR
from cli.doctor.checks.finding import CheckReporter, CheckResult
from cli.doctor.checks.node_pools import check_free_addresses
from cli.doctor.preflight.facts import PreflightFacts
from cli.facts.account import DISCOVERY_TAG
from cli.facts.model import ControlPlane, ReadFailure
from shared.model.core.formatting import format_count, join_names
from shared.model.ec2.account import SecurityGroup, Subnet

MIN_KUBERNETES_MINOR: Final = 29
"""The FlowSchema of the installer is of flowcontrol.apiserver.k8s.io/v1, which Kubernetes 1.29 introduced."""
MAX_LISTED_NAMES: Final = 4


def check_kubernetes_version(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the cluster's version of Kubernetes is supported."""
    control_plane, check = facts.doctor.control_plane, CheckReporter("version")
    if control_plane is None:
        return
    minor = control_plane.version.partition(".")[2]
    if minor.isdecimal() and int(minor) < MIN_KUBERNETES_MINOR:
        command = f"aws eks update-cluster-version --name {facts.account.cluster} --kubernetes-version"
        message = f"Kubernetes {control_plane.version} is older than 1.{MIN_KUBERNETES_MINOR}"
        yield check.fail(message, f"{command} 1.{int(minor) + 1}, one minor version at a time")
    elif not minor.isdecimal():
        yield check.skip("the version of Kubernetes", ReadFailure(reason="EKS returned none"), "")
    else:
        yield check.accept(f"Kubernetes {control_plane.version} is supported")


def check_endpoint_access(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that functions can reach the API server: outside a VPC, they need an unrestricted public endpoint."""
    control_plane, check = facts.doctor.control_plane, CheckReporter("endpoint")
    if control_plane is None:
        return
    if not control_plane.is_public:
        yield check.warn(
            "the API server has only a private endpoint: functions outside a VPC cannot reach it",
            _build_network_fix(facts, control_plane),
        )
    elif ANY_IPV4_CIDR not in control_plane.public_cidrs:
        yield check.warn(
            f"the public endpoint is restricted to {join_names(control_plane.public_cidrs, MAX_LISTED_NAMES)}: "
            "functions outside a VPC have no fixed address and cannot reach it",
            _build_network_fix(facts, control_plane),
        )
    else:
        yield check.accept("the public endpoint is open to the functions, which authenticate with IAM")


def _build_network_fix(facts: PreflightFacts, control_plane: ControlPlane) -> str:
    name = facts.account.cluster
    settings = (
        f"set `network: private`, `vpc: {control_plane.vpc_id or 'VPC'}`, "
        f"`cluster-security-group: {control_plane.security_group_id or 'SECURITY_GROUP'}` and `subnets:` with "
        f"{', '.join(control_plane.subnet_ids) or 'the subnets'} in clusters/{name}.yaml. In subnets without a NAT "
        "gateway, set `network: isolated` and `vpc-endpoints: true` instead (docs/networking.md)"
    )
    if control_plane.is_private:
        return settings
    command = f"aws eks update-cluster-config --name {name} --resources-vpc-config endpointPrivateAccess=true"
    return f"run `{command}`, then {settings}"


def check_discovery_tags(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that subnets and security groups have the tag that the example EC2NodeClass selects."""
    account, control_plane, check = facts.account, facts.doctor.control_plane, CheckReporter("discovery")
    if account.control_plane is None:
        return
    tag = f"{DISCOVERY_TAG}={account.cluster}"
    if isinstance(account.discoverable, ReadFailure):
        permissions = "ec2:DescribeSubnets and ec2:DescribeSecurityGroups"
        yield check.skip(f"the tag {tag}", account.discoverable, permissions)
        return
    subnet_ids = control_plane.subnet_ids if control_plane is not None else ()
    group_id = control_plane.security_group_id if control_plane is not None else ""
    subnets, groups = account.discoverable
    parts: tuple[tuple[str, tuple[Subnet, ...] | tuple[SecurityGroup, ...], str], ...] = (
        ("subnet", subnets, " ".join(subnet_ids)),
        ("security group", groups, group_id),
    )
    for kind, resources, ids in parts:
        if resources:
            yield check.accept(f"{format_count(len(resources), kind)} with the tag {tag}")
        else:
            command = f"aws ec2 create-tags --region {account.region} --resources {ids or 'ID'}"
            fix = f"{command} --tags Key={DISCOVERY_TAG},Value={account.cluster}"
            yield check.fail(f"no {kind} has the tag {tag}, which the EC2NodeClass of the example selects", fix)


def check_tagged_subnets(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the tagged subnets have free addresses and span two zones."""
    if subnets := _list_tagged_subnets(facts):
        yield from check_free_addresses("tagged subnets", subnets, CheckReporter("subnets"))


def check_zones(facts: PreflightFacts) -> Iterator[CheckResult]:
    """Check that the tagged subnets are in availability zones that accept launches."""
    check, zones = CheckReporter("zones"), facts.zones
    if isinstance(zones, ReadFailure):
        yield check.skip("the zones of the subnets", zones, "ec2:DescribeAvailabilityZones")
        return
    zone_by_name = {zone.name: zone for zone in zones}
    names = sorted({subnet.zone for subnet in _list_tagged_subnets(facts)})
    listed_zones = [zone_by_name[name] for name in names if name in zone_by_name]
    remove_tag = f"use other subnets, or remove the tag {DISCOVERY_TAG} from those in this zone"
    for zone in listed_zones:
        if zone.kind != "availability-zone":
            message = f"{zone.name} is a {zone.kind.replace('-', ' ')}: it has few instance types, and usually no Spot"
            yield check.warn(message, remove_tag)
        elif zone.state != "available":
            yield check.warn(f"{zone.name} is {zone.state}", remove_tag)
    if listed_zones and all(zone.kind == "availability-zone" and zone.state == "available" for zone in listed_zones):
        yield check.accept(f"the tagged subnets are in {', '.join(names)}")


def _list_tagged_subnets(facts: PreflightFacts) -> tuple[Subnet, ...]:
    discoverable = facts.account.discoverable
    return () if isinstance(discoverable, ReadFailure) else discoverable[0]
