"""The VPC endpoints that functions need if they have no other route to AWS.

Add a service here when a function gets permission to call it; tests/infra/stack/test_network.py checks this against the
policies. Not needed are `logs` (Lambda writes the log of a function from outside the VPC, and metrics are lines of that
log), `sts` (the token for EKS is signed locally and sent to STS by the control plane) and `lambda` (EventBridge, the
Scheduler and the SQS pollers call from outside the VPC).
"""

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.settings.settings import StackOptions
from shared.settings_text import WORKSPACE_URL

INTERFACE_SERVICES: Final = ("ec2", "eks", "sqs", "ssm")
"""Services with an interface endpoint in each subnet, charged by hour and gigabyte."""
REPORT_SERVICE: Final = "sns"
"""An interface endpoint that is needed if `report-topic` is set."""
ZONAL_SHIFT_SERVICE: Final = "arc-zonal-shift"
"""An interface endpoint that is needed if `zonal-shift` is not `off`."""
EVENT_SERVICE: Final = "events"
"""An interface endpoint that is needed if `event-bus` is set."""
METRICS_SERVICE: Final = "aps-workspaces"
"""An interface endpoint that is needed if `remote-write-url` is that of a workspace."""
ACTION_PREFIX_BY_SERVICE: Final = {METRICS_SERVICE: "aps"}
"""The prefix of IAM actions, where it is not the name of the endpoint."""
GATEWAY_SERVICES: Final = ("dynamodb", "s3")
"""Services with an entry in each route table, free of charge."""
AWS_BUCKETS: Final = {
    "s3:GetObject": ("al2023-repos-{region}-de612dc2", "prod-{region}-starport-layer-bucket"),
    "s3:PutObject": ("cloudformation-custom-resource-response-{undashed_region}",),
}
"""Buckets of AWS: nodes download image layers and packages from them, the installer sends its response to
CloudFormation. That bucket has the region without dashes in its name (AWS CloudFormation User Guide, "VPC endpoints").
"""


class Endpoints(Construct):
    """All endpoints, restricted to requests of this account, under the public names of the services (private DNS)."""

    def __init__(self, scope: Construct, construct_id: str, *, options: StackOptions) -> None:
        """Create the endpoints in the subnets of the functions.

        All clients in the VPC can use them, because private DNS resolves to them.
        """
        super().__init__(scope, construct_id)
        group = ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=options.vpc,
            group_description=f"Joiner, {options.cluster}: VPC endpoints, for all of the VPC",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(**build_https_rule(block), description="of the VPC")
                for block in options.vpc_cidrs
            ],
        )
        report_services = (REPORT_SERVICE,) if options.report_topic else ()
        shift_services = (ZONAL_SHIFT_SERVICE,) if options.zonal_shift != "off" else ()
        event_services = (EVENT_SERVICE,) if options.event_bus else ()
        metrics_services = (METRICS_SERVICE,) if WORKSPACE_URL.fullmatch(options.remote_write_url) else ()
        optional_services = (*report_services, *shift_services, *event_services, *metrics_services)
        for service in (*INTERFACE_SERVICES, *optional_services):
            ec2.CfnVPCEndpoint(
                self,
                service.capitalize(),
                vpc_id=options.vpc,
                vpc_endpoint_type="Interface",
                service_name=_format_service_name(service),
                private_dns_enabled=True,
                subnet_ids=list(options.subnets),
                security_group_ids=[group.attr_group_id],
                policy_document=_build_policy(service),
            )
        for service in GATEWAY_SERVICES:
            ec2.CfnVPCEndpoint(
                self,
                service.capitalize(),
                vpc_id=options.vpc,
                vpc_endpoint_type="Gateway",
                service_name=_format_service_name(service),
                route_table_ids=list(options.route_tables),
                policy_document=_build_policy(service),
            )


def build_https_rule(block: str) -> dict[str, str | int]:
    """Build a security group rule for TLS to or from *block*.

    >>> build_https_rule("10.0.0.0/16")["cidr_ip"], "cidr_ipv6" in build_https_rule("fd00::/8")
    ('10.0.0.0/16', True)
    """
    family = "cidr_ipv6" if ":" in block else "cidr_ip"
    return {"ip_protocol": "tcp", "from_port": 443, "to_port": 443, family: block}


def _format_service_name(service: str) -> str:
    return f"com.amazonaws.{cdk.Aws.REGION}.{service}"


def _build_policy(service: str) -> iam.PolicyDocument:
    """Build the policy of an endpoint: requests of this account, with S3 only for buckets of this account or of AWS.

    IAM decides which role can do what. The table of a group of clusters can be in another account.
    """
    account_conditions = {"aws:PrincipalAccount": cdk.Aws.ACCOUNT_ID}
    if service == "s3":
        account_conditions["aws:ResourceAccount"] = cdk.Aws.ACCOUNT_ID
    document = iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                sid="AllowOwnAccount",
                principals=[iam.AnyPrincipal()],
                actions=[f"{ACTION_PREFIX_BY_SERVICE.get(service, service)}:*"],
                resources=["*"],
                conditions={"StringEquals": account_conditions},
            )
        ]
    )
    if service == "s3":
        document.add_statements(*map(_build_aws_bucket_statement, AWS_BUCKETS))
    return document


def _build_aws_bucket_statement(action: str) -> iam.PolicyStatement:
    """Build the statement that allows *action* on buckets of AWS, for requests that AWS signs as another account."""
    region, undashed_region = cdk.Aws.REGION, cdk.Fn.join("", cdk.Fn.split("-", cdk.Aws.REGION))
    names = (template.format(region=region, undashed_region=undashed_region) for template in AWS_BUCKETS[action])
    return iam.PolicyStatement(
        sid=f"AllowAwsBuckets{action.partition(':')[2]}",
        principals=[iam.AnyPrincipal()],
        actions=[action],
        resources=[f"arn:{cdk.Aws.PARTITION}:s3:::{name}/*" for name in names],
    )
