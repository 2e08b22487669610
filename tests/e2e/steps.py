"""The end-to-end test: a stack is deployed, works, is updated while it works, and is deleted without leftovers."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Final

import msgspec
import yaml

from shared.crds.definitions import read_crds
from shared.errors import NotFound
from sim.playground.kubectl import CRDS_PATH
from tests.contract.account_left import list_account_resources
from tests.e2e.cdk import Cdk, ExpectationFailed
from tests.e2e.libraries import ROOT, ensure_libraries
from tests.e2e.stage import CLUSTER, NODE_SPEED_FACTOR, SCHEDULE_INTERVAL, STACK, Stage

ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"
BINDING: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"
LEVEL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/joiner-functions"
INSTALLED_PATHS: Final = (ROLES, BINDING, FLOW, LEVEL)
REFUSALS: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized|[Ff]orbidden")
LATE_SCHEDULE_ERROR: Final = "User: scheduler.amazonaws.com is not authorized to perform: sts:AssumeRole"
"""The error of a schedule that is invoked while the stack is deleted: its role is deleted before the schedule."""
INITIAL_PODS, BURST_PODS, REMAINING_PODS = 5, 17, 6


def play() -> int:
    """Run all steps and return an exit code: 0 if every check passed."""
    python = ensure_libraries()
    with ExitStack() as stack:
        stage = Stage(python, stack, synthesises=True)
        print_line = stage.narrator.print_line
        try:
            print_line("stage", f"functions are processes of {python}, by awslambdaric")
            print_line(
                "stage",
                f"schedules fire every {SCHEDULE_INTERVAL.seconds} s, "
                f"instances start and stop {NODE_SPEED_FACTOR} times as fast",
            )
            for title, act in ACTS:
                stage.narrator.start_act(title)
                act(stage)
        except (ExpectationFailed, AssertionError) as error:
            stage.narrator.print_summary(f"FAILED: {error}")
            sys.stdout.write("".join(f"  {line}\n" for line in dict.fromkeys(stage.running.list_problems())))
            sys.stdout.write(f"logs: {stage.keep_logs()}\n")
            return 1
        stage.narrator.print_summary("All steps passed.")
    return 0


def _begin(stage: Stage) -> None:
    stage.prepare_cluster()
    with stage.run_cdk("bootstrap", f"aws://{stage.account.account_id}/{stage.account.region}"):
        pass
    _assert_equal(stage.get_stack_status("CDKToolkit"), "CREATE_COMPLETE", "status of the stack CDKToolkit")
    stage.initial_resources = set(list_account_resources(stage.account))


@contextmanager
def _start_deployment(stage: Stage) -> Iterator[Cdk]:
    """Deploy the synthesized assembly; the block may act in the meantime."""
    stage.wait_for_cdk(stage.assembly.latest)
    with stage.run_cdk("deploy", *_build_app_arguments(stage), "--require-approval", "never") as cdk:
        yield cdk


def _build_app_arguments(stage: Stage) -> tuple[str, str]:
    return "--app", str(stage.assembly.path)


def _deploy(stage: Stage) -> None:
    with _start_deployment(stage):
        pass
    _assert_equal(stage.get_stack_status(), "CREATE_COMPLETE", "the stack's status")
    stage.fire_all_schedules()  # as Scheduler does with what is new
    stage.wait_until(stage.kubectl.has_crds, "the CRDs are served")
    for path in INSTALLED_PATHS:
        stage.kubectl.kube.read(path)
    stage.narrator.print_line("you", f"deployed {STACK}; {stage.get_outputs()['Installed'][:90]} …")


def _scale_up(stage: Stage) -> None:
    stage.assembly.begin_next_release()  # which is deployed when both are ready
    _apply_example(stage, "getting-started.yaml")
    _apply_example(stage, "inflate.yaml")
    stage.narrator.print_line("you", f"kubectl apply -f getting-started.yaml -f inflate.yaml: {INITIAL_PODS} pods")
    stage.wait_until(lambda: stage.has_running_pods(INITIAL_PODS), "all pods run")
    stage.wait_until(stage.is_consistent, "every instance has a Node and a NodeClaim")
    _assert_that(bool(stage.list_joiner_nodes()), "a managed node exists")


def _interrupt(stage: Stage) -> None:
    stage.wait_until(lambda: bool(stage.interrupt_busiest_node()), "a node exists that can be interrupted")
    struck = stage.interrupted_node
    stage.narrator.print_line("EC2", f"interrupts {struck.partition('.')[0]} in two minutes")

    def has_moved() -> bool:
        return struck not in [pod["spec"].get("nodeName") for pod in stage.list_pods()] and stage.has_running_pods(
            BURST_PODS
        )

    stage.wait_until(has_moved, "the pods run on other nodes")
    stage.wait_until(lambda: struck not in stage.list_joiner_nodes(), "its node is deleted")


def _deploy_next_release(stage: Stage) -> None:
    old_versions = _list_versions(stage)
    launched = len(stage.witness.launched)
    with _start_deployment(stage) as cdk:
        stage.wait_until(
            lambda: stage.get_stack_status() == "UPDATE_IN_PROGRESS" or cdk.has_ended(), "the update begins"
        )
        stage.kubectl.scale("Deployment", "inflate", BURST_PODS)
        stage.narrator.print_line(
            "you", f"kubectl scale deployment inflate --replicas={BURST_PODS}, while the update goes on"
        )
    _assert_equal(stage.get_stack_status(), "UPDATE_COMPLETE", "the stack's status")
    stage.wait_until(lambda: stage.has_running_pods(BURST_PODS), "all pods run")
    stage.wait_until(stage.is_consistent, "every instance has a Node and a NodeClaim")
    stage.wait_until(
        lambda: bool({one.version for one in stage.running.invocations} - old_versions), "the new version is called"
    )
    stage.narrator.print_line("you", f"{len(stage.witness.launched) - launched} instances for the burst")


def _consolidate(stage: Stage) -> None:
    max_nodes = max(1, len(stage.list_joiner_nodes()) - 1)
    stage.kubectl.scale("Deployment", "inflate", REMAINING_PODS)
    stage.narrator.print_line("you", f"kubectl scale deployment inflate --replicas={REMAINING_PODS}")
    stage.wait_until(
        lambda: (
            len(stage.list_joiner_nodes()) <= max_nodes
            and stage.has_running_pods(REMAINING_PODS)
            and stage.is_consistent()
        ),
        f"Joiner has at most {max_nodes} nodes, and all pods run",
    )


def _destroy_stack(stage: Stage) -> None:
    _assert_equal(stage.count_dead_letters(), 0, "dead letters")
    _assert_equal(stage.running.list_problems(), [], "denied, abandoned or unexpected calls")
    working = stage.running.invocations[:]
    bucket = stage.get_outputs()["JoinerBucketName"]
    [stack] = stage.account.get_client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    with stage.run_cdk("destroy", *_build_app_arguments(stage), "--force"):
        pass
    stage.witness.read(stage.account.get_client("s3"), bucket)
    _assert_that(stage.get_stack_status() in ("", "DELETE_COMPLETE"), "the stack is deleted")
    _assert_nothing_is_left(stage, bucket)
    _assert_calls_succeeded(stage, _find_access_end(stage, stack["StackId"]))
    stage.narrator.print_line("you", f"{len(working)} calls, none failed; the bucket with the journal remains")


def _assert_nothing_is_left(stage: Stage, bucket: str) -> None:
    _assert_equal(stage.list_instance_ids(), [], "instances")
    _assert_equal(stage.list_joiner_nodes(), [], "nodes of Joiner")
    crd_names = {yaml.safe_load(crd_text)["metadata"]["name"] for crd_text in read_crds()}
    stage.wait_until(lambda: not crd_names & _list_object_names(stage, CRDS_PATH), "the CRDs are deleted")
    for path in INSTALLED_PATHS:
        _assert_that(not _is_there(stage, path), f"{path} is gone")
    finalizers = [finalizer for node in stage.list_nodes() for finalizer in node["metadata"].get("finalizers", ())]
    _assert_equal(finalizers, [], "finalizers on nodes")
    leftovers = set(list_account_resources(stage.account)) - stage.initial_resources
    _assert_equal(leftovers, {f"s3 {bucket}"}, "remaining resources in the account")
    owned = {"Name": f"tag:kubernetes.io/cluster/{CLUSTER}", "Values": ["owned"]}
    templates = stage.account.get_client("ec2").describe_launch_templates(Filters=[owned])["LaunchTemplates"]
    if templates:
        reason = "lifecycle sweeps unused ones later, and is gone; they cost nothing"
        stage.narrator.print_line("EC2", f"{len(templates)} launch templates of Joiner remain", reason)


def _find_access_end(stage: Stage, stack: str) -> datetime:
    """Return when the first access entry was deleted: calls in progress at that time may lose access."""
    pages = stage.account.get_client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
    events = [
        event for page in pages for event in page["StackEvents"] if event["ResourceStatus"] == "DELETE_IN_PROGRESS"
    ]
    instant: datetime = min(event["Timestamp"] for event in events if event["ResourceType"] == "AWS::EKS::AccessEntry")
    return instant


def _assert_calls_succeeded(stage: Stage, end: datetime) -> None:
    """Assert that every call that ended before *end* succeeded.

    Raises:
        ExpectationFailed: a call failed.
    """
    problems = [problem for problem in stage.running.list_problems() if LATE_SCHEDULE_ERROR not in problem]
    _assert_equal(problems, [], "denied, abandoned or unexpected calls")
    calls = [call for call in stage.running.invocations if call.ended_at < end]
    _assert_equal([call.result.payload for call in calls if call.result.status != "success"], [], "calls that failed")
    _assert_equal(
        stage.witness.list_pods_planned_twice(),
        [],
        "pods that a second node was made for while the first was on its way",
    )
    late = [invocation.started_at for invocation in stage.running.invocations if invocation.ended_at >= end]
    errors = [entry.error for entry in stage.witness.entries if entry.error and entry.at < min([end, *late])]
    _assert_equal(errors, [], "errors in the journal")
    lines = (line for call in calls for line in call.log_lines)
    _assert_equal([line for line in lines if REFUSALS.search(line)], [], "refusals in the functions' logs")


def _apply_example(stage: Stage, example: str) -> None:
    text = (ROOT / "examples" / example).read_text(encoding="utf-8").replace("CLUSTER", CLUSTER)
    stage.kubectl.apply_all(manifest for manifest in yaml.safe_load_all(text) if manifest)


def _list_object_names(stage: Stage, collection: str) -> set[str]:
    return {item["metadata"]["name"] for item in stage.kubectl.list_objects(collection)}


def _is_there(stage: Stage, path: str) -> bool:
    try:
        return bool(msgspec.json.decode(stage.kubectl.kube.read(path)))
    except NotFound:
        return False


def _list_versions(stage: Stage) -> set[str]:
    return {invocation.version for invocation in stage.running.invocations}


def _assert_that(claim: bool, description: str) -> None:  # noqa: FBT001 - it reads as a sentence
    """Assert that *claim* holds.

    Raises:
        ExpectationFailed: it does not hold.
    """
    if not claim:
        raise ExpectationFailed(description)


def _assert_equal(actual: object, expected: object, description: str) -> None:
    """Assert that *actual* equals *expected*.

    Raises:
        ExpectationFailed: they differ.
    """
    if actual != expected:
        raise ExpectationFailed(f"{description}: {actual!r}, not {expected!r}")


ACTS: Final[tuple[tuple[str, Callable[[Stage], None]], ...]] = (
    ("account, cluster and cdk bootstrap", _begin),
    ("cdk deploy", _deploy),
    ("scale-up for pending pods", _scale_up),
    ("cdk deploy of the next version during a scale-up", _deploy_next_release),
    ("Spot interruption", _interrupt),
    ("scale-down and consolidation", _consolidate),
    ("cdk destroy", _destroy_stack),
)
