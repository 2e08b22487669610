"""Launches without Joiner: a launch template and CreateFleet calls whose instances do not join the cluster."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import msgspec

from tests.e2e_aws.cleanup import list_instance_ids
from tests.e2e_aws.environment import PREFIX, RUN_TAG, Environment
from tests.e2e_aws.results import StepFailed

DISCOVERY_TAG: Final = "karpenter.sh/discovery"
SMALL_ARM64_TYPES: Final = ("m6g.medium", "m7g.medium", "c6g.medium")
"""One vCPU each: twenty fit into the quota of a new account."""
VISIBILITY_TIMEOUT: Final = timedelta(minutes=2)
_USER_DATA: Final = base64.b64encode(b"#!/bin/sh\ntrue\n").decode()


class LaunchNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cluster's nodes are launched."""

    subnets: tuple[tuple[str, str], ...]
    """Zone and id of each subnet, sorted by zone: one for each zone."""
    group_ids: tuple[str, ...]


def find_network(environment: Environment) -> LaunchNetwork:
    """Return the subnets and security groups with the discovery tag of the cluster.

    Raises:
        StepFailed: there is none.
    """
    ec2, filters = environment.get_client("ec2"), [{"Name": f"tag:{DISCOVERY_TAG}", "Values": [environment.cluster]}]
    subnets = ec2.describe_subnets(Filters=filters)["Subnets"]
    groups = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    if not subnets or not groups:
        raise StepFailed(f"no subnet or no security group has the tag {DISCOVERY_TAG}={environment.cluster}")
    subnet_id_by_zone = {
        subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in sorted(subnets, key=lambda item: item["SubnetId"])
    }
    group_ids = tuple(sorted(group["GroupId"] for group in groups))
    return LaunchNetwork(subnets=tuple(sorted(subnet_id_by_zone.items())), group_ids=group_ids)


def build_name(environment: Environment, name: str) -> str:
    """Return the name of a resource of this run."""
    return f"{PREFIX}{environment.run_id}-{name}"


def build_tags(environment: Environment, name: str, more_tags: Mapping[str, str] | None = None) -> list[dict[str, str]]:
    """Return the tags of a resource called *name*."""
    tags = {"Name": name, RUN_TAG: environment.run_id, **(more_tags or {})}
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def build_template_call(environment: Environment, name: str, network: LaunchNetwork) -> dict[str, Any]:
    """Return the arguments of `create_launch_template` with the newest AL2023 image for arm64."""
    version = environment.get_client("eks").describe_cluster(name=environment.cluster)["cluster"]["version"]
    parameter = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/arm64/standard/recommended/image_id"
    image_id = environment.get_client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    data = {
        "ImageId": image_id,
        "UserData": _USER_DATA,
        "MetadataOptions": {"HttpTokens": "required"},
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": list(network.group_ids)}],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": build_tags(environment, name)}],
    }
    tags = [{"ResourceType": "launch-template", "Tags": build_tags(environment, name)}]
    return {"LaunchTemplateName": name, "LaunchTemplateData": data, "TagSpecifications": tags}


@contextmanager
def create_template(environment: Environment, name: str, network: LaunchNetwork) -> Iterator[str]:
    """Create a launch template of this run; the cleanup of the step deletes it and the instances called *name*."""
    full_name = environment.ledger.record("launch-template", build_name(environment, name))
    environment.get_client("ec2").create_launch_template(**build_template_call(environment, full_name, network))
    environment.ledger.record("instances", full_name)
    yield full_name


def build_fleet_call(
    environment: Environment,
    template: str,
    network: LaunchNetwork,
    *,
    count: int = 1,
    instance_types: Sequence[str] = SMALL_ARM64_TYPES,
    more_tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `create_fleet` as Joiner sends them: of type `instant`, on-demand."""
    overrides = [
        {"InstanceType": instance_type, "SubnetId": subnet_id, "AvailabilityZone": zone}
        for instance_type in instance_types
        for zone, subnet_id in network.subnets
    ]
    specification = {"LaunchTemplateName": template, "Version": "$Latest"}
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": specification, "Overrides": overrides}],
        "TargetCapacitySpecification": {"TotalTargetCapacity": count, "DefaultTargetCapacityType": "on-demand"},
        "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": build_tags(environment, template, more_tags)},
            {"ResourceType": "fleet", "Tags": build_tags(environment, template)},
        ],
    }


def list_launched_ids(response: dict[str, Any]) -> list[str]:
    """Return the ids of the instances in a response of CreateFleet, sorted."""
    return sorted(instance_id for part in response.get("Instances", ()) for instance_id in part["InstanceIds"])


def list_error_codes(response: dict[str, Any]) -> list[str]:
    """Return the different error codes in a response of CreateFleet, sorted."""
    return sorted({error["ErrorCode"] for error in response.get("Errors", ())})


def wait_until_visible(environment: Environment, name: str, instance_ids: Sequence[str]) -> bool:
    """Wait until DescribeInstances shows *instance_ids*: the cleanup finds instances by their tags."""
    return environment.wait_until(
        lambda: set(instance_ids) <= set(list_instance_ids(environment, name)), VISIBILITY_TIMEOUT
    )
