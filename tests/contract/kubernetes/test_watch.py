"""Watching a collection: the events of a watch, in memory, over HTTP, and on a real API server."""

from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, cast

import msgspec
import pytest
from msgspec.structs import replace

from shared.errors import Expired, Fault, Forbidden, Invalid, NotFound, Throttled, Unreachable
from shared.kubernetes.client import KubeClient
from shared.ports.kubernetes import Kube, WatchEvents
from shared.take.kubernetes import informer_cache as memories
from shared.take.snapshot import SnapshotRequest, take_snapshot
from sim.cluster.api_server.kube_port import InMemoryKube
from tests.contract import kube_front
from tests.contract.kube_front import create, list_objects, make_pod, patch, run_server
from tests.support.snapshot_world import make_world

kube, memory, endpoint, namespace = kube_front.kube, kube_front.memory, kube_front.endpoint, kube_front.namespace

RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
LISTS = SnapshotRequest(lists=("nodes", "node_claims", "pods", "budgets", "namespaces"))
EventSummary = list[tuple[str, str]]


def get_version(kube: Kube, path: str) -> str:
    return str(list_objects(kube, path)["metadata"]["resourceVersion"])


def decode_objects(changes: WatchEvents) -> list[dict[str, Any]]:
    return [msgspec.json.decode(event)["object"] for event in changes.events]


def summarize_events(changes: WatchEvents) -> EventSummary:
    events = [msgspec.json.decode(event) for event in changes.events]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def make_config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_watch_without_changes_returns_no_events(kube: Kube, maps: str) -> None:
    create(kube, maps, make_config_map("a"))
    since = get_version(kube, maps)
    assert kube.watch(maps, since=since)().events == ()


def test_watch_events_are_returned_in_order(kube: Kube, maps: str) -> None:
    create(kube, maps, make_config_map("a"))
    since = get_version(kube, maps)
    create(kube, maps, make_config_map("b"))
    patch(kube, f"{maps}/a", {"data": {"k": "1"}})
    kube.delete(f"{maps}/b")
    patch(kube, f"{maps}/a", {"data": {"k": "2"}})
    changes = kube.watch(maps, since=since)()
    assert summarize_events(changes)[:3] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert summarize_events(changes)[-1] == ("MODIFIED", "a")
    assert decode_objects(changes)[-1]["data"] == {"k": "2"}
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in decode_objects(changes)]
    assert versions == sorted(set(versions))
    assert int(since) < versions[0]
    assert versions[-1] <= int(changes.version)


def test_next_watch_continues_from_the_last_version(kube: Kube, maps: str) -> None:
    since = get_version(kube, maps)
    create(kube, maps, make_config_map("a"))
    first = kube.watch(maps, since=since)()
    create(kube, maps, make_config_map("b"))
    second = kube.watch(maps, since=first.version)()
    assert summarize_events(first)[-1] == ("ADDED", "a")
    assert summarize_events(second)[-1] == ("ADDED", "b")
    assert ("ADDED", "a") not in summarize_events(second)


def test_watch_returns_events_that_occurred_before_it_started(kube: Kube, maps: str) -> None:
    since = get_version(kube, maps)
    create(kube, maps, make_config_map("a"))
    ask = kube.watch(maps, since=since)
    create(kube, maps, make_config_map("b"))
    assert ("ADDED", "a") in summarize_events(ask())
    assert summarize_events(ask()) == summarize_events(ask())


def test_several_watches_can_be_started_before_the_first_is_read(kube: Kube, maps: str, pods: str) -> None:
    since = get_version(kube, maps)
    create(kube, maps, make_config_map("a"))
    create(kube, pods, make_pod("cart"))
    watches = [kube.watch(path, since=since) for path in (maps, pods)]
    assert [summarize_events(ask())[-1] for ask in watches] == [("ADDED", "a"), ("ADDED", "cart")]


def test_watch_returns_no_events_from_other_namespaces(kube: Kube, maps: str) -> None:
    since = get_version(kube, maps)
    create(kube, "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "elsewhere-"}})
    create(kube, maps, make_config_map("here"))
    assert [name for _, name in summarize_events(kube.watch(maps, since=since)()) if name.startswith("elsewhere")] == []


def test_object_that_leaves_the_selector_is_deleted_and_one_that_joins_is_added(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    since = get_version(kube, pods)
    patch(kube, f"{pods}/cart/status", {"status": {"phase": "Failed"}})
    patch(kube, f"{pods}/cart/status", {"status": {"message": "still"}})
    without_finished = kube.watch(pods, since=since, field_selector=RUNNING)()
    assert summarize_events(without_finished) == [("DELETED", "cart")]
    only_failed = kube.watch(pods, since=since, field_selector="status.phase=Failed")()
    assert summarize_events(only_failed) == [("ADDED", "cart"), ("MODIFIED", "cart")]


def test_deleted_event_has_its_own_resource_version(kube: Kube, maps: str) -> None:
    created = create(kube, maps, make_config_map("a"))
    since = get_version(kube, maps)
    kube.delete(f"{maps}/a")
    [deleted] = decode_objects(kube.watch(maps, since=since)())[-1:]
    assert int(deleted["metadata"]["resourceVersion"]) > int(since) >= int(created["metadata"]["resourceVersion"])


def test_watch_reports_the_number_of_objects(kube: Kube, maps: str) -> None:
    since = get_version(kube, maps)
    before = len(list_objects(kube, maps)["items"])
    assert kube.watch(maps, since=since)().count == before
    for name in ("a", "b", "c"):
        create(kube, maps, make_config_map(name))
    assert kube.watch(maps, since=since)().count == before + 3


def test_watch_from_a_future_version_raises_expired(kube: Kube, maps: str) -> None:
    since = str(int(get_version(kube, maps)) + 1_000_000)
    with pytest.raises(Expired):
        kube.watch(maps, since=since)()


def test_watch_from_an_invalid_version_is_rejected(kube: Kube, maps: str) -> None:
    with pytest.raises(Invalid):
        kube.watch(maps, since="yesterday")()


def test_watching_an_unknown_resource_raises_not_found(kube: Kube) -> None:
    with pytest.raises(NotFound):
        kube.watch("/apis/example.com/v1/nothings", since="1")()


def test_watch_from_an_expired_version_raises_expired(
    kube: Kube, maps: str, memory: InMemoryKube, request: pytest.FixtureRequest
) -> None:
    if "real" in request.node.name:
        pytest.skip("nobody can make a real server forget")
    since = get_version(kube, maps)
    create(kube, maps, make_config_map("a"))
    memory.api.expire_history()
    with pytest.raises(Expired):
        kube.watch(maps, since=since)()
    newest = get_version(kube, maps)
    create(kube, maps, make_config_map("b"))
    assert summarize_events(kube.watch(maps, since=newest)()) == [("ADDED", "b")]


class ClosingHandler(BaseHTTPRequestHandler):
    """A server that hangs up after every response; *status* is its response to a watch."""

    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        is_watch = "watch=1" in self.path
        self.send_response(self.status if is_watch else 200)
        self.end_headers()
        meta = {"resourceVersion": "20"}
        event = {"type": "ADDED", "object": {"metadata": meta}}
        self.wfile.write(msgspec.json.encode(event if is_watch else {"metadata": meta, "items": []}) + b"\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.loopback
@pytest.mark.parametrize(("status", "fault"), [(403, Forbidden), (410, Expired), (429, Throttled), (503, Unreachable)])
def test_rejected_watch_raises_its_fault_when_it_is_read(status: int, fault: type[Fault]) -> None:
    ClosingHandler.status = status
    for endpoint in run_server(ClosingHandler):
        changes = KubeClient(endpoint).watch("/api/v1/pods", since="10")
        with pytest.raises(fault):
            changes()


@pytest.mark.loopback
def test_watch_closed_by_the_server_returns_the_events_received_so_far() -> None:
    ClosingHandler.status = 200
    for endpoint in run_server(ClosingHandler):
        changes = KubeClient(endpoint).watch("/api/v1/pods", since="10")()
        assert (len(changes.events), changes.version, changes.count) == (1, "20", 0)


def test_in_memory_watch_history_is_bounded(memory: InMemoryKube) -> None:
    memory.api.set_history_size(2)
    path = "/api/v1/namespaces/default/configmaps"
    versions = [create(memory, path, make_config_map(name))["metadata"]["resourceVersion"] for name in "abcd"]
    with pytest.raises(Expired):
        memory.watch(path, since=versions[0])()
    assert summarize_events(memory.watch(path, since=versions[1])()) == [("ADDED", "c"), ("ADDED", "d")]
    assert memory.watch("/api/v1/nodes", since=versions[0])().events == ()


def test_watch_based_snapshot_equals_a_full_list(kube: Kube, pods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MIN_CACHED_LIST_BYTES", 0)
    fresh = replace(make_world(), kube=kube)
    warm = replace(fresh, memory={})
    for name in ("a", "b", "c"):
        create(kube, pods, make_pod(name))
    take_snapshot(warm, LISTS)
    patch(kube, f"{pods}/a", {"metadata": {"labels": {"colour": "red"}}})
    patch(kube, f"{pods}/b/status", {"status": {"phase": "Failed"}})
    kube.delete(f"{pods}/c", b'{"gracePeriodSeconds":0}')
    create(kube, pods, make_pod("d"))
    create(kube, "/api/v1/nodes", {"metadata": {"name": "n"}})
    recorder = _RecordingKube(kube)
    caught_up = take_snapshot(replace(warm, kube=cast("Kube", recorder)), LISTS)
    assert recorder.verbs == ["watch"] * len(LISTS.lists)
    assert msgspec.json.encode(caught_up) == msgspec.json.encode(take_snapshot(fresh, LISTS))
    kube.delete("/api/v1/nodes/n")


class _RecordingKube:
    """Records the calls of a `Kube`."""

    def __init__(self, kube: Kube) -> None:
        """Forward calls to *kube*."""
        self._kube = kube
        self.verbs: list[str] = []

    def __getattr__(self, verb: str) -> object:
        self.verbs.append(verb)
        return getattr(self._kube, verb)
