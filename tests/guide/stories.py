"""Pages that are followed, each on a stage of its own: an account, a real control plane, functions as processes.

python -m tests.guide.stories                         all of them, told on standard output
python -m tests.guide.stories first                   one
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from shared.errors import Gone
from tests.controlplane.binaries import KUBECTL, programs
from tests.e2e.libraries import ROOT, libraries
from tests.e2e.stage import CLUSTER, Stage
from tests.guide.following import Follower
from tests.guide.pages import GUIDE, followed
from tests.guide.predecessors import furnish_cluster_autoscaler, furnish_karpenter

Act = Callable[[Stage, Follower], None]


def page(name: str) -> Act:
    """Answer the act of following the page of that *name* to its end."""

    def follow(stage: Stage, somebody: Follower) -> None:
        for block in followed(GUIDE / f"{name}.md"):
            if "BUCKET" in block.text:
                somebody.names["BUCKET"] = _stocked(stage)
            somebody.play(block)

    return follow


def _stocked(stage: Stage) -> str:
    """Answer the name of the deployment's bucket, once a catalogue is in it."""
    bucket = stage.outputs()["JoinerBucketName"]
    s3 = stage.account.client("s3")
    stage.until(
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix="catalogue/")["KeyCount"] > 1,
        "the catalogue is in the bucket",
    )
    return bucket


def _work(stage: Stage, _: Follower) -> None:
    """Have three pods, on a node of ours."""
    stage.desk.scale("Deployment", "inflate", 3)
    stage.until(lambda: stage.run(3) and bool(stage.our_nodes()), "three pods run")


def _nothing_is_left(stage: Stage, _: Follower) -> None:
    assert stage.status() in ("", "DELETE_COMPLETE"), "the stack is still there"
    assert (stage.instances(), stage.our_nodes()) == ([], [])
    with pytest.raises(Gone):  # a definition that nothing is left of goes with the stack
        stage.claims()


def _karpenters_nodes_stayed(stage: Stage, _: Follower) -> None:
    assert sorted(one["metadata"]["name"] for one in stage.claims()) == ["default-0abcd", "default-1abcd"]
    assert stage.run(3)
    assert len(stage.our_nodes()) == len(stage.instances()) == 2


def _the_pod_moved(stage: Stage, _: Follower) -> None:
    stage.until(lambda: stage.run(1), "the pod runs")
    assert {one["spec"]["nodeName"] for one in stage.pods()} <= {*stage.our_nodes()}


STORIES: Final[dict[str, tuple[Callable[[Stage], None], tuple[Act, ...]]]] = {
    "getting-started": (Stage.furnish, (page("getting-started"),)),
    "first": (
        Stage.furnish,
        (page("getting-started"), _work, page("upgrade"), page("rollback"), _work, page("uninstall"), _nothing_is_left),
    ),
    "karpenter": (furnish_karpenter, (page("migrate-from-karpenter"), _karpenters_nodes_stayed)),
    "cluster-autoscaler": (furnish_cluster_autoscaler, (page("migrate-from-cluster-autoscaler"), _the_pod_moved)),
}
"""By name: what is there before, and what is done then."""


def tell(name: str, say: Callable[[str], None]) -> None:
    """Play the story called *name*.

    Raises:
        NotAsWritten: something is not as a page says.
        NotSo: something else did not come about.
    """
    with ExitStack() as stack:
        stage = Stage(libraries(), stack)
        furnish, acts = STORIES[name]
        furnish(stage)
        kubeconfig = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "config"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(stage.kubeconfig(), encoding="utf-8")

        def wait(process: subprocess.Popen[bytes]) -> int:
            stage.until(lambda: process.poll() is not None, "the command ends")
            return process.wait()

        somebody = stack.enter_context(
            Follower(
                {**stage.account.environment(), "KUBECONFIG": str(kubeconfig)},
                {"NAME": CLUSTER, "GROUP": "system"},
                (programs((KUBECTL,)), ROOT / ".venv" / "bin"),
                tell=say,
                wait=wait,
            )
        )
        try:
            for act in acts:
                act(stage, somebody)
        except BaseException:
            say("".join(f"  {line}\n" for line in stage.running.problems()))
            raise


def main(names: Sequence[str]) -> int:
    """Tell the stories of these *names*, or all."""
    for name in names or STORIES:
        sys.stdout.write(f"=== {name}\n")
        tell(name, _say)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
