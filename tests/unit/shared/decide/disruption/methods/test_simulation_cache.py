"""The memory of trials makes runs faster and changes no decision."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_controller import DisruptionDecision
from shared.decide.disruption.methods.simulation_cache import LAST_TRIALS, MAX_TRIALS, TrialMemory
from shared.decide.disruption.simulation.node_removal import NodeRemoval
from shared.decide.disruption.simulation.simulation import SchedulingSimulation
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import POD_DIGEST
from shared.model.core.metadata import build_pairs
from tests.support.catalogues import NOW, make_node_pool
from tests.support.disruption_fleet import BOTH, decide_disruption, make_fleet, make_node_with_pods, make_web_pod

MINUTES = st.integers(0, 1600)
CPUS = st.sampled_from(("250m", "500m", "900m", "1500m", "3"))


@pytest.fixture(autouse=True)
def forget_trials() -> Iterator[None]:
    yield
    LAST_TRIALS.is_enabled = True


@st.composite
def draw_fleets(draw: st.DrawFn) -> ClusterSnapshot:
    policy = draw(st.sampled_from(("WhenEmptyOrUnderutilized", "Balanced")))
    pool = make_node_pool(budgets=(), consolidation_policy=policy, consolidate_after=timedelta(minutes=1))
    machines = []
    for number in range(draw(st.integers(2, 6))):
        cpus = draw(st.lists(CPUS, min_size=1, max_size=4))
        pods = [make_web_pod(f"{number}-{place}", cpu) for place, cpu in enumerate(cpus)]
        machines.append(
            make_node_with_pods(
                f"n{number}",
                *pods,
                cpu=draw(st.sampled_from((4, 8, 16))),
                zone=draw(st.sampled_from("ab")),
                capacity_type=draw(st.sampled_from(("on-demand", "spot"))),
                last_pod_event_at=NOW - timedelta(minutes=draw(MINUTES)),
            )
        )
    return make_fleet(*machines, pools=(pool,), types=BOTH)


SETTINGS = st.builds(
    DisruptionSettings,
    overlap=st.sampled_from((timedelta(), timedelta(minutes=3))),
    eviction_price_usd=st.sampled_from((0.0, 0.0, 0.001, 0.02)),
    frees_limits=st.booleans(),
)


def summarize(decision: DisruptionDecision) -> tuple[object, ...]:
    return decision.commands, decision.verdicts, decision.cursor


def decide_without_memory(cluster: ClusterSnapshot, terms: DisruptionSettings) -> DisruptionDecision:
    LAST_TRIALS.is_enabled = False
    decision = decide_disruption(cluster, terms)
    LAST_TRIALS.is_enabled = True
    return decision


@settings(max_examples=60)
@given(draw_fleets(), SETTINGS, st.lists(MINUTES, min_size=1, max_size=3), st.data())
def test_decisions_with_memory_equal_those_without(
    cluster: ClusterSnapshot, terms: DisruptionSettings, delays: list[int], data: st.DataObject
) -> None:
    clusters = [cluster]
    for delay in sorted(delays):
        later = replace(clusters[-1], taken_at=NOW + timedelta(minutes=delay))
        if data.draw(st.booleans()):
            later = replace(
                later, node_claims=tuple(replace(claim, last_pod_event_at=NOW) for claim in later.node_claims)
            )
        if data.draw(st.integers(0, 3)) == 0:
            position = data.draw(st.integers(0, len(later.pods) - 1))
            later = replace(later, pods=(*later.pods[:position], *later.pods[position + 1 :]))
        clusters.append(later)
    expected_decisions = [summarize(decide_without_memory(snapshot, terms)) for snapshot in clusters]
    assert [summarize(decide_disruption(snapshot, terms)) for snapshot in clusters] == expected_decisions


def make_unchangeable_fleet() -> ClusterSnapshot:
    pods = (("a", "3"), ("b", "2800m"), ("c", "3100m"))
    return make_fleet(*(make_node_with_pods(name, make_web_pod(name, cpu)) for name, cpu in pods))


def count_placements(monkeypatch: pytest.MonkeyPatch, *clusters: ClusterSnapshot) -> list[int]:
    """Return for each of *clusters* how often pods were placed in the simulation of its run."""
    counts: list[int] = []
    place_pods = SchedulingSimulation.place_pods

    def count_and_place(simulation: SchedulingSimulation, pods: object) -> object:
        counts[-1] += 1
        return place_pods(simulation, pods)  # type: ignore[arg-type]

    monkeypatch.setattr(SchedulingSimulation, "place_pods", count_and_place)
    for cluster in clusters:
        counts.append(0)
        decide_disruption(cluster)
    return counts


def test_run_without_changes_simulates_no_removal_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_unchangeable_fleet()
    without_changes = replace(cluster, taken_at=NOW + timedelta(minutes=1))
    first, second = count_placements(monkeypatch, cluster, without_changes)
    building_the_simulation = 1
    assert first > 6
    assert second == building_the_simulation


def test_versions_of_nodes_and_pod_changes_of_claims_keep_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_unchangeable_fleet()
    node, claim = cluster.nodes[0], cluster.node_claims[0]
    meta = replace(claim.meta, annotations=build_pairs(dict(claim.meta.annotations) | {POD_DIGEST: ""}))
    changed = replace(
        cluster,
        nodes=(replace(node, meta=replace(node.meta, resource_version="7")), *cluster.nodes[1:]),
        node_claims=(replace(claim, meta=meta, last_pod_event_at=NOW - timedelta(hours=1)), *cluster.node_claims[1:]),
    )
    assert count_placements(monkeypatch, cluster, changed)[1] == 1


def test_change_of_a_pod_drops_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_unchangeable_fleet()
    changed = replace(cluster, pods=(replace(cluster.pods[0], priority=3), *cluster.pods[1:]))
    assert count_placements(monkeypatch, cluster, changed)[1] > 1


def test_memory_is_bounded() -> None:
    memory = TrialMemory()
    for number in range(MAX_TRIALS + 1):
        memory.record(True, number)  # noqa: FBT003 - any result
    assert memory.get(0) is None
    assert memory.get(MAX_TRIALS) is True


def test_removal_of_nodes_that_needed_no_trial_is_simulated_before_the_next_trial() -> None:
    calls: list[str] = []

    class RecordingSimulation:
        """Records which nodes are cleared."""

        def __init__(self) -> None:
            self.packing = type("Packing", (), {"open_nodes": []})()
            self.node_numbers = {name: number for number, name in enumerate("abc")}

        def begin(self, *, max_new_nodes: int) -> None:
            calls.append(f"begin {max_new_nodes}")

        def clear_node(self, number: int) -> list[object]:
            calls.append(f"clear {number}")
            return []

        def place_pods(self, pods: list[object]) -> list[object]:
            calls.append("place")
            return list(pods)

        def commit(self) -> None:
            calls.append("commit")

        def roll_back(self) -> None:
            calls.append("roll back")

    removal = NodeRemoval(RecordingSimulation(), "a")  # type: ignore[arg-type]
    removal.roll_back()
    assert not calls
    removal.add_without_trial("b")
    removal.begin_trial("c")
    assert calls == ["begin 1", "clear 0", "place", "begin 1", "clear 1", "place", "commit", "begin 1", "clear 2"]
    removal.roll_back_trial()
    removal.roll_back()
    assert calls[-2:] == ["roll back", "roll back"]
