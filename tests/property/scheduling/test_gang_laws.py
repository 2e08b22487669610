"""Laws of gangs: all pods of a gang get nodes or none, and without gangs the setting changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.provisioning.capacity_buffers import plan_with_buffers
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import GANG, GANG_SIZE
from shared.model.core.metadata import build_pairs
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gangs import find_gangs
from tests.property.scheduling.test_scheduling_laws import REDUCED_EXAMPLE_COUNT, Recipe, generate_recipes

APP = "app"


def make_gang_cluster(recipe: Recipe, missing_counts: list[int]) -> ClusterSnapshot:
    """Return the cluster of *recipe*, in which the pods of each kind are a gang; a negative number: of no gang."""
    cluster = recipe.build_cluster()
    sizes = {f"app-{number}": kind.count for number, kind in enumerate(recipe.kinds)}
    missing_by_app = dict(zip(sizes, missing_counts, strict=False))
    pods = tuple(_join_gang(pod, sizes, missing_by_app) for pod in cluster.pods)
    return replace(cluster, pods=pods, has_gangs=True)


def _join_gang(pod: Pod, sizes: dict[str, int], missing_by_app: dict[str, int]) -> Pod:
    app = pod.meta.get_label(APP)
    missing_count = missing_by_app.get(app, -1)
    if missing_count < 0:
        return pod
    annotations = build_pairs({GANG: app, GANG_SIZE: str(sizes[app] + missing_count)})
    return replace(pod, meta=replace(pod.meta, annotations=annotations))


@given(generate_recipes(), st.lists(st.sampled_from((-1, 0, 0, 0, 1)), min_size=6, max_size=6), st.integers(0, 400))
@settings(max_examples=REDUCED_EXAMPLE_COUNT)
def test_each_gang_has_all_or_none_of_its_pods_placed(recipe: Recipe, missing_counts: list[int], polls: int) -> None:
    cluster = make_gang_cluster(recipe, missing_counts)
    remaining = iter([False] * polls if polls else ())
    placement = plan_pods(ClusterState(cluster), is_over=(lambda: next(remaining, True)) if polls else None).placement
    placed_names = {name for node in placement.new_nodes for name in node.pods}
    placed_names |= {name for fit in placement.existing for name in fit.pods}
    failed_names = [item.pod for item in placement.unschedulable]
    assert sorted([*placed_names, *failed_names]) == sorted(pod.name for pod in cluster.pods)
    for gang in find_gangs(cluster).values():
        placed_count = len(placed_names.intersection(pod.name for pod in gang.pods))
        assert placed_count in (0, gang.size), gang.name


@given(generate_recipes())
@settings(max_examples=REDUCED_EXAMPLE_COUNT)
def test_without_gangs_the_plan_is_the_same(recipe: Recipe) -> None:
    cluster = recipe.build_cluster()
    plain = plan_with_buffers(ClusterState(cluster))
    assert plan_pods(ClusterState(replace(cluster, has_gangs=True))) == plain
    gangs = make_gang_cluster(recipe, [0] * len(recipe.kinds))
    assert plan_pods(ClusterState(replace(gangs, has_gangs=False))) == plain
