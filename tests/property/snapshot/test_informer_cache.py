"""A snapshot updated from watches equals a listed snapshot, byte for byte, after any history."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Conflict, Expired, Fault, Forbidden, NotFound, Throttled, Unreachable
from shared.ports.kubernetes import Kube, WatchEvents
from shared.ports.world import World
from shared.take.kubernetes import informer_cache, paging
from shared.take.kubernetes.resource_kinds import ALL_LIST_FIELDS, RESOURCE_KINDS
from shared.take.snapshot import SnapshotRequest, take_snapshot
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.time.virtual_clock import Clock
from tests.property.snapshot.snapshot_histories import (
    BODIES,
    Interrupted,
    Step,
    create_three_of_each,
    encode_snapshot,
    generate_histories,
    generate_writes,
    write,
)
from tests.support.snapshot_world import make_world

EVERYTHING = SnapshotRequest()
WATCHED = st.sampled_from([listing.path.rpartition("/")[2] for listing in RESOURCE_KINDS])
WHEN = st.sampled_from(["begun", "asked"])
FAULTS = st.sampled_from([Expired("410"), Unreachable("cut"), Forbidden("403"), NotFound("404"), Conflict("odd")])
LOOKS: st.SearchStrategy[Step] = st.one_of(
    st.just(("look",)),
    st.just(("forget",)),
    st.just(("wait",)),
    st.tuples(st.just("fail"), WATCHED, WHEN, FAULTS),
    st.tuples(st.just("between"), generate_writes(1, 3)),
    st.just(("expire",)),
)
HISTORIES = generate_histories(LOOKS, max_pairs=6)


class Troubled(Interrupted):
    """A `Kube` whose watches fail once at the requested paths."""

    def __init__(self, kube: Kube) -> None:
        """Have no trouble with *kube* yet."""
        super().__init__(kube)
        self.faults: dict[tuple[str, str], Fault] = {}

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        self._raise_planned_fault(path, "begun")
        changes = super().watch(path, since=since, field_selector=field_selector)

        def ask() -> WatchEvents:
            self._raise_planned_fault(path, "asked")
            return changes()

        return ask

    def _raise_planned_fault(self, path: str, when: str) -> None:
        fault = self.faults.pop((path.rpartition("/")[2], when), None)
        if fault is not None:
            raise fault


class Scene:
    """Two worlds with one cluster: one remembers, the other does not."""

    def __init__(self) -> None:
        """Begin with three of each kind."""
        self.clock = Clock()
        self.api = ApiServer(self.clock, definitions=None)
        self.people = cast("Kube", InMemoryKube(self.api))
        self.kube = Troubled(self.people)
        self.memory: dict[str, object] = {}
        create_three_of_each(self.people)
        self.fresh = msgspec.structs.replace(make_world(clock=self._get_time), kube=self.people)
        self.warm: World = msgspec.structs.replace(self.fresh, kube=cast("Kube", self.kube), memory=self.memory)

    def _get_time(self) -> datetime:
        return self.clock.get_time()

    def write(self, step: Step) -> None:
        for write_args in step[1:]:
            write(self.people, *write_args)

    def assert_snapshots_agree(self) -> None:
        remembered, listed = take_snapshot(self.warm, EVERYTHING), take_snapshot(self.fresh, EVERYTHING)
        assert encode_snapshot(remembered) == encode_snapshot(listed)

    def is_interrupted(self, between: Callable[[], object]) -> None:
        """Read from the beginning, with something *between* two pages."""
        self.memory.clear()
        self.kube.between = between
        take_snapshot(self.warm, EVERYTHING)
        self.kube.between = None
        self.assert_snapshots_agree()


def play(scene: Scene, history: list[Step]) -> None:
    for step in history:
        match step:
            case ("look",):
                scene.assert_snapshots_agree()
            case ("forget",):
                scene.api.expire_history()
            case ("wait",):
                scene.clock.advance(timedelta(minutes=17))
            case ("fail", str(path), str(when), Fault() as fault):
                scene.kube.faults[path, when] = fault
            case ("between", interim_step):
                scene.is_interrupted(lambda some=interim_step: scene.write(some))  # type: ignore[misc] # bound now
            case ("expire",):
                scene.is_interrupted(scene.api.expire_tokens)
            case ("write", *_):
                scene.write(step)
            case _:
                pytest.fail(f"no such step: {step}")


@pytest.fixture(autouse=True, scope="module")
def _small_lists_are_kept_and_read_in_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        patched.setattr(paging, "MAX_OBJECTS_PER_PAGE", 2)
        yield


def test_generated_histories_cover_every_resource_list() -> None:
    assert set(BODIES) == set(ALL_LIST_FIELDS)
    cluster = take_snapshot(Scene().fresh, EVERYTHING)
    assert [field for field in ALL_LIST_FIELDS if len(getattr(cluster, field)) < 3] == []
    assert cluster.problems == ()


@given(HISTORIES)
def test_informer_cache_matches_a_full_list_after_any_history(history: list[Step]) -> None:
    play(Scene(), [("look",), *history, ("look",), ("look",)])


@given(HISTORIES)
def test_informer_cache_lists_once_when_no_watch_fails(history: list[Step]) -> None:
    scene = Scene()
    calm = [step for step in history if step[0] in ("write", "look")]
    play(scene, [("look",), *calm, ("look",)])
    assert scene.kube.lists == len(ALL_LIST_FIELDS)


@given(generate_writes(0, 8), WATCHED, WHEN)
def test_throttled_watch_does_not_fall_back_to_a_list(step: Step, path: str, when: str) -> None:
    scene = Scene()
    scene.assert_snapshots_agree()
    scene.write(step)
    lists = scene.kube.lists
    scene.kube.faults[path, when] = Throttled("429")
    with pytest.raises(Throttled):
        take_snapshot(scene.warm, EVERYTHING)
    assert scene.kube.lists == lists
    scene.assert_snapshots_agree()
    assert scene.kube.lists == lists


def test_list_with_an_expired_continue_token_restarts_from_the_beginning() -> None:
    scene = Scene()
    scene.is_interrupted(scene.api.expire_tokens)
    assert scene.kube.lists == len(ALL_LIST_FIELDS) + 1


def test_changes_between_two_list_pages_are_picked_up_by_the_watch() -> None:
    scene = Scene()

    def write_between_pages() -> None:
        write(scene.people, "tell", "nodes", "a", "8")
        write(scene.people, "remove", "nodes", "c", "")

    scene.is_interrupted(write_between_pages)
    assert scene.kube.lists == len(ALL_LIST_FIELDS)
    assert [node.name for node in take_snapshot(scene.warm, EVERYTHING).nodes] == ["a", "b"]
