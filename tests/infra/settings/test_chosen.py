"""Effects of settings on the template."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from infra.functions.functions import FUNCTION_SPECS, INSTALLER_SPEC, WATCH_SPEC
from infra.settings import per_function
from infra.settings.load import load_options
from infra.settings.settings import StackOptions
from infra.stack.application import build_application
from sim.authorization.template_policies import Template, get_resources
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.lambda_runtime.stack_wiring import StackWiring

CHOSEN_SETTINGS: Final = {
    "memory-mb": "provision=3008,installer=1024",
    "every-minutes": "disrupt=4,catalog=10",
    "reserved-concurrency": "provision=3,interrupt=5",
    "log-level": "WARNING,provision=DEBUG",
    "system-log-level": "INFO",
    "tags": "team=platform,cost-centre=42",
}
UNTAGGED_TYPES: Final = {
    "AWS::CDK::Metadata",
    "AWS::CodeDeploy::DeploymentConfig",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Policy",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::S3::BucketPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
    "Custom::JoinerEmptied",
    "Custom::JoinerInstalled",
}
"""Resource types without tags in CloudFormation; a schedule belongs to a group with tags."""


@pytest.fixture(scope="module")
def usual() -> Template:
    return synthesize_template()


@pytest.fixture(scope="module")
def custom_template() -> Template:
    return synthesize_template(settings=CHOSEN_SETTINGS)


def get_functions(template: Template) -> Mapping[str, dict[str, Any]]:
    return {
        properties["Handler"].split(".")[1]: properties
        for properties in get_resources(template, "AWS::Lambda::Function").values()
    }


def test_setting_for_one_function_does_not_change_others(usual: Template, custom_template: Template) -> None:
    was = {name: properties["MemorySize"] for name, properties in get_functions(usual).items()}
    memory = {name: properties["MemorySize"] for name, properties in get_functions(custom_template).items()}
    assert memory == was | {"provision": 3008, "installer": 1024}
    ticks = {schedule.target.name: schedule.expression for schedule in StackWiring.parse(custom_template).schedules}
    assert ticks == {
        "provision": "rate(1 minute)",
        "lifecycle": "rate(1 minute)",
        "disrupt": "rate(4 minutes)",
        "catalog": "rate(10 minutes)",
        "watch": "rate(1 minute)",
    }


def test_concurrency_is_unreserved_unless_configured(usual: Template, custom_template: Template) -> None:
    reserved = "ReservedConcurrentExecutions"
    assert not [properties for properties in get_functions(usual).values() if reserved in properties]
    assert {
        name: properties[reserved]
        for name, properties in get_functions(custom_template).items()
        if reserved in properties
    } == {
        "provision": 3,
        "interrupt": 5,
    }


def test_minimum_reserved_concurrency_covers_queues_and_schedule(custom_template: Template) -> None:
    wiring = StackWiring.parse(custom_template)
    for name, (minimum, _) in per_function.RESERVED_CONCURRENCY_RANGE.items():
        sent = sum(mapping.maximum_concurrency for mapping in wiring.mappings if mapping.function == name)
        assert minimum >= sent + sum(schedule.target.name == name for schedule in wiring.schedules)


def test_every_function_has_its_own_settings() -> None:
    specs = {spec.name for spec in (*FUNCTION_SPECS, WATCH_SPEC, INSTALLER_SPEC)}
    assert specs == set(per_function.FUNCTION_NAMES) == per_function.MEMORY_RANGE_MB.keys()
    assert {spec.name for spec in FUNCTION_SPECS if spec.every_minutes} == per_function.INTERVAL_RANGE_MINUTES.keys()
    assert per_function.RESERVED_CONCURRENCY_RANGE.keys() == specs - {"installer"}


def test_logs_are_json_and_lambda_keeps_metric_lines(usual: Template, custom_template: Template) -> None:
    for template in (usual, custom_template):
        for properties in get_functions(template).values():
            assert properties["LoggingConfig"]["LogFormat"] == "JSON"
            # Metrics are lines without a level, which Lambda treats as INFO.
            assert properties["LoggingConfig"]["ApplicationLogLevel"] in ("DEBUG", "INFO")
    assert {
        function_properties["LoggingConfig"]["SystemLogLevel"] for function_properties in get_functions(usual).values()
    } == {"WARN"}
    assert {
        function_properties["LoggingConfig"]["SystemLogLevel"]
        for function_properties in get_functions(custom_template).values()
    } == {"INFO"}


def test_each_function_has_its_own_log_level(custom_template: Template) -> None:
    levels = {
        name: properties["Environment"]["Variables"]["LOG_LEVEL"]
        for name, properties in get_functions(custom_template).items()
    }
    assert levels == dict.fromkeys(get_functions(custom_template), "WARNING") | {"provision": "DEBUG"}


def test_configured_tags_are_on_every_taggable_resource(usual: Template, custom_template: Template) -> None:
    for key, resource in custom_template["Resources"].items():
        tags = resource.get("Properties", {}).get("Tags", [])
        tag_values = {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else tags
        own_tag_values = {name: tag_values.get(name) for name in ("team", "cost-centre")}
        expected = {"team": "platform", "cost-centre": "42"}
        assert (own_tag_values == expected) is (resource["Type"] not in UNTAGGED_TYPES), (key, resource["Type"])
    assert "platform" not in json.dumps(usual)


def test_tags_alone_do_not_publish_a_new_function_version(tmp_path: Path) -> None:
    """CloudFormation would fail: Lambda publishes no second version of what has not changed."""
    settings = {"cluster": "blue", "dashboard": "false"}
    plain, tagged = (
        build_application(bundle=False, outdir=str(tmp_path / name), clusters=[load_options({**settings, **more})])
        .synth()
        .stacks[0]
        .template
        for name, more in (("plain", {}), ("tagged", {"tags": "team=platform"}))
    )
    assert get_resources(tagged, "AWS::Lambda::Version") == get_resources(plain, "AWS::Lambda::Version")


def test_each_cluster_gets_its_own_stack_with_the_settings_of_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "blue.yaml").write_text("account: 111122223333\nregion: eu-central-1\nreaction: tick\n")
    (tmp_path / "green.yaml").write_text("account: 444455556666\nregion: us-east-1\n")
    context = {"cluster": "blue,green", "clusters-folder": str(tmp_path)}
    stacks = build_application(bundle=False, outdir=str(tmp_path / "out"), context=context).synth().stacks
    assert [(stack.stack_name, stack.environment.account, stack.environment.region) for stack in stacks] == [
        ("joiner-blue", "111122223333", "eu-central-1"),
        ("joiner-green", "444455556666", "us-east-1"),
    ]
    assert ["watch" in get_functions(stack.template) for stack in stacks] == [False, True]
    for stack, name in zip(stacks, ("blue", "green"), strict=True):
        clusters = {entry["ClusterName"] for entry in get_resources(stack.template, "AWS::EKS::AccessEntry").values()}
        assert clusters == {name}


def test_stack_name_replaces_the_name_that_the_cluster_determines(tmp_path: Path) -> None:
    clusters = [StackOptions(cluster="blue")]
    [stack] = build_application(bundle=False, outdir=str(tmp_path), clusters=clusters, stack_name="test").synth().stacks
    assert stack.stack_name == "test"
