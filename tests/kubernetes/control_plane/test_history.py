"""Memory of a real API server: a catch-up returns what a list returns, byte for byte, after any history.

The histories are those of the tests for memory (tests/property/snapshot/test_informer_cache.py), of all kinds, and
this server forgets what is older than a few seconds: a token may expire between any two pages, and a restart ends all
watches.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from threading import Thread
from typing import Any, cast

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from shared.errors import Expired, Throttled
from shared.ports.kubernetes import Kube
from shared.ports.world import World
from shared.take.kubernetes import informer_cache, paging
from shared.take.kubernetes.page_decoding import ListPage
from shared.take.kubernetes.resource_kinds import ALL_LIST_FIELDS, RESOURCE_KINDS
from shared.take.snapshot import SnapshotRequest, take_snapshot
from tests.contract.kube_front import create, list_objects
from tests.controlplane.binaries import API_SERVER
from tests.controlplane.definitions import install_crds
from tests.controlplane.plane import API_ONLY, ControlPlane
from tests.property.snapshot.snapshot_histories import (
    BODIES,
    NAMES,
    Interrupted,
    Step,
    create_three_of_each,
    encode_snapshot,
    generate_histories,
    generate_writes,
    write,
)
from tests.support.snapshot_world import NOW, make_world

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

EVERYTHING = SnapshotRequest()
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUICK_SILENCE, PATIENT_SILENCE = timedelta(seconds=2), timedelta(seconds=60)
"""How long a watch without further events stays silent, on a fast host and on any host."""
READ_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.just(("look",)),
    st.just(("wait",)),
    st.tuples(st.just("between"), generate_writes(1, 3)),
    st.tuples(st.just("meanwhile"), generate_writes(3, 8)),
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Yield a control plane that forgets quickly, whose lists come in pages of two, however small they are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)
        patched.setattr(paging, "MAX_OBJECTS_PER_PAGE", 2)
        with ControlPlane(parts=API_ONLY, api_server_flags=["--etcd-compaction-interval=3s"]) as plane:
            install_crds(plane)
            yield plane


class Scene:
    """Two worlds with one cluster: one has a memory, the other has none."""

    def __init__(self, plane: ControlPlane, quiet: timedelta = QUICK_SILENCE) -> None:
        """Begin with three objects of each kind, and an empty memory."""
        self.patient: Kube = plane.get_client(quiet_timeout=PATIENT_SILENCE)
        self.people: Kube = plane.get_client(quiet_timeout=quiet)
        for kind in BODIES:
            for name in NAMES:
                write(self.people, "remove", kind, name, "")
        create_three_of_each(self.people)
        self.now = NOW
        self.kube = Interrupted(self.people)
        self.memory: dict[str, object] = {}
        self.fresh = msgspec.structs.replace(make_world(clock=self._get_time), kube=self.people)
        self.warm = msgspec.structs.replace(self.fresh, kube=cast("Kube", self.kube), memory=self.memory)

    def _get_time(self) -> datetime:
        return self.now

    def write(self, step: Step) -> None:
        for change in step[1:]:
            write(self.people, *change)

    def assert_snapshots_agree(self) -> None:
        """Compare both worlds' snapshots; if they differ, compare again with a longer silence, for slow hosts."""
        before = dict(self.memory)
        if self._take_encoded_snapshot(self.warm) == self._take_encoded_snapshot(self.fresh):
            return
        self.memory.clear()
        self.memory.update(before)
        assert self._take_encoded_snapshot(
            msgspec.structs.replace(self.warm, kube=self.patient)
        ) == self._take_encoded_snapshot(self.fresh)

    def _take_encoded_snapshot(self, world: World) -> bytes:
        """Return the snapshot of *world*, as soon as lists can be read to their end before they are forgotten.

        A restarted API server refuses watches with 429 until it has read its storage; the next run then reads again.
        """
        for _ in range(50):
            try:
                return encode_snapshot(take_snapshot(world, EVERYTHING))
            except Expired:
                continue
            except Throttled:
                time.sleep(0.2)
        pytest.fail("no list is read to its end before it is forgotten")

    def read_interrupted(self, between: Callable[[], object]) -> None:
        """Read from the beginning, and call *between* between two pages."""
        self.memory.clear()
        self.kube.between = between
        take_snapshot(self.warm, EVERYTHING)
        assert self.kube.between is None
        self.assert_snapshots_agree()

    def read_during_writes(self, step: Step) -> None:
        """Read while another thread writes: the result of that read is undefined, but not that of the next one."""
        writer = Thread(target=self.write, args=(step,))
        writer.start()
        self._take_encoded_snapshot(self.warm)
        writer.join()
        self.assert_snapshots_agree()

    def play(self, history: list[Step]) -> None:
        for step in history:
            match step:
                case ("look",):
                    self.assert_snapshots_agree()
                case ("wait",):
                    self.now += timedelta(minutes=17)
                case ("between", inner_step):
                    self.read_interrupted(lambda some=inner_step: self.write(some))  # type: ignore[misc] # bound now
                case ("meanwhile", inner_step):
                    self.read_during_writes(inner_step)
                case ("write", *_):
                    self.write(step)
                case _:
                    pytest.fail(f"no such step: {step}")


@settings(max_examples=8, deadline=None, database=None, phases=(Phase.explicit, Phase.generate))
@given(history=generate_histories(READ_STEPS, max_pairs=4, at_once=10))
def test_informer_cache_matches_a_full_list_after_any_history(plane: ControlPlane, history: list[Step]) -> None:
    Scene(plane).play([("look",), *history, ("look",), ("look",)])


def test_informer_cache_matches_a_full_list_after_an_api_server_restart(plane: ControlPlane) -> None:
    scene = Scene(plane, timedelta(seconds=10))
    scene.play([("look",)])
    listed_once = scene.kube.lists
    scene.play([("write", ("label", "pods", "a", "x"), ("remove", "nodes", "a", "")), ("look",)])
    assert scene.kube.lists == listed_once
    scene.play([("write", ("tell", "nodes", "b", "1"), ("remove", "pods", "b", ""))])
    plane.processes.kill_process(API_SERVER)
    plane.processes.restart(API_SERVER)
    plane.wait_until_ready()
    scene.play([("write", ("make", "pods", "d", "1"), ("tell", "node_claims", "a", "x"))])
    scene.play([("look",), ("write", ("remove", "volumes", "a", "")), ("look",)])


def test_list_with_an_expired_continue_token_restarts_from_the_beginning(plane: ControlPlane) -> None:
    scene = Scene(plane)
    scene.read_interrupted(lambda: wait_until_forgotten(scene.people))
    assert scene.kube.lists > len(ALL_LIST_FIELDS)


def wait_until_forgotten(kube: Kube) -> None:
    """Write until the server has forgotten its old list tokens, of every kind: each kind has a memory of its own."""
    metas = {listing.path: list_objects(kube, listing.path, limit=1)["metadata"] for listing in RESOURCE_KINDS}
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


def test_every_list_response_is_decoded_in_one_pass(plane: ControlPlane) -> None:
    """The server omits an empty field or writes it as null: both are decoded in one pass."""
    scene = Scene(plane)
    bodies = {listing.field: scene.people.list(listing.path, limit=0) for listing in RESOURCE_KINDS}
    object_counts = {
        listing.field: len(msgspec.json.decode(bodies[listing.field], type=_build_page_type(listing.wire_type)).items)
        for listing in RESOURCE_KINDS
    }
    assert min(object_counts.values()) >= len(NAMES) - 1
    assert any(b":null" in body for body in bodies.values())


def _build_page_type(wire: type) -> Any:
    return ListPage[wire]  # type: ignore[valid-type] # a type made at run time
