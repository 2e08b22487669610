"""Whatever was decided is decided again from what was kept of it, byte for byte: in plays, under faults, over days."""

import base64
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.replay_differences import compared
from cli.replayed import cluster_of, decided_again, decided_then
from shared.model.action import FollowUp
from shared.report.code import code_digest
from shared.report.journal import PREFIX, Entry, read_entry
from shared.report.snapshots import PREFIX as SNAPSHOTS
from shared.report.snapshots import read_snapshot
from shared.settings import Settings
from shared.snapshot.catalogue import decode_catalogue
from sim import deployed
from sim.chaos.draw import brief_of, script_of
from sim.chaos.run import play
from sim.memory import MemoryBucket
from sim.play import Stage
from sim.scenario import read_scenario
from tests.scenario.worlds import World, deployment, node_class, pool

SCENARIOS = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.yaml"))


class Judge:
    """Decides every entry again as soon as it is written."""

    def __init__(self) -> None:
        """Know of none yet."""
        self.again: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.broken: list[str] = []
        self.entries: list[Entry] = []

    def see(self, bucket: MemoryBucket, key: str) -> None:
        """Judge the entry under *key*, if something was kept of what it was decided from."""
        entry = read_entry(bucket.get(key))
        self.entries.append(entry)
        if not entry.snapshot:
            return
        assert entry.code == code_digest()
        snapshot = read_snapshot(bucket.get(entry.snapshot))
        catalogue = decode_catalogue(bucket.get(snapshot.catalogue)) if snapshot.catalogue else None
        kept = snapshot.given.kept
        sold = decode_catalogue(bucket.get(kept.catalogue)) if kept is not None and kept.catalogue else None
        again = decided_again(entry, snapshot, cluster_of(snapshot, catalogue), sold)
        found = compared(decided_then(entry, snapshot), again)
        if snapshot.made.cut:
            self.cut[entry.function] += 1
            return
        self.again[entry.function] += 1
        if not found.is_same:
            self.broken.append(f"{key}: {(*found.actions, *found.notes)[:3]} {found.is_reordered}")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    one = Judge()
    put: Callable[[deployed.Journalled, str, bytes], None] = deployed.Journalled.put

    def put_and_judge(self: deployed.Journalled, key: str, body: bytes) -> None:
        put(self, key, body)
        if key.startswith(PREFIX):
            one.see(self, key)

    monkeypatch.setattr(deployed.Journalled, "put", put_and_judge)
    yield one
    assert one.broken == []


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_decision_of_a_play_is_made_again(path: Path, judge: Judge) -> None:
    scenario = read_scenario(path)
    Stage(scenario, scenario.seed, lambda _: None).play()
    assert judge.again["provision"] > 1
    assert not judge.cut


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_every_decision_among_lost_and_overtaken_launches_is_made_again(seed: int, judge: Judge) -> None:
    play(brief_of(seed))
    assert judge.again["provision"] > 1


@pytest.mark.parametrize("seed", [4, 5])
def test_every_decision_of_half_an_hour_under_faults_is_made_again(seed: int, judge: Judge) -> None:
    play(script_of(seed))
    assert judge.again["provision"] > 1
    assert judge.again["disrupt"] > 1


def test_what_lifecycle_catalog_and_launches_did_is_made_again(judge: Judge) -> None:
    world = World(node_class(), pool(), deployment(3))
    world.settled(3)
    world.scale(0)
    world.seconds(240)
    assert {"catalog", "lifecycle", "provision", "disrupt"} <= set(judge.again)
    done = {type(one.action).__name__ for each in judge.entries if each.snapshot for one in each.done}
    assert {"LaunchInstances", "RegisterNode", "TerminateInstances"} <= done


def test_user_data_is_in_no_object_of_the_bucket(judge: Judge) -> None:
    secret = "hunter2"  # noqa: S105 - what must not be found
    world = World(node_class(userData=f"#!/bin/bash\nexport PASSWORD={secret}\n"), pool(), deployment(3))
    world.settled(3)
    assert judge.again["provision"]
    made = world.cloud.templates.tagged("eks:eks-cluster-name", "demo")
    assert any(secret in base64.b64decode(one.user_data).decode() for one in made)
    for key in world.bucket.keys(""):
        body = world.bucket.get(key)
        text = (gzip.decompress(body) if key.endswith(".gz") else body).decode()
        assert secret not in text, key
        assert set(re.findall(r'"user_data":"([^"]*)"', text)) <= {""}, key


def test_a_cycle_that_only_notes_what_is_leaves_no_snapshot(judge: Judge) -> None:
    world = World(node_class(), pool(), deployment(3))
    world.settled(3)
    before = len(judge.entries)
    world.scale(2)
    world.seconds(20)
    noted = [one for one in judge.entries[before:] if one.function == "lifecycle" and one.done]
    assert noted
    assert not any(one.snapshot for one in noted)


def test_what_is_not_wanted_is_not_kept(monkeypatch: pytest.MonkeyPatch, judge: Judge) -> None:
    read = Settings.from_environment

    def off(environ: Mapping[str, str]) -> Settings:
        return replace(read(environ), snapshots="off")

    monkeypatch.setattr(Settings, "from_environment", off)
    world = World(node_class(), pool(), deployment(3))
    world.settled(3)
    assert judge.entries
    assert world.bucket.keys(SNAPSHOTS) == ()
    assert not any(one.snapshot for one in judge.entries)


def test_pods_that_keep_the_room_they_have_leave_no_snapshot(judge: Judge) -> None:
    world = World(node_class(), pool(), deployment(3))
    world.settled(3)
    idle = [one for one in judge.entries if all(isinstance(done.action, FollowUp) for done in one.done)]
    told = [one for one in idle if one.function == "provision" and one.notes]
    assert told
    assert not any(one.snapshot for one in told)
    assert len(world.bucket.keys(SNAPSHOTS)) == sum(bool(one.snapshot) for one in judge.entries)
