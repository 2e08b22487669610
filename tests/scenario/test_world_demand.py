"""Who writes the number of pods, or their size, is nobody's business: HPA, VPA, a queue of jobs."""

from typing import Any

from shared.model import labels
from sim.cluster.stages import RUN_SECONDS
from sim.measure import is_ours
from tests.scenario.worlds import World, deployment, node_class, pool

UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
STEPS = (4, 8, 16, 32, 50)
"""What the horizontal pod autoscaler does with two pods at most: it doubles them every 15 seconds."""


def test_replicas_that_an_autoscaler_raises_step_by_step_all_run_and_their_nodes_go_after_them() -> None:
    world = World(node_class(), pool(types=("m5.xlarge", "m5.2xlarge"), disruption=UNDERUTILIZED), deployment(2))
    world.settled(2)
    for count in STEPS:
        world.scale(count)
        world.seconds(15)
    world.settled(50, within=240)
    most = len(world.nodes())
    assert most <= 18
    world.scale(2)
    world.until(lambda: len(world.nodes()) == 1, within=900)
    world.settled(2)
    assert not world.errors()


def test_pods_that_are_made_anew_with_other_requests_are_planned_by_these() -> None:
    """What the vertical pod autoscaler does: the pods that wait are those of the old size, and then of the new one."""
    world = World(node_class(), pool(types=("m5.large", "m5.4xlarge")), deployment(0, cpu="9"))
    world.scale(1)
    world.apply([deployment(1, cpu="700m")])
    world.settled(1)
    assert [one.instance_type for one in world.living()] == ["m5.large"]


def test_jobs_that_must_not_be_disrupted_run_to_their_end_and_their_nodes_go_after_them() -> None:
    gpus = pool(types=("g4dn.12xlarge",), disruption=UNDERUTILIZED)
    world = World(node_class(), gpus, types=("g4dn.12xlarge",))
    world.apply([job(120)])
    world.until(lambda: len(world.running()) == 120, within=400)
    assert len(world.nodes()) == 30
    world.until(lambda: not world.living() and not world.claims(), within=2400)
    assert len(world.launched) == 30
    assert [node for node in world.live.api.list("nodes") if is_ours(node)] == []
    ended = world.live.api.get("jobs.batch", "train", "default")["status"]
    assert ended["succeeded"] == 120
    assert not ended.get("failed")


def job(count: int) -> dict[str, Any]:
    """Answer a Job of so many pods with a GPU each, that take ten minutes."""
    container = {
        "name": "main",
        "image": "train",
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
    }
    template = {
        "metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true", RUN_SECONDS: "600"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"completions": count, "parallelism": count, "template": template},
    }
