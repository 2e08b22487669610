"""The VPC endpoints that functions need where there is no other way to AWS.

A service that a function is newly allowed to call belongs here: tests/infra/test_network.py reads the policies. Not
needed are `logs` (Lambda writes a function's log in its name, from outside; metrics are lines of that log), `sts` (the
token for EKS is signed here, and sent to STS by the control plane), `lambda` and `events` (EventBridge, the Scheduler
and the pollers of queues call from outside).
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.knobs import Knobs
from infra.written import listed

INTERFACES: Final = ("ec2", "eks", "sqs", "ssm")
"""Services with an endpoint for each subnet, by the hour and the gigabyte."""
TELLING: Final = "sns"
"""The same, where `joiner:report-topic` names somebody to tell."""
GATEWAYS: Final = ("dynamodb", "s3")
"""Services with an entry in each route table, for nothing."""
OF_AWS: Final = {
    "s3:GetObject": ("al2023-repos-{region}-de612dc2", "prod-{region}-starport-layer-bucket"),
    "s3:PutObject": ("cloudformation-custom-resource-response-{region}",),
}
"""Buckets of AWS: nodes read layers of images and packages there, the installer answers CloudFormation."""


class Endpoints(Construct):
    """All of them: bounded to this account, and under the names that everybody uses (private DNS)."""

    def __init__(self, scope: Construct, construct_id: str, *, knobs: Knobs) -> None:
        """Make them in the functions' subnets; whoever is in the VPC may use them, for private DNS leads there."""
        super().__init__(scope, construct_id)
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=knobs.vpc,
            group_description=f"Joiner, {knobs.cluster}: VPC endpoints, for all of the VPC",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(**https(block), description="of the VPC")
                for block in listed(knobs.vpc_cidrs)
            ],
        )
        for service in (*INTERFACES, *([TELLING] if knobs.report_topic else [])):
            ec2.CfnVPCEndpoint(
                self,
                service.capitalize(),
                vpc_id=knobs.vpc,
                vpc_endpoint_type="Interface",
                service_name=_name(service),
                private_dns_enabled=True,
                subnet_ids=listed(knobs.subnets),
                security_group_ids=[group.attr_group_id],
                policy_document=_policy(service),
            )
        for service in GATEWAYS:
            ec2.CfnVPCEndpoint(
                self,
                service.capitalize(),
                vpc_id=knobs.vpc,
                vpc_endpoint_type="Gateway",
                service_name=_name(service),
                route_table_ids=listed(knobs.route_tables),
                policy_document=_policy(service),
            )


def https(block: str) -> dict[str, str | int]:
    """Answer TLS to or from *block*, as a rule of a security group has it.

    >>> https("10.0.0.0/16")["cidr_ip"], "cidr_ipv6" in https("fd00::/8")
    ('10.0.0.0/16', True)
    """
    family = "cidr_ipv6" if ":" in block else "cidr_ip"
    return {"ip_protocol": "tcp", "from_port": 443, "to_port": 443, family: block}


def _name(service: str) -> str:
    return f"com.amazonaws.{cdk.Aws.REGION}.{service}"


def _policy(service: str) -> iam.PolicyDocument:
    """Answer: what this account asks of what is this account's or AWS's; who may what is for IAM to say."""
    own = {"aws:PrincipalAccount": cdk.Aws.ACCOUNT_ID}
    if service == "s3":
        own["aws:ResourceAccount"] = cdk.Aws.ACCOUNT_ID
    document = iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                sid="OwnAccount",
                principals=[iam.AnyPrincipal()],
                actions=[f"{service}:*"],
                resources=["*"],
                conditions={"StringEquals": own},
            )
        ]
    )
    if service == "s3":
        document.add_statements(*map(_bucket_of_aws, OF_AWS))
    return document


def _bucket_of_aws(action: str) -> iam.PolicyStatement:
    """Answer the right to do *action* there: AWS signs what is asked for, as another account."""
    names = (one.format(region=cdk.Aws.REGION) for one in OF_AWS[action])
    return iam.PolicyStatement(
        sid=f"OfAws{action.partition(':')[2]}",
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=[f"arn:{cdk.Aws.PARTITION}:s3:::{name}/*" for name in names],
    )
