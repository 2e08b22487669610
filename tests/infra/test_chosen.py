"""What a knob changes in the template."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from infra import by_function
from infra.application import application
from infra.functions import INSTALLER, SPECS, WATCH
from sim.lambdas.template import synthesised
from sim.lambdas.wiring import Wiring
from tests.infra.policies import Template, resources

CHOSEN: Final = {
    "joiner:memory-mb": "provision=3008,installer=1024",
    "joiner:every-minutes": "disrupt=4,catalog=10",
    "joiner:reserved-concurrency": "provision=3,interrupt=5",
    "joiner:log-level": "WARNING,provision=DEBUG",
    "joiner:system-log-level": "INFO",
    "joiner:tags": "team=platform,cost-centre=42",
}
UNTAGGED: Final = {
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
"""What CloudFormation gives no tags; a schedule has its group's."""


@pytest.fixture(scope="module")
def usual() -> Template:
    return synthesised()


@pytest.fixture(scope="module")
def chosen() -> Template:
    return synthesised(context=CHOSEN)


def functions(template: Template) -> Mapping[str, dict[str, Any]]:
    return {one["Handler"].split(".")[1]: one for one in resources(template, "AWS::Lambda::Function").values()}


def test_a_choice_for_one_function_leaves_the_others_as_they_are(usual: Template, chosen: Template) -> None:
    was = {name: one["MemorySize"] for name, one in functions(usual).items()}
    memory = {name: one["MemorySize"] for name, one in functions(chosen).items()}
    assert memory == was | {"provision": 3008, "installer": 1024}
    ticks = {one.target.name: one.expression for one in Wiring.parse(chosen).schedules}
    assert ticks == {
        "provision": "rate(1 minute)",
        "lifecycle": "rate(1 minute)",
        "disrupt": "rate(4 minutes)",
        "catalog": "rate(10 minutes)",
    }


def test_concurrency_is_the_accounts_unless_somebody_reserves_some(usual: Template, chosen: Template) -> None:
    reserved = "ReservedConcurrentExecutions"
    assert not [one for one in functions(usual).values() if reserved in one]
    assert {name: one[reserved] for name, one in functions(chosen).items() if reserved in one} == {
        "provision": 3,
        "interrupt": 5,
    }


def test_what_is_reserved_is_enough_for_queue_and_tick(chosen: Template) -> None:
    wiring = Wiring.parse(chosen)
    for name, (least, _) in by_function.RESERVED.items():
        sent = sum(one.maximum_concurrency for one in wiring.mappings if one.function == name)
        assert least >= sent + sum(one.target.name == name for one in wiring.schedules)


def test_every_function_may_be_chosen_for() -> None:
    specs = {spec.name for spec in (*SPECS, WATCH, INSTALLER)}
    assert specs == set(by_function.NAMES) == by_function.MEMORY_MB.keys()
    assert {spec.name for spec in SPECS if spec.every_minutes} == by_function.EVERY_MINUTES.keys()
    assert by_function.RESERVED.keys() == specs - {"installer"}


def test_logs_are_json_and_lambda_drops_nothing_that_we_say(usual: Template, chosen: Template) -> None:
    for template in (usual, chosen):
        for one in functions(template).values():
            assert one["LoggingConfig"]["LogFormat"] == "JSON"
            # Metrics are lines without a level, which Lambda takes for INFO.
            assert one["LoggingConfig"]["ApplicationLogLevel"] in ("DEBUG", "INFO")
    assert {one["LoggingConfig"]["SystemLogLevel"] for one in functions(usual).values()} == {"WARN"}
    assert {one["LoggingConfig"]["SystemLogLevel"] for one in functions(chosen).values()} == {"INFO"}


def test_each_function_has_its_own_level(chosen: Template) -> None:
    said = {name: one["Environment"]["Variables"]["LOG_LEVEL"] for name, one in functions(chosen).items()}
    assert said == dict.fromkeys(functions(chosen), "WARNING") | {"provision": "DEBUG"}


def test_tags_are_on_everything_that_can_have_some(usual: Template, chosen: Template) -> None:
    for key, resource in chosen["Resources"].items():
        tags = resource.get("Properties", {}).get("Tags", [])
        said = {one["Key"]: one["Value"] for one in tags} if isinstance(tags, list) else tags
        ours = {name: said.get(name) for name in ("team", "cost-centre")}
        wanted = {"team": "platform", "cost-centre": "42"}
        assert (ours == wanted) is (resource["Type"] not in UNTAGGED), (key, resource["Type"])
    assert "platform" not in json.dumps(usual)


def test_tags_alone_are_no_new_version(tmp_path: Path) -> None:
    """CloudFormation would fail: Lambda publishes no second version of what has not changed."""
    context = {"joiner:cluster": "blue", "joiner:dashboard": "false"}
    plain, tagged = (
        application(bundle=False, outdir=str(tmp_path / name), context={**context, **more}).synth().stacks[0].template
        for name, more in (("plain", {}), ("tagged", {"joiner:tags": "team=platform"}))
    )
    assert resources(tagged, "AWS::Lambda::Version") == resources(plain, "AWS::Lambda::Version")


def test_each_of_several_clusters_has_a_stack_in_one_place(tmp_path: Path) -> None:
    context = {"joiner:cluster": "blue,green", "joiner:account": "111122223333", "joiner:region": "eu-central-1"}
    stacks = application(bundle=False, outdir=str(tmp_path), context=context).synth().stacks
    assert [one.stack_name for one in stacks] == ["joiner-blue", "joiner-green"]
    assert {(one.environment.account, one.environment.region) for one in stacks} == {("111122223333", "eu-central-1")}
    for one, name in zip(stacks, ("blue", "green"), strict=True):
        clusters = {each["ClusterName"] for each in resources(one.template, "AWS::EKS::AccessEntry").values()}
        assert clusters == {name}


def test_a_knob_that_there_is_not_stops_the_synthesis(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="joiner:clustr is no knob: did you mean joiner:cluster"):
        application(bundle=False, outdir=str(tmp_path), context={"joiner:clustr": "prod"})
