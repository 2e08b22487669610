"""A catch-up shows what a list shows, byte for byte, whatever happened meanwhile."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Conflict, Expired, Fault, Forbidden, Gone, Throttled, Unreachable
from shared.ports import Changes, Kube, World
from shared.snapshot import memory, watching
from shared.snapshot.kinds import KUBERNETES, LISTINGS
from shared.snapshot.take import Wanted, take
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.kube import InMemoryKube
from tests.property.snapshot_histories import (
    BODIES,
    Interrupted,
    Step,
    bytes_of,
    histories,
    populate,
    write,
    writes,
)
from tests.unit.snapshot_world import world

EVERYTHING = Wanted()
WATCHED = st.sampled_from([listing.path.rpartition("/")[2] for listing in LISTINGS])
WHEN = st.sampled_from(["begun", "asked"])
FAULTS = st.sampled_from([Expired("410"), Unreachable("cut"), Forbidden("403"), Gone("404"), Conflict("odd")])
LOOKS: st.SearchStrategy[Step] = st.one_of(
    st.just(("look",)),
    st.just(("forget",)),
    st.just(("wait",)),
    st.tuples(st.just("fail"), WATCHED, WHEN, FAULTS),
    st.tuples(st.just("between"), writes(1, 3)),
    st.just(("expire",)),
)
HISTORIES = histories(LOOKS, most=6)


class Troubled(Interrupted):
    """One whose watches fail where they are told to, once."""

    def __init__(self, kube: Kube) -> None:
        """Have no trouble with *kube* yet."""
        super().__init__(kube)
        self.faults: dict[tuple[str, str], Fault] = {}

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], Changes]:
        self._trouble(path, "begun")
        changes = super().watch(path, since=since, field_selector=field_selector)

        def ask() -> Changes:
            self._trouble(path, "asked")
            return changes()

        return ask

    def _trouble(self, path: str, when: str) -> None:
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
        populate(self.people)
        self.fresh = msgspec.structs.replace(world(clock=self._now), kube=self.people)
        self.warm: World = msgspec.structs.replace(self.fresh, kube=cast("Kube", self.kube), memory=self.memory)

    def _now(self) -> datetime:
        return self.clock.now()

    def write(self, some: Step) -> None:
        for one in some[1:]:
            write(self.people, *one)

    def looks_agree(self) -> None:
        remembered, listed = take(self.warm, EVERYTHING), take(self.fresh, EVERYTHING)
        assert bytes_of(remembered) == bytes_of(listed)

    def is_interrupted(self, between: Callable[[], object]) -> None:
        """Read from the beginning, with something *between* two pages."""
        self.memory.clear()
        self.kube.between = between
        take(self.warm, EVERYTHING)
        self.kube.between = None
        self.looks_agree()


def play(scene: Scene, history: list[Step]) -> None:
    for step in history:
        match step:
            case ("look",):
                scene.looks_agree()
            case ("forget",):
                scene.api.expire_history()
            case ("wait",):
                scene.clock.advance(timedelta(minutes=17))
            case ("fail", str(path), str(when), Fault() as fault):
                scene.kube.faults[path, when] = fault
            case ("between", some):
                scene.is_interrupted(lambda some=some: scene.write(some))  # type: ignore[misc] # bound now
            case ("expire",):
                scene.is_interrupted(scene.api.expire_tokens)
            case ("write", *_):
                scene.write(step)
            case _:
                pytest.fail(f"no such step: {step}")


@pytest.fixture(autouse=True, scope="module")
def _small_lists_are_kept_and_read_in_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "SMALL", 0)
        patched.setattr(watching, "PAGE", 2)
        yield


def test_histories_are_of_all_kinds() -> None:
    assert set(BODIES) == set(KUBERNETES)
    cluster = take(Scene().fresh, EVERYTHING)
    assert [field for field in KUBERNETES if len(getattr(cluster, field)) < 3] == []
    assert cluster.problems == ()


@given(HISTORIES)
def test_a_catch_up_shows_what_a_list_shows(history: list[Step]) -> None:
    play(Scene(), [("look",), *history, ("look",), ("look",)])


@given(HISTORIES)
def test_whoever_is_not_troubled_lists_once(history: list[Step]) -> None:
    scene = Scene()
    calm = [step for step in history if step[0] in ("write", "look")]
    play(scene, [("look",), *calm, ("look",)])
    assert scene.kube.lists == len(KUBERNETES)


@given(writes(0, 8), WATCHED, WHEN)
def test_what_comes_too_often_is_not_listed_instead(some: Step, path: str, when: str) -> None:
    scene = Scene()
    scene.looks_agree()
    scene.write(some)
    lists = scene.kube.lists
    scene.kube.faults[path, when] = Throttled("429")
    with pytest.raises(Throttled):
        take(scene.warm, EVERYTHING)
    assert scene.kube.lists == lists
    scene.looks_agree()
    assert scene.kube.lists == lists


def test_a_list_whose_token_expired_is_read_from_the_beginning() -> None:
    scene = Scene()
    scene.is_interrupted(scene.api.expire_tokens)
    assert scene.kube.lists == len(KUBERNETES) + 1


def test_what_changes_between_two_pages_is_caught_up_with() -> None:
    scene = Scene()

    def between() -> None:
        write(scene.people, "tell", "nodes", "a", "8")
        write(scene.people, "remove", "nodes", "c", "")

    scene.is_interrupted(between)
    assert scene.kube.lists == len(KUBERNETES)
    assert [node.name for node in take(scene.warm, EVERYTHING).nodes] == ["a", "b"]
