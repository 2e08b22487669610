"""Disruption in the whole world: what is begun comes to its end or is taken back, whatever happens meanwhile."""

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from shared import ports
from shared.errors import Unreachable
from shared.model.action import CreateNodeClaim, DeleteObject, EvictPod
from shared.model.commands import Standing
from shared.model.units import parse_instant
from sim.faults import Call
from tests.scenario.worlds import CLAIMS, POOLS, Json, World, budget, deployment, node_class, pool, vcpus

CHEAPER: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")
TICK, VALIDATION, DRAIN, FOLLOW_UP = 60, 15, 15, 5
"""Seconds: until somebody looks, how long a proposal stands, what an easy drain takes, how soon one is woken again."""


def at_work(replicas: int, *more: Json, **spec: Any) -> World:
    """Answer a world in which pods run, nothing has happened for a while, and nodes may be consolidated."""
    spec = {"types": SIZES, "disruption": CHEAPER} | spec
    world = World(node_class(), pool(**spec), deployment(replicas), *more)
    world.settled(replicas)
    world.seconds(150)
    return world


def shrunk(*more: Json, **spec: Any) -> World:
    """Answer one in which a large node has become too large, and that is proposed."""
    world = at_work(8, *more, **spec)
    assert vcpus(world) == 8
    world.scale(2)
    world.until(lambda: phases(world) == ["PROPOSED"])
    return world


def standings(world: World) -> list[Standing]:
    return [msgspec.json.decode(row.body, type=Standing) for row in world.table.rows("command")]


def phases(world: World) -> list[str]:
    return [one.phase for one in standings(world)]


def tainted(world: World) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in world.nodes()
        if any(taint["key"] == "karpenter.sh/disrupted" for taint in node["spec"].get("taints", []))
    ]


def said(world: World, verdict: str) -> list[str]:
    """Answer what the journal says of commands that came so far."""
    return [
        note.why
        for entry in world.entries
        for note in entry.notes
        if note.kind == "Command" and note.verdict == verdict
    ]


def sell_out(world: World) -> None:
    """Leave no capacity of what is smaller."""
    for name in ("m5.large", "m5.xlarge"):
        for zone in {zone for _, zone in world.cloud.offerings}:
            world.cloud.set_capacity(name, zone, "on-demand", 0)


# Reaction


@pytest.mark.parametrize("offset", [0, 20, 40])
def test_after_a_scale_down_it_settles_as_fast_as_the_rules_allow(
    offset: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """From 20 pods to 10, so long after a tick; Karpenter took 327 s for this."""
    world = at_work(20, after="30s")
    assert len(world.nodes()) == 2
    world.seconds(offset)
    world.scale(10)
    began = world.clock.now()
    seen = world.until(lambda: any(last_pod_event(one) >= began for one in world.claims()))
    settled = world.until(lambda: len(world.living()) == 1)
    with capsys.disabled():
        print(f"\nsettled {seen + settled:.0f} s after the scale-down, {settled:.0f} s after it was seen")  # noqa: T201 - the figure
    assert seen <= TICK
    assert settled <= 30 + VALIDATION + FOLLOW_UP + DRAIN
    world.settled(10)
    assert len(world.launched) == 2


def last_pod_event(claim: Json) -> datetime:
    return parse_instant(claim["status"]["lastPodEventTime"])


def test_a_fleet_gets_cheaper_until_it_cannot_and_then_rests() -> None:
    world = at_work(20, after="30s")
    world.scale(2)
    world.until(lambda: vcpus(world) == 2 and len(world.claims()) == 1, 600)
    world.settled(2)
    begun = len(said(world, "PROPOSED"))
    world.seconds(600)
    assert len(said(world, "PROPOSED")) == begun
    assert said(world, "ROLLED_BACK") == []


# A replacement


def test_a_large_node_goes_after_a_smaller_one_has_come() -> None:
    world = shrunk()
    order: list[str] = []

    def note(call: Call) -> None:
        if (
            call.port == "kube"
            and call.when == "after"
            and call.who.startswith("disrupt")
            and CLAIMS[:10] in call.detail
        ):
            order.append(call.method)

    with world.tapped(note):
        world.until(lambda: phases(world) == ["LAUNCHED"])
        world.until(lambda: phases(world) == ["DONE"])
    assert [one for one in order if one in ("create", "delete")] == ["create", "delete"]
    assert vcpus(world) == 2
    world.settled(2)
    assert len(world.launched) == 2
    assert [len(said(world, one)) for one in ("PROPOSED", "VALIDATED", "LAUNCHED", "INITIALIZED", "DONE")] == [1] * 5


def test_where_there_is_no_capacity_for_the_replacement_the_node_stays_and_serves() -> None:
    world = shrunk()
    sell_out(world)
    world.until(lambda: "ROLLED_BACK" in phases(world), 600)
    world.until(lambda: not tainted(world))
    assert (vcpus(world), len(world.running())) == (8, 2)
    assert world.done(EvictPod) == []
    world.until(lambda: len(world.claims()) == 1)
    [first, *_] = said(world, "ROLLED_BACK")
    assert first.startswith("replacement ")


def test_a_replacement_that_never_joins_is_given_up_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    world = shrunk()
    monkeypatch.setattr(world.live, "start_node", lambda _: None)
    world.until(lambda: "ROLLED_BACK" in phases(world), 900)
    assert "was not fit for use in time" in said(world, "ROLLED_BACK")[0]
    [new] = world.launched[1:2]
    world.until(lambda: new not in {one.instance_id for one in world.living()}, 120)
    assert world.done(EvictPod) == []
    assert len(world.running()) == 2


def test_three_failures_in_a_row_pause_what_needs_replacements_and_say_so() -> None:
    world = shrunk()
    sell_out(world)
    world.until(lambda: bool(world.events("default", "DisruptionPaused")), 2400)
    [paused, *_] = world.events("default", "DisruptionPaused")
    assert "the last 3 replacements came to nothing" in paused
    assert "kubectl annotate nodepool default" in paused
    world.until(lambda: not tainted(world))
    begun = len(said(world, "PROPOSED"))
    world.seconds(600)
    assert len(said(world, "PROPOSED")) == begun
    assert len(world.running()) == 2


# Drift


def test_a_new_image_renews_every_node_one_at_a_time_and_no_pod_is_without_a_place() -> None:
    world = at_work(6, disruption={"budgets": [{"nodes": "1"}]}, types=("m5.xlarge",))
    before = {node["metadata"]["name"] for node in world.nodes()}
    assert len(before) == 2
    world.cloud.release_amis()
    seen: set[int] = set()

    def renewed() -> bool:
        seen.add(len([one for one in world.claims() if "deletionTimestamp" in one["metadata"]]))
        return not before & {node["metadata"]["name"] for node in world.nodes()}

    world.until(renewed, 1200)
    world.settled(6)
    assert max(seen) == 1
    assert said(world, "ROLLED_BACK") == []
    world.seconds(300)
    assert len(world.launched) == 4


def test_a_new_image_is_tried_by_one_node_before_the_others_follow() -> None:
    soak = pool(types=("m5.xlarge",), disruption={"budgets": [{"nodes": "100%"}]})
    soak["metadata"]["annotations"] = {"joiner.dev/image-soak": "20m"}
    world = World(node_class(), soak, deployment(12))
    world.settled(12)
    world.seconds(60)
    before = {node["metadata"]["name"] for node in world.nodes()}
    assert len(before) == 3
    world.cloud.release_amis()
    world.until(lambda: len(before & {node["metadata"]["name"] for node in world.nodes()}) == 2, 900)
    tried = world.clock.now()
    world.seconds(900)
    assert len(before & {node["metadata"]["name"] for node in world.nodes()}) == 2
    assert any("2 nodes keep their image until" in one for one in world.events("default", "ImageCanary"))
    world.until(lambda: not before & {node["metadata"]["name"] for node in world.nodes()}, 900)
    assert world.clock.now() - tried >= timedelta(minutes=18)
    world.settled(12)


def test_a_node_that_somebody_calls_drifted_is_replaced_once() -> None:
    world = at_work(4, types=("m5.xlarge",))
    [node] = [one["metadata"]["name"] for one in world.nodes()]
    world.live.api.patch("nodes", node, {"metadata": {"annotations": {"karpenter.sh/voluntary-disruption": "drifted"}}})
    world.until(lambda: node not in {one["metadata"]["name"] for one in world.nodes()}, 300)
    world.settled(4)
    world.seconds(180)
    assert len(world.launched) == 2


# What happens meanwhile


def test_a_budget_that_comes_between_proposal_and_decision_keeps_the_node() -> None:
    world = shrunk()
    world.apply([budget(maxUnavailable=0)])
    world.until(lambda: phases(world) == ["ROLLED_BACK"])
    world.until(lambda: not tainted(world))
    assert world.done(CreateNodeClaim) == world.done(CreateNodeClaim)[:1]
    assert world.done(EvictPod) == []
    assert "is held by pod disruption budget default/web" in said(world, "ROLLED_BACK")[0]


def test_pods_that_come_meanwhile_have_their_place_elsewhere() -> None:
    world = shrunk()
    world.scale(8)
    world.until(lambda: phases(world) == ["DONE"], 600)
    world.settled(8)
    assert tainted(world) == []


@pytest.mark.parametrize("phase", ["PROPOSED", "LAUNCHED"])
def test_an_api_server_that_is_gone_in_the_middle_delays_and_undoes_nothing(phase: str) -> None:
    world = shrunk()
    world.until(lambda: phases(world) == [phase])
    with world.down("kube"):
        world.seconds(240)
        assert phases(world) == [phase]
        assert len(world.running()) == 2
    assert {one.function for one in world.entries if "Unreachable: kube." in one.error} >= {"disrupt", "lifecycle"}
    world.until(lambda: phases(world) == ["DONE"], 600)
    world.settled(2)
    assert (len(world.living()), len(world.launched)) == (1, 2)


@pytest.mark.parametrize("phase", ["PROPOSED", "LAUNCHED"])
def test_a_table_that_is_gone_in_the_middle_delays_and_undoes_nothing(phase: str) -> None:
    world = shrunk()
    world.until(lambda: phases(world) == [phase])
    with world.down("table", who="disrupt"):
        world.seconds(120)
    world.until(lambda: phases(world) == ["DONE"], 600)
    assert (len(world.living()), len(world.launched)) == (1, 2)


def test_a_table_that_was_emptied_in_the_middle_costs_time_and_nothing_else() -> None:
    world = shrunk()
    world.until(lambda: phases(world) == ["LAUNCHED"])
    for kind in ("command", "launch-group", "ledger", "cursor", "follow-up"):
        for row in world.table.rows(kind):
            world.table.remove(kind, row.name, version=row.version)
    world.until(lambda: vcpus(world) == 2 and len(world.claims()) == 1, 900)
    world.settled(2)
    assert tainted(world) == []


class Skewed(World):
    """A world in which disrupt's clock is wrong."""

    skew = timedelta()

    def _world(self, function: str, environment: dict[str, str]) -> ports.World:
        world = super()._world(function, environment)
        late = self.skew if function == "disrupt" else timedelta()
        return msgspec.structs.replace(world, clock=lambda: self.clock.now() + late)


@pytest.mark.parametrize("minutes", [-3, 3])
def test_a_clock_that_goes_wrong_in_the_middle_delays_and_breaks_nothing(minutes: int) -> None:
    world = Skewed(node_class(), pool(types=SIZES, disruption=CHEAPER), deployment(8))
    world.settled(8)
    world.seconds(150)
    world.scale(2)
    world.until(lambda: phases(world) == ["PROPOSED"])
    world.skew = timedelta(minutes=minutes)
    world.until(lambda: vcpus(world) == 2 and len(world.claims()) == 1, 1200)
    world.settled(2)
    assert tainted(world) == []
    named = [one for one in world.problems() if one.startswith("NodeClaim default-") and "ahead of our clock" in one]
    assert bool(named) is (minutes < 0)


def test_a_pause_stops_what_has_begun_and_its_end_begins_it_again() -> None:
    world = shrunk()
    world.until(lambda: phases(world) == ["LAUNCHED"])
    annotate(world, "true")
    world.until(lambda: phases(world) == ["ROLLED_BACK"])
    world.until(lambda: len(world.claims()) == 1 and not tainted(world), 300)
    assert [one.instance_type for one in world.living()] == ["m5.2xlarge"]
    annotate(world, None)
    world.until(lambda: vcpus(world) == 2 and len(world.claims()) == 1, 600)
    world.settled(2)


def test_a_replacement_that_came_for_nothing_goes_again() -> None:
    """Somebody protects a pod while the new node boots: the old one stays, and the new one is of no use."""
    world = at_work(3, disruption={"budgets": [{"nodes": "1"}]}, types=("m5.xlarge",), after="Never")
    world.cloud.release_amis()
    world.until(lambda: phases(world) == ["LAUNCHED"], 900)
    for pod in world.live.pods("default"):
        note = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
        world.live.api.patch("pods", pod["metadata"]["name"], note, "default")
    world.until(lambda: "ROLLED_BACK" in phases(world), 300)
    assert "must not be disrupted any more" in said(world, "ROLLED_BACK")[0]
    assert len(world.living()) == 2
    world.until(lambda: len(world.living()) == 1, TICK + 2 * FOLLOW_UP + DRAIN)
    assert world.done(EvictPod) == []
    assert len(world.running()) == 3


def annotate(world: World, text: str | None) -> None:
    patch = {"metadata": {"annotations": {"joiner.dev/disruption-paused": text}}}
    world.live.api.patch(POOLS, "default", patch)


def test_nothing_is_done_twice_where_every_message_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    world = shrunk()
    monkeypatch.setattr(world.runtime, "copies", lambda *_: 2)
    world.until(lambda: phases(world) == ["DONE"], 600)
    deleted = [one.name for one in world.done(DeleteObject) if one.kind == "NodeClaim"]
    assert len(deleted) == 1
    assert len(world.launched) == 2


def test_an_api_that_answers_no_writes_in_the_middle_is_written_to_later() -> None:
    world = shrunk()

    def refuse(call: Call) -> None:
        if call.port == "kube" and call.method in ("create", "delete", "patch") and call.when == "before":
            raise Unreachable("outage")

    with world.tapped(refuse):
        world.seconds(120)
        assert len(world.claims()) == 1
    world.until(lambda: phases(world)[-1:] == ["DONE"], 900)
    world.settled(2)
    assert vcpus(world) == 2
