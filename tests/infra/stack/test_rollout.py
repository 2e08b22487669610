"""Deployment of a new version: its rollback alarm, and its compatibility; docs/deployments.md explains both."""

import json
from typing import Any

import pytest

from sim.authorization.template_policies import Template, get_resources
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from tests.infra.installer.test_installation import list_earlier_resources

SCHEDULED_FUNCTIONS = {"provision", "lifecycle", "disrupt", "watch"}
WORKING_FUNCTIONS = SCHEDULED_FUNCTIONS | {"catalog", "interrupt"}


@pytest.fixture(scope="module")
def template() -> Template:
    return synthesize_template()


def map_function_names(template: Template) -> dict[str, str]:
    """Return the name of each function in CloudFormation, by Joiner's name."""
    function_resources = get_resources(template, "AWS::Lambda::Function")
    return {
        properties["Handler"].split(".")[1]: IntrinsicResolver(template).resolve_ref(key)
        for key, properties in function_resources.items()
    }


def get_aliases(template: Template) -> dict[str, dict[str, Any]]:
    """Return the resource of each alias, by its function."""
    key_by_name = {name: own for own, name in map_function_names(template).items()}
    return {
        key_by_name[properties["FunctionName"]]: template["Resources"][key]
        for key, properties in get_resources(template, "AWS::Lambda::Alias").items()
    }


def list_versions(template: Template, function_keys: set[str]) -> set[str]:
    """Return the versions of functions, by their keys in the template."""
    function_names = {name for own, name in map_function_names(template).items() if own in function_keys}
    return {
        key
        for key, properties in get_resources(template, "AWS::Lambda::Version").items()
        if properties["FunctionName"] in function_names
    }


def test_every_function_is_invoked_through_its_live_alias(template: Template) -> None:
    assert get_aliases(template).keys() == map_function_names(template).keys()
    assert {alias["Properties"]["Name"] for alias in get_aliases(template).values()} == {"live"}
    versions = get_resources(template, "AWS::Lambda::Version").values()
    assert {version["FunctionName"] for version in versions} == set(map_function_names(template).values())
    callers = [schedule["Target"]["Arn"] for schedule in get_resources(template, "AWS::Scheduler::Schedule").values()]
    callers += [
        mapping["FunctionName"] for mapping in get_resources(template, "AWS::Lambda::EventSourceMapping").values()
    ]
    callers += [
        custom_resource["ServiceToken"]
        for custom_resource in get_resources(template, "Custom::JoinerInstalled").values()
    ]
    assert {name.rpartition(":")[2] for name in callers} == {"live"}


def test_every_function_except_installer_has_its_own_deployment_group(template: Template) -> None:
    update_policies = {name: alias.get("UpdatePolicy", {}) for name, alias in get_aliases(template).items()}
    groups = {
        name: policy["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"]["Ref"]
        for name, policy in update_policies.items()
        if policy
    }
    assert groups.keys() == WORKING_FUNCTIONS
    assert set(groups.values()) == set(get_resources(template, "AWS::CodeDeploy::DeploymentGroup"))
    assert len(set(groups.values())) == len(WORKING_FUNCTIONS)


def test_canary_sends_half_of_the_invocations_to_a_new_version_for_five_minutes(template: Template) -> None:
    [config] = get_resources(template, "AWS::CodeDeploy::DeploymentConfig")
    routing = template["Resources"][config]["Properties"]["TrafficRoutingConfig"]
    assert routing == {"Type": "TimeBasedCanary", "TimeBasedCanary": {"CanaryInterval": 5, "CanaryPercentage": 50}}
    groups = get_resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
    assert {group["DeploymentConfigName"] for group in groups} == {config.lower()}


def test_new_version_failing_in_two_of_five_minutes_is_rolled_back(template: Template) -> None:
    [alarm] = {
        group_alarm["Name"]
        for group in get_resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
        for group_alarm in group["AlarmConfiguration"]["Alarms"]
    }
    [key] = [
        key
        for key in get_resources(template, "AWS::CloudWatch::Alarm")
        if IntrinsicResolver(template).resolve_ref(key) == alarm
    ]
    alarm_properties = get_resources(template, "AWS::CloudWatch::Alarm")[key]
    assert (
        alarm_properties["Threshold"],
        alarm_properties["DatapointsToAlarm"],
        alarm_properties["EvaluationPeriods"],
    ) == (1, 2, 5)
    assert alarm_properties["TreatMissingData"] == "notBreaching"
    stats = [query["MetricStat"] for query in alarm_properties["Metrics"] if "MetricStat" in query]
    assert {(stat["Metric"]["MetricName"], stat["Stat"], stat["Period"]) for stat in stats} == {("Errors", "Sum", 60)}
    dimension_sets = [
        {dimension["Name"]: dimension["Value"] for dimension in stat["Metric"]["Dimensions"]} for stat in stats
    ]
    assert {dimensions["FunctionName"]: dimensions["Resource"] for dimensions in dimension_sets} == {
        name: f"{name}:live" for own, name in map_function_names(template).items() if own in SCHEDULED_FUNCTIONS
    }
    assert {dimensions["ExecutedVersion"] for dimensions in dimension_sets} == {
        IntrinsicResolver(template).get_physical_name(key) for key in list_versions(template, SCHEDULED_FUNCTIONS)
    }
    for group in get_resources(template, "AWS::CodeDeploy::DeploymentGroup").values():
        assert group["AutoRollbackConfiguration"] == {
            "Enabled": True,
            "Events": ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_REQUEST", "DEPLOYMENT_STOP_ON_ALARM"],
        }


def test_rollback_alarms_watch_only_the_new_version(template: Template) -> None:
    """CodeDeploy starts nothing while an alarm rings: no alarm may watch the version that is replaced."""
    watched = {
        group_alarm["Name"]
        for group in get_resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
        for group_alarm in group["AlarmConfiguration"]["Alarms"]
    }
    for key, alarm in get_resources(template, "AWS::CloudWatch::Alarm").items():
        if IntrinsicResolver(template).resolve_ref(key) in watched:
            assert all("ExecutedVersion" in json.dumps(query) for query in alarm["Metrics"] if "MetricStat" in query)


def test_all_dependencies_exist_before_traffic_shifts(template: Template) -> None:
    for name, alias in get_aliases(template).items():
        [key] = [logical_id for logical_id, resource in template["Resources"].items() if resource is alias]
        earlier = list_earlier_resources(template, key)
        if name in WORKING_FUNCTIONS:
            assert earlier >= list_versions(template, SCHEDULED_FUNCTIONS | {name})
            assert earlier >= set(get_resources(template, "Custom::JoinerInstalled"))
            assert [resource_id for resource_id in earlier if resource_id.startswith("DeploymentsRoleDefaultPolicy")]


def test_all_at_once_deployment_has_no_canary() -> None:
    template = synthesize_template(settings={"deployment": "all-at-once"})
    groups = get_resources(template, "AWS::CodeDeploy::DeploymentGroup").values()
    assert {group["DeploymentConfigName"] for group in groups} == {"CodeDeployDefault.LambdaAllAtOnce"}
    assert not get_resources(template, "AWS::CodeDeploy::DeploymentConfig")
