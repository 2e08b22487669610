"""What depends on other objects: disruption budgets, dependents, namespaces."""

import pytest

from shared.errors import EvictionRefused
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.controllers.budget import Budgets
from sim.cluster.controllers.garbage import GarbageCollector
from sim.cluster.controllers.informer import Informer
from sim.cluster.controllers.queue import Queue
from sim.cluster.live import LiveCluster
from tests.unit.cluster_objects import Obj, boot, live, names, node, pod, run, workload

BUDGETS = "poddisruptionbudgets.policy"


def budget(name: str = "web", app: str = "web", /, **spec: int | str) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def status(world: LiveCluster, name: str = "web") -> tuple[int, int, int, int]:
    found = world.api.get(BUDGETS, name, "default")["status"]
    return found["expectedPods"], found["desiredHealthy"], found["currentHealthy"], found["disruptionsAllowed"]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"minAvailable": 3}, (5, 3, 5, 2)),
        ({"minAvailable": "50%"}, (5, 3, 5, 2)),
        ({"minAvailable": 9}, (5, 9, 5, 0)),
        ({"maxUnavailable": 2}, (5, 3, 5, 2)),
        ({"maxUnavailable": "10%"}, (5, 4, 5, 1)),
        ({"maxUnavailable": 0}, (5, 5, 5, 0)),
        ({"maxUnavailable": "100%"}, (5, 0, 5, 5)),
    ],
)
def test_a_budget_counts_as_the_real_controller_does(spec: dict[str, int | str], wanted: tuple[int, ...]) -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 5))
    world.apply(budget(**spec))
    run(world)
    assert status(world) == wanted
    found = world.api.get(BUDGETS, "web", "default")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert found["status"]["conditions"][0]["status"] == ("True" if wanted[3] else "False")


def test_a_budget_asks_the_deployment_not_the_pods_how_many_there_should_be() -> None:
    world = live(boot("n", quantities={"cpu": "1", "memory": "8Gi", "pods": "3"}))
    world.apply(workload("Deployment", "web", 4))
    world.apply(budget(maxUnavailable=1))
    run(world)
    assert status(world) == (4, 3, 3, 0)
    world.scale("Deployment", "default", "web", 2)
    run(world)
    assert status(world) == (2, 1, 2, 1)


def test_stateful_and_bare_sets_have_a_scale_bare_pods_have_none() -> None:
    world = live(boot("n"))
    world.apply(workload("StatefulSet", "web", 2))
    world.apply(budget(maxUnavailable=1))
    world.api.create("pods", pod("bare", labels={"app": "bare"}))
    world.apply(budget("bare", "bare", maxUnavailable=1))
    world.apply(workload("ReplicaSet", "plain", 2))
    world.apply(budget("plain", "plain", maxUnavailable=1))
    run(world)
    assert (status(world), status(world, "bare"), status(world, "plain")) == ((2, 1, 2, 1), (0, 0, 1, 0), (2, 1, 2, 1))


def test_an_eviction_spends_the_budget_until_a_replacement_is_ready() -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 2))
    world.apply(budget(minAvailable=1))
    run(world)
    first, second = names(world.pods("default"))
    world.api.evict("default", first)
    with pytest.raises(EvictionRefused):
        world.api.evict("default", second)
    run(world, 2)
    with pytest.raises(EvictionRefused):
        world.api.evict("default", second)
    run(world)
    world.api.evict("default", second)
    run(world)
    assert world.api.get(BUDGETS, "web", "default")["status"].get("disruptedPods", {}) == {}


def test_an_eviction_that_never_shows_is_forgotten_after_two_minutes() -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 2))
    world.apply(budget(minAvailable=1))
    run(world)
    name = names(world.pods("default"))[0]
    marked = {"status": {"disruptedPods": {name: world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}}}
    world.api.patch(BUDGETS, "web", marked, "default", "status")
    run(world, 110)
    assert status(world)[2:] == (1, 0)
    run(world, 15)
    assert status(world)[2:] == (2, 1)


def test_a_budget_that_selects_others_is_counted_anew() -> None:
    world = live(boot("n"))
    for name in ("web", "api"):
        world.apply(workload("Deployment", name, 2))
    world.apply(budget(minAvailable=1))
    run(world)
    world.apply(budget("web", "api", minAvailable=1))
    world.scale("Deployment", "default", "api", 1)
    run(world)
    assert status(world) == (1, 1, 1, 0)
    world.api.delete(BUDGETS, "web", "default")
    run(world)
    assert world.api.list(BUDGETS) == []


def test_a_budget_without_a_selector_guards_nobody_and_an_empty_one_everybody() -> None:
    world = live(boot("n"))
    world.api.create("pods", pod("p"))
    nobody = budget("nobody", minAvailable=1)
    del nobody["spec"]["selector"]
    world.apply(nobody)
    world.apply({**budget("all"), "spec": {"selector": {}, "minAvailable": 1}})
    run(world)
    assert (status(world, "nobody")[0], status(world, "all")[0]) == (0, 1)


def test_a_pod_that_is_relabelled_leaves_its_budget() -> None:
    world = live(boot("n"))
    world.api.create("pods", pod("p", labels={"app": "web"}))
    world.apply(budget(minAvailable=0))
    run(world)
    assert status(world)[0] == 1
    world.api.patch("pods", "p", {"metadata": {"labels": {"app": "other"}}}, "default")
    run(world)
    assert status(world)[0] == 0


def test_what_a_deleted_deployment_owned_goes_with_it() -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 2))
    run(world)
    world.api.delete("deployments.apps", "web", "default")
    run(world)
    assert (world.pods("default"), world.api.list("replicasets.apps")) == ([], [])


def test_orphans_stay() -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 2))
    run(world)
    world.api.delete("deployments.apps", "web", "default", propagation="Orphan")
    run(world)
    assert world.api.list("deployments.apps") == []
    [replica_set] = world.api.list("replicasets.apps")
    assert not replica_set["metadata"].get("ownerReferences")
    assert len(world.pods("default")) == 2


def test_foreground_deletion_waits_for_the_dependents() -> None:
    world = live(boot("n"))
    world.apply(workload("Deployment", "web", 1))
    run(world)
    world.api.delete("deployments.apps", "web", "default", propagation="Foreground")
    run(world, 0.5)
    assert world.api.get("deployments.apps", "web", "default")["metadata"]["deletionTimestamp"]
    run(world)
    assert (world.pods("default"), world.api.list("replicasets.apps"), world.api.list("deployments.apps")) == (
        [],
        [],
        [],
    )


def config(name: str, *owners: str) -> Obj:
    references = [{"apiVersion": "v1", "kind": "Node", "name": uid, "uid": uid} for uid in owners]
    return {"metadata": {"name": name, "namespace": "default", "ownerReferences": references}}


def test_a_dependent_outlives_all_but_its_last_owner() -> None:
    clock = Clock()
    api = ApiServer(clock)
    GarbageCollector(clock, api)
    first, second = (api.create("nodes", {"metadata": {"name": name}}) for name in ("n1", "n2"))
    api.create("configmaps", config("c", first["metadata"]["uid"], second["metadata"]["uid"]))
    world = _World(clock)
    api.delete("nodes", "n1")
    world.settle()
    assert names(api.list("configmaps")) == ["c"]
    api.delete("nodes", "n2")
    world.settle()
    assert api.list("configmaps") == []


def test_a_dependent_of_an_owner_that_never_was_goes() -> None:
    clock = Clock()
    api = ApiServer(clock)
    api.create("configmaps", config("early", "nobody"))
    GarbageCollector(clock, api)
    api.create("configmaps", config("late", "nobody"))
    _World(clock).settle()
    assert api.list("configmaps") == []


class _World:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def settle(self) -> None:
        for _ in range(20):
            self._clock.step()


DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def test_kinds_that_are_defined_later_are_collected_too() -> None:
    world = LiveCluster(Clock())
    world.api.create("customresourcedefinitions.apiextensions.k8s.io", DEFINITION)
    owner = world.api.create("widgets.example.com", {"metadata": {"name": "w"}})
    world.api.create("configmaps", config("c", owner["metadata"]["uid"]))
    run(world)
    assert names(world.api.list("configmaps")) == ["c"]
    world.api.delete("widgets.example.com", "w")
    run(world)
    assert world.api.list("configmaps") == []


def test_a_namespace_is_emptied_before_it_goes() -> None:
    world = live(boot("n"))
    world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    web = workload("Deployment", "web", 2)
    world.apply({**web, "metadata": {"name": "web", "namespace": "shop"}})
    run(world)
    assert len(world.pods("shop")) == 2
    world.api.delete("namespaces", "shop")
    run(world, 1)
    assert "shop" in names(world.api.list("namespaces"))
    run(world)
    assert "shop" not in names(world.api.list("namespaces"))
    assert world.pods("shop") == []


def test_controllers_pick_up_what_was_there_before_them() -> None:
    clock = Clock()
    api = ApiServer(clock)
    api.create("pods", pod("p", labels={"app": "web"}))
    api.create(BUDGETS, budget(minAvailable=1), "default")
    api.create("deployments.apps", workload("Deployment", "web", 1), "default")
    for kind, resource in (("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets"), ("ReplicaSet", "replicasets")):
        api.create(f"{resource}.apps", workload(kind, kind.lower(), 1), "default")
    api.create("jobs.batch", workload("Job", "job", pod_spec={"restartPolicy": "Never"}), "default")
    Budgets(clock, api)
    api.create("nodes", node("early"))
    world = LiveCluster(clock, api=api)
    run(world, 1)
    assert api.get("nodes", "early")["spec"]["taints"] == []
    api.delete("nodes", "early")
    world.start_node(boot("n"))
    run(world, 120)
    assert len(world.pods("default")) == 6
    assert world.api.get(BUDGETS, "web", "default")["status"]["currentHealthy"] == 2


def test_a_queue_retries_later_and_later() -> None:
    clock = Clock()
    tries: list[float] = []

    def fail(_key: str) -> None:
        tries.append((clock.now() - start).total_seconds())
        raise EvictionRefused("no")

    start = clock.now()
    queue: Queue[str] = Queue(clock, fail, "test")
    queue.add("k")
    queue.add("k")
    clock.run_until(start + (start.resolution * 20_000_000))
    assert tries == [0.1, 1.1, 3.1, 7.1, 15.1]
    queue.forget("k")
    queue.forget("k")
    clock.run_until(start + (start.resolution * 90_000_000))
    assert len(tries) == 5


def test_a_queue_keeps_the_earlier_of_two_wishes() -> None:
    clock = Clock()
    seen: list[str] = []
    queue: Queue[str] = Queue(clock, seen.append, "test")
    queue.add_after("k", clock.now().resolution * 10_000_000)
    queue.add("k")
    clock.run_until(clock.now() + clock.now().resolution * 1_000_000)
    assert seen == ["k"]


def test_an_informer_forgets_and_regroups() -> None:
    api = ApiServer(Clock())
    informer = Informer(api, "pods", lambda obj: (obj["metadata"].get("labels", {}).get("app", ""),))
    api.create("pods", pod("p", labels={"app": "a"}))
    assert names(informer.of("a")) == ["p"]
    api.patch("pods", "p", {"metadata": {"labels": {"app": "b"}}}, "default")
    assert (informer.of("a"), names(informer.of("b"))) == ([], ["p"])
    api.delete("pods", "p", "default")
    assert (informer.all(), informer.of("b"), informer.get("p", "default")) == ([], [], None)
