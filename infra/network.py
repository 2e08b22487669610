"""Where the functions are: outside any VPC, or in the cluster's subnets, with a way to AWS or without one.

==========  ====================  =============================  ===============================
mode        API server            AWS                            prices
==========  ====================  =============================  ===============================
`public`    its public endpoint   its public endpoints           asked for
`private`   its private endpoint  through the subnets' NAT       asked for
`isolated`  its private endpoint  through VPC endpoints alone    of the file `joiner:price-list`
==========  ====================  =============================  ===============================
"""

from typing import Any, Final

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.endpoints import Endpoints, https
from infra.knobs import Knobs
from infra.written import listed

ANYWHERE: Final = "0.0.0.0/0"
_TLS: Final = {"ip_protocol": "tcp", "from_port": 443, "to_port": 443}


class Network(Construct):
    """Security group and endpoints, as far as they are asked for."""

    def __init__(self, scope: Construct, construct_id: str, *, knobs: Knobs) -> None:
        """Make nothing in mode `public`, where `placement` is empty."""
        super().__init__(scope, construct_id)
        self.placement: dict[str, list[str]] = {}
        if knobs.network == "public":
            return
        groups = listed(knobs.security_groups) or [self._group(knobs)]
        self.placement = {"SubnetIds": listed(knobs.subnets), "SecurityGroupIds": groups}
        if knobs.vpc_endpoints == "true":
            Endpoints(self, "Endpoints", knobs=knobs)

    def _group(self, knobs: Knobs) -> str:
        """Make the functions' security group, and let it in where the API server is; answer its id."""
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=knobs.vpc,
            group_description=f"Joiner, {knobs.cluster}: functions, to the API server and AWS",
            security_group_egress=[ec2.CfnSecurityGroup.EgressProperty(**rule) for rule in _ways_out(knobs)],
        )
        ec2.CfnSecurityGroupIngress(
            self,
            "ApiServer",
            **_TLS,
            group_id=knobs.cluster_security_group,
            source_security_group_id=group.attr_group_id,
            description=f"Joiner, {knobs.cluster}: its functions",
        )
        found: str = group.attr_group_id
        return found


def _ways_out(knobs: Knobs) -> list[dict[str, Any]]:
    """Answer rules, TLS only: names are looked up at the VPC's resolver, which no security group holds back."""
    to_cluster = {**_TLS, "destination_security_group_id": knobs.cluster_security_group, "description": "API server"}
    if not knobs.prefix_lists:
        return [to_cluster, {**https(ANYWHERE), "description": "AWS"}]
    inside = [{**https(block), "description": "VPC endpoints"} for block in listed(knobs.vpc_cidrs)]
    gateways = [
        {**_TLS, "destination_prefix_list_id": one, "description": "gateway endpoint"}
        for one in listed(knobs.prefix_lists)
    ]
    return [to_cluster, *inside, *gateways]
