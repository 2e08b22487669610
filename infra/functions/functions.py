"""The Lambda functions: a table of their requirements, and a construct that creates them in the same way.

Each function has its own role and log group, and an alias, `LIVE_ALIAS`, that all callers use: it points to a published
version that never changes. A scheduled invocation is asynchronous, and Lambda would retry it twice on failure; retries
are disabled, because the next scheduled run comes sooner and has newer data.
"""

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
import msgspec
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.functions import bundling
from infra.network.network import Network
from infra.settings.per_function import parse_log_levels
from infra.settings.settings import StackOptions
from shared.settings import Settings
from shared.settings_text import LogLevel

LIVE_ALIAS: Final = "live"
"""The alias that schedules, queues and CloudFormation invoke."""
MEMORY_MB_PER_VCPU: Final = 1769
"""The memory size for which Lambda provides one full vCPU."""


LOCKED_RUNTIME_REASON: Final = "the locked wheels are built for Python 3.13"
NO_RETRY_REASON: Final = "a failed scheduled run is not retried: the next scheduled run starts earlier, with newer data"
REASON_BY_RULE: Final = {
    "AwsSolutions::AwsSolutions-L1": LOCKED_RUNTIME_REASON,
    "Serverless::Serverless-LambdaLatestVersion": LOCKED_RUNTIME_REASON,
    "Serverless::Serverless-LambdaDLQ": NO_RETRY_REASON,
    "Serverless::Serverless-LambdaAsyncFailureDestination": NO_RETRY_REASON,
    "Serverless::Serverless-LambdaEventSourceMappingDestination": "the source queue has a dead-letter queue",
    "Serverless::Serverless-LambdaTracing": (
        "off unless `tracing` is on: the journal records the calls, decisions and duration of each cycle"
    ),
}
"""Reasons for suppressing rules of cdk-nag."""


class FunctionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements of one function; its handler is ``functions.<name>.handler.handler``."""

    name: str
    purpose: str
    memory_mb: int
    timeout_seconds: int
    every_minutes: int = 0
    """0: no schedule; only events and follow-ups invoke it."""
    is_followed_up: bool = True
    """Whether a run can request another run of the function; if so, the function has a queue."""
    follow_ups: tuple[str, ...] = ()
    """The functions of which a run of this function can request another run."""
    reserved: int | None = None
    """The share of the account's concurrency; None: unreserved."""
    log_level: LogLevel = "INFO"


FUNCTION_SPECS: Final = (
    FunctionSpec(
        name="provision",
        purpose="schedules pending pods, creates NodeClaims and launches instances",
        memory_mb=MEMORY_MB_PER_VCPU,
        timeout_seconds=55,
        every_minutes=1,
        follow_ups=("catalog", "disrupt", "lifecycle", "provision"),
    ),
    FunctionSpec(
        name="lifecycle",
        purpose="registers, drains and terminates nodes, collects orphaned instances",
        memory_mb=1024,
        timeout_seconds=55,
        every_minutes=1,
        follow_ups=("disrupt", "lifecycle", "provision"),
    ),
    FunctionSpec(
        name="disrupt",
        purpose="consolidates nodes, replaces drifted nodes",
        memory_mb=MEMORY_MB_PER_VCPU,
        timeout_seconds=55,
        every_minutes=1,
        follow_ups=("disrupt", "lifecycle", "provision"),
    ),
    FunctionSpec(
        name="interrupt",
        purpose="handles Spot interruptions and other EC2 events",
        memory_mb=MEMORY_MB_PER_VCPU,
        timeout_seconds=25,
        is_followed_up=False,
        follow_ups=("lifecycle", "provision"),
    ),
    FunctionSpec(
        name="catalog",
        purpose="reads instance types, prices and images, resolves EC2NodeClasses",
        memory_mb=1024,
        timeout_seconds=240,
        every_minutes=5,
        follow_ups=("catalog", "provision"),
    ),
)

WATCH_SPEC: Final = FunctionSpec(
    name="watch",
    purpose="detects pending pods within seconds",
    memory_mb=512,
    timeout_seconds=20,
    follow_ups=("provision", "watch"),
)
"""Deployed only if `reaction` is not ``tick``."""


INSTALLER_SPEC: Final = FunctionSpec(
    name="installer",
    purpose="installs CRDs and RBAC in the cluster when the stack is deployed",
    memory_mb=512,
    timeout_seconds=900,
    is_followed_up=False,
)
"""Invoked only by CloudFormation: no schedule, no queue, and none of the permissions of the other functions."""


def select_specs(options: StackOptions) -> tuple[FunctionSpec, ...]:
    """Return the specs to deploy.

    With the reaction ``watch``, a schedule starts the watch each minute, which then continues by itself. With ``logs``,
    each log message starts a new check.
    """
    watch_spec = msgspec.structs.replace(WATCH_SPEC, every_minutes=1 if options.reaction == "watch" else 0)
    selected_specs = FUNCTION_SPECS if options.reaction == "tick" else (*FUNCTION_SPECS, watch_spec)
    return tuple(_apply_options(spec, options) for spec in selected_specs)


def _apply_options(spec: FunctionSpec, options: StackOptions) -> FunctionSpec:
    """Return *spec* with the values in *options* for this function."""
    return msgspec.structs.replace(
        spec,
        memory_mb=options.memory_mb.get(spec.name, spec.memory_mb),
        every_minutes=options.every_minutes.get(spec.name, spec.every_minutes),
        reserved=options.reserved_concurrency.get(spec.name),
        log_level=parse_log_levels(options.log_level)[spec.name],
    )


class Functions(Construct):
    """The functions of all selected specs, and the installer; indexed by name."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        options: StackOptions,
        settings: Settings,
        files: Mapping[str, bytes],
        network: Network,
    ) -> None:
        """Create the functions, with *settings* as their environment, and *files* added to their code."""
        super().__init__(scope, construct_id)
        self._options, self._network = options, network
        self.specs = select_specs(options)
        python = bundling.find_interpreter() if cdk.Stack.of(self).bundling_required else ""
        layer = lambda_.LayerVersion(
            self,
            "Dependencies",
            code=bundling.build_dependency_code(
                python,
                features=bundling.LayerFeatures(
                    has_tracing=options.tracing == "on",
                    has_device_selectors=options.dynamic_resource_allocation == "on",
                ),
            ),
            description="Joiner: Python libraries of the functions",
        )
        code = bundling.build_source_code(python, files)
        specs = (*self.specs, _apply_options(INSTALLER_SPEC, options))
        self._functions = {spec.name: self._build_function(spec, settings, layer, code) for spec in specs}
        self._aliases = {name: self._build_alias(name) for name in self._functions}

    def __getitem__(self, name: str) -> lambda_.Function:
        """Return the function called *name*."""
        return self._functions[name]

    def get_alias(self, name: str) -> lambda_.Alias:
        """Return the alias that callers of *name* invoke: its live version."""
        return self._aliases[name]

    def get_role(self, name: str) -> iam.Role:
        """Return the role of the function *name*."""
        return self._functions[name].role

    def _build_function(
        self, spec: FunctionSpec, settings: Settings, layer: lambda_.LayerVersion, code: lambda_.Code
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
            role=self._build_role(spec, settings.cluster_name),
            log_group=self._build_log_group(f"{title}Logs"),
            memory_size=spec.memory_mb,
            timeout=cdk.Duration.seconds(spec.timeout_seconds),
            environment=msgspec.structs.replace(settings, log_level=spec.log_level).build_environment(),
            reserved_concurrent_executions=spec.reserved,
            # Lambda treats a function that invokes itself through a queue as an error, and stops it after sixteen
            # invocations.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if spec.is_followed_up else None,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=_get_log_level(spec),
            system_log_level_v2=lambda_.SystemLogLevel(self._options.system_log_level),
        )
        function.log_group.grant_write(function)
        self._place_in_network(function)
        if self._options.tracing == "on":
            # The property `tracing` of the construct would also add a policy statement without a reason for cdk-nag.
            function.node.default_child.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
        _acknowledge_rules(function)
        return function

    def _build_role(self, spec: FunctionSpec, cluster: str) -> iam.Role:
        description = f"Joiner, {cluster}: role of the function {spec.name}"
        principal = iam.ServicePrincipal("lambda.amazonaws.com")
        return iam.Role(self, f"{spec.name.capitalize()}Role", assumed_by=principal, description=description)

    def _build_alias(self, name: str) -> lambda_.Alias:
        alias = lambda_.Alias(
            self,
            f"{name.capitalize()}Live",
            alias_name=LIVE_ALIAS,
            version=self._functions[name].current_version,
            retry_attempts=0,
            max_event_age=cdk.Duration.minutes(1),
        )
        _acknowledge_rules(alias)
        return alias

    def _build_log_group(self, name: str) -> logs.LogGroup:
        group = logs.LogGroup(self, name, removal_policy=cdk.RemovalPolicy.DESTROY)
        group.node.default_child.retention_in_days = self._options.log_days
        return group

    def _place_in_network(self, function: lambda_.Function) -> None:
        if self._network.placement:
            function.node.default_child.add_property_override("VpcConfig", self._network.placement)
            function.node.add_dependency(self._network)


def _get_log_level(spec: FunctionSpec) -> lambda_.ApplicationLogLevel:
    """Return the lowest log level that Lambda keeps.

    Metrics are logged at INFO, so INFO is always kept; the functions apply the configured level themselves.
    """
    return lambda_.ApplicationLogLevel.DEBUG if spec.log_level == "DEBUG" else lambda_.ApplicationLogLevel.INFO


def _acknowledge_rules(construct: Construct) -> None:
    reasons = (cdk.Acknowledgment(id=rule, reason=reason) for rule, reason in REASON_BY_RULE.items())
    cdk.Validations.of(construct).acknowledge(*reasons)
