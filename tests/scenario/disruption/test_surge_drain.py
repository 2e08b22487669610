"""Surge drain in the whole world: the new pod runs before the old one leaves, or the node stays."""

from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest

from shared.model.core.labels import SURGE_DRAIN, SURGE_DRAIN_RESTART
from shared.model.decisions.action import EvictPod, RestartDeployment
from shared.model.decisions.command import CommandState
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import (
    Json,
    World,
    count_vcpus,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)

DEPLOYMENTS: Final = "deployments.apps"
SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge")
SURGE_SETTINGS: Final = ACTIVE_SETTINGS | {"surge-drain": "on"}
PADDING: Final = "padding"


class Watched(World):
    """A world that counts the running pods of the Deployment `web` every second."""

    fewest_running: int | None = None

    def _check_invariants(self) -> None:
        super()._check_invariants()
        if self.fewest_running is not None:
            count = sum(pod["metadata"]["labels"]["app"] == "web" for pod in self.list_running_pods())
            self.fewest_running = min(self.fewest_running, count)


def with_annotation(manifest: Json, value: str = "true") -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {SURGE_DRAIN: value}}}


def build_world(*objects: Json, replicas: int = 1, settings: dict[str, str] | None = None, **spec: Any) -> Watched:
    """Build a world with one node that is too large for the pods of `web` once the padding is gone."""
    pool = make_node_pool(types=SIZES, disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"})
    world = Watched(
        make_node_class(),
        with_annotation(pool),
        make_deployment(replicas, **spec),
        make_deployment(6, PADDING),
        *objects,
        template=synthesize_template(settings=SURGE_SETTINGS if settings is None else settings),
    )
    world.wait_until_settled(replicas + 6)
    world.advance_seconds(150)
    world.fewest_running = replicas
    return world


def shrink(world: World) -> None:
    world.scale(0, PADDING)
    world.wait_until(lambda: list_commands(world) and count_vcpus(world) == 2, 900)
    world.wait_until(lambda: [state.phase for state in list_commands(world)] == ["DONE"], 300)


def list_commands(world: World) -> list[CommandState]:
    return [msgspec.json.decode(row.body, type=CommandState) for row in world.table.list_rows("command")]


def get_restart(world: World, name: str = "web") -> str:
    template = world.cluster.api.get(DEPLOYMENTS, name, "default")["spec"]["template"]
    return str(template["metadata"].get("annotations", {}).get(SURGE_DRAIN_RESTART, ""))


def break_new_pods(world: World) -> None:
    """Let no pod of the next rollout become Ready."""
    world.cluster.api.patch(
        DEPLOYMENTS, "web", {"spec": {"progressDeadlineSeconds": 300, "minReadySeconds": 3600}}, "default"
    )


@pytest.mark.parametrize("budget", [(), (make_pod_disruption_budget(minAvailable=1),)], ids=["no-pdb", "pdb-1-of-1"])
def test_single_replica_runs_all_the_time_while_its_node_is_replaced(budget: tuple[Json, ...]) -> None:
    world = build_world(*budget)
    shrink(world)
    assert world.fewest_running == 1
    assert [action.name for action in world.list_done_actions(RestartDeployment)] == ["web"]
    assert "web" not in {action.name.rpartition("-")[0].rpartition("-")[0] for action in list_evictions(world)}
    [command] = list_commands(world)
    assert get_restart(world).startswith(command.command.command_id)
    world.wait_until_settled(1)
    assert len(world.list_nodes()) == 1


def list_evictions(world: World) -> list[EvictPod]:
    return [action for action in world.list_done_actions(EvictPod) if not action.name.startswith(PADDING)]


def test_replicas_whose_pdb_allows_no_disruption_are_replaced_by_one_rollout() -> None:
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world = build_world(make_pod_disruption_budget(maxUnavailable=0), replicas=2, cpu="400m")
    world.cluster.api.patch(DEPLOYMENTS, "web", {"spec": {"strategy": strategy}}, "default")
    shrink(world)
    assert world.fewest_running == 2
    assert len(world.list_done_actions(RestartDeployment)) == 1
    assert not list_evictions(world)


def test_without_the_setting_no_deployment_is_restarted() -> None:
    world = build_world(settings=dict(ACTIVE_SETTINGS))
    shrink(world)
    assert (world.list_done_actions(RestartDeployment), get_restart(world)) == ([], "")
    assert world.fewest_running == 0
    assert world.access_control.denials == []


def test_deployment_that_opts_out_is_evicted_as_usual() -> None:
    world = build_world()
    world.cluster.api.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {SURGE_DRAIN: "false"}}}, "default")
    shrink(world)
    assert (world.list_done_actions(RestartDeployment), len(list_evictions(world))) == ([], 1)


def test_recreate_strategy_is_explained_on_the_pod_and_the_pod_is_evicted() -> None:
    world = build_world()
    world.cluster.api.patch(DEPLOYMENTS, "web", {"spec": {"strategy": {"type": "Recreate"}}}, "default")
    shrink(world)
    assert (world.list_done_actions(RestartDeployment), len(list_evictions(world))) == ([], 1)
    assert [event for event in world.list_events(reason="SurgeDrainNotPossible") if "Recreate" in event]


def test_surge_drain_that_times_out_keeps_the_node_and_the_old_pod() -> None:
    world = build_world(make_pod_disruption_budget(minAvailable=1))
    break_new_pods(world)
    world.wait_until_settled(7)
    world.scale(0, PADDING)
    world.wait_until(lambda: any(state.phase == "SURGING" for state in list_commands(world)), 900)
    world.wait_until(lambda: [state.phase for state in list_commands(world)] == ["ROLLED_BACK"], 900)
    [command] = list_commands(world)
    assert "surge drain timed out" in command.message
    assert len(command.failures) == 1
    assert world.list_events("web", "SurgeDrainTimedOut")
    assert world.fewest_running == 1
    assert not list_evictions(world)
    world.wait_until(lambda: not any(node["spec"].get("taints") for node in world.list_nodes()), 120)


def run_and_kill(count: int, phase: str = "after") -> tuple[Watched, bool]:
    """Run a surge drain in which `disrupt` dies at its call number *count* after the phase SURGING was written."""
    world, calls, is_killed = build_world(make_pod_disruption_budget(minAvailable=1)), 0, False

    def kill(call: PortCall) -> None:
        nonlocal calls, is_killed
        if is_killed or call.phase != phase or not call.world_name.startswith("disrupt"):
            return
        if any(state.phase == "SURGING" for state in list_commands(world)):
            calls += 1
            if calls == count:
                is_killed = True
                raise Killed

    with world.use_tap(kill):
        shrink(world)
    return world, is_killed


@pytest.mark.parametrize("count", range(1, 17))
def test_surge_drain_completes_with_one_restart_after_a_crash_at_any_call(count: int) -> None:
    world, is_killed = run_and_kill(count)
    assert is_killed
    assert world.fewest_running == 1
    assert len({action.restart for action in world.list_done_actions(RestartDeployment)}) <= 1
    assert len(list_replica_sets(world)) == 2
    world.wait_until_settled(1)


def list_replica_sets(world: World) -> list[Json]:
    return [item for item in world.cluster.api.list("replicasets.apps") if item["metadata"]["name"].startswith("web-")]


def test_two_disrupt_runs_restart_the_deployment_once() -> None:
    world = build_world(make_pod_disruption_budget(minAvailable=1))
    is_started = False

    def start_another(call: PortCall) -> None:
        nonlocal is_started
        is_restart = call.phase == "before" and call.method == "patch" and "/deployments/" in call.detail
        if is_restart and not is_started:
            is_started = True
            world.runtime.invoke("disrupt", {})

    with world.use_tap(start_another):
        shrink(world)
    assert is_started
    assert len(list_replica_sets(world)) == 2
    assert world.fewest_running == 1


def test_pods_of_one_deployment_on_two_nodes_are_replaced_by_one_rollout_at_a_time() -> None:
    pool = make_node_pool(types=("m5.large",), template={"expireAfter": "Never"}, labels={"version": "1"})
    strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world = Watched(
        make_node_class(),
        with_annotation(pool),
        make_deployment(2, cpu="1200m"),
        make_pod_disruption_budget(maxUnavailable=0),
        template=synthesize_template(settings=SURGE_SETTINGS),
    )
    world.cluster.api.patch(DEPLOYMENTS, "web", {"spec": {"strategy": strategy}}, "default")
    world.wait_until_settled(2)
    world.fewest_running = 2
    old = {node["metadata"]["name"] for node in world.list_nodes()}
    template = {"metadata": {"labels": {"version": "2"}}}
    world.cluster.api.patch("nodepools.karpenter.sh", "default", {"spec": {"template": template}})
    world.wait_until(lambda: not {node["metadata"]["name"] for node in world.list_nodes()} & old, 1800)
    world.advance_time(timedelta(minutes=1))
    assert world.fewest_running == 2
    assert not list_evictions(world)
    assert len(list_replica_sets(world)) <= 3
