"""Identities of nodes and functions: roles and instance profiles for EC2, access entries for the cluster."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions.functions import Functions

FUNCTIONS_GROUP: Final = "joiner:functions"
"""The Kubernetes group in the ClusterRoleBinding."""
NODE_POLICIES: Final = (
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)


class NodeRole(Construct):
    """The role of nodes of one *platform*.

    The Linux role is used by every EC2NodeClass that does not name its own instance profile.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, platform: str = "LINUX") -> None:
        """Create the role, the instance profile and the access entry of the nodes.

        A role has one access entry, so Windows needs its own role.
        """
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            # China has its own service name: ec2.amazonaws.com.cn.
            assumed_by=iam.ServicePrincipal.from_static_service_principle_name(f"ec2.{cdk.Aws.URL_SUFFIX}"),
            description=f"Joiner, {cluster}: role of {platform.capitalize()} nodes",
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in NODE_POLICIES],
        )
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        entry_type = f"EC2_{platform}"
        eks.CfnAccessEntry(self, "Nodes", cluster_name=cluster, principal_arn=self.role.role_arn, type=entry_type)
        reason = "EKS requires these AWS managed policies for every node"
        cdk.Validations.of(self.role).acknowledge(
            *(
                cdk.Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
                    reason=reason,
                )
                for name in NODE_POLICIES
            )
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
