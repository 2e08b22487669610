"""Resolve CloudFormation's intrinsic functions and references to generated, deterministic values.

Unsupported functions raise: a wrong guess would configure a different stack than the deployed one.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from sim.lambda_runtime.stack_template.intrinsic_functions import IntrinsicFunctions, Json

CloudFormationTemplate: TypeAlias = Mapping[str, Json]

ACCOUNT_ID: Final = "111122223333"
DEFAULT_REGION: Final = "us-east-1"
PSEUDO_PARAMETERS: Final = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::StackName": "joiner",
    "AWS::URLSuffix": "amazonaws.com",
}


class UnsupportedTemplateError(Exception):
    """The template contains something that the embedded world does not support; the message names the place."""


QUALIFIED_ARN_FORMAT: Final = "arn:aws:lambda:{region}:{account}:function:{function}:{name}"
_LAYER_ARN_FORMAT: Final = "arn:aws:lambda:{region}:{account}:layer:{name}:1"
NAMES_BY_TYPE: Final = {
    "AWS::CloudWatch::Alarm": ("AlarmName", "arn:aws:cloudwatch:{region}:{account}:alarm:{name}"),
    "AWS::CodeDeploy::Application": ("ApplicationName", "arn:aws:codedeploy:{region}:{account}:application:{name}"),
    "AWS::CodeDeploy::DeploymentConfig": (
        "DeploymentConfigName",
        "arn:aws:codedeploy:{region}:{account}:deploymentconfig:{name}",
    ),
    "AWS::DynamoDB::Table": ("TableName", "arn:aws:dynamodb:{region}:{account}:table/{name}"),
    "AWS::EC2::SecurityGroup": ("GroupId", "arn:aws:ec2:{region}:{account}:security-group/{name}"),
    "AWS::Events::Rule": ("Name", "arn:aws:events:{region}:{account}:rule/{name}"),
    "AWS::IAM::InstanceProfile": ("InstanceProfileName", "arn:aws:iam::{account}:instance-profile/{name}"),
    "AWS::IAM::Role": ("RoleName", "arn:aws:iam::{account}:role/{name}"),
    "AWS::Lambda::Alias": ("Name", QUALIFIED_ARN_FORMAT),
    "AWS::Lambda::Function": ("FunctionName", "arn:aws:lambda:{region}:{account}:function:{name}"),
    "AWS::Lambda::LayerVersion": ("LayerName", _LAYER_ARN_FORMAT),
    "AWS::Lambda::Version": ("Version", QUALIFIED_ARN_FORMAT),
    "AWS::Logs::LogGroup": ("LogGroupName", "arn:aws:logs:{region}:{account}:log-group:{name}:*"),
    "AWS::S3::Bucket": ("BucketName", "arn:aws:s3:::{name}"),
    "AWS::Scheduler::ScheduleGroup": ("Name", "arn:aws:scheduler:{region}:{account}:schedule-group/{name}"),
    "AWS::SQS::Queue": ("QueueName", "arn:aws:sqs:{region}:{account}:{name}"),
}
"""By resource type: the property with the physical name, and the format of the ARN.

*function* in a format is the name of the owning function.
"""
REF_FORMAT_BY_TYPE: Final = {
    "AWS::Lambda::Alias": QUALIFIED_ARN_FORMAT,
    "AWS::Lambda::LayerVersion": _LAYER_ARN_FORMAT,
    "AWS::Lambda::Version": QUALIFIED_ARN_FORMAT,
    "AWS::SQS::Queue": "https://sqs.{region}.amazonaws.com/{account}/{name}",
}
"""The result of `Ref`, if it is not the physical name."""


class IntrinsicResolver(IntrinsicFunctions):
    """Resolves the values of one template."""

    unsupported_error = UnsupportedTemplateError

    def __init__(self, template: CloudFormationTemplate, region: str = DEFAULT_REGION) -> None:
        """Resolve against *template* as deployed in *region*; nothing is computed yet."""
        self._region = region
        self._pseudo_parameters = PSEUDO_PARAMETERS | {"AWS::Region": region}
        self._resources: Mapping[str, Any] = template["Resources"]
        self._parameters: Mapping[str, Any] = template.get("Parameters", {})
        super().__init__()

    def resolve_ref(self, name: str) -> str:
        """Return the result of `Ref` for the pseudo parameter, parameter or resource *name*."""
        if name in self._pseudo_parameters:
            return self._pseudo_parameters[name]
        if "Default" in self._parameters.get(name, {}):
            return str(self._parameters[name]["Default"])
        self._get_names(name)
        return self._format_identifier(REF_FORMAT_BY_TYPE.get(self._resources[name]["Type"], "{name}"), name)

    def get_attribute(self, logical_id: str, attribute: str) -> str:
        """Return the ARN, the physical name, or the URL of a queue."""
        if attribute == "Arn":
            return self.get_arn(logical_id)
        if attribute == self._get_names(logical_id)[0]:
            return self.get_physical_name(logical_id)
        if attribute == "QueueUrl":
            return self.resolve_ref(logical_id)
        raise UnsupportedTemplateError(f"{logical_id}.{attribute} is not known here")

    def get_arn(self, logical_id: str) -> str:
        """Return the ARN of a resource."""
        return self._format_identifier(self._get_names(logical_id)[1], logical_id)

    def get_physical_name(self, logical_id: str) -> str:
        """Return the physical name: the explicit name, or the logical id in lower case."""
        name_property, _ = self._get_names(logical_id)
        explicit_name = self._resources[logical_id].get("Properties", {}).get(name_property)
        return logical_id.lower() if explicit_name is None else str(self.resolve(explicit_name))

    def _format_identifier(self, identifier_format: str, logical_id: str) -> str:
        owner_function = (
            self._resources[logical_id].get("Properties", {}).get("FunctionName", "")
            if identifier_format == QUALIFIED_ARN_FORMAT
            else ""
        )
        format_values = {"name": self.get_physical_name(logical_id), "function": self.resolve(owner_function)}
        return identifier_format.format(**format_values, region=self._region, account=ACCOUNT_ID)

    def _get_names(self, logical_id: str) -> tuple[str, str]:
        if logical_id not in self._resources:
            raise UnsupportedTemplateError(f"nothing in the template is called {logical_id}")
        resource_type = self._resources[logical_id]["Type"]
        if resource_type not in NAMES_BY_TYPE:
            raise UnsupportedTemplateError(f"{logical_id} is {resource_type}: its names are unknown")
        return NAMES_BY_TYPE[resource_type]
