"""What wakes what, read from a synthesised template into plain values. There is no other description of it."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from sim.lambdas.intrinsics import REGION, Resolver, Template, UnsupportedTemplateError
from sim.lambdas.parts import ASYNC_RETRIES, EventSourceMapping, Function, LogFilter, Queue, Rule, Schedule, Target
from sim.lambdas.pattern import checked
from sim.lambdas.resources import INERT, WIRED

Resources = Iterator[tuple[str, Mapping[str, Any]]]
"""Logical id and properties, in the template's order."""


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """All of it; each tuple in the template's order."""

    region: str
    functions: tuple[Function, ...]
    queues: tuple[Queue, ...]
    mappings: tuple[EventSourceMapping, ...]
    schedules: tuple[Schedule, ...]
    rules: tuple[Rule, ...]
    log_filters: tuple[LogFilter, ...]

    @classmethod
    def parse(cls, template: Template, region: str = REGION) -> "Wiring":
        """Read *template*, a CloudFormation document as `cdk synth` writes it, as if deployed in *region*.

        Raises:
            UnsupportedTemplateError: it has a resource, a property or a function that the embedded world does not know.
        """
        return _Reader(template, region).wiring()

    def function(self, name: str) -> Function:
        """Answer the function called *name*.

        Raises:
            KeyError: there is none.
        """
        return {function.name: function for function in self.functions}[name]

    def follow_up_prefix(self) -> str:
        """Answer what every function's environment says of the follow-up queues: their URL up to the function's name.

        Raises:
            UnsupportedTemplateError: the functions do not agree.
        """
        said = sorted({dict(function.environment).get("JOINER_QUEUE_PREFIX", "") for function in self.functions})
        if len(said) != 1 or not said[0]:
            raise UnsupportedTemplateError(f"JOINER_QUEUE_PREFIX differs between functions or is missing: {said}")
        return said[0]


class _Reader:
    """Reads one template; keeps what ARNs stand for."""

    def __init__(self, template: Template, region: str) -> None:
        self._region = region
        self._resolver = Resolver(template, region)
        self._resources: Mapping[str, Any] = template["Resources"]
        self._live = {self._resolver.resolve(one["FunctionName"]): key for key, one in self._all("AWS::Lambda::Alias")}
        self._functions = dict(self._called())
        self._queues = {self._resolver.arn(key): self._resolver.name(key) for key, _ in self._all("AWS::SQS::Queue")}

    def wiring(self) -> Wiring:
        for logical_id, resource in self._resources.items():
            if resource["Type"] not in INERT | WIRED.keys():
                raise UnsupportedTemplateError(f"{logical_id} is {resource['Type']}, which is not simulated")
        return Wiring(
            region=self._region,
            functions=tuple(self._function(key, properties) for key, properties in self._all("AWS::Lambda::Function")),
            queues=tuple(self._queue(key, properties) for key, properties in self._all("AWS::SQS::Queue")),
            mappings=tuple(
                self._mapping(key, properties) for key, properties in self._all("AWS::Lambda::EventSourceMapping")
            ),
            schedules=tuple(self._schedule(*one) for one in self._all("AWS::Scheduler::Schedule")),
            rules=tuple(self._rule(*one) for one in self._all("AWS::Events::Rule")),
            log_filters=tuple(self._log_filter(*one) for one in self._all("AWS::Logs::SubscriptionFilter")),
        )

    def _all(self, kind: str) -> Resources:
        """Answer the resources of one type; a rule or mapping that is switched off is left out."""
        for logical_id, resource in self._resources.items():
            properties = resource.get("Properties", {})
            if resource["Type"] != kind:
                continue
            if "Condition" in resource:
                raise UnsupportedTemplateError(f"{logical_id} has a condition, which is not evaluated here")
            _known(logical_id, properties, WIRED[kind])
            if properties.get("State") != "DISABLED" and properties.get("Enabled") is not False:
                yield logical_id, properties

    def _called(self) -> Iterator[tuple[str, str]]:
        """Answer how each function may be called, by name and ARN, with an alias and without, and what it is."""
        for logical_id, properties in self._all("AWS::Lambda::Function"):
            function = _function_name(properties["Handler"])
            name, arn = self._resolver.ref(logical_id), self._resolver.arn(logical_id)
            live = f":{self._resolver.name(self._live[name])}" if name in self._live else ""
            yield from ((one, function) for one in (name, arn, f"{name}{live}", f"{arn}{live}"))

    def _function(self, logical_id: str, properties: Mapping[str, Any]) -> Function:
        environment = self._resolver.resolve(properties.get("Environment", {}).get("Variables", {}))
        arn = self._resolver.arn(logical_id)
        return Function(
            name=self._functions[arn],
            arn=arn,
            handler=properties["Handler"],
            environment=tuple(sorted(environment.items())),
            timeout=timedelta(seconds=properties.get("Timeout", 3)),
            memory_mb=properties.get("MemorySize", 128),
            async_retries=self._async_retries(logical_id),
            may_recur=properties.get("RecursiveLoop") == "Allow",
        )

    def _async_retries(self, logical_id: str) -> int:
        name = self._resolver.ref(logical_id)
        called = self._resolver.name(self._live[name]) if name in self._live else "$LATEST"
        for _, properties in self._all("AWS::Lambda::EventInvokeConfig"):
            said = self._resolver.resolve([properties["FunctionName"], properties["Qualifier"]])
            if said == [name, called]:
                return int(properties.get("MaximumRetryAttempts", ASYNC_RETRIES))
        return ASYNC_RETRIES

    def _queue(self, logical_id: str, properties: Mapping[str, Any]) -> Queue:
        redrive = self._resolver.resolve(properties.get("RedrivePolicy", {}))
        return Queue(
            name=self._resolver.name(logical_id),
            url=self._resolver.ref(logical_id),
            arn=self._resolver.arn(logical_id),
            visibility_timeout=timedelta(seconds=properties.get("VisibilityTimeout", 30)),
            retention=timedelta(seconds=properties.get("MessageRetentionPeriod", 4 * 86_400)),
            delay=timedelta(seconds=properties.get("DelaySeconds", 0)),
            dead_letters=self._queues[redrive["deadLetterTargetArn"]] if redrive else "",
            max_receive_count=int(redrive.get("maxReceiveCount", 0)),
        )

    def _mapping(self, logical_id: str, properties: Mapping[str, Any]) -> EventSourceMapping:
        source = self._resolver.resolve(properties["EventSourceArn"])
        called = self._resolver.resolve(properties["FunctionName"])
        if source not in self._queues or called not in self._functions:
            raise UnsupportedTemplateError(f"{logical_id} connects {source} with {called}, of which one is unknown")
        return EventSourceMapping(
            queue=self._queues[source],
            function=self._functions[called],
            batch_size=properties.get("BatchSize", 10),
            window=timedelta(seconds=properties.get("MaximumBatchingWindowInSeconds", 0)),
            partial_failures="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
            maximum_concurrency=properties.get("ScalingConfig", {}).get("MaximumConcurrency", 1000),
        )

    def _schedule(self, logical_id: str, properties: Mapping[str, Any]) -> Schedule:
        window, zone = properties["FlexibleTimeWindow"], properties.get("ScheduleExpressionTimezone", "UTC")
        if window != {"Mode": "OFF"} or zone not in ("UTC", "Etc/UTC"):
            raise UnsupportedTemplateError(f"{logical_id} rings in {zone}, {window}, which is not simulated")
        target = self._target(logical_id, properties["Target"])
        return Schedule(name=logical_id, expression=properties["ScheduleExpression"], target=target)

    def _rule(self, logical_id: str, properties: Mapping[str, Any]) -> Rule:
        pattern = checked(self._resolver.resolve(properties["EventPattern"]))
        return Rule(name=logical_id, pattern=pattern, targets=self._targets(logical_id, properties))

    def _log_filter(self, logical_id: str, properties: Mapping[str, Any]) -> LogFilter:
        arn, pattern = self._resolver.resolve(properties["DestinationArn"]), properties["FilterPattern"]
        words = pattern.strip('"')
        if arn not in self._functions or f'"{words}"' != pattern:
            raise UnsupportedTemplateError(f"{logical_id} pushes {pattern} to {arn}, which is not simulated")
        return LogFilter(words=words, function=self._functions[arn])

    def _targets(self, logical_id: str, properties: Mapping[str, Any]) -> tuple[Target, ...]:
        return tuple(self._target(logical_id, target) for target in properties.get("Targets", []))

    def _target(self, logical_id: str, target: Mapping[str, Any]) -> Target:
        _known(logical_id, target, frozenset({"Arn", "DeadLetterConfig", "Id", "Input", "RetryPolicy", "RoleArn"}))
        arn, text = self._resolver.resolve(target["Arn"]), self._resolver.resolve(target.get("Input", ""))
        if arn in self._functions:
            return Target(kind="function", name=self._functions[arn], input=text)
        if arn in self._queues:
            return Target(kind="queue", name=self._queues[arn], input=text)
        raise UnsupportedTemplateError(f"{logical_id} delivers to {arn}, which is neither a function nor a queue")


def _known(logical_id: str, properties: Mapping[str, Any], names: frozenset[str]) -> None:
    if unknown := sorted(properties.keys() - names):
        raise UnsupportedTemplateError(f"{logical_id} has {', '.join(unknown)}, which is not simulated")


def _function_name(handler: str) -> str:
    package, name, *rest = handler.split(".")
    if package != "functions" or rest != ["handler", "handler"]:
        raise UnsupportedTemplateError(f"{handler} is not functions.<name>.handler.handler")
    return name
