"""Every decision is replayed from its snapshot, byte for byte: in scenarios, under faults and over days."""

import base64
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.replay.differences import compare_decisions
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.model.core.labels import PAUSE_AFTER_FAILURES
from shared.model.decisions.action import FollowUp
from shared.model.decisions.decision_answers import AppliedOverlays, find_answer
from shared.report.journal.decision_record import SNAPSHOT_PREFIX as SNAPSHOTS
from shared.report.journal.decision_record import decode_record
from shared.report.journal.journal import JOURNAL_PREFIX, JournalEntry, decode_entry
from shared.settings import Settings
from shared.store.catalog_format import decode_catalog
from shared.store.shared_cache.code_digest import compute_code_digest
from sim.fault_simulation.drawing.draw_script import draw_brief_script, draw_script
from sim.fault_simulation.run import run_script
from sim.scenarios.runner import ScenarioRunner
from sim.scenarios.scenario import read_scenario
from sim.world import deployed_stack
from sim.world.memory_ports import MemoryBucket
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

SCENARIOS = sorted((Path(__file__).parents[3] / "examples" / "scenarios").glob("*.yaml"))


class Judge:
    """Replays every journal entry as soon as it is written."""

    def __init__(self) -> None:
        """Start with empty counts."""
        self.replays: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.broken: list[str] = []
        self.entries: list[JournalEntry] = []

    def replay_entry(self, bucket: MemoryBucket, key: str) -> None:
        """Replay the entry under *key*, if it has a snapshot."""
        entry = decode_entry(bucket.get(key))
        self.entries.append(entry)
        if not entry.snapshot:
            return
        assert entry.code == compute_code_digest()
        snapshot = decode_record(bucket.get(entry.snapshot))
        catalogue = decode_catalog(bucket.get(snapshot.catalog_key)) if snapshot.catalog_key else None
        overlays = find_answer(snapshot.inputs.answers, AppliedOverlays)
        lifecycle_catalog = (
            decode_catalog(bucket.get(overlays.catalog_key)) if overlays is not None and overlays.catalog_key else None
        )
        replayed = replay_decision(entry, snapshot, build_cluster(snapshot, catalogue), lifecycle_catalog)
        differences = compare_decisions(build_recorded_decision(entry, snapshot), replayed)
        if snapshot.summary.cut:
            self.cut[entry.function] += 1
            return
        self.replays[entry.function] += 1
        if not differences.is_same:
            self.broken.append(f"{key}: {(*differences.actions, *differences.notes)[:3]} {differences.is_reordered}")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    entry_judge = Judge()
    original_put: Callable[[deployed_stack.JournalingBucket, str, bytes], None] = deployed_stack.JournalingBucket.put

    def put_and_judge(self: deployed_stack.JournalingBucket, key: str, body: bytes) -> None:
        original_put(self, key, body)
        if key.startswith(JOURNAL_PREFIX):
            entry_judge.replay_entry(self, key)

    monkeypatch.setattr(deployed_stack.JournalingBucket, "put", put_and_judge)
    yield entry_judge
    assert entry_judge.broken == []


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_decision_of_an_example_scenario_is_reproduced_by_replay(path: Path, judge: Judge) -> None:
    scenario = read_scenario(path)
    ScenarioRunner(scenario, scenario.seed, lambda _: None).run_scenario()
    assert judge.replays["provision"] > 1
    assert not judge.cut


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_every_decision_under_lost_launches_is_reproduced_by_replay(seed: int, judge: Judge) -> None:
    run_script(draw_brief_script(seed))
    assert judge.replays["provision"] > 1


@pytest.mark.parametrize("seed", [4, 5])
def test_every_decision_of_half_an_hour_of_faults_is_reproduced_by_replay(seed: int, judge: Judge) -> None:
    run_script(draw_script(seed))
    assert judge.replays["provision"] > 1
    assert judge.replays["disrupt"] > 1


def test_lifecycle_catalog_and_launch_decisions_are_reproduced_by_replay(judge: Judge) -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(3))
    world.wait_until_settled(3)
    world.scale(0)
    world.advance_seconds(240)
    assert {"catalog", "lifecycle", "provision", "disrupt"} <= set(judge.replays)
    action_names = {
        type(result.action).__name__ for entry in judge.entries if entry.snapshot for result in entry.results
    }
    assert {"LaunchInstances", "RegisterNode", "TerminateInstances"} <= action_names


def test_decisions_while_launches_are_paused_are_reproduced_by_replay(judge: Judge) -> None:
    node_class = make_node_class()
    node_class["metadata"]["annotations"] = {PAUSE_AFTER_FAILURES: "2"}
    world = World(node_class, make_node_pool(types=("m5.large",)))
    world.instance_booter.is_image_broken = lambda _: True
    world.apply([make_deployment(4)])
    world.wait_until(lambda: world.list_events("default", "LaunchesPaused"), 900)
    world.instance_booter.is_image_broken = lambda _: False
    world.wait_until_settled(4, 1200)
    assert judge.replays["provision"] > 1
    assert judge.replays["lifecycle"] > 1


def test_user_data_is_never_stored_in_the_bucket(judge: Judge) -> None:
    secret = "hunter2"  # noqa: S105 - what must not be found
    world = World(
        make_node_class(userData=f"#!/bin/bash\nexport PASSWORD={secret}\n"), make_node_pool(), make_deployment(3)
    )
    world.wait_until_settled(3)
    assert judge.replays["provision"]
    launch_templates = world.cloud.templates.list_by_tag("eks:eks-cluster-name", "demo")
    assert any(secret in base64.b64decode(launch_template.user_data).decode() for launch_template in launch_templates)
    for key in world.bucket.list_keys(""):
        body = world.bucket.get(key)
        text = (gzip.decompress(body) if key.endswith(".gz") else body).decode()
        assert secret not in text, key
        assert set(re.findall(r'"user_data":"([^"]*)"', text)) <= {""}, key


def test_lifecycle_run_that_only_records_notes_stores_no_snapshot(judge: Judge) -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(3))
    world.wait_until_settled(3)
    before = len(judge.entries)
    world.scale(2)
    world.advance_seconds(20)
    noted = [entry for entry in judge.entries[before:] if entry.function == "lifecycle" and entry.results]
    assert noted
    assert not any(entry.snapshot for entry in noted)


def test_snapshots_are_not_stored_when_the_setting_is_off(monkeypatch: pytest.MonkeyPatch, judge: Judge) -> None:
    read = Settings.from_environment

    def read_settings_without_snapshots(environ: Mapping[str, str]) -> Settings:
        return replace(read(environ), snapshots="off")

    monkeypatch.setattr(Settings, "from_environment", read_settings_without_snapshots)
    world = World(make_node_class(), make_node_pool(), make_deployment(3))
    world.wait_until_settled(3)
    assert judge.entries
    assert world.bucket.list_keys(SNAPSHOTS) == ()
    assert not any(entry.snapshot for entry in judge.entries)


def test_provision_run_without_new_nodes_stores_no_snapshot(judge: Judge) -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(3))
    world.wait_until_settled(3)
    idle = [entry for entry in judge.entries if all(isinstance(result.action, FollowUp) for result in entry.results)]
    idle_provisions = [entry for entry in idle if entry.function == "provision" and entry.notes]
    assert idle_provisions
    assert not any(entry.snapshot for entry in idle_provisions)
    assert len(world.bucket.list_keys(SNAPSHOTS)) == sum(bool(entry.snapshot) for entry in judge.entries)
