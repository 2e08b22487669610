"""Identities of nodes and functions: roles and instance profiles for EC2, access entries for the cluster."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions.functions import Functions
from infra.iam.policy_statement import Grant
from infra.settings.settings import StackOptions

FUNCTIONS_GROUP: Final = "joiner:functions"
"""The Kubernetes group in the ClusterRoleBinding."""
NODE_POLICIES: Final = (
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)
IPV6_ACTION: Final = "ec2:AssignIpv6Addresses"
"""The permission of the VPC CNI on IPv6 clusters that `AmazonEKS_CNI_Policy` does not contain (Amazon EKS User Guide,
"Configure Amazon VPC CNI plugin to use IRSA", policy for IPv6).
"""


class NodeRole(Construct):
    """The role of nodes of one *platform*.

    The Linux role is used by every EC2NodeClass that does not name its own instance profile.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions, platform: str = "LINUX") -> None:
        """Create the role, the instance profile and the access entry of the nodes.

        A role has one access entry, so Windows needs its own role.
        """
        super().__init__(scope, construct_id)
        cluster = options.cluster
        self.role = iam.Role(
            self,
            "Role",
            # China has its own service name: ec2.amazonaws.com.cn.
            assumed_by=iam.ServicePrincipal.from_static_service_principle_name(f"ec2.{cdk.Aws.URL_SUFFIX}"),
            description=f"Joiner, {cluster}: role of {platform.capitalize()} nodes",
            managed_policies=[
                *(iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in NODE_POLICIES),
                *(
                    iam.ManagedPolicy.from_managed_policy_arn(self, f"Policy{number}", arn)
                    for number, arn in enumerate(options.node_role_policies)
                ),
            ],
        )
        if options.ip_family == "ipv6":
            _build_ipv6_grant().add_to_role(self.role)
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        entry_type = f"EC2_{platform}"
        self.access_entry = eks.CfnAccessEntry(
            self, "Nodes", cluster_name=cluster, principal_arn=self.role.role_arn, type=entry_type
        )
        reason = "EKS requires these AWS managed policies for every node"
        cdk.Validations.of(self.role).acknowledge(
            *(
                cdk.Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
                    reason=reason,
                )
                for name in NODE_POLICIES
            ),
            *(
                cdk.Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM4[Policy::{arn}]", reason="chosen in node-role-policies"
                )
                for arn in options.node_role_policies
            ),
        )


def _build_ipv6_grant() -> Grant:
    return Grant(
        sid="AssignIpv6",
        actions=(IPV6_ACTION,),
        resources=(f"arn:{cdk.Aws.PARTITION}:ec2:*:*:network-interface/*",),
        wildcard_reason="nodes have network interfaces with ids that EC2 generates",
    )


class FunctionEntries(Construct):
    """Access entries that let the functions into the cluster as members of one group; RBAC defines its permissions."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, functions: Functions) -> None:
        """Create one access entry per function."""
        super().__init__(scope, construct_id)
        for spec in functions.specs:
            eks.CfnAccessEntry(
                self,
                spec.name.capitalize(),
                cluster_name=cluster,
                principal_arn=functions.get_role(spec.name).role_arn,
                kubernetes_groups=[FUNCTIONS_GROUP],
                type="STANDARD",
            )
