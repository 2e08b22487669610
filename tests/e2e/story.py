"""The story: a stack is deployed, does its work, is replaced while it works, and goes without a trace."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Final

import msgspec
import yaml

from shared.errors import Gone
from shared.kube.definitions import definitions
from sim.playground_desk import DEFINITIONS
from tests.contract.account_left import lying_in
from tests.e2e.cdk import Cdk, NotSo
from tests.e2e.libraries import ROOT, libraries
from tests.e2e.stage import CLUSTER, HASTE, RING_EVERY, STACK, Stage

ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"
BINDING: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"
LEVEL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/joiner-functions"
INSTALLED: Final = (ROLES, BINDING, FLOW, LEVEL)
REFUSALS: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized|[Ff]orbidden")
LATE_RING: Final = "User: scheduler.amazonaws.com is not authorized to perform: sts:AssumeRole"
"""What a schedule hears that rings as the stack goes: its role went before anybody knew that it is gone."""
FIRST, BURST, REST = 5, 17, 6


def play() -> int:
    """Play it, and answer an exit code: 0 if everything was as it should be."""
    python = libraries()
    with ExitStack() as stack:
        stage = Stage(python, stack, synthesises=True)
        say = stage.narrator.say
        try:
            say("stage", f"functions are processes of {python}, by awslambdaric")
            say("stage", f"schedules ring every {RING_EVERY.seconds} s, machines boot and end {HASTE} times as fast")
            for title, act in ACTS:
                stage.narrator.act(title)
                act(stage)
        except (NotSo, AssertionError) as error:
            stage.narrator.end(f"NOT SO: {error}")
            sys.stdout.write("".join(f"  {line}\n" for line in dict.fromkeys(stage.running.problems())))
            sys.stdout.write(f"logs: {stage.keep_logs()}\n")
            return 1
        stage.narrator.end("All of it was so.")
    return 0


def _begin(stage: Stage) -> None:
    stage.furnish()
    with stage.cdk("bootstrap", f"aws://{stage.account.number}/{stage.account.region}"):
        pass
    _is(stage.status("CDKToolkit"), "CREATE_COMPLETE", "status of the stack CDKToolkit")
    stage.furniture = set(lying_in(stage.account))


@contextmanager
def _deploying(stage: Stage) -> Iterator[Cdk]:
    """Deploy what was synthesised; the block may do something meanwhile."""
    stage.see_out(stage.assembly.latest)
    with stage.cdk("deploy", *_app(stage), "--require-approval", "never") as cdk:
        yield cdk


def _app(stage: Stage) -> tuple[str, str]:
    return "--app", str(stage.assembly.path)


def _deploy(stage: Stage) -> None:
    with _deploying(stage):
        pass
    _is(stage.status(), "CREATE_COMPLETE", "the stack's status")
    stage.ring_all()  # as Scheduler does with what is new
    stage.until(stage.desk.is_defined, "our definitions are served")
    for path in INSTALLED:
        stage.desk.kube.read(path)
    stage.narrator.say("you", f"deployed {STACK}; {stage.outputs()['Installed'][:90]} …")


def _scale_up(stage: Stage) -> None:
    stage.assembly.begin_next_release()  # which is deployed when both are ready
    _apply(stage, "getting-started.yaml")
    _apply(stage, "inflate.yaml")
    stage.narrator.say("you", f"kubectl apply -f getting-started.yaml -f inflate.yaml: {FIRST} pods")
    stage.until(lambda: stage.run(FIRST), "all pods run")
    stage.until(stage.is_in_step, "every instance is a node and a claim")
    _so(bool(stage.our_nodes()), "a node of ours is there")


def _interrupt(stage: Stage) -> None:
    stage.until(lambda: bool(stage.strike()), "a node is there to be taken")
    struck = stage.struck
    stage.narrator.say("EC2", f"takes {struck.partition('.')[0]} back in two minutes")

    def has_moved() -> bool:
        return struck not in [one["spec"].get("nodeName") for one in stage.pods()] and stage.run(BURST)

    stage.until(has_moved, "the pods run elsewhere")
    stage.until(lambda: struck not in stage.our_nodes(), "its node is gone")


def _redeploy(stage: Stage) -> None:
    before = _versions(stage)
    launched = len(stage.witness.launched)
    with _deploying(stage) as cdk:
        stage.until(lambda: stage.status() == "UPDATE_IN_PROGRESS" or cdk.has_ended(), "the update begins")
        stage.desk.scale("Deployment", "inflate", BURST)
        stage.narrator.say("you", f"kubectl scale deployment inflate --replicas={BURST}, while the update goes on")
    _is(stage.status(), "UPDATE_COMPLETE", "the stack's status")
    stage.until(lambda: stage.run(BURST), "all pods run")
    stage.until(stage.is_in_step, "every instance is a node and a claim")
    stage.until(lambda: bool({one.version for one in stage.running.calls} - before), "the new version is called")
    stage.narrator.say("you", f"{len(stage.witness.launched) - launched} instances for the burst")


def _consolidate(stage: Stage) -> None:
    most = max(1, len(stage.our_nodes()) - 1)
    stage.desk.scale("Deployment", "inflate", REST)
    stage.narrator.say("you", f"kubectl scale deployment inflate --replicas={REST}")
    stage.until(
        lambda: len(stage.our_nodes()) <= most and stage.run(REST) and stage.is_in_step(),
        f"nodes of ours are {most} or fewer, and all pods run",
    )


def _destroy(stage: Stage) -> None:
    _is(stage.dead_letters(), 0, "dead letters")
    _is(stage.running.problems(), [], "what was refused, given up or unforeseen")
    working = stage.running.calls[:]
    bucket = stage.outputs()["JoinerBucketName"]
    [stack] = stage.account.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    with stage.cdk("destroy", *_app(stage), "--force"):
        pass
    stage.witness.read(stage.account.client("s3"), bucket)
    _so(stage.status() in ("", "DELETE_COMPLETE"), "the stack is gone")
    _nothing_is_left(stage, bucket)
    _all_went_well(stage, _rights_end(stage, stack["StackId"]))
    stage.narrator.say("you", f"{len(working)} calls, none failed; the bucket with the journal stays")


def _nothing_is_left(stage: Stage, bucket: str) -> None:
    _is(stage.instances(), [], "instances")
    _is(stage.our_nodes(), [], "nodes of ours")
    ours = {yaml.safe_load(one)["metadata"]["name"] for one in definitions()}
    stage.until(lambda: not ours & _names(stage, DEFINITIONS), "our definitions are gone")
    for path in INSTALLED:
        _so(not _is_there(stage, path), f"{path} is gone")
    finalizers = [one for node in stage.nodes() for one in node["metadata"].get("finalizers", ())]
    _is(finalizers, [], "finalizers on nodes")
    left = set(lying_in(stage.account)) - stage.furniture
    _is(left, {f"s3 {bucket}"}, "what is left in the account")
    owned = {"Name": f"tag:kubernetes.io/cluster/{CLUSTER}", "Values": ["owned"]}
    templates = stage.account.client("ec2").describe_launch_templates(Filters=[owned])["LaunchTemplates"]
    if templates:
        said = "lifecycle sweeps unused ones later, and is gone; they cost nothing"
        stage.narrator.say("EC2", f"{len(templates)} launch templates of ours stay", said)


def _rights_end(stage: Stage, stack: str) -> datetime:
    """Answer when the first way into the cluster was taken away: calls that were under way may find it closed."""
    pages = stage.account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
    events = [one for page in pages for one in page["StackEvents"] if one["ResourceStatus"] == "DELETE_IN_PROGRESS"]
    instant: datetime = min(one["Timestamp"] for one in events if one["ResourceType"] == "AWS::EKS::AccessEntry")
    return instant


def _all_went_well(stage: Stage, end: datetime) -> None:
    """Look whether every call went well that was over at *end*.

    Raises:
        NotSo: one did not.
    """
    problems = [one for one in stage.running.problems() if LATE_RING not in one]
    _is(problems, [], "what was refused, given up or unforeseen")
    calls = [one for one in stage.running.calls if one.ended < end]
    _is([one.how.payload for one in calls if one.how.status != "success"], [], "calls that failed")
    _is(
        stage.witness.planned_while_covered(), [], "pods that a second node was made for while the first was on its way"
    )
    late = [one.began for one in stage.running.calls if one.ended >= end]
    errors = [one.error for one in stage.witness.entries if one.error and one.at < min([end, *late])]
    _is(errors, [], "errors in the journal")
    lines = (line for call in calls for line in call.lines)
    _is([line for line in lines if REFUSALS.search(line)], [], "refusals in the functions' logs")


def _apply(stage: Stage, example: str) -> None:
    text = (ROOT / "examples" / example).read_text(encoding="utf-8").replace("CLUSTER", CLUSTER)
    stage.desk.apply_all(one for one in yaml.safe_load_all(text) if one)


def _names(stage: Stage, collection: str) -> set[str]:
    return {one["metadata"]["name"] for one in stage.desk.look(collection)}


def _is_there(stage: Stage, path: str) -> bool:
    try:
        return bool(msgspec.json.decode(stage.desk.kube.read(path)))
    except Gone:
        return False


def _versions(stage: Stage) -> set[str]:
    return {one.version for one in stage.running.calls}


def _so(claim: bool, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    """Look whether *claim* holds.

    Raises:
        NotSo: it does not.
    """
    if not claim:
        raise NotSo(what)


def _is(found: object, wanted: object, what: str) -> None:
    """Look whether *found* is what is *wanted*.

    Raises:
        NotSo: it is not.
    """
    if found != wanted:
        raise NotSo(f"{what}: {found!r}, not {wanted!r}")


ACTS: Final[tuple[tuple[str, Callable[[Stage], None]], ...]] = (
    ("an account, a cluster, cdk bootstrap", _begin),
    ("cdk deploy", _deploy),
    ("pods wait: nodes come", _scale_up),
    ("cdk deploy of the next version, while pods wait", _redeploy),
    ("EC2 takes a node back", _interrupt),
    ("fewer pods: fewer nodes", _consolidate),
    ("cdk destroy", _destroy),
)
