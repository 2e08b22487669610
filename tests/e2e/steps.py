"""The end-to-end test: the steps of the test on AWS (`tests.e2e_aws`), against the emulated account.

Between them, as steps of their own, are checks that need the emulation: which calls failed, which resources remain.
"""

import re
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec
import yaml

from shared.crds.definitions import read_crds
from shared.errors import NotFound
from sim.playground.kubectl import CRDS_PATH
from tests.contract.account_left import list_account_resources
from tests.e2e.bundle_checks import build_bundle_steps
from tests.e2e.cdk import ExpectationFailed
from tests.e2e.check_step import LATE_SCHEDULE_ERROR, build_check
from tests.e2e.embedded_environment import EmbeddedEnvironment
from tests.e2e.libraries import ROOT, ensure_libraries
from tests.e2e.stage import CLUSTER, NODE_SPEED_FACTOR, SCHEDULE_INTERVAL, Stage
from tests.e2e_aws.environment import get_stack_name
from tests.e2e_aws.plan import compute_max_usd
from tests.e2e_aws.preflight import list_refusals
from tests.e2e_aws.report import build_report, write_report
from tests.e2e_aws.results import StepResult
from tests.e2e_aws.run import clean_up, record_run, run_steps
from tests.e2e_aws.steps.registry import ALL_STEPS
from tests.e2e_aws.steps.step import Step

ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"
BINDING: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"
LEVEL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/joiner-functions"
INSTALLED_PATHS: Final = (ROLES, BINDING, FLOW, LEVEL)
REFUSALS: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized|[Ff]orbidden")
STACK: Final = get_stack_name(CLUSTER)
INITIAL_PODS, BURST_PODS, REMAINING_PODS = 5, 17, 6


def play() -> int:
    """Run all steps and return an exit code: 0 if every step was as expected."""
    python = ensure_libraries()
    with ExitStack() as stack:
        stage = Stage(python, stack, stack_name=STACK)
        environment = EmbeddedEnvironment(stage, stack)
        environment.deployments.prepare("first")
        print_line = stage.narrator.print_line
        print_line("stage", f"functions are processes of {python}, by awslambdaric")
        print_line(
            "stage",
            f"schedules fire every {SCHEDULE_INTERVAL.seconds} s, "
            f"instances start and stop {NODE_SPEED_FACTOR} times as fast",
        )
        started_at, results = datetime.now(UTC), list[StepResult]()
        remains: list[str] = []
        try:
            stage.narrator.start_act("account, cluster and cdk bootstrap")
            _begin(environment)
            record_run(environment)
            for step in build_steps(environment):
                stage.narrator.start_act(step.id)
                run_steps(environment, [step], results, partial(print_line, "step"))
        except ExpectationFailed as error:
            remains.append(str(error))
        finally:
            stage.narrator.start_act("cleanup")
            remains += clean_up(environment, partial(print_line, "step"))
        report = build_report(
            started_at=started_at,
            ended_at=datetime.now(UTC),
            cluster=CLUSTER,
            region=stage.account.region,
            environment="emulation",
            kubernetes=stage.cloud.facts.version,
            max_cost_usd=compute_max_usd(ALL_STEPS),
            results=results,
            remains=remains,
        )
        if report.is_successful and not any(result.outcome == "skipped" for result in results):
            stage.narrator.print_summary("All steps were as expected.")
            return 0
        stage.narrator.print_summary(f"FAILED: {report.counts}, {remains}")
        _print_failures(stage, results)
        logs_folder = stage.keep_logs()
        write_report(report, logs_folder)
        sys.stdout.write(f"logs: {logs_folder}\n")
        return 1


def _print_failures(stage: Stage, results: list[StepResult]) -> None:
    lines = [f"{result.id}: {result.outcome}: {result.observed}" for result in results]
    failures = [line for line, result in zip(lines, results, strict=True) if result.outcome != "as expected"]
    problems = [*failures, *dict.fromkeys(stage.running.list_problems())]
    sys.stdout.write("".join(f"  {line}\n" for line in problems))


def build_steps(environment: EmbeddedEnvironment) -> tuple[Step, ...]:
    """Return the steps of the test on AWS, with the checks of the emulation between them."""
    checks = Checks(environment)
    after = {
        "deploy": (build_check("installed-objects", checks.check_installed_objects),),
        "idle-hour": (
            build_check("scale-up", checks.scale_up),
            build_check("burst-at-update", checks.prepare_burst),
        ),
        "canary": (build_check("burst", checks.check_burst),),
        "orphan": (
            build_check("consolidation", checks.consolidate),
            build_check("calls", checks.check_calls),
        ),
        "destroy": (build_check("leftovers", checks.check_leftovers),),
    }
    steps = tuple(each for step in ALL_STEPS for each in (step, *after.get(step.id, ())))
    return (*steps, *build_bundle_steps(environment.stage, STACK))


def _begin(environment: EmbeddedEnvironment) -> None:
    stage = environment.stage
    stage.prepare_cluster()
    refusals = list_refusals(environment)
    _assert_that(
        len(refusals) == 1 and "npx cdk bootstrap" in refusals[0], f"only the bootstrap is missing: {refusals}"
    )
    with stage.run_cdk("bootstrap", f"aws://{stage.account.account_id}/{stage.account.region}"):
        pass
    _assert_equal(stage.get_stack_status("CDKToolkit"), "CREATE_COMPLETE", "status of the stack CDKToolkit")
    _assert_equal(list_refusals(environment), [], "reasons not to start")
    stage.initial_resources = set(list_account_resources(stage.account))


class Checks:
    """Checks of the emulated account during the test; each returns what it saw or raises ExpectationFailed."""

    def __init__(self, environment: EmbeddedEnvironment) -> None:
        """Check the stage of *environment*."""
        self._environment, self._stage = environment, environment.stage
        self._old_versions = set[str]()
        self._launched = 0
        self._bucket = ""
        self._checked_calls = 0

    def check_installed_objects(self) -> str:
        """Check the objects that the installer creates in the cluster."""
        stage = self._stage
        stage.wait_until(stage.kubectl.has_crds, "the CRDs are served")
        for path in INSTALLED_PATHS:
            stage.kubectl.kube.read(path)
        outputs = stage.get_outputs()
        self._bucket = outputs["JoinerBucketName"]
        return outputs["Installed"]

    def scale_up(self) -> str:
        """Create pods that need nodes; prepare the next version meanwhile."""
        stage = self._stage
        self._environment.deployments.prepare("next")
        _apply_example(stage, "getting-started.yaml")
        _apply_example(stage, "inflate.yaml")
        stage.wait_until(lambda: stage.has_running_pods(INITIAL_PODS), "all pods run")
        stage.wait_until(stage.is_consistent, "every instance has a Node and a NodeClaim")
        return f"{INITIAL_PODS} pods on {len(stage.list_joiner_nodes())} nodes"

    def prepare_burst(self) -> str:
        """Scale the Deployment up when the next update of the stack begins."""
        stage = self._stage
        self._old_versions = _list_versions(stage)
        self._launched = len(stage.witness.launched)
        self._environment.during_update = partial(stage.kubectl.scale, "Deployment", "inflate", BURST_PODS)
        return f"{BURST_PODS} pods as soon as the update begins"

    def check_burst(self) -> str:
        """Check that the pods of the burst run, and that the new version is called."""
        stage = self._stage
        stage.wait_until(lambda: stage.has_running_pods(BURST_PODS), "all pods run")
        stage.wait_until(stage.is_consistent, "every instance has a Node and a NodeClaim")
        stage.wait_until(
            lambda: bool({call.version for call in stage.running.invocations} - self._old_versions),
            "the new version is called",
        )
        return f"{len(stage.witness.launched) - self._launched} instances for the burst"

    def consolidate(self) -> str:
        """Remove pods, and wait for consolidation."""
        stage = self._stage
        max_nodes = max(1, len(stage.list_joiner_nodes()) - 1)
        stage.kubectl.scale("Deployment", "inflate", REMAINING_PODS)
        stage.wait_until(
            lambda: (
                len(stage.list_joiner_nodes()) <= max_nodes
                and stage.has_running_pods(REMAINING_PODS)
                and stage.is_consistent()
            ),
            f"Joiner has at most {max_nodes} nodes, and all pods run",
        )
        return f"{REMAINING_PODS} pods on {len(stage.list_joiner_nodes())} nodes"

    def check_calls(self) -> str:
        """Check the calls until now: a version that fails on purpose follows."""
        stage = self._stage
        _assert_equal(stage.count_dead_letters(), 0, "dead letters")
        _assert_equal(stage.running.list_problems(), [], "denied, abandoned or unexpected calls")
        calls = stage.running.invocations[:]
        _assert_equal([call.result.payload for call in calls if call.result.status != "success"], [], "failed calls")
        _assert_equal(
            stage.witness.list_pods_planned_twice(),
            [],
            "pods that a second node was made for while the node of the first was in flight",
        )
        lines = (line for call in calls for line in call.log_lines)
        _assert_equal([line for line in lines if REFUSALS.search(line)], [], "refusals in the functions' logs")
        _assert_equal([entry.error for entry in stage.witness.entries if entry.error], [], "errors in the journal")
        return f"{len(calls)} calls, none failed"

    def check_leftovers(self) -> str:
        """Check that the deleted stack left nothing but the bucket with its journal."""
        stage = self._stage
        stage.witness.read(stage.account.get_client("s3"), self._bucket)
        _assert_nothing_is_left(stage, self._bucket)
        discarded = set(stage.running.discarded_invocations)  # those of the version that failed on purpose
        problems = [
            problem
            for problem in stage.running.list_problems()
            if LATE_SCHEDULE_ERROR not in problem and problem not in discarded
        ]
        _assert_equal(problems, [], "denied, abandoned or unexpected calls")
        return "only the bucket with the journal remains"


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
