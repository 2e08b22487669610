"""`joiner plan --upgrade` on a live cluster and its account: what it says, compared with what then happens."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from shared.model.core.units import format_instant, parse_instant
from sim.aws_http.server import EmbeddedAws
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract.kube_front import run_server
from tests.scenario.worlds import CLASSES, World, make_deployment, make_node_class, make_node_pool
from tests.support.cli.live_cases import TOKEN, Guarded, write_kubeconfig

pytestmark = pytest.mark.loopback
Out = pytest.CaptureFixture[str]


class Versioned(Guarded):
    """An API server that also serves the version of its control plane."""

    def _respond(self, call: Callable[[], bytes]) -> None:
        super()._respond((lambda: b'{"major":"1","minor":"34+"}') if self.path == "/version" else call)


def build_world(*budgets: dict[str, str]) -> World:
    """Return a world with four nodes of one NodePool with *budgets*."""
    pool = make_node_pool(types=("m5.xlarge",), disruption={"budgets": list(budgets)})
    world = World(make_node_class(), pool, make_deployment(16))
    world.wait_until_settled(16)
    world.advance_seconds(60)
    assert len(world.list_nodes()) == 4
    return world


@pytest.fixture
def plan_upgrade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> Callable[..., dict[str, Any]]:
    """Return a function that serves a world and returns the plan of the command for it."""

    def run_command(world: World, *arguments: str) -> dict[str, Any]:
        Versioned.kube = InMemoryKube(world.cluster.api)
        Versioned.requests, Versioned.token, Versioned.forbidden = [], TOKEN, "/nothing"
        monkeypatch.setenv("CLUSTER_NAME", "demo")
        for endpoint in run_server(Versioned):
            kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", endpoint, token=TOKEN)
            with EmbeddedAws(world.cloud) as server:
                monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
                now = format_instant(world.clock.get_time())
                catalog = ("--instance-types", "aws:us-east-1")
                options = ["--kubeconfig", kubeconfig, *catalog, "--now", now, "-o", "json", *arguments]
                assert main(["plan", "--upgrade", "1.35", *options]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return run_command


def upgrade(world: World, timeout: timedelta) -> Iterator[tuple[datetime, str]]:
    """Upgrade the control plane; yield when each old node is removed, until all of them are."""
    world.cloud.upgrade_cluster("1.35")
    remaining = {node["metadata"]["name"] for node in world.list_nodes()}
    end = world.clock.get_time() + timeout
    while remaining:
        assert world.clock.get_time() < end, world.describe_state()
        world.advance_seconds(5)
        existing = {node["metadata"]["name"] for node in world.list_nodes()}
        for name in sorted(remaining - existing):
            yield world.clock.get_time(), name
        remaining &= existing


def test_upgrade_replaces_the_nodes_of_the_plan_in_its_order_and_time(
    plan_upgrade: Callable[..., dict[str, Any]],
) -> None:
    world = build_world({"nodes": "1"})
    before = world.list_nodes()
    plan = plan_upgrade(world, "--images", "aws:us-east-1")
    assert {method for method, _, _ in Versioned.requests} == {"GET"}
    assert (plan["currentVersion"], plan["targetVersion"]) == ("1.34", "1.35")
    assert plan["kubelets"]["nodesByVersion"] == {"1.34": 4}
    [planned_class], [planned_pool] = plan["nodeClasses"], plan["nodePools"]
    assert (planned_class["effect"], planned_pool["maxAtOnce"]) == ("Moves", 1)
    started_at = world.clock.get_time()
    removals = list(upgrade(world, timedelta(hours=1)))
    assert {name for _, name in removals} == {node["metadata"]["name"] for node in before}
    assert [name for _, name in removals] == [node["node"] for node in plan["nodes"]]
    world.wait_until_settled(16)
    status = world.cluster.api.get(CLASSES, "default")["status"]
    assert {image["id"] for image in status["amis"]} == set(planned_class["newImages"])
    assert {instance.image_id for instance in world.list_active_instances()} <= set(planned_class["newImages"])
    duration = (removals[-1][0] - started_at).total_seconds()
    # the plan assumes 5 minutes for each node; the simulated nodes start faster, and catalog runs every 5 minutes
    assert planned_pool["durationSeconds"] / 4 <= duration <= planned_pool["durationSeconds"] + 300
    assert not world.list_errors()


def test_upgrade_waits_for_the_window_of_the_plan(plan_upgrade: Callable[..., dict[str, Any]]) -> None:
    world = build_world({"nodes": "2"}, {"nodes": "0", "schedule": "0 * * * *", "duration": "45m"})
    assert world.clock.get_time().minute < 30
    [planned_pool] = plan_upgrade(world)["nodePools"]  # without --images, the account is read for a live cluster
    starts_at = parse_instant(planned_pool["startsAt"])
    assert planned_pool["allowedNow"] == 0
    assert starts_at.minute == 45
    removals = list(upgrade(world, timedelta(hours=3)))
    assert min(at for at, _ in removals) >= starts_at
    assert max(at for at, _ in removals) <= parse_instant(planned_pool["endsAt"]) + timedelta(minutes=10)


def test_upgrade_that_changes_no_image_replaces_no_node(plan_upgrade: Callable[..., dict[str, Any]]) -> None:
    world = build_world({"nodes": "1"})
    image_id = world.list_active_instances()[0].image_id
    world.cluster.api.patch(
        CLASSES, "default", {"spec": {"amiSelectorTerms": [{"id": image_id}], "amiFamily": "AL2023"}}
    )
    world.advance_seconds(360)
    before = {node["metadata"]["name"] for node in world.list_nodes()}
    plan = plan_upgrade(world)
    assert ([item["effect"] for item in plan["nodeClasses"]], plan["nodes"]) == (["Stays"], [])
    world.cloud.upgrade_cluster("1.35")
    world.advance_time(timedelta(minutes=20))
    assert {node["metadata"]["name"] for node in world.list_nodes()} == before
