"""What the tests of EC2 ask for."""

from typing import Final

import msgspec

from shared.model.ec2 import (
    AllocationStrategy,
    CapacityType,
    FleetRequest,
    LaunchTemplate,
    LaunchTemplateConfig,
    Override,
    Selector,
)
from tests.contract.memory_face import Face

CLUSTER: Final = "joiner"
TAGS: Final = (
    ("eks:eks-cluster-name", CLUSTER),
    ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ("karpenter.sh/nodepool", "default"),
)
DISCOVERY: Final = (Selector(tags=(("karpenter.sh/discovery", CLUSTER),)),)
AL2023: Final = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"
STANDARD: Final = f"{AL2023}/x86_64/standard/recommended/image_id"
NAME: Final = "karpenter.k8s.aws/1"
ZONE: Final = "us-east-1a"
ONCE: Final = "the first call"


def request(aws: Face, *types: str, strategy: AllocationStrategy = "lowest-price", **changes: object) -> FleetRequest:
    """Ask for one instance of *types* in `ZONE`, from a template that exists now; *changes* are made last."""
    groups = tuple(group.group_id for group in aws.ec2.security_groups(DISCOVERY))
    image = aws.parameters.parameter(STANDARD)
    aws.ec2.ensure_launch_template(
        LaunchTemplate(name=NAME, image_id=image, user_data="YQ==", security_group_ids=groups, tags=TAGS)
    )
    subnet = next(subnet.subnet_id for subnet in aws.ec2.subnets(DISCOVERY) if subnet.zone == ZONE)
    overrides = (Override(instance_type=kind, zone=ZONE, subnet_id=subnet, image_id=image) for kind in types)
    capacity_type: CapacityType = "on-demand" if strategy in {"lowest-price", "prioritized"} else "spot"
    plain = FleetRequest(
        client_token=ONCE,
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy=strategy,
        configs=(LaunchTemplateConfig(launch_template_name=NAME, overrides=tuple(overrides)),),
        tags=TAGS,
    )
    return msgspec.structs.replace(plain, **changes)


def with_overrides(asked: FleetRequest, *overrides: Override) -> FleetRequest:
    """Answer *asked* with other offerings."""
    config = LaunchTemplateConfig(launch_template_name=NAME, overrides=overrides)
    return msgspec.structs.replace(asked, configs=(config,))


def first(asked: FleetRequest) -> Override:
    """Answer the first offering."""
    return asked.configs[0].overrides[0]


def start(aws: Face, call: str = ONCE) -> str:
    """Start one m5.large and answer its id."""
    return aws.ec2.create_fleet(request(aws, "m5.large", client_token=call)).instances[0].instance_id
