"""Pages that are followed, each on its own stage: an account, a real control plane, functions as processes.

Usage::

    python -m tests.guide.stories                         all of them, printed on standard output
    python -m tests.guide.stories first                   one of them
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from shared.errors import NotFound
from tests.controlplane.binaries import KUBECTL, ensure_programs
from tests.e2e.libraries import ROOT, ensure_libraries
from tests.e2e.stage import CLUSTER, Stage
from tests.guide.following import Follower
from tests.guide.pages import GUIDE, list_followed_blocks
from tests.guide.predecessors import install_cluster_autoscaler, install_karpenter

Act = Callable[[Stage, Follower], None]


def build_page_act(name: str) -> Act:
    """Return the act of following the page called *name* to its end."""

    def follow(stage: Stage, follower: Follower) -> None:
        for block in list_followed_blocks(GUIDE / f"{name}.md"):
            if "BUCKET" in block.text:
                follower.names["BUCKET"] = _wait_for_catalog(stage)
            follower.play(block)

    return follow


def _wait_for_catalog(stage: Stage) -> str:
    """Return the name of the deployment's bucket, once a catalog is in it."""
    bucket = stage.get_outputs()["JoinerBucketName"]
    s3 = stage.account.get_client("s3")
    stage.wait_until(
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix="catalogue/")["KeyCount"] > 1,
        "the catalogue is in the bucket",
    )
    return bucket


def _run_three_pods(stage: Stage, _: Follower) -> None:
    """Run three pods on a node of Joiner."""
    stage.kubectl.scale("Deployment", "inflate", 3)
    stage.wait_until(lambda: stage.has_running_pods(3) and bool(stage.list_joiner_nodes()), "three pods run")


def _assert_nothing_is_left(stage: Stage, _: Follower) -> None:
    assert stage.get_stack_status() in ("", "DELETE_COMPLETE"), "the stack is still there"
    assert (stage.list_instance_ids(), stage.list_joiner_nodes()) == ([], [])
    with pytest.raises(NotFound):  # a CRD without objects is deleted with the stack
        stage.list_node_claims()


def _assert_karpenter_nodes_stayed(stage: Stage, _: Follower) -> None:
    assert sorted(claim["metadata"]["name"] for claim in stage.list_node_claims()) == ["default-0abcd", "default-1abcd"]
    assert stage.has_running_pods(3)
    assert len(stage.list_joiner_nodes()) == len(stage.list_instance_ids()) == 2


def _assert_pod_moved(stage: Stage, _: Follower) -> None:
    stage.wait_until(lambda: stage.has_running_pods(1), "the pod runs")
    assert {pod["spec"]["nodeName"] for pod in stage.list_pods()} <= {*stage.list_joiner_nodes()}


STORIES: Final[dict[str, tuple[Callable[[Stage], None], tuple[Act, ...]]]] = {
    "getting-started": (Stage.prepare_cluster, (build_page_act("getting-started"),)),
    "first": (
        Stage.prepare_cluster,
        (
            build_page_act("getting-started"),
            _run_three_pods,
            build_page_act("upgrade"),
            build_page_act("rollback"),
            _run_three_pods,
            build_page_act("uninstall"),
            _assert_nothing_is_left,
        ),
    ),
    "karpenter": (install_karpenter, (build_page_act("migrate-from-karpenter"), _assert_karpenter_nodes_stayed)),
    "cluster-autoscaler": (
        install_cluster_autoscaler,
        (build_page_act("migrate-from-cluster-autoscaler"), _assert_pod_moved),
    ),
}
"""By name: the function that prepares the stage, and the acts."""


def play_story(name: str, say: Callable[[str], None]) -> None:
    """Play the story called *name*.

    Raises:
        NotAsWritten: a result differs from a page.
        ExpectationFailed: an expected state was not reached.
    """
    with ExitStack() as stack:
        stage = Stage(ensure_libraries(), stack)
        furnish, acts = STORIES[name]
        furnish(stage)
        kubeconfig = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "config"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(stage.build_kubeconfig(), encoding="utf-8")

        def wait(process: subprocess.Popen[bytes]) -> int:
            stage.wait_until(lambda: process.poll() is not None, "the command ends")
            return process.wait()

        follower = stack.enter_context(
            Follower(
                {**stage.account.build_environment(), "KUBECONFIG": str(kubeconfig)},
                {"NAME": CLUSTER, "GROUP": "system"},
                (ensure_programs((KUBECTL,)), ROOT / ".venv" / "bin"),
                tell=say,
                wait=wait,
            )
        )
        try:
            for act in acts:
                act(stage, follower)
        except BaseException:
            say("".join(f"  {line}\n" for line in stage.running.list_problems()))
            raise


def main(names: Sequence[str]) -> int:
    """Play the stories with these *names*, or all."""
    for name in names or STORIES:
        sys.stdout.write(f"=== {name}\n")
        play_story(name, _print_line)
    return 0


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
