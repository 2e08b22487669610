"""Laws of the simulated scheduler and of the cluster around it."""

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.live import LiveCluster
from sim.cluster.scheduler_nodes import Nodes
from sim.cluster.scheduler_shape import Shapes, amount, pod_requests
from tests.unit.cluster_objects import HOST, ZONE, Bench, Obj, boot, node, pod, workload

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


def rule(name: str, app: str) -> Obj:
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
        bench.node(f"n{number}", **given_node)
    for number, (cpu, app, name) in enumerate(some_pods):
        bench.pod(f"p{number}", cpu=cpu, labels={"app": app}, spec=rule(name, app))
    bench.settle()
    for step, number in some_steps:
        names = [each["metadata"]["name"] for each in bench.api.list("pods" if step == "delete" else "nodes")]
        if names:
            act(bench, step, names[number % len(names)])
        bench.settle()
        never_overcommitted(bench)
    return bench


def act(bench: Bench, step: str, name: str) -> None:
    match step:
        case "delete":
            bench.api.delete("pods", name, "default", grace_period_seconds=0)
        case "remove":
            for each in bench.api.pods_on(name):
                bench.api.delete("pods", each["metadata"]["name"], "default", grace_period_seconds=0)
            bench.api.delete("nodes", name)
        case _:
            bench.api.patch("nodes", name, {"spec": {"unschedulable": step == "cordon"}})


def never_overcommitted(bench: Bench) -> None:
    for each in bench.api.list("nodes"):
        here = bench.api.pods_on(each["metadata"]["name"])
        allocatable = each["status"]["allocatable"]
        assert len(here) <= int(allocatable["pods"])
        assert sum(pod_requests(p["spec"])["cpu"] for p in here) <= amount("cpu", allocatable["cpu"])


@given(nodes, pods, steps)
def test_no_node_is_ever_overcommitted(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]], some_steps: list[tuple[str, int]]
) -> None:
    never_overcommitted(play(some_nodes, some_pods, some_steps))


@given(nodes, pods, steps)
def test_the_same_history_gives_the_same_bytes(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]], some_steps: list[tuple[str, int]]
) -> None:
    first, second = (play(some_nodes, some_pods, some_steps).api.list("pods") for _ in range(2))
    assert first == second


@given(nodes, pods)
def test_pods_that_keep_their_distance_never_share_a_node(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]]
) -> None:
    bench = play(some_nodes, some_pods, [])
    for each in bench.api.list("nodes"):
        apps = Counter(p["metadata"]["labels"]["app"] for p in bench.api.pods_on(each["metadata"]["name"]))
        for p in bench.api.pods_on(each["metadata"]["name"]):
            if "podAntiAffinity" in p["spec"].get("affinity", {}):
                assert apps[p["metadata"]["labels"]["app"]] == 1


@given(nodes, pods)
def test_every_pod_has_a_node_or_a_reason(
    some_nodes: list[dict[str, str]], some_pods: list[tuple[str, str, str]]
) -> None:
    bench = play(some_nodes, some_pods, [])
    for each in bench.api.list("pods"):
        name = each["metadata"]["name"]
        assert bool(bench.node_of(name)) != bool(bench.message(name))


@given(st.lists(st.tuples(st.sampled_from(CPUS), st.sampled_from(("n1", "n2")), st.booleans()), max_size=12))
def test_sums_that_are_kept_are_sums_that_are_computed(history: list[tuple[str, str, bool]]) -> None:
    kept, shapes = Nodes(), Shapes()
    kept.read_node(node("n1"))
    there: dict[str, tuple[str, str]] = {}
    for number, (cpu, name, stays) in enumerate(history):
        key = f"p{number % 5}"
        if stays:
            kept.place(key, name, shapes.of(pod(key, cpu=cpu)))
            there[key] = (cpu, name)
        else:
            assert kept.lift(key) is (there.pop(key, None) is not None)
    expected = sum(amount("cpu", cpu) for cpu, name in there.values() if name == "n1")
    assert kept.known["n1"].used.get("cpu", 0) == expected
    assert len(kept.known["n1"].pods) == sum(1 for _, name in there.values() if name == "n1")


@settings(max_examples=20)
@given(st.integers(0, 3), st.integers(1, 6), st.integers(0, 6))
def test_a_cluster_lives_the_same_life_for_the_same_seed(seed: int, first: int, second: int) -> None:
    def life() -> list[Obj]:
        clock = Clock()
        world = LiveCluster(clock, seed, api=ApiServer(clock, seed, definitions=()))
        for name in ("a", "b"):
            world.start_node(boot(name))
        world.apply(workload("Deployment", "web", first))
        world.run(timedelta(seconds=60))
        world.scale("Deployment", "default", "web", second)
        world.stop_node("a")
        world.run(timedelta(seconds=200))
        return world.pods()

    assert life() == life()
