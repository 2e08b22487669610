"""Disruption in the whole world: commands complete or are rolled back, whatever happens in the meantime."""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.core.units import parse_instant
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, EvictPod
from shared.model.decisions.command import CommandState
from shared.ports import world as ports_world
from sim.fault_tap import PortCall
from tests.scenario.worlds import (
    CLAIMS,
    POOLS,
    Json,
    World,
    count_vcpus,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)

CHEAPER: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")
TICK, VALIDATION, DRAIN, FOLLOW_UP = 60, 15, 15, 5
"""In seconds: the schedule, the validation time of a proposal, a typical drain, and the delay of a follow-up."""


def build_settled_world(replicas: int, *objects: Json, **spec: Any) -> World:
    """Build a world in which pods run, nothing has happened for a while, and nodes may be consolidated."""
    spec = {"types": SIZES, "disruption": CHEAPER} | spec
    world = World(make_node_class(), make_node_pool(**spec), make_deployment(replicas), *objects)
    world.wait_until_settled(replicas)
    world.advance_seconds(150)
    return world


def build_shrunk_world(*objects: Json, **spec: Any) -> World:
    """Build a world with a large node that has become too large and has a proposed replacement."""
    world = build_settled_world(8, *objects, **spec)
    assert count_vcpus(world) == 8
    world.scale(2)
    world.wait_until(lambda: list_phases(world) == ["PROPOSED"])
    return world


def list_command_states(world: World) -> list[CommandState]:
    return [msgspec.json.decode(row.body, type=CommandState) for row in world.table.list_rows("command")]


def list_phases(world: World) -> list[str]:
    return [command_state.phase for command_state in list_command_states(world)]


def list_tainted_nodes(world: World) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in world.list_nodes()
        if any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", []))
    ]


def list_command_reasons(world: World, verdict: str) -> list[str]:
    """Return the reasons of the commands with *verdict* in the journal so far."""
    return [
        note.reason
        for entry in world.entries
        for note in entry.notes
        if note.kind == "Command" and note.verdict == verdict
    ]


def sell_out(world: World) -> None:
    """Leave no capacity of what is smaller."""
    for name in ("m5.large", "m5.xlarge"):
        for zone in {zone for _, zone in world.cloud.offerings}:
            world.cloud.pools.set_limit(name, zone, "on-demand", 0)


# Reaction


@pytest.mark.parametrize("offset", [0, 20, 40])
def test_consolidation_after_scale_down_completes_within_the_configured_delays(
    offset: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 20 pods to 10, so long after a tick; Karpenter took 327 s for this."""
    world = build_settled_world(20, after="30s")
    assert len(world.list_nodes()) == 2
    world.advance_seconds(offset)
    world.scale(10)
    began = world.clock.get_time()
    seconds_until_seen = world.wait_until(lambda: any(get_last_pod_event(one) >= began for one in world.list_claims()))
    settled = world.wait_until(lambda: len(world.list_active_instances()) == 1)
    with capsys.disabled():
        print(f"\nsettled {seconds_until_seen + settled:.0f} s after the scale-down, {settled:.0f} s after it was seen")  # noqa: T201 - the figure
    assert seconds_until_seen <= TICK
    assert settled <= 30 + VALIDATION + FOLLOW_UP + DRAIN
    world.wait_until_settled(10)
    assert len(world.launched) == 2


def get_last_pod_event(claim: Json) -> datetime:
    return parse_instant(claim["status"]["lastPodEventTime"])


def test_nodes_are_consolidated_to_the_cheapest_instance_and_then_left_unchanged() -> None:
    world = build_settled_world(20, after="30s")
    world.scale(2)
    world.wait_until(lambda: count_vcpus(world) == 2 and len(world.list_claims()) == 1, 600)
    world.wait_until_settled(2)
    command_count = len(list_command_reasons(world, "PROPOSED"))
    world.advance_seconds(600)
    assert len(list_command_reasons(world, "PROPOSED")) == command_count
    assert list_command_reasons(world, "ROLLED_BACK") == []


# A replacement


def test_large_node_is_deleted_only_after_its_smaller_replacement_is_created() -> None:
    world = build_shrunk_world()
    order: list[str] = []

    def record_claim_call(call: PortCall) -> None:
        if (
            call.port == "kube"
            and call.phase == "after"
            and call.world_name.startswith("disrupt")
            and CLAIMS[:10] in call.detail
        ):
            order.append(call.method)

    with world.use_tap(record_claim_call):
        world.wait_until(lambda: list_phases(world) == ["LAUNCHED"])
        world.wait_until(lambda: list_phases(world) == ["DONE"])
    assert [method for method in order if method in ("create", "delete")] == ["create", "delete"]
    assert count_vcpus(world) == 2
    world.wait_until_settled(2)
    assert len(world.launched) == 2
    assert [
        len(list_command_reasons(world, verdict))
        for verdict in ("PROPOSED", "VALIDATED", "LAUNCHED", "INITIALIZED", "DONE")
    ] == [1] * 5


def test_node_is_kept_when_there_is_no_capacity_for_its_replacement() -> None:
    world = build_shrunk_world()
    sell_out(world)
    world.wait_until(lambda: "ROLLED_BACK" in list_phases(world), 600)
    world.wait_until(lambda: not list_tainted_nodes(world))
    assert (count_vcpus(world), len(world.list_running_pods())) == (8, 2)
    assert world.list_done_actions(EvictPod) == []
    world.wait_until(lambda: len(world.list_claims()) == 1)
    [first, *_] = list_command_reasons(world, "ROLLED_BACK")
    assert first.startswith("replacement ")


def test_replacement_that_never_joins_is_rolled_back_and_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    world = build_shrunk_world()
    monkeypatch.setattr(world.cluster, "start_node", lambda _: None)
    world.wait_until(lambda: "ROLLED_BACK" in list_phases(world), 900)
    assert "was not initialized in time" in list_command_reasons(world, "ROLLED_BACK")[0]
    [new] = world.launched[1:2]
    world.wait_until(lambda: new not in {one.instance_id for one in world.list_active_instances()}, 120)
    assert world.list_done_actions(EvictPod) == []
    assert len(world.list_running_pods()) == 2


def test_three_failed_replacements_in_a_row_pause_disruption_and_emit_an_event() -> None:
    world = build_shrunk_world()
    sell_out(world)
    world.wait_until(lambda: bool(world.list_events("default", "DisruptionPaused")), 2400)
    [paused, *_] = world.list_events("default", "DisruptionPaused")
    assert "the last 3 replacements failed" in paused
    assert "kubectl annotate nodepool default" in paused
    world.wait_until(lambda: not list_tainted_nodes(world))
    command_count = len(list_command_reasons(world, "PROPOSED"))
    world.advance_seconds(600)
    assert len(list_command_reasons(world, "PROPOSED")) == command_count
    assert len(world.list_running_pods()) == 2


# Drift


def test_ami_drift_replaces_nodes_one_at_a_time_under_a_budget_of_one() -> None:
    world = build_settled_world(6, disruption={"budgets": [{"nodes": "1"}]}, types=("m5.xlarge",))
    before = {node["metadata"]["name"] for node in world.list_nodes()}
    assert len(before) == 2
    world.cloud.release_amis()
    deleting_counts: set[int] = set()

    def are_nodes_renewed() -> bool:
        deleting_counts.add(len([claim for claim in world.list_claims() if "deletionTimestamp" in claim["metadata"]]))
        return not before & {node["metadata"]["name"] for node in world.list_nodes()}

    world.wait_until(are_nodes_renewed, 1200)
    world.wait_until_settled(6)
    assert max(deleting_counts) == 1
    assert list_command_reasons(world, "ROLLED_BACK") == []
    world.advance_seconds(300)
    assert len(world.launched) == 4


def test_image_soak_replaces_one_canary_node_before_the_other_nodes() -> None:
    soak = make_node_pool(types=("m5.xlarge",), disruption={"budgets": [{"nodes": "100%"}]})
    soak["metadata"]["annotations"] = {"joiner.dev/image-soak": "20m"}
    world = World(make_node_class(), soak, make_deployment(12))
    world.wait_until_settled(12)
    world.advance_seconds(60)
    before = {node["metadata"]["name"] for node in world.list_nodes()}
    assert len(before) == 3
    world.cloud.release_amis()
    world.wait_until(lambda: len(before & {node["metadata"]["name"] for node in world.list_nodes()}) == 2, 900)
    canary_time = world.clock.get_time()
    world.advance_seconds(900)
    assert len(before & {node["metadata"]["name"] for node in world.list_nodes()}) == 2
    assert any("2 nodes with the old image" in event for event in world.list_events("default", "ImageCanary"))
    world.wait_until(lambda: not before & {node["metadata"]["name"] for node in world.list_nodes()}, 900)
    assert world.clock.get_time() - canary_time >= timedelta(minutes=18)
    world.wait_until_settled(12)


def test_node_annotated_as_drifted_is_replaced_once() -> None:
    world = build_settled_world(4, types=("m5.xlarge",))
    [node] = [listed_node["metadata"]["name"] for listed_node in world.list_nodes()]
    world.cluster.api.patch(
        "nodes", node, {"metadata": {"annotations": {"karpenter.sh/voluntary-disruption": "drifted"}}}
    )
    world.wait_until(lambda: node not in {one["metadata"]["name"] for one in world.list_nodes()}, 300)
    world.wait_until_settled(4)
    world.advance_seconds(180)
    assert len(world.launched) == 2


# What happens meanwhile


def rewrite_command(world: World, **fields: str) -> None:
    [row] = world.table.list_rows("command")
    body = msgspec.json.encode(msgspec.json.decode(row.body) | fields).decode()
    world.table.write("command", row.name, body, version=row.version)


def test_command_in_a_phase_of_a_newer_version_is_left_alone_and_reported() -> None:
    world = build_shrunk_world()
    rewrite_command(world, phase="TELEPORTING")
    tainted_nodes = list_tainted_nodes(world)
    world.advance_seconds(900)
    [row] = world.table.list_rows("command")
    assert msgspec.json.decode(row.body)["phase"] == "TELEPORTING"
    assert list_tainted_nodes(world) == tainted_nodes != []
    assert any("'TELEPORTING' was written by a newer version" in problem for problem in world.list_problems())


def test_command_in_an_unknown_phase_is_rolled_back_after_two_hours() -> None:
    world = build_shrunk_world()
    began = world.clock.get_time() - timedelta(minutes=118)
    rewrite_command(world, phase="TELEPORTING", phase_since=began.isoformat())
    world.advance_seconds(60)
    assert list_tainted_nodes(world)
    world.advance_seconds(180)
    assert "a newer version" in list_command_reasons(world, "ROLLED_BACK")[0]
    world.wait_until(lambda: count_vcpus(world) == 2, 900)


def test_pod_disruption_budget_created_after_the_proposal_rolls_the_command_back() -> None:
    world = build_shrunk_world()
    world.apply([make_pod_disruption_budget(maxUnavailable=0)])
    world.wait_until(lambda: list_phases(world) == ["ROLLED_BACK"])
    world.wait_until(lambda: not list_tainted_nodes(world))
    assert world.list_done_actions(CreateNodeClaim) == world.list_done_actions(CreateNodeClaim)[:1]
    assert world.list_done_actions(EvictPod) == []
    assert "PodDisruptionBudget default/web blocks the eviction of" in list_command_reasons(world, "ROLLED_BACK")[0]


def test_pods_created_during_a_replacement_are_scheduled_on_other_nodes() -> None:
    world = build_shrunk_world()
    world.scale(8)
    world.wait_until(lambda: list_phases(world) == ["DONE"], 600)
    world.wait_until_settled(8)
    assert list_tainted_nodes(world) == []


@pytest.mark.parametrize("phase", ["PROPOSED", "LAUNCHED"])
def test_api_server_outage_delays_a_disruption_command_without_rolling_it_back(phase: str) -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) == [phase])
    with world.fail_ports("kube"):
        world.advance_seconds(240)
        assert list_phases(world) == [phase]
        assert len(world.list_running_pods()) == 2
    assert {entry.function for entry in world.entries if "Unreachable: kube." in entry.error} >= {
        "disrupt",
        "lifecycle",
    }
    world.wait_until(lambda: list_phases(world) == ["DONE"], 600)
    world.wait_until_settled(2)
    assert (len(world.list_active_instances()), len(world.launched)) == (1, 2)


@pytest.mark.parametrize("phase", ["PROPOSED", "LAUNCHED"])
def test_state_table_outage_delays_a_disruption_command_without_rolling_it_back(phase: str) -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) == [phase])
    with world.fail_ports("table", world_prefix="disrupt"):
        world.advance_seconds(120)
    world.wait_until(lambda: list_phases(world) == ["DONE"], 600)
    assert (len(world.list_active_instances()), len(world.launched)) == (1, 2)


def test_consolidation_completes_after_all_state_table_rows_are_deleted() -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) == ["LAUNCHED"])
    for kind in ("command", "launch-group", "ledger", "cursor", "follow-up"):
        for row in world.table.list_rows(kind):
            world.table.remove(kind, row.name, version=row.version)
    world.wait_until(lambda: count_vcpus(world) == 2 and len(world.list_claims()) == 1, 900)
    world.wait_until_settled(2)
    assert list_tainted_nodes(world) == []


class Skewed(World):
    """A world in which disrupt's clock is wrong."""

    skew = timedelta()

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        world = super()._build_world(function, environment)
        late = self.skew if function == "disrupt" else timedelta()
        return msgspec.structs.replace(world, clock=lambda: self.clock.get_time() + late)


@pytest.mark.parametrize("minutes", [-3, 3])
def test_clock_skew_delays_consolidation_without_breaking_it(minutes: int) -> None:
    world = Skewed(make_node_class(), make_node_pool(types=SIZES, disruption=CHEAPER), make_deployment(8))
    world.wait_until_settled(8)
    world.advance_seconds(150)
    world.scale(2)
    world.wait_until(lambda: list_phases(world) == ["PROPOSED"])
    world.skew = timedelta(minutes=minutes)
    world.wait_until(lambda: count_vcpus(world) == 2 and len(world.list_claims()) == 1, 1200)
    world.wait_until_settled(2)
    assert list_tainted_nodes(world) == []
    problems = [
        problem
        for problem in world.list_problems()
        if problem.startswith("NodeClaim default-") and "ahead of our clock" in problem
    ]
    assert bool(problems) is (minutes < 0)


def test_disruption_pause_rolls_back_a_running_command_and_resume_restarts_it() -> None:
    world = build_shrunk_world()
    world.wait_until(lambda: list_phases(world) == ["LAUNCHED"])
    annotate(world, "true")
    world.wait_until(lambda: list_phases(world) == ["ROLLED_BACK"])
    world.wait_until(lambda: len(world.list_claims()) == 1 and not list_tainted_nodes(world), 300)
    assert [instance.instance_type for instance in world.list_active_instances()] == ["m5.2xlarge"]
    annotate(world, None)
    world.wait_until(lambda: count_vcpus(world) == 2 and len(world.list_claims()) == 1, 600)
    world.wait_until_settled(2)


def test_replacement_node_is_removed_when_the_original_node_becomes_protected() -> None:
    """Somebody protects a pod while the new node boots: the old one stays, and the new one is of no use."""
    world = build_settled_world(3, disruption={"budgets": [{"nodes": "1"}]}, types=("m5.xlarge",), after="Never")
    world.cloud.release_amis()
    world.wait_until(lambda: list_phases(world) == ["LAUNCHED"], 900)
    for pod in world.cluster.list_pods("default"):
        note = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
        world.cluster.api.patch("pods", pod["metadata"]["name"], note, "default")
    world.wait_until(lambda: "ROLLED_BACK" in list_phases(world), 300)
    assert "is now protected from disruption" in list_command_reasons(world, "ROLLED_BACK")[0]
    assert len(world.list_active_instances()) == 2
    world.wait_until(lambda: len(world.list_active_instances()) == 1, TICK + 2 * FOLLOW_UP + DRAIN)
    assert world.list_done_actions(EvictPod) == []
    assert len(world.list_running_pods()) == 3


def annotate(world: World, text: str | None) -> None:
    patch = {"metadata": {"annotations": {"joiner.dev/disruption-paused": text}}}
    world.cluster.api.patch(POOLS, "default", patch)


def test_duplicate_queue_messages_do_not_repeat_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    world = build_shrunk_world()
    monkeypatch.setattr(world.runtime, "count_copies", lambda *_: 2)
    world.wait_until(lambda: list_phases(world) == ["DONE"], 600)
    deleted = [action.name for action in world.list_done_actions(DeleteObject) if action.kind == "NodeClaim"]
    assert len(deleted) == 1
    assert len(world.launched) == 2


def test_disruption_completes_after_the_api_server_rejects_writes_for_two_minutes() -> None:
    world = build_shrunk_world()

    def refuse(call: PortCall) -> None:
        if call.port == "kube" and call.method in ("create", "delete", "patch") and call.phase == "before":
            raise Unreachable("outage")

    with world.use_tap(refuse):
        world.advance_seconds(120)
        assert len(world.list_claims()) == 1
    world.wait_until(lambda: list_phases(world)[-1:] == ["DONE"], 900)
    world.wait_until_settled(2)
    assert count_vcpus(world) == 2
