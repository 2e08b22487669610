"""The story: a stack is deployed, does its work, is replaced while it works, and goes without a trace."""

import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Final

import msgspec
import yaml

from shared.errors import Gone
from shared.kube.definitions import definitions
from sim.playground_desk import DEFINITIONS
from tests.contract.account_left import lying_in
from tests.e2e.cdk import NotSo
from tests.e2e.libraries import ROOT, libraries
from tests.e2e.release import next_release
from tests.e2e.stage import CLUSTER, HASTE, KNOBS, RING_EVERY, STACK, Stage

MINUTE: Final = timedelta(minutes=1)
ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles/joiner-functions"
BINDING: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/joiner-functions"
FLOW: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/joiner-functions"
LEVEL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/joiner-functions"
INSTALLED: Final = (ROLES, BINDING, FLOW, LEVEL)
REFUSALS: Final = re.compile(r"AccessDenied|UnauthorizedOperation|is not authorized|[Ff]orbidden")
FIRST, BURST, REST = 5, 17, 6


def play() -> int:
    """Play it, and answer an exit code: 0 if everything was as it should be."""
    python = libraries()
    with ExitStack() as stack:
        stage = Stage(python, stack)
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


def _deploy(stage: Stage) -> None:
    with stage.cdk("deploy", *KNOBS, "--require-approval", "never"):
        pass
    _is(stage.status(), "CREATE_COMPLETE", "the stack's status")
    stage.until(stage.desk.is_defined, "our definitions are served", MINUTE)
    for path in INSTALLED:
        stage.desk.kube.read(path)
    stage.narrator.say("you", f"deployed {STACK}; {stage.outputs()['Installed'][:90]} …")


def _scale_up(stage: Stage) -> None:
    _apply(stage, "getting-started.yaml")
    _apply(stage, "inflate.yaml")
    stage.narrator.say("you", f"kubectl apply -f getting-started.yaml -f inflate.yaml: {FIRST} pods")
    stage.until(lambda: stage.run(FIRST), "all pods run", 2 * MINUTE)
    stage.until(stage.is_in_step, "every instance is a node and a claim", MINUTE)
    _so(bool(stage.our_nodes()), "a node of ours is there")


def _interrupt(stage: Stage) -> None:
    struck = stage.strike()
    stage.narrator.say("EC2", f"takes {struck.partition('.')[0]} back in two minutes")

    def has_moved() -> bool:
        return struck not in [one["spec"].get("nodeName") for one in stage.pods()] and stage.run(FIRST)

    stage.until(has_moved, "the pods run elsewhere", 2 * MINUTE)
    stage.until(lambda: struck not in stage.our_nodes() and stage.is_in_step(), "its node is gone", 2 * MINUTE)


def _redeploy(stage: Stage) -> None:
    before = _versions(stage)
    launched = len(stage.witness.launched)
    stage.witness.planned.clear()
    folder = stage.folder / "release"
    folder.mkdir()
    with stage.cdk("deploy", *KNOBS, "--require-approval", "never", folder=next_release(folder)) as cdk:
        stage.until(lambda: stage.status() == "UPDATE_IN_PROGRESS" or cdk.has_ended(), "the update begins", MINUTE)
        stage.desk.scale("Deployment", "inflate", BURST)
        stage.narrator.say("you", f"kubectl scale deployment inflate --replicas={BURST}, while the update goes on")
    _is(stage.status(), "UPDATE_COMPLETE", "the stack's status")
    stage.until(lambda: stage.run(BURST), "all pods run", 2 * MINUTE)
    stage.until(stage.is_in_step, "every instance is a node and a claim", MINUTE)
    twice = {pod: count for pod, count in stage.witness.planned.items() if count > 1}
    _is(twice, {}, "pods that a node was made for twice")
    stage.until(
        lambda: bool({one.version for one in stage.running.calls} - before), "the new version is called", MINUTE
    )
    stage.narrator.say("you", f"{len(stage.witness.launched) - launched} instances for the burst, none twice")


def _consolidate(stage: Stage) -> None:
    before = len(stage.our_nodes())
    stage.desk.scale("Deployment", "inflate", REST)
    stage.narrator.say("you", f"kubectl scale deployment inflate --replicas={REST}")
    stage.until(
        lambda: len(stage.our_nodes()) < before and stage.run(REST) and stage.is_in_step(),
        f"fewer than {before} nodes, and all pods run",
        4 * MINUTE,
    )


def _destroy(stage: Stage) -> None:
    _is(stage.dead_letters(), 0, "dead letters")
    working = stage.running.calls[:]
    bucket = stage.outputs()["JoinerBucketName"]
    with stage.cdk("destroy", *KNOBS, "--force"):
        pass
    stage.witness.read(stage.account.client("s3"), bucket)
    _so(stage.status() in ("", "DELETE_COMPLETE"), "the stack is gone")
    _nothing_is_left(stage, bucket)
    _all_went_well(stage)
    stage.narrator.say("you", f"{len(working)} calls, none failed; the bucket with the journal stays")


def _nothing_is_left(stage: Stage, bucket: str) -> None:
    _is(stage.instances(), [], "instances")
    _is(stage.our_nodes(), [], "nodes of ours")
    ours = {yaml.safe_load(one)["metadata"]["name"] for one in definitions()}
    stage.until(lambda: not ours & _names(stage, DEFINITIONS), "our definitions are gone", MINUTE)
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


def _all_went_well(stage: Stage) -> None:
    _is(stage.running.problems(), [], "what was refused, given up or unforeseen")
    _is([one.how.payload for one in stage.witness.failed], [], "calls that failed")
    _is([one.error for one in stage.witness.entries if one.error], [], "errors in the journal")
    lines = (line for call in stage.running.calls for line in call.lines)
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
    ("EC2 takes a node back", _interrupt),
    ("cdk deploy of the next version, while pods wait", _redeploy),
    ("fewer pods: fewer nodes", _consolidate),
    ("cdk destroy", _destroy),
)
