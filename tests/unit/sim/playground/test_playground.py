"""Tests of the playground on an in-memory cluster: real time passes faster, and a stand-in plays kwok."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import yaml

from shared.crds.definitions import read_crds
from shared.errors import NotFound, Unreachable
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.playground.kubectl import CRDS_PATH, NODE_CLAIMS_PATH, NODES_PATH, PODS_PATH, KubectlClient
from sim.playground.nodes import KWOK_LABEL, ExternalNodes
from sim.playground.playground import Playground
from sim.playground.reporter import PlaygroundReporter
from sim.scenarios.runner import TimelineEntry
from sim.scenarios.scenario import ManagedNode
from sim.time.real_clock import RealTimeClock
from sim.time.virtual_clock import DEFAULT_START_TIME, Clock
from tests.kubernetes.manifests import make_deployment, make_node_class, make_node_pool

ONE_SECOND = timedelta(seconds=1)
CRD_DOCUMENTS = read_crds()
BOOT = NodeBoot(
    node_name="ip-10-0-1-4.ec2.internal",
    provider_id="aws:///us-east-1a/i-1",
    instance_type="m5.large",
    zone="us-east-1a",
    zone_id="use1-az1",
    region="us-east-1",
    capacity={"cpu": "2", "memory": "8Gi", "pods": "29"},
    allocatable={"cpu": "2", "memory": "8Gi", "pods": "29"},
    labels={"team": "web"},
    taints=({"key": "dedicated", "value": "web", "effect": "NoSchedule"},),
)


class Outage:
    """A `Kube` that is unreachable while *down* is true."""

    def __init__(self, kube: InMemoryKube) -> None:  # noqa: D107
        self.kube, self.down = kube, False

    def __getattr__(self, method: str) -> Any:
        if self.down:
            raise Unreachable(method)
        return getattr(self.kube, method)


def play_kwok(live: SimulatedCluster) -> None:
    """Let a kubelet of *live* run every Node that has kwok's label."""
    managed_names: set[str] = set()

    def handle_node_event(event: str, _old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        if new is None or event == "DELETED":
            return
        name, labelled = new["metadata"]["name"], KWOK_LABEL in new["metadata"]["labels"]
        if labelled and name not in managed_names:
            managed_names.add(name)
            status = new["status"]
            live.kubelet.start(
                msgspec.structs.replace(
                    BOOT,
                    node_name=name,
                    provider_id=new["spec"]["providerID"],
                    capacity=status["capacity"],
                    allocatable=status["allocatable"],
                    register_after=timedelta(),
                    ready_after=timedelta(),
                )
            )
        elif name in managed_names and not labelled:
            managed_names.remove(name)
            live.kubelet.stop(name)

    live.api.subscribe("nodes", handle_node_event)


@pytest.fixture
def live() -> SimulatedCluster:
    return SimulatedCluster(Clock())


@pytest.fixture
def kube(live: SimulatedCluster) -> Outage:
    return Outage(InMemoryKube(live.api))


@pytest.fixture
def nodes(live: SimulatedCluster, kube: Outage) -> ExternalNodes:
    return ExternalNodes(live.clock, kube, deletion_delay=10 * ONE_SECOND)


def get_node(live: SimulatedCluster, name: str = BOOT.node_name) -> Any:
    return live.api.get("nodes", name)


def test_instance_becomes_a_node_initialized_by_the_cloud_controller(
    live: SimulatedCluster, nodes: ExternalNodes
) -> None:
    changes: list[tuple[str, str]] = []
    nodes.on_change = lambda name, what: changes.append((name, what))
    nodes.start_node(BOOT)
    live.run(BOOT.register_after - ONE_SECOND)
    assert not live.api.list("nodes")
    live.run(ONE_SECOND)
    assert [taint["key"] for taint in get_node(live)["spec"]["taints"]] == [
        "dedicated",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
    ]
    live.run(ONE_SECOND)
    assert "node.cloudprovider.kubernetes.io/uninitialized" not in str(get_node(live)["spec"]["taints"])
    labels = get_node(live)["metadata"]["labels"]
    assert (labels["team"], labels["topology.kubernetes.io/zone"], labels["topology.k8s.aws/zone-id"]) == (
        "web",
        "us-east-1a",
        "use1-az1",
    )
    assert KWOK_LABEL not in labels
    live.run(BOOT.ready_after - ONE_SECOND)
    assert get_node(live)["metadata"]["labels"] == labels | {KWOK_LABEL: "fake"}
    assert changes == [(BOOT.node_name, "joins the cluster")]


def test_kwok_and_embedded_clusters_create_equal_nodes(live: SimulatedCluster, nodes: ExternalNodes) -> None:
    """Except for kwok's label and what follows from readiness, which needs kwok."""
    boot = msgspec.structs.replace(BOOT, internal_ip="10.0.1.4", arch="arm64", volume_limit=25)
    nodes.start_node(boot)
    live.run(timedelta(minutes=2))
    embedded = SimulatedCluster(Clock())
    embedded.start_node(boot)
    embedded.run(timedelta(minutes=2))
    [live_node], [embedded_node] = live.api.list("nodes"), embedded.api.list("nodes")
    assert live_node["metadata"]["labels"] == {**embedded_node["metadata"]["labels"], KWOK_LABEL: "fake"}
    taints = [taint for taint in live_node["spec"].pop("taints") if "not-ready" not in taint["key"]]
    assert {**live_node["spec"], "taints": taints} == embedded_node["spec"]
    for part in ("capacity", "allocatable", "addresses", "nodeInfo"):
        assert live_node["status"][part] == embedded_node["status"][part]
    [live_node], [embedded_node] = (
        live.api.list("csinodes.storage.k8s.io"),
        embedded.api.list("csinodes.storage.k8s.io"),
    )
    assert live_node["spec"] == embedded_node["spec"]


def test_node_speed_shortens_registration(live: SimulatedCluster, kube: Outage) -> None:
    ExternalNodes(live.clock, kube, speed=10).start_node(BOOT)
    live.run(2 * ONE_SECOND)
    assert KWOK_LABEL not in get_node(live)["metadata"]["labels"]
    live.run(ONE_SECOND)
    assert KWOK_LABEL in get_node(live)["metadata"]["labels"]


def test_device_resources_and_volume_limits_are_reported(live: SimulatedCluster, nodes: ExternalNodes) -> None:
    gpus = {"nvidia.com/gpu": "4"}
    nodes.start_node(msgspec.structs.replace(BOOT, volume_limit=25, device_resources=gpus, zone_id=""))
    live.run(timedelta(minutes=1))
    assert get_node(live)["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert "topology.k8s.aws/zone-id" not in get_node(live)["metadata"]["labels"]
    [driver] = live.api.get("csinodes.storage.k8s.io", BOOT.node_name)["spec"]["drivers"]
    assert (driver["nodeID"], driver["allocatable"]) == ("i-1", {"count": 25})


def test_existing_csi_node_is_not_changed(live: SimulatedCluster, nodes: ExternalNodes) -> None:
    live.api.create("csinodes.storage.k8s.io", {"metadata": {"name": BOOT.node_name}, "spec": {"drivers": []}})
    nodes.start_node(msgspec.structs.replace(BOOT, volume_limit=25))
    live.run(timedelta(minutes=1))
    assert live.api.get("csinodes.storage.k8s.io", BOOT.node_name)["spec"]["drivers"] == []


def test_stopped_instance_loses_the_kwok_label_and_terminated_one_its_node(
    live: SimulatedCluster, nodes: ExternalNodes
) -> None:
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    nodes.stop_node(BOOT.node_name, terminated=False)
    assert KWOK_LABEL not in get_node(live)["metadata"]["labels"]
    nodes.stop_node(BOOT.node_name)
    live.run(9 * ONE_SECOND)
    assert get_node(live)
    live.run(ONE_SECOND)
    assert not live.api.list("nodes")


def test_instance_terminated_before_registration_leaves_no_node(live: SimulatedCluster, nodes: ExternalNodes) -> None:
    nodes.start_node(BOOT)
    nodes.stop_node(BOOT.node_name)
    nodes.stop_node("ip-10-0-9-9.ec2.internal")
    live.run(timedelta(minutes=2))
    assert not live.api.list("nodes")


def test_unreachable_api_server_only_delays_registration_and_deletion(
    live: SimulatedCluster, kube: Outage, nodes: ExternalNodes
) -> None:
    kube.down = True
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    kube.down = False
    live.run(2 * ONE_SECOND)
    assert get_node(live)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"
    kube.down = True
    nodes.stop_node(BOOT.node_name)
    live.run(timedelta(minutes=1))
    kube.down = False
    live.run(ONE_SECOND)
    assert not live.api.list("nodes")


def test_existing_node_with_the_same_provider_id_is_adopted(live: SimulatedCluster, nodes: ExternalNodes) -> None:
    node = {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": BOOT.provider_id}}
    live.api.create("nodes", node)
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    assert get_node(live)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"


def test_reused_node_name_waits_for_the_old_node_without_deleting_it(
    live: SimulatedCluster, nodes: ExternalNodes
) -> None:
    live.api.create("nodes", {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": "aws:///us-east-1a/i-0"}})
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    nodes.stop_node(BOOT.node_name)
    live.run(timedelta(minutes=1))
    assert get_node(live)["spec"]["providerID"] == "aws:///us-east-1a/i-0"


def test_instance_registers_after_the_old_node_of_its_name_is_deleted(
    live: SimulatedCluster, nodes: ExternalNodes
) -> None:
    live.api.create("nodes", {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": "aws:///us-east-1a/i-0"}})
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    live.api.delete("nodes", BOOT.node_name)
    live.run(2 * ONE_SECOND)
    assert get_node(live)["spec"]["providerID"] == BOOT.provider_id


def test_kubectl_client_applies_repeatedly_scales_and_deletes(live: SimulatedCluster) -> None:
    desk = KubectlClient(InMemoryKube(live.api))
    desk.apply_crds()
    desk.apply_crds()
    live.run(ONE_SECOND)
    assert desk.has_crds()
    web = make_deployment("web", 1, "1", "1Gi")
    desk.apply_all([web, web])
    desk.scale("Deployment", "web", 3)
    live.run(5 * ONE_SECOND)
    assert len(desk.list_objects(PODS_PATH)) == 3
    desk.delete(web)
    desk.delete(web)
    live.run(timedelta(minutes=1))
    assert not desk.list_objects(PODS_PATH)
    with pytest.raises(NotFound):
        desk.apply({"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "x"}})


@pytest.mark.parametrize(
    ("established", "answers", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_crd_is_available_once_established_and_served(established: bool, answers: bool, expected: bool) -> None:  # noqa: FBT001
    class Young:
        """An API server that has just received the CRDs."""

        def list(self, path: str, **_: object) -> bytes:
            if path != CRDS_PATH:
                if not answers:
                    raise NotFound(path)
                return b"{}"
            condition = {"type": "Established", "status": "True"}
            status = {"conditions": [condition] if established else None}
            crds = [
                {"metadata": {"name": yaml.safe_load(crd_text)["metadata"]["name"]}, "status": status}
                for crd_text in CRD_DOCUMENTS
            ]
            return msgspec.json.encode({"metadata": {}, "items": crds})

    assert KubectlClient(Young()).has_crds() is expected  # type: ignore[arg-type]


def test_kubectl_client_creates_the_functions_cluster_role_and_binding() -> None:
    applied: list[tuple[str, Any]] = []

    class Scribe:
        """An API server that records the objects that are created."""

        def create(self, path: str, body: bytes) -> bytes:
            applied.append((path.rpartition("/")[2], msgspec.json.decode(body)))
            return body

    KubectlClient(Scribe()).apply_rbac()  # type: ignore[arg-type]
    (role, _), (binding, bound) = applied
    assert (role, binding) == ("clusterroles", "clusterrolebindings")
    assert bound["subjects"][0]["name"] == "joiner:functions"


def test_kubectl_client_reads_all_list_pages(live: SimulatedCluster) -> None:
    for number in range(1001):
        live.api.create("namespaces", {"metadata": {"name": f"n{number:04}"}})
    assert len(KubectlClient(InMemoryKube(live.api)).list_objects("/api/v1/namespaces")) >= 1001


class Game:
    """A playground with its timeline entries and a way to wait: its clock advances when no timer is due."""

    def __init__(self) -> None:  # noqa: D107
        self.time = DEFAULT_START_TIME
        self.clock = RealTimeClock(lambda: self.time)
        self.live = SimulatedCluster(self.clock)
        play_kwok(self.live)
        self.kube = Outage(InMemoryKube(self.live.api))
        self.playground = Playground(
            self.clock,
            functions_kube=self.kube,
            admin_kube=self.kube,
            endpoint="https://127.0.0.1:1",
            certificate_authority="Q0E=",
            node_speed=10,
            seed=7,
        )
        self.entries: list[TimelineEntry] = []
        self.reporter = PlaygroundReporter(self.playground, self.entries.append)
        self.playground.kubectl.apply_crds()

    def run_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.time += ONE_SECOND
            assert self.time < DEFAULT_START_TIME + timedelta(minutes=30), [entry.message for entry in self.entries]
            while self.clock.step_if_due():
                pass


@pytest.fixture
def game() -> Iterator[Game]:
    new_game = Game()
    yield new_game
    assert not new_game.reporter.failed_invocations or new_game.kube.down


def test_pending_pods_get_a_node_and_empty_nodes_are_removed(game: Game) -> None:
    playground, desk = game.playground, game.playground.kubectl
    playground.invoke_schedules_every(20 * ONE_SECOND)
    playground.start_managed_node(ManagedNode())
    desk.apply_all([make_node_class(), make_node_pool("default"), make_deployment("web", 5, "1", "1Gi")])
    game.run_until(lambda: playground.take_sample().running_pods == 5)
    assert game.reporter.update_sample()
    assert not game.reporter.update_sample()
    state = game.reporter.sample
    assert state is not None
    assert (state.joiner_nodes, state.managed_nodes, state.pending_pods, state.running_pods) == (1, 1, 0, 5)
    assert state.cost_usd_per_hour > 0
    [node] = [
        listed_node
        for listed_node in desk.list_objects(NODES_PATH)
        if listed_node["metadata"]["name"] == playground.find_busiest_node()
    ]
    [instance] = playground.list_active_instances()
    for name in (
        playground.find_busiest_node(),
        playground.find_busiest_node().partition(".")[0],
        instance.instance_id,
    ):
        assert (
            playground.find_instance_id(name) == instance.instance_id == node["spec"]["providerID"].rpartition("/")[2]
        )
    playground.cloud.instances.send_rebalance_recommendation(instance.instance_id)
    desk.delete(make_deployment("web", 5, "1", "1Gi"))
    game.run_until(lambda: not desk.list_objects(NODE_CLAIMS_PATH) and not playground.list_active_instances())
    assert (
        game.reporter.launched_count,
        game.reporter.terminated_count,
        len(game.reporter.node_claim_actions),
        len(game.reporter.launch_actions),
    ) == (1, 1, 1, 1)
    with pytest.raises(ValueError, match="no NodePool has a node"):
        playground.find_busiest_node()
    words = " ".join(entry.message for entry in game.entries)
    for expected_text in (
        "creates nodeclaim",
        "CreateFleet",
        "joins the cluster",
        "running",
        "Rebalance",
        "shutting-down",
    ):
        assert expected_text in words
    with pytest.raises(ValueError, match="no living instance"):
        playground.find_instance_id("ip-10-0-9-9")


def test_instance_that_cannot_join_is_reported_once(game: Game) -> None:
    game.playground.instance_booter.boot_failures.append("i-1: no cluster to join")
    game.reporter.update_sample()
    game.reporter.update_sample()
    assert [(entry.message, entry.reason) for entry in game.entries] == [
        ("an instance cannot join", "i-1: no cluster to join")
    ]


def test_cluster_facts_contain_the_given_endpoint(game: Game) -> None:
    assert game.playground.cloud.facts.endpoint == "https://127.0.0.1:1"


def test_unreachable_api_server_is_reported_and_keeps_the_last_sample(game: Game) -> None:
    game.reporter.update_sample()
    before = game.reporter.sample
    game.kube.down = True
    game.playground.invoke_schedules_every(20 * ONE_SECOND)
    assert not game.reporter.update_sample()
    assert game.reporter.sample == before
    assert game.reporter.failed_invocations
    assert any("Unreachable" in entry.reason for entry in game.entries)
