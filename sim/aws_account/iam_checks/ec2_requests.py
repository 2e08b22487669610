"""The IAM requests of an EC2 call.

`sim.iam.port_call_requests` builds them after the call is converted to a call of the EC2 port.
"""

from collections.abc import Callable, Mapping
from typing import Final

from shared.errors import NotFound
from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.types import Tags
from shared.settings import Settings
from sim.aws_http.instance_calls import InstanceApi, parse_tags
from sim.aws_http.launch_template_calls import parse_launch_template, parse_run_instances
from sim.aws_http.protocol import ApiDict
from sim.cloud.cloud import Cloud
from sim.iam.patterns_and_variables import IamRequest, build_context
from sim.iam.port_call_requests import PortRequestBuilder
from sim.iam.tag_condition_keys import build_request_tag_keys

_RUN_INSTANCES_ACTIONS: Final = frozenset({"ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"})
_RESOURCE_TYPE_BY_PREFIX: Final = {
    "lt": "launch-template",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpce": "vpc-endpoint",
}
"""The ARN resource type by id prefix."""


class Ec2RequestBuilder:
    """Builds the IAM requests of an EC2 call: one for each resource that the call uses."""

    def __init__(self, cloud: Cloud, region: str, account_id: str, get_role_arn: Callable[[str], str]) -> None:
        """Read tags from *cloud*; *get_role_arn* returns the ARN of the role in an instance profile."""
        self._cloud, self._instance_calls = cloud, InstanceApi(cloud)
        settings = Settings(cluster_name=cloud.facts.name, region=region)
        self._port_request_builder = PortRequestBuilder(
            cloud=cloud, settings=settings, number=account_id, get_role_arn=get_role_arn
        )
        self._builder_by_action: Mapping[str, Callable[[ApiDict], tuple[IamRequest, ...]]] = {
            "CreateFleet": self._build_fleet_requests,
            "CreateLaunchTemplate": self._build_launch_template_requests,
            "CreateTags": self._build_create_tags_requests,
            "DeleteLaunchTemplate": lambda parameters: self._build_port_requests(
                "delete_launch_template", parameters.get("LaunchTemplateName", "")
            ),
            "RunInstances": self._build_run_instances_requests,
            "TerminateInstances": lambda parameters: self._build_port_requests(
                "terminate_instances", parameters["InstanceIds"]
            ),
        }

    def build_requests(self, action: str, parameters: ApiDict) -> tuple[IamRequest, ...]:
        """Return the IAM requests of *action*."""
        if action in self._builder_by_action:
            return self._builder_by_action[action](parameters)
        region = {"aws:RequestedRegion": self._port_request_builder.settings.region, "aws:SecureTransport": "true"}
        return (IamRequest(action=f"ec2:{action}", resource="*", context=build_context(region)),)

    def _build_port_requests(self, port_call: str, *arguments: object) -> tuple[IamRequest, ...]:
        return self._port_request_builder.build_requests(f"ec2.{port_call}", arguments, {})

    def _build_fleet_requests(self, parameters: ApiDict) -> tuple[IamRequest, ...]:
        try:
            return self._build_port_requests("create_fleet", self._instance_calls.parse_fleet_request(parameters))
        except NotFound:
            # A missing template needs no permission; with DryRun this is how CreateFleet permissions are tested.
            return self._build_requests_without_template(parameters)

    def _build_requests_without_template(self, parameters: ApiDict) -> tuple[IamRequest, ...]:
        fleet_arn = self._port_request_builder.build_ec2_arn("fleet")
        return self._build_tagging_requests("ec2:CreateFleet", fleet_arn, parse_tags("fleet", parameters))

    def _build_launch_template_requests(self, parameters: ApiDict) -> tuple[IamRequest, ...]:
        requests = self._build_port_requests("ensure_launch_template", parse_launch_template(parameters))
        return tuple(request for request in requests if request.action != "ec2:DescribeLaunchTemplates")

    def _build_run_instances_requests(self, parameters: ApiDict) -> tuple[IamRequest, ...]:
        template, instance_type, subnet = parse_run_instances(parameters)
        probe = DryRunRequest(template=template, instance_type=instance_type, subnet_ids=(subnet,))
        return tuple(
            request
            for request in self._build_port_requests("dry_run_launch", probe)
            if request.action in _RUN_INSTANCES_ACTIONS
        )

    def _build_create_tags_requests(self, parameters: ApiDict) -> tuple[IamRequest, ...]:
        tags = tuple((tag["Key"], tag.get("Value", "")) for tag in parameters["Tags"])
        return tuple(
            request for resource in parameters["Resources"] for request in self._build_tag_requests(resource, tags)
        )

    def _build_tag_requests(self, resource: str, tags: Tags) -> tuple[IamRequest, ...]:
        prefix = resource.partition("-")[0]
        if prefix == "i":
            return self._build_port_requests("create_tags", resource, tags)
        arn = self._port_request_builder.build_ec2_arn(_RESOURCE_TYPE_BY_PREFIX.get(prefix, prefix), resource)
        return self._build_tagging_requests("ec2:CreateTags", arn, tags)

    def _build_tagging_requests(self, action: str, arn: str, tags: Tags) -> tuple[IamRequest, ...]:
        region = {"aws:RequestedRegion": self._port_request_builder.settings.region}
        context = build_context(region | build_request_tag_keys(tags))
        return (IamRequest(action=action, resource=arn, context=context),)
