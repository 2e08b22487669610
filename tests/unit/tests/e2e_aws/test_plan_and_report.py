"""Tests of what the test on AWS prints and writes: the plan with its cost, refusals, and the result."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.e2e_aws import __main__ as command
from tests.e2e_aws.budget import DEFAULT_MAX_COST_USD, REGION_FACTOR, build_instance_cost, compute_total_usd
from tests.e2e_aws.environment import get_stack_name
from tests.e2e_aws.ledger import LEDGER_NAME
from tests.e2e_aws.plan import compute_max_usd, render_plan
from tests.e2e_aws.preflight import list_refusals
from tests.e2e_aws.report import JSON_NAME, PAGE_NAME, Report, build_report, write_report
from tests.e2e_aws.results import StepResult
from tests.e2e_aws.steps.registry import ALL_STEPS, select_steps
from tests.support.e2e_environment import STARTED_AT, ScriptedEnvironment, make_client_error

Output = pytest.CaptureFixture[str]
CREATING_CALLS = ("check_reservation_filters", "measure_fleets", "deploy_stack", "interrupt_spot_node")


@pytest.fixture
def _without_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every use of AWS fail the test."""
    monkeypatch.setattr(boto3, "Session", lambda **_: pytest.fail("AWS was called"))


def test_maximum_cost_of_all_steps_is_within_the_default_limit() -> None:
    assert 0 < compute_max_usd(ALL_STEPS) < DEFAULT_MAX_COST_USD


def test_instances_cost_their_price_for_the_longest_time_in_an_expensive_region() -> None:
    cost = build_instance_cost(2, 30)
    assert cost.description == "2 instances for at most 30 minutes"
    assert compute_total_usd([cost, cost]) == pytest.approx(2 * 0.096 * REGION_FACTOR)


def test_every_step_that_creates_something_has_a_cost_and_is_in_the_plan() -> None:
    costly = {step.run.__name__ for step in ALL_STEPS if step.costs}
    assert set(CREATING_CALLS) <= costly
    text = render_plan(ALL_STEPS, "prod", "us-east-1", 60)
    assert all(f"  {step.id} " in text for step in ALL_STEPS)
    assert all(cost.description in text for step in ALL_STEPS for cost in step.costs)
    assert f"Maximum cost: ${compute_max_usd(ALL_STEPS):.2f}" in text
    assert get_stack_name("prod") in text


def test_selected_steps_include_the_steps_that_they_require() -> None:
    assert [step.id for step in select_steps(["audit"])] == ["deploy", "destroy", "audit"]
    assert select_steps([]) == ALL_STEPS
    with pytest.raises(ValueError, match="unknown step nothing"):
        select_steps(["nothing"])


@pytest.mark.usefixtures("_without_aws")
@pytest.mark.parametrize("confirm", [[], ["--confirm", "no"]])
def test_without_confirmation_the_plan_is_printed_and_nothing_is_called(
    tmp_path: Path, capsys: Output, confirm: list[str]
) -> None:
    words = ["--cluster", "prod", "--region", "us-east-1", "--folder", str(tmp_path), *confirm]
    assert command.main(words) == 2
    output = capsys.readouterr().out
    assert "Maximum cost" in output
    assert output.endswith("nothing was created: add CONFIRM=yes to run it\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_without_aws")
def test_cost_above_the_limit_is_refused_even_with_a_confirmation(capsys: Output) -> None:
    words = ["--cluster", "prod", "--region", "us-east-1", "--confirm", "yes", "--max-cost", "0.5"]
    assert command.main(words) == 2
    assert "refused: the maximum cost" in capsys.readouterr().out


@pytest.mark.usefixtures("_without_aws")
def test_list_needs_neither_a_cluster_nor_a_confirmation(capsys: Output) -> None:
    assert command.main(["--list", "--steps", "dry-runs"]) == 0
    output = capsys.readouterr().out
    assert "dry-runs" in output
    assert "fleet-times" not in output


@pytest.mark.usefixtures("_without_aws")
@pytest.mark.parametrize("words", [["--confirm", "yes"], ["--steps", "nothing"]])
def test_wrong_arguments_exit_with_two(words: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        command.main(words)
    assert error.value.code == 2


@pytest.mark.usefixtures("_without_aws")
def test_clean_without_an_unfinished_run_does_nothing(tmp_path: Path, capsys: Output) -> None:
    assert command.main(["--clean", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no unfinished run\n"


@pytest.mark.usefixtures("_without_aws")
def test_clean_reports_a_damaged_ledger(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / LEDGER_NAME).write_text("{")
    assert command.main(["--clean", "--folder", str(tmp_path)]) == 1
    assert "cannot be read" in capsys.readouterr().out


def build_environment(folder: Path, *stacks: str, mode: str = "API", **changes: Any) -> ScriptedEnvironment:
    """Return an environment with *stacks*, in which the test could start; *changes* replace answers of EC2."""
    cluster = {"status": "ACTIVE", "accessConfig": {"authenticationMode": mode}}
    network = {
        "describe_subnets": {"Subnets": [{"AvailabilityZone": "us-east-1a", "SubnetId": "subnet-1"}]},
        "describe_security_groups": {"SecurityGroups": [{"GroupId": "sg-1"}]},
    }

    def describe_stacks(**call: Any) -> Any:
        if call["StackName"] not in stacks:
            return make_client_error("ValidationError")
        return {"Stacks": [{"StackStatus": "CREATE_COMPLETE"}]}

    return ScriptedEnvironment(
        folder,
        eks={"describe_cluster": {"cluster": cluster}},
        ec2=network | changes,
        cloudformation={"describe_stacks": describe_stacks},
    )


def test_a_bootstrapped_account_with_an_unused_cluster_is_accepted(tmp_path: Path) -> None:
    assert list_refusals(build_environment(tmp_path, "CDKToolkit")) == []


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"stacks": ("CDKToolkit", "joiner-prod")}, "the cluster has a Joiner stack, joiner-prod"),
        ({"stacks": ("CDKToolkit", "joiner-e2e-prod")}, "make e2e-aws-clean"),
        ({"stacks": ()}, "npx cdk bootstrap"),
        ({"stacks": ("CDKToolkit",), "mode": "CONFIG_MAP"}, "no access entries"),
        ({"stacks": ("CDKToolkit",), "describe_subnets": {"Subnets": []}}, "karpenter.sh/discovery=prod"),
    ],
)
def test_unsuitable_account_is_refused_with_a_fix(tmp_path: Path, environment: dict[str, Any], reason: str) -> None:
    stacks = environment.pop("stacks")
    [refusal] = list_refusals(build_environment(tmp_path, *stacks, **environment))
    assert reason in refusal


@pytest.mark.parametrize(("name", "reason"), [("default", "without Karpenter"), ("joiner-e2e-spot", "e2e-aws-clean")])
def test_cluster_with_node_pools_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    environment = build_environment(tmp_path, "CDKToolkit")
    environment.kube.objects[f"/apis/karpenter.sh/v1/nodepools/{name}"] = {"metadata": {"name": name}}
    [refusal] = list_refusals(environment)
    assert reason in refusal


def test_unknown_cluster_is_refused(tmp_path: Path) -> None:
    environment = build_environment(tmp_path)
    environment.clients["eks"]["describe_cluster"] = make_client_error("ResourceNotFoundException")
    assert list_refusals(environment) == ["EKS has no cluster prod in us-east-1: check CLUSTER and REGION"]


def make_result(outcome: Any = "as expected") -> StepResult:
    return StepResult(
        id="fleet-times",
        question="How long?",
        expectation="below 30s",
        observed="20 | 20 in 2.1s in account 123456789012",
        outcome=outcome,
        seconds=3.25,
        evidence={"seconds": {"20": 2.1}},
    )


def make_report(*outcomes: str, remains: tuple[str, ...] = ()) -> Report:
    return build_report(
        started_at=STARTED_AT,
        ended_at=STARTED_AT + timedelta(minutes=90),
        cluster="prod",
        region="us-east-1",
        environment="AWS",
        kubernetes="1.36",
        max_cost_usd=1.856,
        results=[make_result(outcome) for outcome in outcomes],
        remains=remains,
    )


def test_report_is_a_versioned_document_without_account_ids(tmp_path: Path) -> None:
    write_report(make_report("as expected"), tmp_path)
    document = json.loads((tmp_path / JSON_NAME).read_text())
    assert document["apiVersion"] == "joiner/v1"
    assert (document["at"], document["seconds"], document["maxCostUsd"]) == ("2026-11-24T12:00:00Z", 5400.0, 1.86)
    assert document["counts"] == {"as expected": 1}
    assert document["steps"][0]["observed"] == "20 | 20 in 2.1s in account 111122223333"
    assert "123456789012" not in (tmp_path / PAGE_NAME).read_text()


def test_page_has_a_row_and_the_evidence_of_each_step(tmp_path: Path) -> None:
    _, page = write_report(make_report("different", remains=("instance i-1",)), tmp_path)
    text = page.read_text()
    assert (
        "| fleet-times | How long? | below 30s | 20 \\| 20 in 2.1s in account 111122223333 | **different** | 3.2 |"
        in text
    )
    assert "- REMAINS: instance i-1" in text
    assert '"20": 2.1' in text


@pytest.mark.parametrize(
    ("outcomes", "remains", "is_successful"),
    [
        (("as expected", "skipped"), (), True),
        (("as expected", "different"), (), False),
        (("failed",), (), False),
        (("as expected",), ("instance i-1",), False),
    ],
)
def test_report_is_successful_without_differences_failures_and_remains(
    outcomes: tuple[str, ...],
    remains: tuple[str, ...],
    is_successful: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert make_report(*outcomes, remains=remains).is_successful is is_successful
