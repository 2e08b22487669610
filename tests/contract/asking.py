"""Requests that the EC2 tests share."""

from typing import Final

import msgspec

from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import AllocationStrategy, CapacityType
from tests.contract.memory_face import Face

CLUSTER: Final = "joiner"
TAGS: Final = (
    ("eks:eks-cluster-name", CLUSTER),
    ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ("karpenter.sh/nodepool", "default"),
)
DISCOVERY: Final = (SelectorTerm(tags=(("karpenter.sh/discovery", CLUSTER),)),)
AL2023: Final = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"
STANDARD: Final = f"{AL2023}/x86_64/standard/recommended/image_id"
TEMPLATE_NAME: Final = "karpenter.k8s.aws/1"
ZONE: Final = "us-east-1a"
FIRST_LAUNCH: Final = "the first call"


def build_fleet_request(
    aws: Face, *types: str, strategy: AllocationStrategy = "lowest-price", **changes: object
) -> FleetRequest:
    """Build a request for one instance of *types* in `ZONE`, with an existing launch template.

    *changes* replace fields of the request.
    """
    groups = tuple(group.group_id for group in aws.ec2.describe_security_groups(DISCOVERY))
    image = aws.parameters.get_parameter(STANDARD)
    aws.ec2.ensure_launch_template(
        LaunchTemplate(name=TEMPLATE_NAME, image_id=image, user_data="YQ==", security_group_ids=groups, tags=TAGS)
    )
    subnet = next(subnet.subnet_id for subnet in aws.ec2.describe_subnets(DISCOVERY) if subnet.zone == ZONE)
    overrides = (Override(instance_type=kind, zone=ZONE, subnet_id=subnet, image_id=image) for kind in types)
    capacity_type: CapacityType = "on-demand" if strategy in {"lowest-price", "prioritized"} else "spot"
    fleet_request = FleetRequest(
        client_token=FIRST_LAUNCH,
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy=strategy,
        configs=(LaunchTemplateConfig(launch_template_name=TEMPLATE_NAME, overrides=tuple(overrides)),),
        tags=TAGS,
    )
    return msgspec.structs.replace(fleet_request, **changes)


def replace_overrides(fleet_request: FleetRequest, *overrides: Override) -> FleetRequest:
    """Return *fleet_request* with other offerings."""
    config = LaunchTemplateConfig(launch_template_name=TEMPLATE_NAME, overrides=overrides)
    return msgspec.structs.replace(fleet_request, configs=(config,))


def get_first_override(fleet_request: FleetRequest) -> Override:
    """Return the first offering of *fleet_request*."""
    return fleet_request.configs[0].overrides[0]


def launch_instance(aws: Face, client_token: str = FIRST_LAUNCH) -> str:
    """Launch one m5.large and return its id."""
    return (
        aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", client_token=client_token)).instances[0].instance_id
    )
