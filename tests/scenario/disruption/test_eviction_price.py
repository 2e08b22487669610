"""Evictions with a price, and workloads with a cool-down, from the setting to the explanation."""

from collections.abc import Mapping
from typing import ClassVar

from cli.explain.answers import explain_object
from cli.explain.evidence import build_evidence
from cli.explain.kinds import ExplainKind
from cli.journal.journal import Cycle, Journal
from shared.model.core.labels import VOLUNTARY_DISRUPTION
from shared.model.decisions.action import EvictPod
from shared.ports import world as ports_world
from tests.scenario.disruption.test_disruption import CHEAPER, SIZES, list_command_states, list_phases
from tests.scenario.worlds import World, count_vcpus, make_deployment, make_node_class, make_node_pool


class PricedWorld(World):
    """A deployment with an eviction price of $0.02."""

    overrides: ClassVar[Mapping[str, str]] = {"JOINER_EVICTION_PRICE_USD": "0.02"}

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        return super()._build_world(function, {**environment, **self.overrides})


class CoolingWorld(PricedWorld):
    """A deployment with a cool-down of one hour."""

    overrides: ClassVar[Mapping[str, str]] = {"JOINER_WORKLOAD_COOLDOWN": "1h"}


def build_shrunk_world(world_type: type[World], annotations: Mapping[str, str] | None = None) -> World:
    """Build a world whose node has become too large: 8 pods ran on it, 2 are left."""
    pool = make_node_pool(types=SIZES, disruption=CHEAPER)
    pool["metadata"]["annotations"] = dict(annotations or {})
    world = world_type(make_node_class(), pool, make_deployment(8))
    world.wait_until_settled(8)
    world.advance_seconds(150)
    world.scale(2)
    return world


def explain(world: World, kind: ExplainKind, name: str) -> str:
    cycles = tuple(Cycle(key=str(number), entry=entry) for number, entry in enumerate(world.entries))
    evidence = build_evidence(Journal(source="journal", cycles=cycles, now=world.clock.get_time()), None)
    explanation = explain_object(evidence, kind, name)
    return "\n".join(
        [
            *(text for answer in explanation.answers for text in answer.sentences),
            *(f"{entry.text}: {entry.reason}" for entry in explanation.history),
        ]
    )


def test_replacement_waits_until_it_pays_for_its_evictions_and_explains_the_sum() -> None:
    """It saves about $0.29/h: 9 minutes pay for two evictions and the launch."""
    world = build_shrunk_world(PricedWorld)
    [node] = world.list_nodes()
    world.advance_seconds(7 * 60)
    assert (list_phases(world), count_vcpus(world)) == ([], 8)
    refusal = explain(world, "node", node["metadata"]["name"])
    assert "PaybackPending: would save $0.29" in refusal
    assert "/h, costs 2 evictions = $0.04 and 3m of both nodes = $0.0049: waits until " in refusal
    assert "UTC, when nothing has changed for 9m" in refusal
    world.wait_until(lambda: count_vcpus(world) == 2 and len(world.list_claims()) == 1, 900)
    [command_state] = list_command_states(world)
    explanation = explain(world, "command", command_state.command.command_id)
    assert "costs 2 evictions = $0.04 and 3m of both nodes = " in explanation
    assert "over an expected " in explanation


def test_node_pool_annotation_sets_the_eviction_price_of_a_running_deployment() -> None:
    world = build_shrunk_world(World, annotations={"joiner.dev/eviction-price-usd": "900"})
    world.advance_seconds(30 * 60)
    assert (list_phases(world), count_vcpus(world)) == ([], 8)


def test_workload_is_left_alone_for_its_cooldown_after_a_disruption() -> None:
    world = build_shrunk_world(CoolingWorld)
    world.wait_until(lambda: list_phases(world) == ["DONE"], 900)
    world.wait_until_settled(2)
    eviction_count = len(world.list_done_actions(EvictPod))
    [node] = world.list_nodes()
    name = node["metadata"]["name"]
    world.cluster.api.patch("nodes", name, {"metadata": {"annotations": {VOLUNTARY_DISRUPTION: "drifted"}}})
    world.advance_seconds(45 * 60)
    assert len(world.list_done_actions(EvictPod)) == eviction_count
    assert "WorkloadCooldown: pods of default/Deployment/" in explain(world, "node", name)
    world.wait_until(lambda: len(world.list_done_actions(EvictPod)) > eviction_count, 45 * 60)
