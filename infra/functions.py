"""The Lambdas: one table says what each needs, one construct makes them alike.

Each has a role and a log group of its own, and an alias, `LIVE`, by which everybody calls it: a published version that
never changes. A scheduled call is asynchronous, and Lambda would repeat it twice if it fails; that is off, because the
next tick comes sooner than the repetition and knows more.
"""

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import bundling, by_function
from infra.knobs import Knobs
from infra.network import Network
from shared.settings import Settings

LIVE: Final = "live"
"""The alias that schedules, queues and CloudFormation call."""
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
    is_followed_up: bool = True
    """Whether a cycle may ask for another one of it; if so it has a queue."""
    reserved: int | None = None
    """Of the account's concurrency; None: what there is is shared."""
    log_level: str = "INFO"


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
        is_followed_up=False,
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
    is_followed_up=False,
)
"""CloudFormation alone calls it: no schedule, no queue, none of the others' rights."""


def specs_for(knobs: Knobs) -> tuple[Spec, ...]:
    """Answer what is deployed; the minute begins the watch that goes on by itself, a log begins each look anew."""
    watch = msgspec.structs.replace(WATCH, every_minutes=1 if knobs.reaction == "watch" else 0)
    chosen = SPECS if knobs.reaction == "tick" else (*SPECS, watch)
    return tuple(_as_chosen(spec, knobs) for spec in chosen)


def _as_chosen(spec: Spec, knobs: Knobs) -> Spec:
    """Answer *spec* with what *knobs* say of it."""
    memory = by_function.numbers("memory-mb", knobs.memory_mb, by_function.MEMORY_MB)
    minutes = by_function.numbers("every-minutes", knobs.every_minutes, by_function.EVERY_MINUTES)
    reserved = by_function.numbers("reserved-concurrency", knobs.reserved_concurrency, by_function.RESERVED)
    return msgspec.structs.replace(
        spec,
        memory_mb=memory.get(spec.name, spec.memory_mb),
        every_minutes=minutes.get(spec.name, spec.every_minutes),
        reserved=reserved.get(spec.name),
        log_level=by_function.levels("log-level", knobs.log_level)[spec.name],
    )


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
        network: Network,
    ) -> None:
        """Make them, all with *settings* in their environment, and with *files*, by name, beside their code."""
        super().__init__(scope, construct_id)
        self._knobs, self._network = knobs, network
        self.specs = specs_for(knobs)
        python = bundling.interpreter() if cdk.Stack.of(self).bundling_required else ""
        layer = lambda_.LayerVersion(
            self,
            "Dependencies",
            code=bundling.dependencies(python),
            description="Joiner: the libraries of its functions, as locked",
        )
        code = bundling.sources(python, files)
        specs = (*self.specs, _as_chosen(INSTALLER, knobs))
        self._functions = {spec.name: self._function(spec, settings, layer, code) for spec in specs}
        self._aliases = {name: self._alias(name) for name in self._functions}

    def __getitem__(self, name: str) -> lambda_.Function:
        """Answer the function called *name*."""
        return self._functions[name]

    def alias(self, name: str) -> lambda_.Alias:
        """Answer what calls of *name* go to: the version that is live."""
        return self._aliases[name]

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
            role=self._role(spec, settings.cluster_name),
            log_group=self._log_group(f"{title}Logs"),
            memory_size=spec.memory_mb,
            timeout=cdk.Duration.seconds(spec.timeout_seconds),
            environment=msgspec.structs.replace(settings, log_level=spec.log_level).environment(),
            reserved_concurrent_executions=spec.reserved,
            # What calls itself by a queue is a mistake to Lambda otherwise, and stopped after sixteen times.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if spec.is_followed_up else None,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=_lets_through(spec),
            system_log_level_v2=lambda_.SystemLogLevel(self._knobs.system_log_level),
        )
        function.log_group.grant_write(function)
        self._place(function)
        _acknowledge(function)
        return function

    def _role(self, spec: Spec, cluster: str) -> iam.Role:
        says = f"Joiner, {cluster}: what the function {spec.name} may do"
        trusted = iam.ServicePrincipal("lambda.amazonaws.com")
        return iam.Role(self, f"{spec.name.capitalize()}Role", assumed_by=trusted, description=says)

    def _alias(self, name: str) -> lambda_.Alias:
        alias = lambda_.Alias(
            self,
            f"{name.capitalize()}Live",
            alias_name=LIVE,
            version=self._functions[name].current_version,
            retry_attempts=0,
            max_event_age=cdk.Duration.minutes(1),
        )
        _acknowledge(alias)
        return alias

    def _log_group(self, name: str) -> logs.LogGroup:
        group = logs.LogGroup(self, name, removal_policy=cdk.RemovalPolicy.DESTROY)
        group.node.default_child.retention_in_days = self._knobs.log_days
        return group

    def _place(self, function: lambda_.Function) -> None:
        if self._network.placement:
            function.node.default_child.add_property_override("VpcConfig", self._network.placement)
            function.node.add_dependency(self._network)


def _lets_through(spec: Spec) -> lambda_.ApplicationLogLevel:
    """Answer from which level on Lambda keeps a line; metrics are INFO: what we leave out, we leave out ourselves."""
    return lambda_.ApplicationLogLevel.DEBUG if spec.log_level == "DEBUG" else lambda_.ApplicationLogLevel.INFO


def _acknowledge(construct: Construct) -> None:
    reasons = (cdk.Acknowledgment(id=rule, reason=why) for rule, why in REASONS.items())
    cdk.Validations.of(construct).acknowledge(*reasons)
