"""Lambda aliases, and CodeDeploy, which shifts an alias gradually to another version while no alarm is in ALARM.

Predefined deployment configurations are parsed by name: a canary gets a percentage of the traffic for some minutes and
then all of it, a linear deployment gets one more increment every few minutes. The account sets how long a minute lasts.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from sim.aws_account.resource_types.lambda_functions import parse_function_name
from sim.aws_account.resource_types.resource_provider import (
    Failed,
    PhysicalResource,
    Properties,
    PutResourceProvider,
    ResourceProvider,
    ResourceRequest,
    build_resource,
    convert_to_camel_case,
    select_keys,
)

_CANARY_PATTERN: Final = re.compile(r"CodeDeployDefault\.LambdaCanary(\d+)Percent(\d+)Minutes?")
_LINEAR_PATTERN: Final = re.compile(r"CodeDeployDefault\.LambdaLinear(\d+)PercentEvery(\d+)Minutes?")
_ALARM_CHECKS_PER_MINUTE: Final = 4
"""How often the alarms are checked during a deployment."""


class TrafficShiftStep(msgspec.Struct, frozen=True, kw_only=True):
    """A percentage of the traffic, and for how many minutes it stays there."""

    percent: int
    minutes: float


class AliasProvider(ResourceProvider):
    """AWS::Lambda::Alias."""

    create_only_properties = frozenset({"FunctionName", "Name"})

    def __init__(self, minute: Callable[[], timedelta], sleep: Callable[[float], object]) -> None:
        """Wait with *sleep*, in seconds; *minute* returns how long a minute of CodeDeploy lasts."""
        self._minute, self._sleep = minute, sleep

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the alias with its version; there is no traffic to shift yet."""
        settings = self._build_settings(request.properties, _build_routing_config(request.properties))
        arn = request.get_client("lambda").create_alias(**settings)["AliasArn"]
        self._put_provisioned_concurrency(request, request.properties)
        return build_resource(arn, AliasArn=arn)

    def update(self, request: ResourceRequest) -> PhysicalResource:
        """Route the alias to another version: with CodeDeploy if the template has an UpdatePolicy.

        Raises:
            Failed: an alarm went into ALARM; the alias routes to the old version again.
        """
        policy = request.update_policy.get("CodeDeployLambdaAliasUpdate")
        if policy is not None and request.select_changes("FunctionVersion"):
            self._shift_traffic(request, policy)
        self._write(request, request.properties, _build_routing_config(request.properties))
        return request.resource

    def delete(self, request: ResourceRequest) -> None:
        """Delete the alias."""
        name, _ = parse_function_name(request.properties["FunctionName"])
        request.get_client("lambda").delete_alias(FunctionName=name, Name=request.properties["Name"])

    def _build_settings(self, properties: Properties, routing_config: dict[str, Any]) -> dict[str, Any]:
        name, _ = parse_function_name(properties["FunctionName"])
        fields = select_keys(properties, "Name", "FunctionVersion", "Description")
        return {"FunctionName": name, "RoutingConfig": routing_config, **fields}

    def _write(self, request: ResourceRequest, properties: Properties, routing_config: dict[str, Any]) -> None:
        request.get_client("lambda").update_alias(**self._build_settings(properties, routing_config))
        self._put_provisioned_concurrency(request, properties)

    def _put_provisioned_concurrency(self, request: ResourceRequest, properties: Properties) -> None:
        if "ProvisionedConcurrencyConfig" in properties:
            name, _ = parse_function_name(properties["FunctionName"])
            request.get_client("lambda").put_provisioned_concurrency_config(
                FunctionName=name, Qualifier=properties["Name"], **properties["ProvisionedConcurrencyConfig"]
            )

    def _shift_traffic(self, request: ResourceRequest, policy: Properties) -> None:
        old_properties, new_properties = request.old_properties, request.properties
        group_key = {"applicationName": policy["ApplicationName"], "deploymentGroupName": policy["DeploymentGroupName"]}
        group = request.get_client("codedeploy").get_deployment_group(**group_key)["deploymentGroupInfo"]
        for step in self._load_steps(request, group["deploymentConfigName"]):
            weights = {"AdditionalVersionWeights": {new_properties["FunctionVersion"]: step.percent / 100}}
            self._write(request, old_properties, weights)
            if active_alarms := self._wait_for_alarms(request, group, step.minutes):
                self._write(request, old_properties, _build_routing_config(old_properties))
                alarms, old_version = ", ".join(active_alarms), old_properties["FunctionVersion"]
                message = f"CodeDeploy stopped the deployment of {new_properties['Name']}: alarm {alarms} is in ALARM"
                raise Failed(f"{message}; the alias leads to version {old_version} again.")

    def _load_steps(self, request: ResourceRequest, config: str) -> list[TrafficShiftStep]:
        if config.startswith("CodeDeployDefault."):
            return parse_predefined_config(config)
        response = request.get_client("codedeploy").get_deployment_config(deploymentConfigName=config)
        return parse_routing_config(response["deploymentConfigInfo"])

    def _wait_for_alarms(self, request: ResourceRequest, group: Properties, minutes: float) -> list[str]:
        """Wait *minutes* simulated minutes and return the alarms in ALARM; return early when there are any."""
        alarm_configuration = group.get("alarmConfiguration", {})
        names = [alarm["name"] for alarm in alarm_configuration.get("alarms", ()) if alarm_configuration.get("enabled")]
        pause = self._minute().total_seconds() / _ALARM_CHECKS_PER_MINUTE
        for _ in range(round(minutes * _ALARM_CHECKS_PER_MINUTE) if pause else 0):
            if active_alarms := find_active_alarms(request, names):
                return active_alarms
            self._sleep(pause)
        return find_active_alarms(request, names)


def find_active_alarms(request: ResourceRequest, names: list[str]) -> list[str]:
    """Return the names of the alarms in *names* that are in ALARM."""
    if not names:
        return []
    alarms = request.get_client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    return sorted(alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM")


def parse_predefined_config(config: str) -> list[TrafficShiftStep]:
    """Return the steps before all traffic goes to the new version.

    >>> parse_predefined_config("CodeDeployDefault.LambdaCanary10Percent5Minutes")
    [TrafficShiftStep(percent=10, minutes=5.0)]
    >>> len(parse_predefined_config("CodeDeployDefault.LambdaLinear10PercentEvery1Minute"))
    9

    Raises:
        Failed: the name is not a known deployment configuration.
    """
    canary, linear = _CANARY_PATTERN.fullmatch(config), _LINEAR_PATTERN.fullmatch(config)
    if canary is not None:
        return [TrafficShiftStep(percent=int(canary[1]), minutes=float(canary[2]))]
    if linear is not None:
        return _build_linear_steps(int(linear[1]), float(linear[2]))
    if config == "CodeDeployDefault.LambdaAllAtOnce":
        return []
    raise Failed(f"{config} is no deployment configuration that is understood here")


def parse_routing_config(config: Properties) -> list[TrafficShiftStep]:
    """Return the steps of a custom deployment configuration in the API's format."""
    routing = config.get("trafficRoutingConfig", {})
    match routing.get("type"):
        case "TimeBasedCanary":
            settings = routing["timeBasedCanary"]
            return [TrafficShiftStep(percent=settings["canaryPercentage"], minutes=settings["canaryInterval"])]
        case "TimeBasedLinear":
            settings = routing["timeBasedLinear"]
            return _build_linear_steps(settings["linearPercentage"], settings["linearInterval"])
        case _:
            return []


def _build_linear_steps(percent_step: int, minutes: float) -> list[TrafficShiftStep]:
    return [TrafficShiftStep(percent=percent, minutes=minutes) for percent in range(percent_step, 100, percent_step)]


def _build_routing_config(properties: Properties) -> dict[str, Any]:
    weights = properties.get("RoutingConfig", {}).get("AdditionalVersionWeights", ())
    return {
        "AdditionalVersionWeights": {weight["FunctionVersion"]: float(weight["FunctionWeight"]) for weight in weights}
    }


class ApplicationProvider(ResourceProvider):
    """AWS::CodeDeploy::Application."""

    is_immutable = True
    delete_call = ("codedeploy", "delete_application", "applicationName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the application."""
        name = request.choose_name("ApplicationName", 100)
        platform = request.properties.get("ComputePlatform", "Server")
        request.get_client("codedeploy").create_application(applicationName=name, computePlatform=platform)
        return build_resource(name)


class DeploymentConfigProvider(ResourceProvider):
    """AWS::CodeDeploy::DeploymentConfig."""

    is_immutable = True
    delete_call = ("codedeploy", "delete_deployment_config", "deploymentConfigName")

    def create(self, request: ResourceRequest) -> PhysicalResource:
        """Create the deployment configuration."""
        name = request.choose_name("DeploymentConfigName", 100)
        fields = ("ComputePlatform", "MinimumHealthyHosts", "TrafficRoutingConfig", "ZonalConfig")
        settings = convert_to_camel_case(select_keys(request.properties, *fields))
        request.get_client("codedeploy").create_deployment_config(deploymentConfigName=name, **settings)
        return build_resource(name)


class DeploymentGroupProvider(PutResourceProvider):
    """AWS::CodeDeploy::DeploymentGroup."""

    create_only_properties = frozenset({"ApplicationName", "DeploymentGroupName"})
    _FIELDS: Final = (
        *("AlarmConfiguration", "AutoRollbackConfiguration", "DeploymentConfigName", "DeploymentStyle"),
        "ServiceRoleArn",
    )

    def write(self, request: ResourceRequest) -> PhysicalResource:
        """Write the deployment group: its deployment configuration and the alarms that stop a deployment."""
        codedeploy, name = request.get_client("codedeploy"), request.choose_name("DeploymentGroupName", 100)
        settings = convert_to_camel_case(select_keys(request.properties, "ApplicationName", *self._FIELDS))
        if request.physical_id:
            codedeploy.update_deployment_group(currentDeploymentGroupName=name, **settings)
        else:
            codedeploy.create_deployment_group(deploymentGroupName=name, **settings)
        return build_resource(name)

    def delete(self, request: ResourceRequest) -> None:
        """Delete the deployment group."""
        request.get_client("codedeploy").delete_deployment_group(
            applicationName=request.properties["ApplicationName"], deploymentGroupName=request.physical_id
        )
