"""Where the functions are: outside any VPC, or in the cluster's subnets, with a way to AWS or without one.

==========  ====================  =============================  ===============================
mode        API server            AWS                            prices
==========  ====================  =============================  ===============================
`public`    its public endpoint   its public endpoints           asked for
`private`   its private endpoint  through the subnets' NAT       asked for
`isolated`  its private endpoint  through VPC endpoints alone    of the file `price-list`
==========  ====================  =============================  ===============================
"""

from typing import Any, Final

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.network.endpoints import Endpoints, build_https_rule
from infra.settings.settings import StackOptions

ANY_IPV4_CIDR: Final = "0.0.0.0/0"
_TLS_RULE: Final = {"ip_protocol": "tcp", "from_port": 443, "to_port": 443}


class Network(Construct):
    """The security group and the endpoints, as far as the options require them."""

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions) -> None:
        """Create nothing in mode `public`, where `placement` is empty."""
        super().__init__(scope, construct_id)
        self.placement: dict[str, list[str]] = {}
        if options.network == "public":
            return
        security_groups = list(options.security_groups) or [self._create_security_group(options)]
        self.placement = {"SubnetIds": list(options.subnets), "SecurityGroupIds": security_groups}
        if options.vpc_endpoints:
            Endpoints(self, "Endpoints", options=options)

    def _create_security_group(self, options: StackOptions) -> str:
        """Create the security group of the functions, and allow it to reach the API server; return its id."""
        security_group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=options.vpc,
            group_description=f"Joiner, {options.cluster}: functions, to the API server and AWS",
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(**rule) for rule in _build_egress_rules(options)
            ],
        )
        ec2.CfnSecurityGroupIngress(
            self,
            "ApiServer",
            **_TLS_RULE,
            group_id=options.cluster_security_group,
            source_security_group_id=security_group.attr_group_id,
            description=f"Joiner, {options.cluster}: its functions",
        )
        group_id: str = security_group.attr_group_id
        return group_id


def _build_egress_rules(options: StackOptions) -> list[dict[str, Any]]:
    """Build the egress rules, for TLS only.

    DNS needs no rule, because security groups do not filter requests to the resolver of the VPC.
    """
    cluster_rule = {
        **_TLS_RULE,
        "destination_security_group_id": options.cluster_security_group,
        "description": "API server",
    }
    if not options.prefix_lists:
        return [cluster_rule, {**build_https_rule(ANY_IPV4_CIDR), "description": "AWS"}]
    vpc_rules = [{**build_https_rule(block), "description": "VPC endpoints"} for block in options.vpc_cidrs]
    gateway_rules = [
        {**_TLS_RULE, "destination_prefix_list_id": prefix_list, "description": "gateway endpoint"}
        for prefix_list in options.prefix_lists
    ]
    return [cluster_rule, *vpc_rules, *gateway_rules]
