"""CloudFormation's functions and references, resolved to values that are made up but always the same.

What is not understood raises: a wrong guess would wire something else than what is deployed.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

Json: TypeAlias = Any
"""Whatever a document may hold."""
Template: TypeAlias = Mapping[str, Json]

ACCOUNT: Final = "111122223333"
REGION: Final = "us-east-1"
PSEUDO: Final = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::StackName": "joiner",
    "AWS::URLSuffix": "amazonaws.com",
}
REFERENCE: Final = re.compile(r"\$\{(!?)([^}]+)\}")


class UnsupportedTemplateError(Exception):
    """The template says something that the embedded world does not understand; the message names the place."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How one resource type names its resources; *arn* and *ref* are formats, in which *function* is whose it is."""

    naming: str
    """The property that holds a name somebody chose."""
    arn: str
    ref: str = "{name}"


QUALIFIED: Final = "arn:aws:lambda:{region}:{account}:function:{function}:{name}"
KINDS: Final = {
    "AWS::CloudWatch::Alarm": Kind(naming="AlarmName", arn="arn:aws:cloudwatch:{region}:{account}:alarm:{name}"),
    "AWS::CodeDeploy::Application": Kind(
        naming="ApplicationName", arn="arn:aws:codedeploy:{region}:{account}:application:{name}"
    ),
    "AWS::CodeDeploy::DeploymentConfig": Kind(
        naming="DeploymentConfigName", arn="arn:aws:codedeploy:{region}:{account}:deploymentconfig:{name}"
    ),
    "AWS::DynamoDB::Table": Kind(naming="TableName", arn="arn:aws:dynamodb:{region}:{account}:table/{name}"),
    "AWS::EC2::SecurityGroup": Kind(naming="GroupId", arn="arn:aws:ec2:{region}:{account}:security-group/{name}"),
    "AWS::Events::Rule": Kind(naming="Name", arn="arn:aws:events:{region}:{account}:rule/{name}"),
    "AWS::IAM::InstanceProfile": Kind(
        naming="InstanceProfileName", arn="arn:aws:iam::{account}:instance-profile/{name}"
    ),
    "AWS::IAM::Role": Kind(naming="RoleName", arn="arn:aws:iam::{account}:role/{name}"),
    "AWS::Lambda::Alias": Kind(naming="Name", arn=QUALIFIED, ref=QUALIFIED),
    "AWS::Lambda::Function": Kind(naming="FunctionName", arn="arn:aws:lambda:{region}:{account}:function:{name}"),
    "AWS::Lambda::LayerVersion": Kind(
        naming="LayerName",
        arn="arn:aws:lambda:{region}:{account}:layer:{name}:1",
        ref="arn:aws:lambda:{region}:{account}:layer:{name}:1",
    ),
    "AWS::Lambda::Version": Kind(naming="Version", arn=QUALIFIED, ref=QUALIFIED),
    "AWS::Logs::LogGroup": Kind(naming="LogGroupName", arn="arn:aws:logs:{region}:{account}:log-group:{name}:*"),
    "AWS::S3::Bucket": Kind(naming="BucketName", arn="arn:aws:s3:::{name}"),
    "AWS::Scheduler::ScheduleGroup": Kind(
        naming="Name", arn="arn:aws:scheduler:{region}:{account}:schedule-group/{name}"
    ),
    "AWS::SQS::Queue": Kind(
        naming="QueueName",
        arn="arn:aws:sqs:{region}:{account}:{name}",
        ref="https://sqs.{region}.amazonaws.com/{account}/{name}",
    ),
}


class Resolver:
    """The values of one template."""

    def __init__(self, template: Template, region: str = REGION) -> None:
        """Resolve against *template* as deployed in *region*; nothing is computed yet."""
        self._region = region
        self._pseudo = PSEUDO | {"AWS::Region": region}
        self._resources: Mapping[str, Any] = template["Resources"]
        self._parameters: Mapping[str, Any] = template.get("Parameters", {})
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self.ref,
            "Fn::GetAtt": self._attribute,
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._substitute,
        }

    def resolve(self, value: Json) -> Json:
        """Answer *value* with every function in it replaced by what it gives.

        Raises:
            UnsupportedTemplateError: a function or a reference is unknown here.
        """
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            [(key, argument)] = value.items()
            if key in self._functions:
                return self._functions[key](argument)
            if key.startswith("Fn::"):
                raise UnsupportedTemplateError(f"{key} is not resolved here: {argument!r}")
        return {key: self.resolve(item) for key, item in value.items()}

    def ref(self, name: str) -> str:
        """Answer what `Ref` gives for the pseudo parameter, parameter or resource *name*."""
        if name in self._pseudo:
            return self._pseudo[name]
        if "Default" in self._parameters.get(name, {}):
            return str(self._parameters[name]["Default"])
        return self._filled(self._kind(name).ref, name)

    def arn(self, logical_id: str) -> str:
        """Answer the ARN of a resource."""
        return self._filled(self._kind(logical_id).arn, logical_id)

    def name(self, logical_id: str) -> str:
        """Answer the physical name: the one somebody chose, or the logical id in small letters."""
        chosen = self._resources[logical_id].get("Properties", {}).get(self._kind(logical_id).naming)
        return logical_id.lower() if chosen is None else str(self.resolve(chosen))

    def _filled(self, text: str, logical_id: str) -> str:
        of = self._resources[logical_id].get("Properties", {}).get("FunctionName", "") if text == QUALIFIED else ""
        names = {"name": self.name(logical_id), "function": self.resolve(of)}
        return text.format(**names, region=self._region, account=ACCOUNT)

    def _kind(self, logical_id: str) -> Kind:
        if logical_id not in self._resources:
            raise UnsupportedTemplateError(f"nothing in the template is called {logical_id}")
        kind = KINDS.get(self._resources[logical_id]["Type"])
        if kind is None:
            raise UnsupportedTemplateError(
                f"{logical_id} is {self._resources[logical_id]['Type']}: its names are unknown"
            )
        return kind

    def _attribute(self, argument: str | list[str]) -> str:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        if attribute == "Arn":
            return self.arn(logical_id)
        if attribute == self._kind(logical_id).naming:
            return self.name(logical_id)
        if attribute == "QueueUrl":
            return self.ref(logical_id)
        raise UnsupportedTemplateError(f"{logical_id}.{attribute} is not known here")

    def _join(self, argument: tuple[str, Any]) -> str:
        separator, parts = argument
        return str(separator).join(str(part) for part in self.resolve(parts))

    def _select(self, argument: tuple[int | str, Any]) -> Json:
        place, parts = argument
        return self.resolve(parts)[int(place)]

    def _split(self, argument: tuple[str, Any]) -> list[str]:
        separator, text = argument
        return str(self.resolve(text)).split(separator)

    def _substitute(self, argument: str | tuple[str, Mapping[str, Any]]) -> str:
        text, given = (argument, {}) if isinstance(argument, str) else argument
        values = {name: str(self.resolve(value)) for name, value in given.items()}

        def replaced(found: re.Match[str]) -> str:
            literal, name = found.groups()
            if literal:
                return f"${{{name}}}"
            if name in values:
                return values[name]
            return self._attribute(name) if "." in name else self.ref(name)

        return REFERENCE.sub(replaced, text)
