"""Permissions for the network interfaces of functions in a VPC."""

from typing import Final

from aws_cdk import aws_iam as iam

from infra.iam.policy_statement import Conditions, Grant

INTERFACE_CHANGE_ACTIONS: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
NETWORK_ACTIONS: Final = (*INTERFACE_CHANGE_ACTIONS, "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_NO_RESOURCES_REASON: Final = "Lambda calls these actions before the interfaces exist"


def build_interface_grants() -> list[Grant]:
    """Return the permissions that Lambda needs for network interfaces, denied to the code of the function itself."""
    function_code_condition: Conditions = {"Null": {"lambda:SourceFunctionArn": "false"}}
    return [
        Grant(
            sid="ManageNetworkInterfaces",
            actions=NETWORK_ACTIONS,
            resources=("*",),
            wildcard_reason=_NO_RESOURCES_REASON,
        ),
        Grant(
            sid="DenyNetworkInterfacesToCode",
            actions=INTERFACE_CHANGE_ACTIONS,
            resources=("*",),
            conditions=function_code_condition,
            wildcard_reason=_NO_RESOURCES_REASON,
            effect=iam.Effect.DENY,
        ),
    ]
