"""Tests of what depends on other objects: disruption budgets, dependents, namespaces."""

import pytest

from shared.errors import EvictionRefused
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.controller_runtime.informer import Informer
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.cluster.controllers.objects.garbage_collector import GarbageCollector
from sim.cluster.controllers.workloads.pod_disruption_budget import PodDisruptionBudgetController
from sim.time.virtual_clock import Clock
from tests.support.cluster_objects import (
    Obj,
    list_names,
    make_node,
    make_node_boot,
    make_pod,
    make_workload,
    run,
    start_cluster,
)

BUDGETS = "poddisruptionbudgets.policy"


def make_budget(name: str = "web", app: str = "web", /, **spec: int | str) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def get_budget_counts(world: SimulatedCluster, name: str = "web") -> tuple[int, int, int, int]:
    budget_status = world.api.get(BUDGETS, name, "default")["status"]
    return (
        budget_status["expectedPods"],
        budget_status["desiredHealthy"],
        budget_status["currentHealthy"],
        budget_status["disruptionsAllowed"],
    )


@pytest.mark.parametrize(
    ("spec", "expected_counts"),
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
def test_pdb_status_matches_the_real_controller(spec: dict[str, int | str], expected_counts: tuple[int, ...]) -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 5))
    world.apply(make_budget(**spec))
    run(world)
    assert get_budget_counts(world) == expected_counts
    stored_budget = world.api.get(BUDGETS, "web", "default")
    assert stored_budget["status"]["observedGeneration"] == stored_budget["metadata"]["generation"]
    assert stored_budget["status"]["conditions"][0]["status"] == ("True" if expected_counts[3] else "False")


def test_pdb_expected_pods_come_from_the_deployment_scale() -> None:
    world = start_cluster(make_node_boot("n", quantities={"cpu": "1", "memory": "8Gi", "pods": "3"}))
    world.apply(make_workload("Deployment", "web", 4))
    world.apply(make_budget(maxUnavailable=1))
    run(world)
    assert get_budget_counts(world) == (4, 3, 3, 0)
    world.scale("Deployment", "default", "web", 2)
    run(world)
    assert get_budget_counts(world) == (2, 1, 2, 1)


def test_pdb_counts_statefulset_and_replicaset_scale_but_not_bare_pods() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("StatefulSet", "web", 2))
    world.apply(make_budget(maxUnavailable=1))
    world.api.create("pods", make_pod("bare", labels={"app": "bare"}))
    world.apply(make_budget("bare", "bare", maxUnavailable=1))
    world.apply(make_workload("ReplicaSet", "plain", 2))
    world.apply(make_budget("plain", "plain", maxUnavailable=1))
    run(world)
    assert (get_budget_counts(world), get_budget_counts(world, "bare"), get_budget_counts(world, "plain")) == (
        (2, 1, 2, 1),
        (0, 0, 1, 0),
        (2, 1, 2, 1),
    )


def test_eviction_uses_the_pdb_until_a_replacement_is_ready() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 2))
    world.apply(make_budget(minAvailable=1))
    run(world)
    first, second = list_names(world.list_pods("default"))
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


def test_disrupted_pod_that_is_not_deleted_is_forgotten_after_two_minutes() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 2))
    world.apply(make_budget(minAvailable=1))
    run(world)
    name = list_names(world.list_pods("default"))[0]
    marked = {"status": {"disruptedPods": {name: world.clock.get_time().strftime("%Y-%m-%dT%H:%M:%SZ")}}}
    world.api.patch(BUDGETS, "web", marked, "default", "status")
    run(world, 110)
    assert get_budget_counts(world)[2:] == (1, 0)
    run(world, 15)
    assert get_budget_counts(world)[2:] == (2, 1)


def test_pdb_status_is_updated_when_its_selector_changes() -> None:
    world = start_cluster(make_node_boot("n"))
    for name in ("web", "api"):
        world.apply(make_workload("Deployment", name, 2))
    world.apply(make_budget(minAvailable=1))
    run(world)
    world.apply(make_budget("web", "api", minAvailable=1))
    world.scale("Deployment", "default", "api", 1)
    run(world)
    assert get_budget_counts(world) == (1, 1, 1, 0)
    world.api.delete(BUDGETS, "web", "default")
    run(world)
    assert world.api.list(BUDGETS) == []


def test_pdb_without_selector_matches_no_pod_and_empty_selector_all_pods() -> None:
    world = start_cluster(make_node_boot("n"))
    world.api.create("pods", make_pod("p"))
    budget_without_selector = make_budget("nobody", minAvailable=1)
    del budget_without_selector["spec"]["selector"]
    world.apply(budget_without_selector)
    world.apply({**make_budget("all"), "spec": {"selector": {}, "minAvailable": 1}})
    run(world)
    assert (get_budget_counts(world, "nobody")[0], get_budget_counts(world, "all")[0]) == (0, 1)


def test_relabeled_pod_leaves_its_pdb() -> None:
    world = start_cluster(make_node_boot("n"))
    world.api.create("pods", make_pod("p", labels={"app": "web"}))
    world.apply(make_budget(minAvailable=0))
    run(world)
    assert get_budget_counts(world)[0] == 1
    world.api.patch("pods", "p", {"metadata": {"labels": {"app": "other"}}}, "default")
    run(world)
    assert get_budget_counts(world)[0] == 0


def test_deployment_deletion_removes_its_replicasets_and_pods() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 2))
    run(world)
    world.api.delete("deployments.apps", "web", "default")
    run(world)
    assert (world.list_pods("default"), world.api.list("replicasets.apps")) == ([], [])


def test_orphan_deletion_keeps_dependents() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 2))
    run(world)
    world.api.delete("deployments.apps", "web", "default", propagation="Orphan")
    run(world)
    assert world.api.list("deployments.apps") == []
    [replica_set] = world.api.list("replicasets.apps")
    assert not replica_set["metadata"].get("ownerReferences")
    assert len(world.list_pods("default")) == 2


def test_foreground_deletion_waits_for_dependents() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 1))
    run(world)
    world.api.delete("deployments.apps", "web", "default", propagation="Foreground")
    run(world, 0.5)
    assert world.api.get("deployments.apps", "web", "default")["metadata"]["deletionTimestamp"]
    run(world)
    assert (world.list_pods("default"), world.api.list("replicasets.apps"), world.api.list("deployments.apps")) == (
        [],
        [],
        [],
    )


def make_config_map(name: str, *owners: str) -> Obj:
    references = [{"apiVersion": "v1", "kind": "Node", "name": uid, "uid": uid} for uid in owners]
    return {"metadata": {"name": name, "namespace": "default", "ownerReferences": references}}


def test_dependent_is_deleted_with_its_last_owner() -> None:
    clock = Clock()
    api = ApiServer(clock)
    GarbageCollector(clock, api)
    first, second = (api.create("nodes", {"metadata": {"name": name}}) for name in ("n1", "n2"))
    api.create("configmaps", make_config_map("c", first["metadata"]["uid"], second["metadata"]["uid"]))
    world = _World(clock)
    api.delete("nodes", "n1")
    world.run_steps()
    assert list_names(api.list("configmaps")) == ["c"]
    api.delete("nodes", "n2")
    world.run_steps()
    assert api.list("configmaps") == []


def test_dependent_of_a_missing_owner_is_deleted() -> None:
    clock = Clock()
    api = ApiServer(clock)
    api.create("configmaps", make_config_map("early", "nobody"))
    GarbageCollector(clock, api)
    api.create("configmaps", make_config_map("late", "nobody"))
    _World(clock).run_steps()
    assert api.list("configmaps") == []


class _World:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run_steps(self) -> None:
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


def test_custom_resources_defined_later_are_garbage_collected() -> None:
    world = SimulatedCluster(Clock())
    world.api.create("customresourcedefinitions.apiextensions.k8s.io", DEFINITION)
    owner = world.api.create("widgets.example.com", {"metadata": {"name": "w"}})
    world.api.create("configmaps", make_config_map("c", owner["metadata"]["uid"]))
    run(world)
    assert list_names(world.api.list("configmaps")) == ["c"]
    world.api.delete("widgets.example.com", "w")
    run(world)
    assert world.api.list("configmaps") == []


def test_namespace_contents_are_deleted_before_the_namespace() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    web = make_workload("Deployment", "web", 2)
    world.apply({**web, "metadata": {"name": "web", "namespace": "shop"}})
    run(world)
    assert len(world.list_pods("shop")) == 2
    world.api.delete("namespaces", "shop")
    run(world, 1)
    assert "shop" in list_names(world.api.list("namespaces"))
    run(world)
    assert "shop" not in list_names(world.api.list("namespaces"))
    assert world.list_pods("shop") == []


def test_controllers_process_objects_created_before_them() -> None:
    clock = Clock()
    api = ApiServer(clock)
    api.create("pods", make_pod("p", labels={"app": "web"}))
    api.create(BUDGETS, make_budget(minAvailable=1), "default")
    api.create("deployments.apps", make_workload("Deployment", "web", 1), "default")
    for kind, resource in (("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets"), ("ReplicaSet", "replicasets")):
        api.create(f"{resource}.apps", make_workload(kind, kind.lower(), 1), "default")
    api.create("jobs.batch", make_workload("Job", "job", pod_spec={"restartPolicy": "Never"}), "default")
    PodDisruptionBudgetController(clock, api)
    api.create("nodes", make_node("early"))
    world = SimulatedCluster(clock, api=api)
    run(world, 1)
    assert api.get("nodes", "early")["spec"]["taints"] == []
    api.delete("nodes", "early")
    world.start_node(make_node_boot("n"))
    run(world, 120)
    assert len(world.list_pods("default")) == 6
    assert world.api.get(BUDGETS, "web", "default")["status"]["currentHealthy"] == 2


def test_work_queue_retries_with_increasing_delay() -> None:
    clock = Clock()
    tries: list[float] = []

    def record_and_refuse(_key: str) -> None:
        tries.append((clock.get_time() - start).total_seconds())
        raise EvictionRefused("no")

    start = clock.get_time()
    queue: WorkQueue[str] = WorkQueue(clock, record_and_refuse, "test")
    queue.add("k")
    queue.add("k")
    clock.run_until(start + (start.resolution * 20_000_000))
    assert tries == [0.1, 1.1, 3.1, 7.1, 15.1]
    queue.discard("k")
    queue.discard("k")
    clock.run_until(start + (start.resolution * 90_000_000))
    assert len(tries) == 5


def test_work_queue_keeps_the_earlier_due_time() -> None:
    clock = Clock()
    handled_keys: list[str] = []
    queue: WorkQueue[str] = WorkQueue(clock, handled_keys.append, "test")
    queue.add_after("k", clock.get_time().resolution * 10_000_000)
    queue.add("k")
    clock.run_until(clock.get_time() + clock.get_time().resolution * 1_000_000)
    assert handled_keys == ["k"]


def test_informer_updates_its_index_on_changes_and_deletions() -> None:
    api = ApiServer(Clock())
    informer = Informer(api, "pods", lambda obj: (obj["metadata"].get("labels", {}).get("app", ""),))
    api.create("pods", make_pod("p", labels={"app": "a"}))
    assert list_names(informer.list_by_index("a")) == ["p"]
    api.patch("pods", "p", {"metadata": {"labels": {"app": "b"}}}, "default")
    assert (informer.list_by_index("a"), list_names(informer.list_by_index("b"))) == ([], ["p"])
    api.delete("pods", "p", "default")
    assert (informer.list_all(), informer.list_by_index("b"), informer.get("p", "default")) == ([], [], None)
