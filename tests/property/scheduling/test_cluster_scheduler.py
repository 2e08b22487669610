"""Laws of the simulated scheduler and of the cluster around it."""

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.kube_scheduler.node_cache import NodeCache
from sim.cluster.kube_scheduler.pod_shape import ShapeCache, compute_pod_requests, parse_amount
from sim.time.virtual_clock import Clock
from tests.support.cluster_objects import HOST, ZONE, Bench, Obj, make_node, make_node_boot, make_pod, make_workload
from tests.support.hypothesis_profiles import limit_examples

CPUS = ("100m", "500m", "1", "2500m", "4")
APPS = ("web", "db")

nodes = st.lists(
    st.fixed_dictionaries(
        {
            "zone": st.sampled_from("ab"),
            "cpu": st.sampled_from(("1", "4", "8")),
            "pods": st.sampled_from(("1", "3", "10")),
        }
    ),
    max_size=5,
)
rules = st.sampled_from(("", "spread", "near", "far"))
pods = st.lists(st.tuples(st.sampled_from(CPUS), st.sampled_from(APPS), rules), max_size=14)
steps = st.lists(st.tuples(st.sampled_from(("delete", "cordon", "uncordon", "remove")), st.integers(0, 20)), max_size=6)


def build_rule(name: str, app: str) -> Obj:
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    match name:
        case "spread":
            constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
            return {"topologySpreadConstraints": [constraint]}
        case "near":
            term = {"topologyKey": ZONE, **selector}
            return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        case "far":
            term = {"topologyKey": HOST, **selector}
            return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        case _:
            return {}


def play(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]], some_steps: list[tuple[str, int]]
) -> Bench:
    bench = Bench()
    for number, given_node in enumerate(some_nodes):
        bench.create_node(f"n{number}", **given_node)
    for number, (cpu, app, name) in enumerate(some_pods):
        bench.create_pod(f"p{number}", cpu=cpu, labels={"app": app}, spec=build_rule(name, app))
    bench.advance_seconds()
    for step, number in some_steps:
        names = [
            listed_object["metadata"]["name"]
            for listed_object in bench.api.list("pods" if step == "delete" else "nodes")
        ]
        if names:
            apply_step(bench, step, names[number % len(names)])
        bench.advance_seconds()
        assert_not_overcommitted(bench)
    return bench


def apply_step(bench: Bench, step: str, name: str) -> None:
    match step:
        case "delete":
            bench.api.delete("pods", name, "default", grace_period_seconds=0)
        case "remove":
            for bound_pod in bench.api.list_pods_on_node(name):
                bench.api.delete("pods", bound_pod["metadata"]["name"], "default", grace_period_seconds=0)
            bench.api.delete("nodes", name)
        case _:
            bench.api.patch("nodes", name, {"spec": {"unschedulable": step == "cordon"}})


def assert_not_overcommitted(bench: Bench) -> None:
    for listed_node in bench.api.list("nodes"):
        bound_pods = bench.api.list_pods_on_node(listed_node["metadata"]["name"])
        allocatable = listed_node["status"]["allocatable"]
        assert len(bound_pods) <= int(allocatable["pods"])
        assert sum(compute_pod_requests(p["spec"])["cpu"] for p in bound_pods) <= parse_amount(
            "cpu", allocatable["cpu"]
        )


@given(nodes, pods, steps)
def test_no_node_is_ever_overcommitted(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]], some_steps: list[tuple[str, int]]
) -> None:
    assert_not_overcommitted(play(some_nodes, some_pods, some_steps))


@given(nodes, pods, steps)
def test_same_history_produces_identical_pods(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]], some_steps: list[tuple[str, int]]
) -> None:
    first, second = (play(some_nodes, some_pods, some_steps).api.list("pods") for _ in range(2))
    assert first == second


@given(nodes, pods)
def test_pods_with_anti_affinity_never_share_a_node(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]]
) -> None:
    bench = play(some_nodes, some_pods, [])
    for listed_node in bench.api.list("nodes"):
        apps = Counter(
            p["metadata"]["labels"]["app"] for p in bench.api.list_pods_on_node(listed_node["metadata"]["name"])
        )
        for p in bench.api.list_pods_on_node(listed_node["metadata"]["name"]):
            if "podAntiAffinity" in p["spec"].get("affinity", {}):
                assert apps[p["metadata"]["labels"]["app"]] == 1


@given(nodes, pods)
def test_every_pod_has_either_a_node_or_a_scheduling_message(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]]
) -> None:
    bench = play(some_nodes, some_pods, [])
    for listed_pod in bench.api.list("pods"):
        name = listed_pod["metadata"]["name"]
        assert bool(bench.get_node_name(name)) != bool(bench.get_scheduling_message(name))


@given(st.lists(st.tuples(st.sampled_from(CPUS), st.sampled_from(("n1", "n2")), st.booleans()), max_size=12))
def test_cached_node_usage_equals_the_sum_of_its_pods(history: list[tuple[str, str, bool]]) -> None:
    node_cache, shapes = NodeCache(), ShapeCache()
    node_cache.read_node(make_node("n1"))
    pod_by_key: dict[str, tuple[str, str]] = {}
    for number, (cpu, name, stays) in enumerate(history):
        key = f"p{number % 5}"
        if stays:
            node_cache.add_pod(key, name, shapes.get_shape(make_pod(key, cpu=cpu)))
            pod_by_key[key] = (cpu, name)
        else:
            assert node_cache.remove_pod(key) is (pod_by_key.pop(key, None) is not None)
    expected = sum(parse_amount("cpu", cpu) for cpu, name in pod_by_key.values() if name == "n1")
    assert node_cache.node_infos["n1"].used.get("cpu", 0) == expected
    assert len(node_cache.node_infos["n1"].pods) == sum(1 for _, name in pod_by_key.values() if name == "n1")


@limit_examples(20)
@given(st.integers(0, 3), st.integers(1, 6), st.integers(0, 6))
def test_same_seed_produces_the_same_cluster_history(seed: int, first: int, second: int) -> None:
    def simulate_cluster() -> list[Obj]:
        clock = Clock()
        world = SimulatedCluster(clock, seed, api=ApiServer(clock, seed, definitions=()))
        for name in ("a", "b"):
            world.start_node(make_node_boot(name))
        world.apply(make_workload("Deployment", "web", first))
        world.run(timedelta(seconds=60))
        world.scale("Deployment", "default", "web", second)
        world.stop_node("a")
        world.run(timedelta(seconds=200))
        return world.list_pods()

    assert simulate_cluster() == simulate_cluster()
