"""What a real API server remembers and forgets: a catch-up shows what a list shows, byte for byte, whatever happened.

The histories are those that memory is held to (tests/property/test_snapshot_memory.py), of all kinds, and this server
forgets what is older than some seconds: a token may expire between any two pages, and a restart ends all watches.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Thread
from typing import Any, cast

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shared.errors import Expired
from shared.ports import Kube, World
from shared.snapshot import memory, watching
from shared.snapshot.kinds import KUBERNETES, LISTINGS
from shared.snapshot.pages import Page
from shared.snapshot.take import Wanted, take
from tests.contract.kube_front import create, listed
from tests.controlplane.binaries import API_SERVER
from tests.controlplane.definitions import install
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.property.snapshot_histories import (
    BODIES,
    NAMES,
    Interrupted,
    Step,
    bytes_of,
    histories,
    populate,
    write,
    writes,
)
from tests.unit.snapshot_world import NOW, world

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

EVERYTHING = Wanted()
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUICK, PATIENT = timedelta(seconds=2), timedelta(seconds=60)
"""How long a watch is silent that has nothing more to tell, on a machine that is quick and on any."""
LOOKS: st.SearchStrategy[Step] = st.one_of(
    st.just(("look",)),
    st.just(("wait",)),
    st.tuples(st.just("between"), writes(1, 3)),
    st.tuples(st.just("meanwhile"), writes(3, 8)),
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Answer a plane that forgets quickly, whose lists come in pages of two, however small they are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory, "SMALL", 0)
        patched.setattr(watching, "PAGE", 2)
        with ControlPlane(parts=API_ONLY, api_server_flags=["--etcd-compaction-interval=3s"]) as plane:
            install(plane)
            yield plane


class Scene:
    """Two worlds with one cluster: one remembers, the other does not."""

    def __init__(self, plane: ControlPlane, quiet: timedelta = QUICK) -> None:
        """Begin with three of each kind, and no memory."""
        self.patient: Kube = plane.client(quiet=PATIENT)
        self.people: Kube = plane.client(quiet=quiet)
        for kind in BODIES:
            for name in NAMES:
                write(self.people, "remove", kind, name, "")
        populate(self.people)
        self.now = NOW
        self.kube = Interrupted(self.people)
        self.memory: dict[str, object] = {}
        self.fresh = msgspec.structs.replace(world(clock=self._clock), kube=self.people)
        self.warm = msgspec.structs.replace(self.fresh, kube=cast("Kube", self.kube), memory=self.memory)

    def _clock(self) -> datetime:
        return self.now

    def write(self, some: Step) -> None:
        for one in some[1:]:
            write(self.people, *one)

    def looks_agree(self) -> None:
        """Look twice; where that differs, look again with patience: on a slow machine silence may mean nothing."""
        before = dict(self.memory)
        if self._looked(self.warm) == self._looked(self.fresh):
            return
        self.memory.clear()
        self.memory.update(before)
        assert self._looked(msgspec.structs.replace(self.warm, kube=self.patient)) == self._looked(self.fresh)

    def _looked(self, world: World) -> bytes:
        """Answer what *world* sees: as soon as lists can be read to their end before they are forgotten."""
        for _ in range(50):
            with suppress(Expired):
                return bytes_of(take(world, EVERYTHING))
        pytest.fail("no list is read to its end before it is forgotten")

    def is_interrupted(self, between: Callable[[], object]) -> None:
        """Read from the beginning, with something *between* two pages."""
        self.memory.clear()
        self.kube.between = between
        take(self.warm, EVERYTHING)
        assert self.kube.between is None
        self.looks_agree()

    def is_written_to_meanwhile(self, some: Step) -> None:
        """Look while somebody writes: what that look shows is open, but not what the next one does."""
        writer = Thread(target=self.write, args=(some,))
        writer.start()
        self._looked(self.warm)
        writer.join()
        self.looks_agree()

    def play(self, history: list[Step]) -> None:
        for step in history:
            match step:
                case ("look",):
                    self.looks_agree()
                case ("wait",):
                    self.now += timedelta(minutes=17)
                case ("between", some):
                    self.is_interrupted(lambda some=some: self.write(some))  # type: ignore[misc] # bound now
                case ("meanwhile", some):
                    self.is_written_to_meanwhile(some)
                case ("write", *_):
                    self.write(step)
                case _:
                    pytest.fail(f"no such step: {step}")


@settings(max_examples=8, deadline=None, database=None, phases=(Phase.explicit, Phase.generate))
@given(history=histories(LOOKS, most=4, at_once=10))
def test_a_catch_up_shows_what_a_list_shows(plane: ControlPlane, history: list[Step]) -> None:
    Scene(plane).play([("look",), *history, ("look",), ("look",)])


def test_whoever_caught_up_before_a_restart_sees_what_a_list_shows_after_it(plane: ControlPlane) -> None:
    scene = Scene(plane, timedelta(seconds=10))
    scene.play([("look",)])
    listed_once = scene.kube.lists
    scene.play([("write", ("label", "pods", "a", "x"), ("remove", "nodes", "a", "")), ("look",)])
    assert scene.kube.lists == listed_once
    scene.play([("write", ("tell", "nodes", "b", "1"), ("remove", "pods", "b", ""))])
    plane.processes.kill(API_SERVER)
    plane.processes.revive(API_SERVER)
    plane.wait_until_ready()
    scene.play([("write", ("make", "pods", "d", "1"), ("tell", "node_claims", "a", "x"))])
    scene.play([("look",), ("write", ("remove", "volumes", "a", "")), ("look",)])


def test_a_list_whose_token_expired_is_read_from_the_beginning(plane: ControlPlane) -> None:
    scene = Scene(plane)
    scene.is_interrupted(lambda: forgets(scene.people))
    assert scene.kube.lists > len(KUBERNETES)


def forgets(kube: Kube) -> None:
    """Write until the server has forgotten what it told before, of every kind: each has a memory of its own."""
    metas = {listing.path: listed(kube, listing.path, limit=1)["metadata"] for listing in LISTINGS}
    tokens = {path: str(meta["continue"]) for path, meta in metas.items() if "continue" in meta}
    deadline = time.monotonic() + 600
    while tokens:
        assert time.monotonic() < deadline, f"not forgotten: {[*tokens]}"
        create(kube, CONFIG_MAPS, {"metadata": {"generateName": "busy-"}})
        tokens = {path: token for path, token in tokens.items() if not is_forgotten(kube, path, token)}
        time.sleep(0.2)


def is_forgotten(kube: Kube, path: str, token: str) -> bool:
    try:
        kube.list(path, limit=1, continue_token=token)
    except Expired as refusal:
        return "410" in str(refusal)
    return False


def test_no_list_takes_the_slow_way(plane: ControlPlane) -> None:
    """What a server has nothing to say about it leaves out, or writes as null: both are decoded in one go."""
    scene = Scene(plane)
    bodies = {listing.field: scene.people.list(listing.path, limit=0) for listing in LISTINGS}
    found = {
        listing.field: len(msgspec.json.decode(bodies[listing.field], type=_page(listing.wire)).items)
        for listing in LISTINGS
    }
    assert min(found.values()) >= len(NAMES) - 1
    assert any(b":null" in body for body in bodies.values())


def _page(wire: type) -> Any:
    return Page[wire]  # type: ignore[valid-type] # a type made at run time
