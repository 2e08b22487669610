"""A new version: who decides that it stays, and what it may not break. docs/deployments.md says it in words."""

import json
from typing import Any

import pytest

from sim.lambdas.intrinsics import Resolver
from sim.lambdas.template import synthesised
from tests.infra.policies import Template, resources
from tests.infra.test_installation import earlier_than

TICKING = {"provision", "lifecycle", "disrupt"}
WORKING = TICKING | {"catalog", "interrupt"}


@pytest.fixture(scope="module")
def template() -> Template:
    return synthesised()


def functions(template: Template) -> dict[str, str]:
    """Answer the name of each function in CloudFormation, by our own."""
    made = resources(template, "AWS::Lambda::Function")
    return {one["Handler"].split(".")[1]: Resolver(template).ref(key) for key, one in made.items()}


def aliases(template: Template) -> dict[str, dict[str, Any]]:
    """Answer the resource of each alias, by its function."""
    ours = {name: own for own, name in functions(template).items()}
    return {
        ours[one["FunctionName"]]: template["Resources"][key]
        for key, one in resources(template, "AWS::Lambda::Alias").items()
    }


def versions(template: Template, of: set[str]) -> set[str]:
    """Answer the versions of functions, by their keys in the template."""
    ours = {name for own, name in functions(template).items() if own in of}
    return {key for key, one in resources(template, "AWS::Lambda::Version").items() if one["FunctionName"] in ours}


def test_every_function_is_called_by_an_alias_of_a_version(template: Template) -> None:
    assert aliases(template).keys() == functions(template).keys()
    assert {one["Properties"]["Name"] for one in aliases(template).values()} == {"live"}
    versions = resources(template, "AWS::Lambda::Version").values()
    assert {one["FunctionName"] for one in versions} == set(functions(template).values())
    callers = [one["Target"]["Arn"] for one in resources(template, "AWS::Scheduler::Schedule").values()]
    callers += [one["FunctionName"] for one in resources(template, "AWS::Lambda::EventSourceMapping").values()]
    callers += [one["ServiceToken"] for one in resources(template, "Custom::JoinerInstalled").values()]
    assert {name.rpartition(":")[2] for name in callers} == {"live"}


def test_every_working_function_is_renewed_by_a_deployment_of_its_own(template: Template) -> None:
    said = {name: one.get("UpdatePolicy", {}) for name, one in aliases(template).items()}
    groups = {
        name: one["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"]["Ref"] for name, one in said.items() if one
    }
    assert groups.keys() == WORKING
    assert set(groups.values()) == set(resources(template, "AWS::CodeDeploy::DeploymentGroup"))
    assert len(set(groups.values())) == len(WORKING)


def test_half_of_the_calls_try_a_new_version_for_five_minutes(template: Template) -> None:
    [config] = resources(template, "AWS::CodeDeploy::DeploymentConfig")
    said = template["Resources"][config]["Properties"]["TrafficRoutingConfig"]
    assert said == {"Type": "TimeBasedCanary", "TimeBasedCanary": {"CanaryInterval": 5, "CanaryPercentage": 50}}
    groups = resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
    assert {one["DeploymentConfigName"] for one in groups} == {config.lower()}


def test_a_version_that_fails_in_two_minutes_of_five_is_taken_back_everywhere(template: Template) -> None:
    [alarm] = {
        one["Name"]
        for group in resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
        for one in group["AlarmConfiguration"]["Alarms"]
    }
    [key] = [key for key in resources(template, "AWS::CloudWatch::Alarm") if Resolver(template).ref(key) == alarm]
    said = resources(template, "AWS::CloudWatch::Alarm")[key]
    assert (said["Threshold"], said["DatapointsToAlarm"], said["EvaluationPeriods"]) == (1, 2, 5)
    assert said["TreatMissingData"] == "notBreaching"
    stats = [one["MetricStat"] for one in said["Metrics"] if "MetricStat" in one]
    assert {(one["Metric"]["MetricName"], one["Stat"], one["Period"]) for one in stats} == {("Errors", "Sum", 60)}
    seen = [{each["Name"]: each["Value"] for each in one["Metric"]["Dimensions"]} for one in stats]
    assert {one["FunctionName"]: one["Resource"] for one in seen} == {
        name: f"{name}:live" for own, name in functions(template).items() if own in TICKING
    }
    assert {one["ExecutedVersion"] for one in seen} == {
        Resolver(template).name(key) for key in versions(template, TICKING)
    }
    for group in resources(template, "AWS::CodeDeploy::DeploymentGroup").values():
        assert group["AutoRollbackConfiguration"] == {
            "Enabled": True,
            "Events": ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_REQUEST", "DEPLOYMENT_STOP_ON_ALARM"],
        }


def test_who_is_broken_already_can_be_mended(template: Template) -> None:
    """CodeDeploy begins nothing while an alarm rings: none may look at the version that is replaced."""
    watched = {
        one["Name"]
        for group in resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
        for one in group["AlarmConfiguration"]["Alarms"]
    }
    for key, alarm in resources(template, "AWS::CloudWatch::Alarm").items():
        if Resolver(template).ref(key) in watched:
            assert all("ExecutedVersion" in json.dumps(one) for one in alarm["Metrics"] if "MetricStat" in one)


def test_all_is_there_before_the_first_call_moves(template: Template) -> None:
    for name, alias in aliases(template).items():
        [key] = [each for each, one in template["Resources"].items() if one is alias]
        earlier = earlier_than(template, key)
        if name in WORKING:
            assert earlier >= versions(template, TICKING | {name})
            assert earlier >= set(resources(template, "Custom::JoinerInstalled"))
            assert [one for one in earlier if one.startswith("DeploymentsRoleDefaultPolicy")]


def test_who_cannot_wait_renews_all_at_once() -> None:
    template = synthesised(context={"joiner:deployment": "all-at-once"})
    groups = resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
    assert {one["DeploymentConfigName"] for one in groups} == {"CodeDeployDefault.LambdaAllAtOnce"}
    assert not resources(template, "AWS::CodeDeploy::DeploymentConfig")
