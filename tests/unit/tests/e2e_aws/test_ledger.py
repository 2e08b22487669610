"""Tests of the ledger and the cleanup of the test on AWS: nothing that was created is forgotten."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_aws.cleanup import NODE_POOLS_PATH, list_remains, remove_entries
from tests.e2e_aws.environment import Environment
from tests.e2e_aws.ledger import LEDGER_NAME, load_ledger
from tests.e2e_aws.results import Observation, StepFailed, StepResult
from tests.e2e_aws.run import clean_up, run_steps
from tests.e2e_aws.steps.step import Step
from tests.support.e2e_environment import ScriptedEnvironment, make_client_error

NOTHING_LEFT: dict[str, dict[str, Any]] = {
    "ec2": {
        "describe_instances": {"Reservations": []},
        "describe_launch_templates": {"LaunchTemplates": []},
        "describe_capacity_reservations": {"CapacityReservations": []},
        "describe_volumes": {"Volumes": []},
        "delete_launch_template": {},
    },
    "cloudformation": {"describe_stacks": make_client_error("ValidationError")},
}


def make_step(run: Any, **fields: Any) -> Step:
    return Step(id="one", question="does it work?", expectation="yes", run=run, **fields)


def run_one(environment: ScriptedEnvironment, run: Any) -> StepResult:
    results: list[StepResult] = []
    run_steps(environment, [make_step(run)], results, lambda _: None)
    return results[0]


def test_entry_is_in_the_file_before_the_resource_is_created(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    environment.ledger.record("launch-template", "joiner-e2e-run1-token")
    document = json.loads((tmp_path / LEDGER_NAME).read_text())
    assert document["entries"] == [{"kind": "launch-template", "name": "joiner-e2e-run1-token", "lifetime": "step"}]
    ledger = load_ledger(tmp_path / LEDGER_NAME)
    assert ledger is not None
    assert ledger.document.run_id == "run1"


def test_crash_between_ledger_entry_and_creation_is_cleaned_up(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    environment.clients["ec2"]["delete_launch_template"] = make_client_error(
        "InvalidLaunchTemplateName.NotFoundException"
    )
    environment.clients["iam"] = {
        "list_role_policies": make_client_error("NoSuchEntity"),
        "delete_role": make_client_error("NoSuchEntity"),
    }
    environment.clients["s3"] = {
        "list_object_versions": make_client_error("NoSuchBucket"),
        "delete_bucket": make_client_error("NoSuchBucket"),
    }
    for kind in ("launch-template", "instances", "capacity-reservation", "role", "bucket", "stack"):
        environment.ledger.record(kind, "never-created", "run")
    environment.ledger.record("object", f"{NODE_POOLS_PATH}/never-created")
    assert clean_up(environment, lambda _: None) == []
    assert not (tmp_path / LEDGER_NAME).exists()


def test_crash_after_creation_is_cleaned_up_newest_first(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    deleted: list[str] = []
    environment.clients["ec2"]["delete_launch_template"] = lambda **call: deleted.append(call["LaunchTemplateName"])
    for name in ("first", "second"):
        environment.ledger.record("launch-template", name)
    ledger = load_ledger(tmp_path / LEDGER_NAME)
    assert ledger is not None
    environment.ledger = ledger
    assert clean_up(environment, lambda _: None) == []
    assert deleted == ["second", "first"]


def test_instances_are_terminated_by_the_tags_of_the_run(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    instances, filters = [{"InstanceId": "i-1"}], list[Any]()

    def describe(**call: Any) -> Any:
        filters.append(call["Filters"])
        return {"Reservations": [{"Instances": list(instances)}]}

    environment.clients["ec2"] |= {"describe_instances": describe, "terminate_instances": lambda **_: instances.clear()}
    environment.ledger.record("instances", "run1", "run")
    assert remove_entries(environment, "run") == []
    assert instances == []
    assert {item["Name"] for item in filters[0]} == {"tag:joiner-e2e", "instance-state-name"}


def test_what_cannot_be_removed_is_reported_and_stays_in_the_ledger(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    environment.clients["ec2"] |= {
        "delete_launch_template": make_client_error("UnauthorizedOperation"),
        "describe_launch_templates": {"LaunchTemplates": [{"LaunchTemplateName": "token"}]},
    }
    environment.ledger.record("launch-template", "token")
    lines: list[str] = []
    remains = clean_up(environment, lines.append)
    assert [line.partition(":")[0] for line in remains] == ["launch-template token", "launch template token"]
    assert "UnauthorizedOperation" in remains[0]
    assert sum("REMAINS" in line for line in lines) == 2
    assert (tmp_path / LEDGER_NAME).exists()


def test_stack_whose_deletion_fails_is_reported(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    stack = {"StackName": "joiner-e2e-prod", "StackStatus": "CREATE_COMPLETE"}
    environment.clients["cloudformation"]["describe_stacks"] = {"Stacks": [stack]}
    environment.destroy_output = "cdk destroy failed (1)"
    environment.ledger.record("stack", "joiner-e2e-prod", "run")
    assert clean_up(environment, lambda _: None) == [
        "stack joiner-e2e-prod: cdk destroy failed (1)",
        "stack joiner-e2e-prod",
    ]


def test_stack_is_deleted_only_when_its_interrupted_update_has_ended(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    stack = {"StackName": "joiner-e2e-prod", "StackStatus": "UPDATE_IN_PROGRESS"}
    environment.clients["cloudformation"]["describe_stacks"] = {"Stacks": [stack]}
    environment.ledger.record("stack", "joiner-e2e-prod", "run")
    [error] = remove_entries(environment, "run")
    assert "still in progress" in error
    assert "destroy" not in environment.calls


def test_node_pool_that_is_not_deleted_in_time_is_reported(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    path = f"{NODE_POOLS_PATH}/joiner-e2e-spot"
    environment.kube.objects[path] = {"metadata": {"name": "joiner-e2e-spot"}}
    environment.kube.stuck.add(path)
    environment.ledger.record("object", path)
    [error] = remove_entries(environment, "step")
    assert "still exists" in error
    assert list_remains(environment) == ["NodePool joiner-e2e-spot"]


def test_step_failure_removes_the_resources_of_the_step(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)

    def run(environment: Environment) -> Observation:
        environment.ledger.record("launch-template", "token")
        raise StepFailed("EC2 launched no instance")

    result = run_one(environment, run)
    assert (result.outcome, result.observed) == ("failed", "StepFailed: EC2 launched no instance")
    assert environment.ledger.document.entries == []


def test_objects_of_a_step_are_deleted_without_waiting_and_stay_in_the_ledger(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    path = f"{NODE_POOLS_PATH}/joiner-e2e-spot"
    environment.kube.objects[path] = {"metadata": {"name": "joiner-e2e-spot"}}
    environment.kube.stuck.add(path)

    def run(environment: Environment) -> Observation:
        environment.ledger.record("object", path)
        environment.ledger.record("object", f"{NODE_POOLS_PATH}/never-created")
        return Observation(observed="all well", outcome="as expected")

    started_at = environment.now
    assert run_one(environment, run).outcome == "as expected"
    assert environment.now == started_at
    assert [(entry.name, entry.lifetime) for entry in environment.ledger.document.entries] == [(path, "run")]


def test_step_whose_resources_cannot_be_removed_fails(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    environment.clients["ec2"]["delete_launch_template"] = make_client_error("UnauthorizedOperation")

    def run(environment: Environment) -> Observation:
        environment.ledger.record("launch-template", "token")
        return Observation(observed="all well", outcome="as expected")

    result = run_one(environment, run)
    assert result.outcome == "failed"
    assert "not removed: launch-template token" in result.observed


def test_interrupted_step_leaves_its_entry_for_the_cleanup(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    results: list[StepResult] = []

    def run(environment: Environment) -> Observation:
        environment.ledger.record("launch-template", "token")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps(environment, [make_step(run)], results, lambda _: None)
    assert [entry.name for entry in environment.ledger.document.entries] == ["token"]
    assert clean_up(environment, lambda _: None) == []
    assert "delete_launch_template" in environment.calls


def test_step_is_skipped_when_a_required_step_failed(tmp_path: Path) -> None:
    environment = ScriptedEnvironment(tmp_path, **NOTHING_LEFT)
    results: list[StepResult] = []

    def fail(_: Environment) -> Observation:
        raise StepFailed("no stack")

    steps = [make_step(fail), Step(id="two", question="?", expectation="!", run=fail, requires=("one",))]
    run_steps(environment, steps, results, lambda _: None)
    assert [(result.id, result.outcome) for result in results] == [("one", "failed"), ("two", "skipped")]
    assert results[1].observed == "step one did not succeed"


def test_damaged_ledger_is_reported(tmp_path: Path) -> None:
    (tmp_path / LEDGER_NAME).write_text("{")
    with pytest.raises(ValueError, match=LEDGER_NAME):
        load_ledger(tmp_path / LEDGER_NAME)
