"""A playground around a cluster in memory: real time passes some hundred times as fast, and a stand-in plays kwok."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import yaml

from shared.errors import Gone, Unreachable
from shared.kube.definitions import definitions
from sim.clock import START, Clock
from sim.cluster.kube import InMemoryKube
from sim.cluster.kubelet_boot import Boot
from sim.cluster.live import LiveCluster
from sim.play import Moment
from sim.playground import Playground
from sim.playground_desk import DEFINITIONS, NODE_CLAIMS, NODES, PODS, Desk
from sim.playground_nodes import KWOK, ApiNodes
from sim.playground_told import Commentary
from sim.realtime import RealTimeClock
from sim.scenario import Managed
from tests.kubernetes.manifests import deployment, node_class, node_pool

SECOND = timedelta(seconds=1)
OURS = definitions()
BOOT = Boot(
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
    """A `Kube` that is away while *down*."""

    def __init__(self, kube: InMemoryKube) -> None:  # noqa: D107
        self.kube, self.down = kube, False

    def __getattr__(self, method: str) -> Any:
        if self.down:
            raise Unreachable(method)
        return getattr(self.kube, method)


def play_kwok(live: LiveCluster) -> None:
    """Let a kubelet of *live* take over every Node while it has kwok's label."""
    taken: set[str] = set()

    def on_node(event: str, _old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        if new is None or event == "DELETED":
            return
        name, labelled = new["metadata"]["name"], KWOK in new["metadata"]["labels"]
        if labelled and name not in taken:
            taken.add(name)
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
        elif name in taken and not labelled:
            taken.remove(name)
            live.kubelet.stop(name)

    live.api.subscribe("nodes", on_node)


@pytest.fixture
def live() -> LiveCluster:
    return LiveCluster(Clock())


@pytest.fixture
def kube(live: LiveCluster) -> Outage:
    return Outage(InMemoryKube(live.api))


@pytest.fixture
def nodes(live: LiveCluster, kube: Outage) -> ApiNodes:
    return ApiNodes(live.clock, kube, deleting=10 * SECOND)


def node(live: LiveCluster, name: str = BOOT.node_name) -> Any:
    return live.api.get("nodes", name)


def test_a_machine_becomes_a_node_that_the_cloud_completes(live: LiveCluster, nodes: ApiNodes) -> None:
    heard: list[tuple[str, str]] = []
    nodes.on_change = lambda name, what: heard.append((name, what))
    nodes.start_node(BOOT)
    live.run(BOOT.register_after - SECOND)
    assert not live.api.list("nodes")
    live.run(SECOND)
    assert [taint["key"] for taint in node(live)["spec"]["taints"]] == [
        "dedicated",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
    ]
    live.run(SECOND)
    assert "node.cloudprovider.kubernetes.io/uninitialized" not in str(node(live)["spec"]["taints"])
    labels = node(live)["metadata"]["labels"]
    assert (labels["team"], labels["topology.kubernetes.io/zone"], labels["topology.k8s.aws/zone-id"]) == (
        "web",
        "us-east-1a",
        "use1-az1",
    )
    assert KWOK not in labels
    live.run(BOOT.ready_after - SECOND)
    assert node(live)["metadata"]["labels"] == labels | {KWOK: "fake"}
    assert heard == [(BOOT.node_name, "joins the cluster")]


def test_both_clusters_have_the_same_nodes(live: LiveCluster, nodes: ApiNodes) -> None:
    """But for the label by which kwok knows its own, and what follows from being ready, which takes kwok."""
    boot = msgspec.structs.replace(BOOT, internal_ip="10.0.1.4", arch="arm64", volume_limit=25)
    nodes.start_node(boot)
    live.run(timedelta(minutes=2))
    embedded = LiveCluster(Clock())
    embedded.start_node(boot)
    embedded.run(timedelta(minutes=2))
    [ours], [theirs] = live.api.list("nodes"), embedded.api.list("nodes")
    assert ours["metadata"]["labels"] == {**theirs["metadata"]["labels"], KWOK: "fake"}
    taints = [taint for taint in ours["spec"].pop("taints") if "not-ready" not in taint["key"]]
    assert {**ours["spec"], "taints": taints} == theirs["spec"]
    for part in ("capacity", "allocatable", "addresses", "nodeInfo"):
        assert ours["status"][part] == theirs["status"][part]
    [ours], [theirs] = live.api.list("csinodes.storage.k8s.io"), embedded.api.list("csinodes.storage.k8s.io")
    assert ours["spec"] == theirs["spec"]


def test_a_machine_may_be_in_haste(live: LiveCluster, kube: Outage) -> None:
    ApiNodes(live.clock, kube, haste=10).start_node(BOOT)
    live.run(2 * SECOND)
    assert KWOK not in node(live)["metadata"]["labels"]
    live.run(SECOND)
    assert KWOK in node(live)["metadata"]["labels"]


def test_devices_and_volumes_are_reported(live: LiveCluster, nodes: ApiNodes) -> None:
    gpus = {"nvidia.com/gpu": "4"}
    nodes.start_node(msgspec.structs.replace(BOOT, volume_limit=25, late_resources=gpus, zone_id=""))
    live.run(timedelta(minutes=1))
    assert node(live)["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert "topology.k8s.aws/zone-id" not in node(live)["metadata"]["labels"]
    [driver] = live.api.get("csinodes.storage.k8s.io", BOOT.node_name)["spec"]["drivers"]
    assert (driver["nodeID"], driver["allocatable"]) == ("i-1", {"count": 25})


def test_a_csi_node_that_is_there_is_left_alone(live: LiveCluster, nodes: ApiNodes) -> None:
    live.api.create("csinodes.storage.k8s.io", {"metadata": {"name": BOOT.node_name}, "spec": {"drivers": []}})
    nodes.start_node(msgspec.structs.replace(BOOT, volume_limit=25))
    live.run(timedelta(minutes=1))
    assert live.api.get("csinodes.storage.k8s.io", BOOT.node_name)["spec"]["drivers"] == []


def test_a_halted_machine_is_let_go_and_a_terminated_ones_node_is_deleted(live: LiveCluster, nodes: ApiNodes) -> None:
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    nodes.stop_node(BOOT.node_name, gone=False)
    assert KWOK not in node(live)["metadata"]["labels"]
    nodes.stop_node(BOOT.node_name)
    live.run(9 * SECOND)
    assert node(live)
    live.run(SECOND)
    assert not live.api.list("nodes")


def test_a_machine_that_ends_before_it_registers_leaves_nothing(live: LiveCluster, nodes: ApiNodes) -> None:
    nodes.start_node(BOOT)
    nodes.stop_node(BOOT.node_name)
    nodes.stop_node("ip-10-0-9-9.ec2.internal")
    live.run(timedelta(minutes=2))
    assert not live.api.list("nodes")


def test_an_api_server_that_is_away_only_delays(live: LiveCluster, kube: Outage, nodes: ApiNodes) -> None:
    kube.down = True
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    kube.down = False
    live.run(2 * SECOND)
    assert node(live)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"
    kube.down = True
    nodes.stop_node(BOOT.node_name)
    live.run(timedelta(minutes=1))
    kube.down = False
    live.run(SECOND)
    assert not live.api.list("nodes")


def test_a_node_whose_answer_was_lost_is_the_machines_own(live: LiveCluster, nodes: ApiNodes) -> None:
    own = {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": BOOT.provider_id}}
    live.api.create("nodes", own)
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    assert node(live)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"


def test_an_address_that_is_used_again_waits_for_the_old_node_and_spares_the_new_one(
    live: LiveCluster, nodes: ApiNodes
) -> None:
    live.api.create("nodes", {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": "aws:///us-east-1a/i-0"}})
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    nodes.stop_node(BOOT.node_name)
    live.run(timedelta(minutes=1))
    assert node(live)["spec"]["providerID"] == "aws:///us-east-1a/i-0"


def test_a_machine_that_takes_an_address_registers_once_the_old_node_is_gone(
    live: LiveCluster, nodes: ApiNodes
) -> None:
    live.api.create("nodes", {"metadata": {"name": BOOT.node_name}, "spec": {"providerID": "aws:///us-east-1a/i-0"}})
    nodes.start_node(BOOT)
    live.run(timedelta(minutes=1))
    live.api.delete("nodes", BOOT.node_name)
    live.run(2 * SECOND)
    assert node(live)["spec"]["providerID"] == BOOT.provider_id


def test_a_desk_applies_twice_scales_and_deletes(live: LiveCluster) -> None:
    desk = Desk(InMemoryKube(live.api))
    desk.define()
    desk.define()
    live.run(SECOND)
    assert desk.is_defined()
    web = deployment("web", 1, "1", "1Gi")
    desk.apply_all([web, web])
    desk.scale("Deployment", "web", 3)
    live.run(5 * SECOND)
    assert len(desk.look(PODS)) == 3
    desk.delete(web)
    desk.delete(web)
    live.run(timedelta(minutes=1))
    assert not desk.look(PODS)
    with pytest.raises(Gone):
        desk.apply({"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "x"}})


@pytest.mark.parametrize(
    ("established", "answers", "expected"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_a_definition_counts_once_its_collection_answers(established: bool, answers: bool, expected: bool) -> None:  # noqa: FBT001
    class Young:
        """An API server that has just been told."""

        def list(self, path: str, **_: object) -> bytes:
            if path != DEFINITIONS:
                if not answers:
                    raise Gone(path)
                return b"{}"
            condition = {"type": "Established", "status": "True"}
            status = {"conditions": [condition] if established else None}
            found = [{"metadata": {"name": yaml.safe_load(one)["metadata"]["name"]}, "status": status} for one in OURS]
            return msgspec.json.encode({"metadata": {}, "items": found})

    assert Desk(Young()).is_defined() is expected  # type: ignore[arg-type]


def test_a_desk_grants_the_functions_their_role() -> None:
    applied: list[tuple[str, Any]] = []

    class Scribe:
        """An API server that writes down what it is told."""

        def create(self, path: str, body: bytes) -> bytes:
            applied.append((path.rpartition("/")[2], msgspec.json.decode(body)))
            return body

    Desk(Scribe()).grant()  # type: ignore[arg-type]
    (role, _), (binding, bound) = applied
    assert (role, binding) == ("clusterroles", "clusterrolebindings")
    assert bound["subjects"][0]["name"] == "joiner:functions"


def test_a_desk_reads_every_page(live: LiveCluster) -> None:
    for number in range(1001):
        live.api.create("namespaces", {"metadata": {"name": f"n{number:04}"}})
    assert len(Desk(InMemoryKube(live.api)).look("/api/v1/namespaces")) >= 1001


class Game:
    """A playground, what it said, and a way to wait: nobody sleeps, the watch goes on when there is nothing to do."""

    def __init__(self) -> None:  # noqa: D107
        self.time = START
        self.clock = RealTimeClock(lambda: self.time)
        self.live = LiveCluster(self.clock)
        play_kwok(self.live)
        self.kube = Outage(InMemoryKube(self.live.api))
        self.playground = Playground(
            self.clock,
            functions=self.kube,
            people=self.kube,
            endpoint="https://127.0.0.1:1",
            certificate_authority="Q0E=",
            haste=10,
            seed=7,
        )
        self.said: list[Moment] = []
        self.told = Commentary(self.playground, self.said.append)
        self.playground.desk.define()

    def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.time += SECOND
            assert self.time < START + timedelta(minutes=30), [one.what for one in self.said]
            while self.clock.step_if_due():
                pass


@pytest.fixture
def game() -> Iterator[Game]:
    made = Game()
    yield made
    assert not made.told.failed or made.kube.down


def test_pods_that_wait_get_a_node_and_empty_nodes_go(game: Game) -> None:
    playground, desk = game.playground, game.playground.desk
    playground.ring_every(20 * SECOND)
    playground.start_managed_node(Managed())
    desk.apply_all([node_class(), node_pool("default"), deployment("web", 5, "1", "1Gi")])
    game.until(lambda: playground.sample().running == 5)
    assert game.told.look()
    assert not game.told.look()
    state = game.told.state
    assert state is not None
    assert (state.nodes, state.managed, state.pending, state.running) == (1, 1, 0, 5)
    assert state.cost_usd_per_hour > 0
    [node] = [one for one in desk.look(NODES) if one["metadata"]["name"] == playground.busiest()]
    [instance] = playground.living()
    for name in (playground.busiest(), playground.busiest().partition(".")[0], instance.instance_id):
        assert playground.instance_of(name) == instance.instance_id == node["spec"]["providerID"].rpartition("/")[2]
    playground.cloud.recommend_rebalance(instance.instance_id)
    desk.delete(deployment("web", 5, "1", "1Gi"))
    game.until(lambda: not desk.look(NODE_CLAIMS) and not playground.living())
    assert (game.told.launched, game.told.ended, len(game.told.planned), len(game.told.launches)) == (1, 1, 1, 1)
    with pytest.raises(ValueError, match="no NodePool has a node"):
        playground.busiest()
    words = " ".join(one.what for one in game.said)
    for wanted in ("creates nodeclaim", "CreateFleet", "joins the cluster", "running", "Rebalance", "shutting-down"):
        assert wanted in words
    with pytest.raises(ValueError, match="no living instance"):
        playground.instance_of("ip-10-0-9-9")


def test_a_machine_that_never_becomes_a_node_is_told_once(game: Game) -> None:
    game.playground.machines.broken.append("i-1: no cluster to join")
    game.told.look()
    game.told.look()
    assert [(one.what, one.why) for one in game.said] == [("a machine cannot join", "i-1: no cluster to join")]


def test_eks_answers_where_the_cluster_is(game: Game) -> None:
    assert game.playground.cloud.facts.endpoint == "https://127.0.0.1:1"


def test_an_api_server_that_is_away_is_told_and_changes_no_count(game: Game) -> None:
    game.told.look()
    before = game.told.state
    game.kube.down = True
    game.playground.ring_every(20 * SECOND)
    assert not game.told.look()
    assert game.told.state == before
    assert game.told.failed
    assert any("Unreachable" in one.why for one in game.said)
