"""IAM permissions to launch instances and to terminate them.

Launched resources must carry the tags of the cluster; only resources with these tags can be used as a launch template,
tagged or terminated.
"""

from collections.abc import Iterable
from typing import Any, Final

import aws_cdk as cdk

from infra.iam.node_role import NodeRole
from infra.iam.policy_statement import Conditions, Grant

NODEPOOL_TAG: Final = "karpenter.sh/nodepool"
LAUNCHED_RESOURCE_TYPES: Final = ("fleet", "instance", "volume", "network-interface", "spot-instances-request")
USED_RESOURCE_TYPES: Final = ("security-group", "subnet", "capacity-reservation", "placement-group")
NODE_TAGS: Final = ("eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name")
"""The tags that can be written on a running instance."""
INSTANCE_ACTIONS: Final = ("ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeLaunchTemplates")
LAUNCH_READ_ACTIONS: Final = ("ec2:DescribeInstances", "ec2:DescribeLaunchTemplates")
"""What `provision` reads of its launches: the instances of a launch group whose response was lost, and templates."""

NO_RESOURCES_REASON: Final = "the action does not support resource-level permissions"
SELECTED_RESOURCES_REASON: Final = "EC2NodeClasses can select any of these; instances must have the tags of the cluster"
TAG_CONDITIONS_REASON: Final = "EC2 generates the id; the conditions require the tags of the cluster"


def build_launch_grants(cluster: str) -> list[Grant]:
    """Return what the launch of nodes of *cluster* needs: fleets, launch templates and their tags."""
    launch_actions = ("ec2:CreateFleet", "ec2:RunInstances")
    used_resources = (
        *(_format_ec2_arn(kind) for kind in USED_RESOURCE_TYPES),
        _format_ec2_arn("image", account=""),
        _format_ec2_arn("snapshot", account=""),
    )
    launched_resources, template = (
        tuple(_format_ec2_arn(kind) for kind in LAUNCHED_RESOURCE_TYPES),
        (_format_ec2_arn("launch-template"),),
    )
    owned_conditions = _build_owned_conditions(cluster, "aws:ResourceTag")
    tagged_conditions = _build_owned_conditions(
        cluster, "aws:RequestTag", {"aws:RequestTag/eks:eks-cluster-name": cluster}
    )
    creation_conditions = _build_owned_conditions(
        cluster,
        "aws:RequestTag",
        {
            "aws:RequestTag/eks:eks-cluster-name": cluster,
            "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
        },
    )
    create_actions, tag_actions = ("ec2:CreateLaunchTemplate",), ("ec2:CreateTags",)
    return [
        Grant(
            sid="LaunchWithSelectedResources",
            actions=launch_actions,
            resources=used_resources,
            wildcard_reason=SELECTED_RESOURCES_REASON,
        ),
        Grant(
            sid="LaunchFromOwnedTemplates",
            actions=launch_actions,
            resources=template,
            conditions=owned_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        Grant(
            sid="CreateTaggedFleets",
            actions=launch_actions,
            resources=launched_resources,
            conditions=tagged_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        Grant(
            sid="CreateTaggedLaunchTemplates",
            actions=create_actions,
            resources=template,
            conditions=tagged_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        Grant(
            sid="TagCreatedResources",
            actions=tag_actions,
            resources=(*launched_resources, *template),
            conditions=creation_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        build_unscoped_grant("FindLaunchedInstances", LAUNCH_READ_ACTIONS, build_region_condition()),
    ]


def build_pass_role_grant(node_roles: list[NodeRole], more_role_names: Iterable[str]) -> Grant:
    """Return the permission to pass the roles of nodes to EC2: *node_roles* and the roles with *more_role_names*."""
    arns = tuple(f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/{name}" for name in more_role_names)
    services = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
    return Grant(
        sid="PassNodeRole",
        actions=("iam:PassRole",),
        resources=(*(node_role.role.role_arn for node_role in node_roles), *arns),
        conditions={"StringEquals": {"iam:PassedToService": services}},
    )


def build_termination_grants(cluster: str) -> list[Grant]:
    """Return what the termination of nodes of *cluster* needs, and the tags that nodes get after their launch."""
    instance, template = (_format_ec2_arn("instance"),), (_format_ec2_arn("launch-template"),)
    owned_conditions = _build_owned_conditions(cluster, "aws:ResourceTag")
    name_conditions = owned_conditions | {
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster},
        "ForAllValues:StringEquals": {"aws:TagKeys": list(NODE_TAGS)},
    }
    terminate, delete = ("ec2:TerminateInstances",), ("ec2:DeleteLaunchTemplate",)
    return [
        Grant(
            sid="TerminateOwnedInstances",
            actions=terminate,
            resources=instance,
            conditions=owned_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        Grant(
            sid="DeleteOwnedLaunchTemplates",
            actions=delete,
            resources=template,
            conditions=owned_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        Grant(
            sid="TagOwnedInstances",
            actions=("ec2:CreateTags",),
            resources=instance,
            conditions=name_conditions,
            wildcard_reason=TAG_CONDITIONS_REASON,
        ),
        build_unscoped_grant("DescribeInstances", INSTANCE_ACTIONS, build_region_condition()),
    ]


def _build_owned_conditions(cluster: str, key: str, more_equals: dict[str, Any] | None = None) -> Conditions:
    """Return the condition that the tags under *key* name this cluster and a NodePool, plus *more_equals*."""
    return {
        "StringEquals": {f"{key}/kubernetes.io/cluster/{cluster}": "owned"} | (more_equals or {}),
        "StringLike": {f"{key}/{NODEPOOL_TAG}": "*"},
    }


def _format_ec2_arn(kind: str, *, account: str = "*") -> str:
    return f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}:{account}:{kind}/*"


def build_region_condition() -> Conditions:
    """Return the condition that a request is made in the region of the stack."""
    return {"StringEquals": {"aws:RequestedRegion": cdk.Aws.REGION}}


def build_unscoped_grant(sid: str, actions: tuple[str, ...], conditions: Conditions | None = None) -> Grant:
    """Return the permission for *actions* that do not support resource-level permissions."""
    return Grant(sid=sid, actions=actions, resources=("*",), conditions=conditions, wildcard_reason=NO_RESOURCES_REASON)
