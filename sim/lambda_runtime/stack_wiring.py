"""Parse a synthesized template into plain values: functions, queues and the triggers that connect them.

The template is the only source of this configuration.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from sim.lambda_runtime.async_retry import DEFAULT_ASYNC_RETRIES
from sim.lambda_runtime.event_pattern import check_pattern
from sim.lambda_runtime.stack_template.generated_references import (
    ACCOUNT_ID,
    DEFAULT_REGION,
    CloudFormationTemplate,
    IntrinsicResolver,
    UnsupportedTemplateError,
)
from sim.lambda_runtime.stack_template.stack_parts import (
    EventBridgeRule,
    EventSourceMapping,
    EventTarget,
    LogSubscription,
    ScheduleSpec,
    SqsQueueSpec,
    StackFunction,
)
from sim.lambda_runtime.stack_template.supported_resources import IGNORED_TYPES, SUPPORTED_PROPERTIES

Part = TypeVar("Part")
ResourceIterator = Iterator[tuple[str, Mapping[str, Any]]]
"""Logical ids and properties, in the template's order."""


class StackWiring(msgspec.Struct, frozen=True, kw_only=True):
    """All functions, queues and triggers of a stack; each tuple is in the template's order."""

    region: str
    functions: tuple[StackFunction, ...]
    queues: tuple[SqsQueueSpec, ...]
    mappings: tuple[EventSourceMapping, ...]
    schedules: tuple[ScheduleSpec, ...]
    rules: tuple[EventBridgeRule, ...]
    log_filters: tuple[LogSubscription, ...]
    deployed_functions: tuple[str, ...] = ()
    """The functions whose aliases CodeDeploy moves."""

    @classmethod
    def parse(cls, template: CloudFormationTemplate, region: str = DEFAULT_REGION) -> "StackWiring":
        """Parse *template*, a CloudFormation document as `cdk synth` writes it, as deployed in *region*.

        Raises:
            UnsupportedTemplateError: it has a resource, a property or an intrinsic function that is not supported.
        """
        return _TemplateParser(template, region).parse_wiring()

    def get_function(self, name: str) -> StackFunction:
        """Return the function *name*.

        Raises:
            KeyError: there is no such function.
        """
        return {function.name: function for function in self.functions}[name]

    def get_follow_up_prefix(self) -> str:
        """Return the URL of the follow-up queues up to the function's name, from the functions' environment.

        Raises:
            UnsupportedTemplateError: the functions have different prefixes, or none.
        """
        prefixes = sorted({dict(function.environment).get("JOINER_QUEUE_PREFIX", "") for function in self.functions})
        if len(prefixes) != 1 or not prefixes[0]:
            raise UnsupportedTemplateError(f"JOINER_QUEUE_PREFIX differs between functions or is missing: {prefixes}")
        return prefixes[0]


class _TemplateParser:
    """Parses one template; maps the ARNs of functions and queues to names."""

    def __init__(self, template: CloudFormationTemplate, region: str) -> None:
        self._region = region
        self._resolver = IntrinsicResolver(template, region)
        self._resources: Mapping[str, Any] = template["Resources"]
        self._alias_by_function = {
            self._resolver.resolve(alias["FunctionName"]): logical_id
            for logical_id, alias in self._list_resources("AWS::Lambda::Alias")
        }
        self._function_by_reference = dict(self._list_function_references())
        self._queue_name_by_arn = {
            self._resolver.get_arn(logical_id): self._resolver.get_physical_name(logical_id)
            for logical_id, _ in self._list_resources("AWS::SQS::Queue")
        }

    def parse_wiring(self) -> StackWiring:
        for logical_id, resource in self._resources.items():
            if resource["Type"] not in IGNORED_TYPES | SUPPORTED_PROPERTIES.keys():
                raise UnsupportedTemplateError(f"{logical_id} is {resource['Type']}, which is not simulated")
        return StackWiring(
            region=self._region,
            functions=self._parse_all("AWS::Lambda::Function", self._parse_function),
            queues=self._parse_all("AWS::SQS::Queue", self._parse_queue),
            mappings=self._parse_all("AWS::Lambda::EventSourceMapping", self._parse_mapping),
            schedules=self._parse_all("AWS::Scheduler::Schedule", self._parse_schedule),
            rules=self._parse_all("AWS::Events::Rule", self._parse_rule),
            log_filters=self._parse_all("AWS::Logs::SubscriptionFilter", self._parse_log_filter),
            deployed_functions=tuple(self._list_deployed_functions()),
        )

    def _parse_all(self, resource_type: str, parse: Callable[[str, Mapping[str, Any]], Part]) -> tuple[Part, ...]:
        return tuple(parse(logical_id, properties) for logical_id, properties in self._list_resources(resource_type))

    def _list_resources(self, resource_type: str) -> ResourceIterator:
        """Yield the resources of one type; disabled rules, schedules and mappings are skipped."""
        for logical_id, resource in self._resources.items():
            properties = resource.get("Properties", {})
            if resource["Type"] != resource_type:
                continue
            if "Condition" in resource:
                raise UnsupportedTemplateError(f"{logical_id} has a condition, which is not evaluated here")
            _check_properties(logical_id, properties, SUPPORTED_PROPERTIES[resource_type])
            if properties.get("State") != "DISABLED" and properties.get("Enabled") is not False:
                yield logical_id, properties

    def _list_function_references(self) -> Iterator[tuple[str, str]]:
        """Yield each name and ARN by which a function can be invoked, with and without qualifier, and its name."""
        for logical_id, properties in self._list_resources("AWS::Lambda::Function"):
            function_name = _parse_function_name(properties["Handler"])
            for reference in (self._resolver.resolve_ref(logical_id), self._resolver.get_arn(logical_id)):
                yield reference, function_name
                yield f"{reference}:{self._get_qualifier(logical_id)}", function_name

    def _list_deployed_functions(self) -> Iterator[str]:
        for resource in self._resources.values():
            if resource["Type"] == "AWS::Lambda::Alias" and "CodeDeployLambdaAliasUpdate" in resource.get(
                "UpdatePolicy", {}
            ):
                yield self._function_by_reference[self._resolver.resolve(resource["Properties"]["FunctionName"])]

    def _get_qualifier(self, function_id: str) -> str:
        alias = self._alias_by_function.get(self._resolver.resolve_ref(function_id))
        return "$LATEST" if alias is None else self._resolver.get_physical_name(alias)

    def _parse_function(self, logical_id: str, properties: Mapping[str, Any]) -> StackFunction:
        environment = self._resolver.resolve(properties.get("Environment", {}).get("Variables", {}))
        arn = self._resolver.get_arn(logical_id)
        return StackFunction(
            name=self._function_by_reference[arn],
            arn=arn,
            handler=properties["Handler"],
            environment=tuple(sorted(environment.items())),
            timeout=timedelta(seconds=properties.get("Timeout", 3)),
            memory_mb=properties.get("MemorySize", 128),
            async_retries=self._parse_async_retries(logical_id),
            allows_recursion=properties.get("RecursiveLoop") == "Allow",
            log_group_arn=self._parse_log_group_arn(properties),
            is_traced=properties.get("TracingConfig", {}).get("Mode") == "Active",
        )

    def _parse_log_group_arn(self, properties: Mapping[str, Any]) -> str:
        name = self._resolver.resolve(properties.get("LoggingConfig", {}).get("LogGroup", ""))
        return f"arn:aws:logs:{self._region}:{ACCOUNT_ID}:log-group:{name}" if name else ""

    def _parse_async_retries(self, logical_id: str) -> int:
        reference = [self._resolver.resolve_ref(logical_id), self._get_qualifier(logical_id)]
        for _, properties in self._list_resources("AWS::Lambda::EventInvokeConfig"):
            if self._resolver.resolve([properties["FunctionName"], properties["Qualifier"]]) == reference:
                return int(properties.get("MaximumRetryAttempts", DEFAULT_ASYNC_RETRIES))
        return DEFAULT_ASYNC_RETRIES

    def _parse_queue(self, logical_id: str, properties: Mapping[str, Any]) -> SqsQueueSpec:
        redrive = self._resolver.resolve(properties.get("RedrivePolicy", {}))
        return SqsQueueSpec(
            name=self._resolver.get_physical_name(logical_id),
            url=self._resolver.resolve_ref(logical_id),
            arn=self._resolver.get_arn(logical_id),
            visibility_timeout=timedelta(seconds=properties.get("VisibilityTimeout", 30)),
            retention=timedelta(seconds=properties.get("MessageRetentionPeriod", 4 * 86_400)),
            delay=timedelta(seconds=properties.get("DelaySeconds", 0)),
            dead_letter_queue=self._queue_name_by_arn[redrive["deadLetterTargetArn"]] if redrive else "",
            max_receive_count=int(redrive.get("maxReceiveCount", 0)),
        )

    def _parse_mapping(self, logical_id: str, properties: Mapping[str, Any]) -> EventSourceMapping:
        source_arn = self._resolver.resolve(properties["EventSourceArn"])
        function_reference = self._resolver.resolve(properties["FunctionName"])
        if source_arn not in self._queue_name_by_arn or function_reference not in self._function_by_reference:
            raise UnsupportedTemplateError(
                f"{logical_id} connects {source_arn} with {function_reference}, of which one is unknown"
            )
        return EventSourceMapping(
            queue=self._queue_name_by_arn[source_arn],
            function=self._function_by_reference[function_reference],
            batch_size=properties.get("BatchSize", 10),
            batching_window=timedelta(seconds=properties.get("MaximumBatchingWindowInSeconds", 0)),
            reports_item_failures="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
            maximum_concurrency=properties.get("ScalingConfig", {}).get("MaximumConcurrency", 1000),
        )

    def _parse_schedule(self, logical_id: str, properties: Mapping[str, Any]) -> ScheduleSpec:
        window, timezone = properties["FlexibleTimeWindow"], properties.get("ScheduleExpressionTimezone", "UTC")
        if window != {"Mode": "OFF"} or timezone not in ("UTC", "Etc/UTC"):
            raise UnsupportedTemplateError(f"{logical_id} rings in {timezone}, {window}, which is not simulated")
        target = self._parse_target(logical_id, properties["Target"])
        return ScheduleSpec(name=logical_id, expression=properties["ScheduleExpression"], target=target)

    def _parse_rule(self, logical_id: str, properties: Mapping[str, Any]) -> EventBridgeRule:
        pattern = check_pattern(self._resolver.resolve(properties["EventPattern"]))
        targets = tuple(self._parse_target(logical_id, target) for target in properties.get("Targets", []))
        return EventBridgeRule(name=logical_id, pattern=pattern, targets=targets)

    def _parse_log_filter(self, logical_id: str, properties: Mapping[str, Any]) -> LogSubscription:
        arn, pattern = self._resolver.resolve(properties["DestinationArn"]), properties["FilterPattern"]
        filter_text = pattern.strip('"')
        if arn not in self._function_by_reference or f'"{filter_text}"' != pattern:
            raise UnsupportedTemplateError(f"{logical_id} pushes {pattern} to {arn}, which is not simulated")
        return LogSubscription(filter_text=filter_text, function=self._function_by_reference[arn])

    def _parse_target(self, logical_id: str, target: Mapping[str, Any]) -> EventTarget:
        _check_properties(logical_id, target, ("Arn", "DeadLetterConfig", "Id", "Input", "RetryPolicy", "RoleArn"))
        arn, input_text = self._resolver.resolve(target["Arn"]), self._resolver.resolve(target.get("Input", ""))
        dead_letter_arn = self._resolver.resolve(target.get("DeadLetterConfig", {})).get("Arn", "")
        dead_letter_queue = self._queue_name_by_arn.get(dead_letter_arn, "")
        if arn in self._function_by_reference:
            name = self._function_by_reference[arn]
            return EventTarget(
                kind="function", name=name, input=input_text, arn=arn, dead_letter_queue=dead_letter_queue
            )
        if arn in self._queue_name_by_arn:
            return EventTarget(kind="queue", name=self._queue_name_by_arn[arn], input=input_text, arn=arn)
        raise UnsupportedTemplateError(f"{logical_id} delivers to {arn}, which is neither a function nor a queue")


def _check_properties(logical_id: str, properties: Mapping[str, Any], supported_names: Iterable[str]) -> None:
    if unsupported_names := sorted(properties.keys() - set(supported_names)):
        raise UnsupportedTemplateError(f"{logical_id} has {', '.join(unsupported_names)}, which is not simulated")


def _parse_function_name(handler: str) -> str:
    package, name, *handler_suffix = handler.split(".")
    if package != "functions" or handler_suffix != ["handler", "handler"]:
        raise UnsupportedTemplateError(f"{handler} is not functions.<name>.handler.handler")
    return name
