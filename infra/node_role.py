"""Who nodes and functions are: for EC2 a role and its instance profile, for the cluster access entries."""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.functions import Functions

FUNCTIONS_GROUP: Final = "joiner:functions"
"""The Kubernetes group that the ClusterRoleBinding names."""
POLICIES: Final = (
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)


class NodeRole(Construct):
    """The role of nodes of one *platform*; of Linux for all whose EC2NodeClass names no instance profile of its own."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, platform: str = "LINUX") -> None:
        """Make role, instance profile and the nodes' access entry: a role has one, so Windows needs a role as well."""
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description=f"Joiner, {cluster}: what nodes of {platform.capitalize()} may do",
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in POLICIES],
        )
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        kind = f"EC2_{platform}"
        eks.CfnAccessEntry(self, "Nodes", cluster_name=cluster, principal_arn=self.role.role_arn, type=kind)
        reason = "what EKS asks of every node; AWS maintains them"
        cdk.Validations.of(self.role).acknowledge(
            *(
                cdk.Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
                    reason=reason,
                )
                for name in POLICIES
            )
        )


class FunctionEntries(Construct):
    """Lets the functions into the cluster, as members of one group: what it may do is the cluster's to say."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, functions: Functions) -> None:
        """Make one entry per function."""
        super().__init__(scope, construct_id)
        for spec in functions.specs:
            eks.CfnAccessEntry(
                self,
                spec.name.capitalize(),
                cluster_name=cluster,
                principal_arn=functions.role(spec.name).role_arn,
                kubernetes_groups=[FUNCTIONS_GROUP],
                type="STANDARD",
            )
