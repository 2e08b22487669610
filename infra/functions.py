"""The Lambdas: one table says what each needs, one construct makes them alike.

Each has a role and a log group of its own. A scheduled call is asynchronous, and Lambda would repeat it twice if it
fails; that is off, because the next tick comes sooner than the repetition and knows more.
"""

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import bundling
from infra.knobs import Knobs, listed
from shared.settings import Settings

ONE_VCPU_MB: Final = 1769
"""With this much memory Lambda gives one whole processor."""


LOCKED: Final = "3.13 is what the wheels are locked for"
TICKS: Final = "a tick that fails is not repeated: the next one comes sooner, and knows more"
REASONS: Final = {
    "AwsSolutions::AwsSolutions-L1": LOCKED,
    "Serverless::Serverless-LambdaLatestVersion": LOCKED,
    "Serverless::Serverless-LambdaDLQ": TICKS,
    "Serverless::Serverless-LambdaAsyncFailureDestination": TICKS,
    "Serverless::Serverless-LambdaEventSourceMappingDestination": "a queue's own dead letters are that",
    "Serverless::Serverless-LambdaTracing": "each cycle's journal says what was asked, decided and done, and how long",
}
"""Why functions are not as cdk-nag would have them."""


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One Lambda: ``functions.<name>.handler.handler``."""

    name: str
    purpose: str
    memory_mb: int
    timeout_seconds: int
    every_minutes: int = 0
    """0: only events and follow-ups wake it."""


SPECS: Final = (
    Spec(
        name="provision",
        purpose="places pending pods: NodeClaims and instances",
        memory_mb=ONE_VCPU_MB,
        timeout_seconds=55,
        every_minutes=1,
    ),
    Spec(
        name="lifecycle",
        purpose="registers, drains, terminates, collects garbage",
        memory_mb=1024,
        timeout_seconds=55,
        every_minutes=1,
    ),
    Spec(
        name="disrupt",
        purpose="consolidates, replaces drifted nodes",
        memory_mb=ONE_VCPU_MB,
        timeout_seconds=55,
        every_minutes=1,
    ),
    Spec(
        name="interrupt",
        purpose="reacts to what EC2 announces",
        memory_mb=ONE_VCPU_MB,
        timeout_seconds=25,
    ),
    Spec(
        name="catalog",
        purpose="learns types, prices and images, resolves EC2NodeClasses",
        memory_mb=1024,
        timeout_seconds=240,
        every_minutes=5,
    ),
)

WATCH: Final = Spec(
    name="watch",
    purpose="sees within seconds that pods begin to wait",
    memory_mb=512,
    timeout_seconds=20,
)
"""Only where `joiner:reaction` is not ``tick``."""


INSTALLER: Final = Spec(
    name="installer",
    purpose="puts definitions and rights into the cluster when the stack is deployed",
    memory_mb=512,
    timeout_seconds=900,
)
"""CloudFormation alone calls it: no schedule, no queue, none of the others' rights."""


def specs_for(reaction: str) -> tuple[Spec, ...]:
    """Answer what is deployed; the minute begins the watch that goes on by itself, a log begins each look anew."""
    if reaction == "tick":
        return SPECS
    return (*SPECS, msgspec.structs.replace(WATCH, every_minutes=1 if reaction == "watch" else 0))


class Functions(Construct):
    """All of the specs that the knobs ask for, and the installer; index it by name."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        knobs: Knobs,
        settings: Settings,
        files: Mapping[str, bytes],
    ) -> None:
        """Make them, all with *settings* in their environment, and with *files*, by name, beside their code."""
        super().__init__(scope, construct_id)
        self._knobs = knobs
        self.specs = specs_for(knobs.reaction)
        python = bundling.interpreter() if cdk.Stack.of(self).bundling_required else ""
        layer = lambda_.LayerVersion(self, "Dependencies", code=bundling.dependencies(python))
        code = bundling.sources(python, files)
        specs = (*self.specs, INSTALLER)
        self._functions = {spec.name: self._function(spec, settings, layer, code) for spec in specs}

    def __getitem__(self, name: str) -> lambda_.Function:
        """Answer the function called *name*."""
        return self._functions[name]

    def role(self, name: str) -> iam.Role:
        """Answer the role that only *name* has."""
        return self._functions[name].role

    def _function(
        self, spec: Spec, settings: Settings, layer: lambda_.LayerVersion, code: lambda_.Code
    ) -> lambda_.Function:
        title = spec.name.capitalize()
        function = lambda_.Function(
            self,
            title,
            description=f"Joiner, {settings.cluster_name}: {spec.purpose}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            handler=f"functions.{spec.name}.handler.handler",
            layers=[layer],
            role=iam.Role(self, f"{title}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")),
            log_group=self._log_group(f"{title}Logs"),
            memory_size=spec.memory_mb,
            timeout=cdk.Duration.seconds(spec.timeout_seconds),
            environment=settings.environment(),
            retry_attempts=0,
            max_event_age=cdk.Duration.minutes(1),
        )
        function.log_group.grant_write(function)
        self._place(function)
        cdk.Validations.of(function).acknowledge(
            *(cdk.Acknowledgment(id=rule, reason=why) for rule, why in REASONS.items())
        )
        return function

    def _log_group(self, name: str) -> logs.LogGroup:
        group = logs.LogGroup(self, name, removal_policy=cdk.RemovalPolicy.DESTROY)
        group.node.default_child.retention_in_days = self._knobs.log_days
        return group

    def _place(self, function: lambda_.Function) -> None:
        if not self._knobs.subnets:
            return
        placement = {
            "SubnetIds": listed(self._knobs.subnets),
            "SecurityGroupIds": listed(self._knobs.security_groups),
        }
        function.node.default_child.add_property_override("VpcConfig", placement)
