"""Aliases, and CodeDeploy, which moves one to another version by and by while alarms are quiet.

A deployment configuration is read by its name: a canary gets a part of the calls for some minutes and then all of them,
a line gets a part more every few minutes. A minute lasts as long as the account says.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from sim.account.kinds.functions import split
from sim.account.kinds.kind import Failed, Kind, Made, Place, Said, Setting, only

_CANARY: Final = re.compile(r"CodeDeployDefault\.LambdaCanary(\d+)Percent(\d+)Minutes?")
_LINEAR: Final = re.compile(r"CodeDeployDefault\.LambdaLinear(\d+)PercentEvery(\d+)Minutes?")
_LOOKS: Final = 4
"""In a minute, at the alarms."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the calls, and for how many minutes only that."""

    percent: int
    minutes: float


class Alias(Kind):
    """AWS::Lambda::Alias."""

    fixed = frozenset({"FunctionName", "Name"})

    def __init__(self, minute: Callable[[], timedelta], sleep: Callable[[float], object]) -> None:
        """Wait by *sleep*, in seconds; a minute of CodeDeploy lasts *minute*."""
        self._minute, self._sleep = minute, sleep

    def create(self, at: Place, said: Said) -> Made:
        """Have it lead to a version at once: nobody was led anywhere before."""
        name, _ = split(said["FunctionName"])
        fields = only(said, "Name", "FunctionVersion", "Description")
        made = at.client("lambda").create_alias(FunctionName=name, RoutingConfig=_weights(said), **fields)
        self._provision(at, said)
        arn = made["AliasArn"]
        return Made(physical_id=arn, attributes={"AliasArn": arn})

    def update(self, at: Place, made: Made, old: Said, new: Said) -> Made:
        """Have it lead to another version: by CodeDeploy if the template says so.

        Raises:
            Failed: an alarm rang; it leads where it led.
        """
        policy = at.update_policy.get("CodeDeployLambdaAliasUpdate")
        if policy is not None and old["FunctionVersion"] != new["FunctionVersion"]:
            self._shift(at, policy, old, new)
        self._write(at, new, _weights(new))
        return made

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        del made
        name, _ = split(said["FunctionName"])
        at.client("lambda").delete_alias(FunctionName=name, Name=said["Name"])

    def _write(self, at: Place, said: Said, weights: dict[str, Any]) -> None:
        name, _ = split(said["FunctionName"])
        fields = only(said, "Name", "FunctionVersion", "Description")
        at.client("lambda").update_alias(FunctionName=name, RoutingConfig=weights, **fields)
        self._provision(at, said)

    def _provision(self, at: Place, said: Said) -> None:
        if "ProvisionedConcurrencyConfig" in said:
            name, _ = split(said["FunctionName"])
            at.client("lambda").put_provisioned_concurrency_config(
                FunctionName=name, Qualifier=said["Name"], **said["ProvisionedConcurrencyConfig"]
            )

    def _shift(self, at: Place, policy: Said, old: Said, new: Said) -> None:
        which = {"applicationName": policy["ApplicationName"], "deploymentGroupName": policy["DeploymentGroupName"]}
        group = at.client("codedeploy").get_deployment_group(**which)["deploymentGroupInfo"]
        for step in self._steps(at, group["deploymentConfigName"]):
            weights = {"AdditionalVersionWeights": {new["FunctionVersion"]: step.percent / 100}}
            self._write(at, old, weights)
            rung = self._watch(at, group, step.minutes)
            if rung:
                self._write(at, old, _weights(old))
                text = f"CodeDeploy stopped the deployment of {new['Name']}: alarm {', '.join(rung)} is in ALARM"
                raise Failed(f"{text}; the alias leads to version {old['FunctionVersion']} again.")

    def _steps(self, at: Place, config: str) -> list[Step]:
        if config.startswith("CodeDeployDefault."):
            return steps_of(config)
        codedeploy = at.client("codedeploy")
        return routed(codedeploy.get_deployment_config(deploymentConfigName=config)["deploymentConfigInfo"])

    def _watch(self, at: Place, group: Said, minutes: float) -> list[str]:
        """Answer the alarms that ring before so many *minutes* are over."""
        watched = group.get("alarmConfiguration", {})
        names = [one["name"] for one in watched.get("alarms", ()) if watched.get("enabled")]
        pause = self._minute().total_seconds() / _LOOKS
        for _ in range(round(minutes * _LOOKS) if pause else 0):
            if rung := ringing(at, names):
                return rung
            self._sleep(pause)
        return ringing(at, names)


def ringing(at: Place, names: list[str]) -> list[str]:
    """Answer those of the alarms called *names* that are in ALARM."""
    if not names:
        return []
    found = at.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    return sorted(one["AlarmName"] for one in found if one["StateValue"] == "ALARM")


def steps_of(config: str) -> list[Step]:
    """Answer the steps before all calls go to the new version.

    >>> steps_of("CodeDeployDefault.LambdaCanary10Percent5Minutes")
    [Step(percent=10, minutes=5.0)]
    >>> len(steps_of("CodeDeployDefault.LambdaLinear10PercentEvery1Minute"))
    9

    Raises:
        Failed: the name says nothing of that kind.
    """
    canary, linear = _CANARY.fullmatch(config), _LINEAR.fullmatch(config)
    if canary is not None:
        return [Step(percent=int(canary[1]), minutes=float(canary[2]))]
    if linear is not None:
        return _line(int(linear[1]), float(linear[2]))
    if config == "CodeDeployDefault.LambdaAllAtOnce":
        return []
    raise Failed(f"{config} is no deployment configuration that is understood here")


def routed(config: Said) -> list[Step]:
    """Answer the steps of a configuration that somebody made, in the API's words."""
    routing = config.get("trafficRoutingConfig", {})
    match routing.get("type"):
        case "TimeBasedCanary":
            said = routing["timeBasedCanary"]
            return [Step(percent=said["canaryPercentage"], minutes=said["canaryInterval"])]
        case "TimeBasedLinear":
            said = routing["timeBasedLinear"]
            return _line(said["linearPercentage"], said["linearInterval"])
        case _:
            return []


def _line(part: int, minutes: float) -> list[Step]:
    return [Step(percent=percent, minutes=minutes) for percent in range(part, 100, part)]


def _weights(said: Said) -> dict[str, Any]:
    weights = said.get("RoutingConfig", {}).get("AdditionalVersionWeights", ())
    return {"AdditionalVersionWeights": {one["FunctionVersion"]: float(one["FunctionWeight"]) for one in weights}}


class Application(Kind):
    """AWS::CodeDeploy::Application."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("ApplicationName") or at.named(100)
        platform = said.get("ComputePlatform", "Server")
        at.client("codedeploy").create_application(applicationName=name, computePlatform=platform)
        return Made(physical_id=name)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away with its groups."""
        del said
        at.client("codedeploy").delete_application(applicationName=made.physical_id)


class DeploymentConfig(Kind):
    """AWS::CodeDeploy::DeploymentConfig."""

    all_fixed = True

    def create(self, at: Place, said: Said) -> Made:
        """Make it."""
        name = said.get("DeploymentConfigName") or at.named(100)
        fields = ("ComputePlatform", "MinimumHealthyHosts", "TrafficRoutingConfig", "ZonalConfig")
        at.client("codedeploy").create_deployment_config(deploymentConfigName=name, **lowered(only(said, *fields)))
        return Made(physical_id=name)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away, if no group uses it."""
        del said
        at.client("codedeploy").delete_deployment_config(deploymentConfigName=made.physical_id)


class DeploymentGroup(Setting):
    """AWS::CodeDeploy::DeploymentGroup."""

    fixed = frozenset({"ApplicationName", "DeploymentGroupName"})
    _FIELDS: Final = (
        *("AlarmConfiguration", "AutoRollbackConfiguration", "DeploymentConfigName", "DeploymentStyle"),
        "ServiceRoleArn",
    )

    def write(self, at: Place, said: Said, before: Made | None) -> Made:
        """Write how it deploys, and at what it stops."""
        codedeploy, rest = at.client("codedeploy"), lowered(only(said, *self._FIELDS))
        application = {"applicationName": said["ApplicationName"]}
        if before is not None:
            codedeploy.update_deployment_group(**application, currentDeploymentGroupName=before.physical_id, **rest)
            return before
        name = said.get("DeploymentGroupName") or at.named(100)
        codedeploy.create_deployment_group(**application, deploymentGroupName=name, **rest)
        return Made(physical_id=name)

    def delete(self, at: Place, made: Made, said: Said) -> None:
        """Take it away."""
        at.client("codedeploy").delete_deployment_group(
            applicationName=said["ApplicationName"], deploymentGroupName=made.physical_id
        )


def lowered(value: Any) -> Any:  # noqa: ANN401 - documents hold anything
    """Answer *value* with the small first letters of CodeDeploy's API."""
    if isinstance(value, dict):
        return {f"{key[0].lower()}{key[1:]}": lowered(one) for key, one in value.items()}
    return [lowered(one) for one in value] if isinstance(value, list) else value
