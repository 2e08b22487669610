"""Joiner serves demand from any source: HPA, VPA or a queue of jobs."""

from typing import Any

from shared.model.core import labels
from sim.cluster.kubelet.pod_stages import RUN_SECONDS_ANNOTATION
from sim.world.measurements import is_joiner_node
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

UNDERUTILIZED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
STEPS = (4, 8, 16, 32, 50)
"""What the horizontal pod autoscaler does with two pods at most: it doubles them every 15 seconds."""


def test_stepwise_hpa_scale_up_schedules_all_pods_and_scale_down_removes_the_nodes() -> None:
    world = World(
        make_node_class(),
        make_node_pool(types=("m5.xlarge", "m5.2xlarge"), disruption=UNDERUTILIZED),
        make_deployment(2),
    )
    world.wait_until_settled(2)
    for count in STEPS:
        world.scale(count)
        world.advance_seconds(15)
    world.wait_until_settled(50, timeout=240)
    node_count = len(world.list_nodes())
    assert node_count <= 18
    world.scale(2)
    world.wait_until(lambda: len(world.list_nodes()) == 1, timeout=900)
    world.wait_until_settled(2)
    assert not world.list_errors()


def test_pods_recreated_by_vpa_are_planned_with_their_new_requests() -> None:
    """What the vertical pod autoscaler does: the pods that wait are those of the old size, and then of the new one."""
    world = World(make_node_class(), make_node_pool(types=("m5.large", "m5.4xlarge")), make_deployment(0, cpu="9"))
    world.scale(1)
    world.apply([make_deployment(1, cpu="700m")])
    world.wait_until_settled(1)
    assert [instance.instance_type for instance in world.list_active_instances()] == ["m5.large"]


def test_do_not_disrupt_jobs_run_to_completion_before_their_nodes_are_removed() -> None:
    gpus = make_node_pool(types=("g4dn.12xlarge",), disruption=UNDERUTILIZED)
    world = World(make_node_class(), gpus, types=("g4dn.12xlarge",))
    world.apply([make_job(120)])
    world.wait_until(lambda: len(world.list_running_pods()) == 120, timeout=400)
    assert len(world.list_nodes()) == 30
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=2400)
    assert len(world.launched) == 30
    assert [node for node in world.cluster.api.list("nodes") if is_joiner_node(node)] == []
    ended = world.cluster.api.get("jobs.batch", "train", "default")["status"]
    assert ended["succeeded"] == 120
    assert not ended.get("failed")


def make_job(count: int) -> dict[str, Any]:
    """Return a Job of *count* pods that need one GPU each and run for ten minutes."""
    container = {
        "name": "main",
        "image": "train",
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
    }
    template = {
        "metadata": {"annotations": {labels.DO_NOT_DISRUPT: "true", RUN_SECONDS_ANNOTATION: "600"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"completions": count, "parallelism": count, "template": template},
    }
