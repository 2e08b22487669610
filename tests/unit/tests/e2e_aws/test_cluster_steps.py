"""How the steps of the test on AWS that need the stack judge an answer."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.playground.kubectl import NODE_CLAIMS_PATH
from tests.e2e_aws.results import StepFailed
from tests.e2e_aws.steps.deployment import (
    OUR_CRDS,
    audit_leaks,
    check_access_entries,
    check_alarms,
    deploy_stack,
    destroy_stack,
    roll_back_broken_version,
    roll_out_next_version,
)
from tests.e2e_aws.steps.interruption import interrupt_spot_node
from tests.e2e_aws.steps.nodes import (
    AL2023_ARM64,
    DISRUPTED_TAINT,
    INTERRUPTED,
    build_node_check,
    build_node_pool,
    build_pod,
)
from tests.e2e_aws.steps.permissions import FORBIDDEN, check_permissions, list_required_permissions
from tests.e2e_aws.steps.upkeep import watch_idle_hour
from tests.support.e2e_environment import ScriptedEnvironment, make_client_error

CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLE = "arn:aws:iam::111122223333:role/"
OUTPUTS = [{"OutputKey": "JoinerBucketName", "OutputValue": "bucket"}]


def build_environment(
    folder: Path, status: str = "CREATE_COMPLETE", resources: Sequence[tuple[str, str]] = (), **clients: Any
) -> ScriptedEnvironment:
    """Return an environment with a stack of *resources*: type and physical id."""
    stack = {"StackName": "joiner-e2e-prod", "StackStatus": status, "Outputs": OUTPUTS}
    summaries = [{"ResourceType": kind, "PhysicalResourceId": name} for kind, name in resources]
    cloudformation = {
        "describe_stacks": {"Stacks": [stack]},
        "list_stack_resources": {"StackResourceSummaries": summaries},
        "describe_stack_events": {"StackEvents": []},
    }
    environment = ScriptedEnvironment(folder, cloudformation=cloudformation, **clients)
    for name in OUR_CRDS:
        environment.kube.objects[f"{CRDS_PATH}/{name}"] = {"metadata": {"name": name}}
    environment.kube.objects[NODE_CLAIMS_PATH] = {}
    return environment


@pytest.mark.parametrize(
    ("status", "outcome"), [("CREATE_COMPLETE", "as expected"), ("CREATE_IN_PROGRESS", "different")]
)
def test_deployment_expects_a_complete_stack(tmp_path: Path, status: str, outcome: str) -> None:
    environment = build_environment(tmp_path, status)
    assert deploy_stack(environment).outcome == outcome
    assert [entry.kind for entry in environment.ledger.document.entries] == ["stack", "bucket"]


def test_failed_deployment_fails_the_step_and_keeps_the_bucket_in_the_ledger(tmp_path: Path) -> None:
    environment = build_environment(tmp_path, "ROLLBACK_COMPLETE")
    environment.deploy_output = "cdk deploy failed (1)"
    with pytest.raises(StepFailed, match="cdk deploy failed"):
        deploy_stack(environment)
    assert [entry.kind for entry in environment.ledger.document.entries] == ["stack", "bucket"]


@pytest.mark.parametrize(
    ("groups", "node_type", "outcome"),
    [
        (["joiner:functions"], "EC2_LINUX", "as expected"),
        ([], "EC2_LINUX", "different"),
        (["joiner:functions"], "STANDARD", "different"),
    ],
)
def test_access_entries_expect_the_group_of_functions_and_a_node_entry(
    tmp_path: Path, groups: list[str], node_type: str, outcome: str
) -> None:
    entries = {
        f"{ROLE}provision": {"type": "STANDARD", "kubernetesGroups": groups},
        f"{ROLE}node": {"type": node_type, "kubernetesGroups": []},
    }
    resources = [("AWS::EKS::AccessEntry", f"{arn}|prod") for arn in entries]
    resources += [("AWS::CodeDeploy::DeploymentGroup", "provision")]
    eks = {
        "describe_access_entry": lambda **call: {
            "accessEntry": {**entries[call["principalArn"]], "principalArn": call["principalArn"]}
        }
    }
    assert check_access_entries(build_environment(tmp_path, resources=resources, eks=eks)).outcome == outcome


@pytest.mark.parametrize(("state", "outcome"), [("OK", "as expected"), ("ALARM", "different")])
def test_raised_alarm_is_different(tmp_path: Path, state: str, outcome: str) -> None:
    cloudwatch = {"describe_alarms": {"MetricAlarms": [{"AlarmName": "LaunchFailures", "StateValue": state}]}}
    environment = build_environment(
        tmp_path, resources=[("AWS::CloudWatch::Alarm", "LaunchFailures")], cloudwatch=cloudwatch
    )
    started_at = environment.now
    observation = check_alarms(environment)
    assert observation.outcome == outcome
    assert environment.now - started_at == timedelta(minutes=10)
    assert observation.evidence["raised"] == (["LaunchFailures"] if state == "ALARM" else [])


def answer_reviews(environment: ScriptedEnvironment, denied: set[tuple[str, str, str]], extra: set[Any]) -> None:
    """Let the API server allow all required permissions except *denied*, and in addition *extra*."""
    allowed = (set(list_required_permissions()) - denied) | extra

    def respond(path: str, manifest: dict[str, Any]) -> dict[str, Any]:
        assert path.endswith("subjectaccessreviews")
        attributes = manifest["spec"]["resourceAttributes"]
        resource = "/".join(part for part in (attributes["resource"], attributes["subresource"]) if part)
        return {"status": {"allowed": (attributes["group"], resource, attributes["verb"]) in allowed}}

    environment.kube.respond_to_create = respond


@pytest.mark.parametrize(
    ("denied", "extra", "outcome"),
    [
        (set(), set(), "as expected"),
        ({("", "pods/eviction", "create")}, set(), "different"),
        (set(), {FORBIDDEN[0]}, "different"),
    ],
)
def test_denied_or_unexpected_permission_is_different(
    tmp_path: Path, denied: set[tuple[str, str, str]], extra: set[tuple[str, str, str]], outcome: str
) -> None:
    environment = build_environment(tmp_path)
    answer_reviews(environment, denied, extra)
    observation = check_permissions(environment)
    assert observation.outcome == outcome
    assert observation.evidence == {
        "denied": ["create pods/eviction"] if denied else [],
        "unexpected": ["get secrets"] if extra else [],
    }


def join_node(environment: ScriptedEnvironment, architecture: str, capacity_type: str, **spec: Any) -> dict[str, Any]:
    """Let every pod run at once, on a Node with these labels; return the Node."""
    labels = {"kubernetes.io/arch": architecture, "karpenter.sh/capacity-type": capacity_type}
    node = {"metadata": {"name": "node", "labels": labels}, "spec": spec, "status": {}}
    environment.kube.objects["/api/v1/nodes/node"] = node

    def run_pod(_: str, manifest: dict[str, Any]) -> None:
        if manifest["kind"] == "Pod":
            manifest["status"] = {"phase": "Running"}
            manifest["spec"]["nodeName"] = "node"

    environment.kube.respond_to_create = run_pod
    return node


@pytest.mark.parametrize(("architecture", "outcome"), [("arm64", "as expected"), ("amd64", "different")])
def test_node_with_another_architecture_is_different(tmp_path: Path, architecture: str, outcome: str) -> None:
    environment = build_environment(tmp_path)
    join_node(environment, architecture, "on-demand")
    assert build_node_check(AL2023_ARM64)(environment).outcome == outcome
    lifetimes = {entry.name.rpartition("/")[2]: entry.lifetime for entry in environment.ledger.document.entries}
    assert lifetimes == {"joiner-e2e": "run", "joiner-e2e-al2023-arm64": "step"}


def test_pod_that_does_not_run_fails_the_step(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="NodeClaims: none"):
        build_node_check(AL2023_ARM64)(build_environment(tmp_path))


def test_only_the_pod_of_the_test_tolerates_the_taint_of_its_nodes() -> None:
    [taint] = build_node_pool(INTERRUPTED)["spec"]["template"]["spec"]["taints"]
    [toleration] = build_pod(INTERRUPTED)["spec"]["tolerations"]
    assert (taint["key"], taint["effect"]) == ("joiner-e2e", "NoSchedule")
    assert (toleration["key"], toleration["value"]) == (taint["key"], taint["value"])


def build_interruption(folder: Path, seconds: int | None) -> ScriptedEnvironment:
    """Return an environment whose Spot node gets its taint *seconds* after the experiment has started; None: never."""
    iam = {"create_role": {"Role": {"Arn": f"{ROLE}fis"}}, "put_role_policy": {}}

    def start_experiment(**_: Any) -> Any:
        if seconds is not None:
            environment.now += timedelta(seconds=seconds)
            node["spec"]["taints"] = [{"key": DISRUPTED_TAINT}]
        return {"experiment": {"id": "EXP1"}}

    fis = {
        "create_experiment_template": {"experimentTemplate": {"id": "EXT1"}},
        "start_experiment": start_experiment,
        "get_experiment": {"experiment": {"state": {"status": "completed"}}},
    }
    environment = build_environment(folder, iam=iam, fis=fis)
    node = join_node(environment, "amd64", "spot", providerID="aws:///us-east-1a/i-1")
    return environment


@pytest.mark.parametrize(
    ("seconds", "is_removed", "outcome"),
    [(8, True, "as expected"), (8, False, "different"), (31, True, "different"), (None, False, "different")],
)
def test_interruption_expects_an_early_taint_and_the_removal_of_the_node(
    tmp_path: Path,
    seconds: int | None,
    is_removed: bool,  # noqa: FBT001 - a parameter of the test
    outcome: str,
) -> None:
    environment = build_interruption(tmp_path, seconds)
    wait_until, node_path = environment.wait_until, "/api/v1/nodes/node"

    def remove_later(condition: Any, timeout: timedelta) -> bool:
        if wait_until(condition, timeout):
            return True
        if is_removed:
            environment.kube.objects.pop(node_path, None)
        return bool(condition())

    environment.wait_until = remove_later  # type: ignore[method-assign]
    assert interrupt_spot_node(environment).outcome == outcome
    assert {"role", "fis-template"} < {entry.kind for entry in environment.ledger.document.entries}


def test_failed_experiment_fails_the_step(tmp_path: Path) -> None:
    environment = build_interruption(tmp_path, None)
    state = {"status": "failed", "reason": "no permission"}
    environment.clients["fis"]["get_experiment"] = {"experiment": {"state": state}}
    with pytest.raises(StepFailed, match="no permission"):
        interrupt_spot_node(environment)


def test_experiment_that_fis_rejects_fails_the_step(tmp_path: Path) -> None:
    environment = build_interruption(tmp_path, 1)
    environment.clients["fis"]["create_experiment_template"] = make_client_error("ValidationException")
    with pytest.raises(StepFailed, match="ValidationException"):
        interrupt_spot_node(environment)


@pytest.mark.parametrize(
    ("claims", "state", "letters", "outcome"),
    [
        ([], "OK", "0", "as expected"),
        (["default-1"], "OK", "0", "different"),
        ([], "ALARM", "0", "different"),
        ([], "OK", "2", "different"),
    ],
)
def test_anything_that_happens_in_the_idle_hour_is_different(
    tmp_path: Path, claims: list[str], state: str, letters: str, outcome: str
) -> None:
    environment = build_environment(
        tmp_path,
        resources=[("AWS::CloudWatch::Alarm", "a"), ("AWS::SQS::Queue", "https://sqs/prod-joiner-dead-letters")],
        ec2={"describe_instances": {"Reservations": []}},
        s3={"list_objects_v2": {}},
        sqs={"get_queue_attributes": {"Attributes": {"ApproximateNumberOfMessages": letters}}},
        cloudwatch={"describe_alarms": {"MetricAlarms": [{"AlarmName": "a", "StateValue": state}]}},
    )
    for name in claims:
        environment.kube.objects[f"{NODE_CLAIMS_PATH}/{name}"] = {"metadata": {"name": name}}
    started_at = environment.now
    assert watch_idle_hour(environment).outcome == outcome
    assert environment.now - started_at >= timedelta(hours=1)


def build_update(folder: Path, status: str, version: str, reason: str = "") -> ScriptedEnvironment:
    """Return an environment in which a deployment ends with *status* and lets the alias lead to *version*."""
    aliases = {"Aliases": [{"Name": "live", "FunctionVersion": "1"}]}
    environment = build_environment(
        folder, status, [("AWS::Lambda::Function", "provision")], **{"lambda": {"list_aliases": aliases}}
    )
    event = {"ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": reason}
    environment.clients["cloudformation"]["describe_stack_events"] = {"StackEvents": [event] if reason else []}
    environment.on_deploy = lambda _: aliases.update(Aliases=[{"Name": "live", "FunctionVersion": version}])
    return environment


@pytest.mark.parametrize(
    ("status", "version", "outcome"),
    [
        ("UPDATE_COMPLETE", "2", "as expected"),
        ("UPDATE_COMPLETE", "1", "different"),
        ("UPDATE_ROLLBACK_COMPLETE", "1", "different"),
    ],
)
def test_canary_expects_that_all_aliases_move(tmp_path: Path, status: str, version: str, outcome: str) -> None:
    assert roll_out_next_version(build_update(tmp_path, status, version)).outcome == outcome


@pytest.mark.parametrize(
    ("status", "version", "reason", "outcome"),
    [
        ("UPDATE_ROLLBACK_COMPLETE", "1", "alarm NewVersionErrors is in ALARM", "as expected"),
        ("UPDATE_ROLLBACK_COMPLETE", "1", "the deployment timed out", "different"),
        ("UPDATE_ROLLBACK_COMPLETE", "2", "alarm NewVersionErrors is in ALARM", "different"),
        ("UPDATE_COMPLETE", "2", "", "different"),
    ],
)
def test_rollback_expects_the_alarm_and_the_previous_version(
    tmp_path: Path, status: str, version: str, reason: str, outcome: str
) -> None:
    assert roll_back_broken_version(build_update(tmp_path, status, version, reason)).outcome == outcome


@pytest.mark.parametrize(("response", "outcome"), [("gone", "as expected"), ("DELETE_FAILED", "different")])
def test_removal_expects_no_stack(tmp_path: Path, response: str, outcome: str) -> None:
    environment = build_environment(tmp_path, response)
    if response == "gone":
        environment.clients["cloudformation"]["describe_stacks"] = make_client_error("ValidationError")
    assert destroy_stack(environment).outcome == outcome


@pytest.mark.parametrize(
    ("kind", "unreadable", "outcome"),
    [("LaunchTemplate", [], "as expected"), ("Instance", [], "different"), ("LaunchTemplate", ["ec2"], "different")],
)
def test_audit_accepts_only_unused_launch_templates(
    tmp_path: Path, kind: str, unreadable: list[str], outcome: str
) -> None:
    environment = build_environment(tmp_path)
    environment.audit = {"assets": [{"kind": kind, "name": "x", "leaked": True}], "unreadable": unreadable}
    assert audit_leaks(environment).outcome == outcome
