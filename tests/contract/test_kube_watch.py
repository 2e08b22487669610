"""Following a collection: what a watch shows, in memory, over HTTP, and on a real API server."""

from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, cast

import msgspec
import pytest
from msgspec.structs import replace

from shared.errors import Expired, Fault, Forbidden, Gone, Invalid, Throttled, Unreachable
from shared.kube.client import KubeClient
from shared.ports import Changes, Kube
from shared.snapshot import memory as memories
from shared.snapshot.take import Wanted, take
from sim.cluster import api_watch
from sim.cluster.kube import InMemoryKube
from tests.contract import kube_front
from tests.contract.kube_front import create, listed, patch, pod, serve
from tests.unit.snapshot_world import world

kube, memory, endpoint, namespace = kube_front.kube, kube_front.memory, kube_front.endpoint, kube_front.namespace

RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
LISTS = Wanted(lists=("nodes", "node_claims", "pods", "budgets", "namespaces"))
Told = list[tuple[str, str]]


def version_of(kube: Kube, path: str) -> str:
    return str(listed(kube, path)["metadata"]["resourceVersion"])


def objects(changes: Changes) -> list[dict[str, Any]]:
    return [msgspec.json.decode(event)["object"] for event in changes.events]


def told(changes: Changes) -> Told:
    events = [msgspec.json.decode(event) for event in changes.events]
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@pytest.fixture
def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_nothing_changed_where_nothing_changed(kube: Kube, maps: str) -> None:
    create(kube, maps, config("a"))
    since = version_of(kube, maps)
    assert kube.watch(maps, since=since)().events == ()


def test_changes_are_told_in_their_order(kube: Kube, maps: str) -> None:
    create(kube, maps, config("a"))
    since = version_of(kube, maps)
    create(kube, maps, config("b"))
    patch(kube, f"{maps}/a", {"data": {"k": "1"}})
    kube.delete(f"{maps}/b")
    patch(kube, f"{maps}/a", {"data": {"k": "2"}})
    changes = kube.watch(maps, since=since)()
    assert told(changes)[:3] == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert told(changes)[-1] == ("MODIFIED", "a")
    assert objects(changes)[-1]["data"] == {"k": "2"}
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in objects(changes)]
    assert versions == sorted(set(versions))
    assert int(since) < versions[0]
    assert versions[-1] <= int(changes.version)


def test_one_follows_on_from_where_one_was(kube: Kube, maps: str) -> None:
    since = version_of(kube, maps)
    create(kube, maps, config("a"))
    first = kube.watch(maps, since=since)()
    create(kube, maps, config("b"))
    second = kube.watch(maps, since=first.version)()
    assert told(first)[-1] == ("ADDED", "a")
    assert told(second)[-1] == ("ADDED", "b")
    assert ("ADDED", "a") not in told(second)


def test_what_happened_before_the_watch_began_is_told_whenever_one_asks(kube: Kube, maps: str) -> None:
    since = version_of(kube, maps)
    create(kube, maps, config("a"))
    ask = kube.watch(maps, since=since)
    create(kube, maps, config("b"))
    assert ("ADDED", "a") in told(ask())
    assert told(ask()) == told(ask())


def test_several_are_begun_before_the_first_is_asked(kube: Kube, maps: str, pods: str) -> None:
    since = version_of(kube, maps)
    create(kube, maps, config("a"))
    create(kube, pods, pod("cart"))
    begun = [kube.watch(path, since=since) for path in (maps, pods)]
    assert [told(ask())[-1] for ask in begun] == [("ADDED", "a"), ("ADDED", "cart")]


def test_another_namespace_is_not_told_of(kube: Kube, maps: str) -> None:
    since = version_of(kube, maps)
    create(kube, "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "elsewhere-"}})
    create(kube, maps, config("here"))
    assert [name for _, name in told(kube.watch(maps, since=since)()) if name.startswith("elsewhere")] == []


def test_what_leaves_the_selection_is_deleted_and_what_joins_it_added(kube: Kube, pods: str) -> None:
    create(kube, pods, pod("cart"))
    since = version_of(kube, pods)
    patch(kube, f"{pods}/cart/status", {"status": {"phase": "Failed"}})
    patch(kube, f"{pods}/cart/status", {"status": {"message": "still"}})
    left = kube.watch(pods, since=since, field_selector=RUNNING)()
    assert told(left) == [("DELETED", "cart")]
    joined = kube.watch(pods, since=since, field_selector="status.phase=Failed")()
    assert told(joined) == [("ADDED", "cart"), ("MODIFIED", "cart")]


def test_a_deletion_has_a_version_of_its_own(kube: Kube, maps: str) -> None:
    made = create(kube, maps, config("a"))
    since = version_of(kube, maps)
    kube.delete(f"{maps}/a")
    [gone] = objects(kube.watch(maps, since=since)())[-1:]
    assert int(gone["metadata"]["resourceVersion"]) > int(since) >= int(made["metadata"]["resourceVersion"])


def test_the_server_counts_what_is_there(kube: Kube, maps: str) -> None:
    since = version_of(kube, maps)
    before = len(listed(kube, maps)["items"])
    assert kube.watch(maps, since=since)().count == before
    for name in ("a", "b", "c"):
        create(kube, maps, config(name))
    assert kube.watch(maps, since=since)().count == before + 3


def test_a_version_that_is_yet_to_come_is_none_of_this_servers(kube: Kube, maps: str) -> None:
    since = str(int(version_of(kube, maps)) + 1_000_000)
    with pytest.raises(Expired):
        kube.watch(maps, since=since)()


def test_a_version_is_a_number(kube: Kube, maps: str) -> None:
    with pytest.raises(Invalid):
        kube.watch(maps, since="yesterday")()


def test_what_is_not_served_cannot_be_followed(kube: Kube) -> None:
    with pytest.raises(Gone):
        kube.watch("/apis/example.com/v1/nothings", since="1")()


def test_history_is_forgotten(kube: Kube, maps: str, memory: InMemoryKube, request: pytest.FixtureRequest) -> None:
    if "real" in request.node.name:
        pytest.skip("nobody can make a real server forget")
    since = version_of(kube, maps)
    create(kube, maps, config("a"))
    memory.api.expire_history()
    with pytest.raises(Expired):
        kube.watch(maps, since=since)()
    newest = version_of(kube, maps)
    create(kube, maps, config("b"))
    assert told(kube.watch(maps, since=newest)()) == [("ADDED", "b")]


class Old(BaseHTTPRequestHandler):
    """A server that hangs up after every answer; *status* is how it takes a watch."""

    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        watched = "watch=1" in self.path
        self.send_response(self.status if watched else 200)
        self.end_headers()
        meta = {"resourceVersion": "20"}
        one = {"type": "ADDED", "object": {"metadata": meta}}
        self.wfile.write(msgspec.json.encode(one if watched else {"metadata": meta, "items": []}) + b"\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.loopback
@pytest.mark.parametrize(("status", "fault"), [(403, Forbidden), (410, Expired), (429, Throttled), (503, Unreachable)])
def test_a_watch_that_is_refused_is_a_fault_when_it_is_asked(status: int, fault: type[Fault]) -> None:
    Old.status = status
    for endpoint in serve(Old):
        changes = KubeClient(endpoint).watch("/api/v1/pods", since="10")
        with pytest.raises(fault):
            changes()


@pytest.mark.loopback
def test_a_server_that_hangs_up_has_told_what_it_has_told() -> None:
    Old.status = 200
    for endpoint in serve(Old):
        changes = KubeClient(endpoint).watch("/api/v1/pods", since="10")()
        assert (len(changes.events), changes.version, changes.count) == (1, "20", 0)


def test_the_history_of_a_collection_is_bounded(memory: InMemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_watch, "KEPT", 2)
    path = "/api/v1/namespaces/default/configmaps"
    versions = [create(memory, path, config(name))["metadata"]["resourceVersion"] for name in "abcd"]
    with pytest.raises(Expired):
        memory.watch(path, since=versions[0])()
    assert told(memory.watch(path, since=versions[1])()) == [("ADDED", "c"), ("ADDED", "d")]
    assert memory.watch("/api/v1/nodes", since=versions[0])().events == ()


def test_a_catch_up_shows_what_a_list_shows(kube: Kube, pods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "SMALL", 0)
    fresh = replace(world(), kube=kube)
    warm = replace(fresh, memory={})
    for name in ("a", "b", "c"):
        create(kube, pods, pod(name))
    take(warm, LISTS)
    patch(kube, f"{pods}/a", {"metadata": {"labels": {"colour": "red"}}})
    patch(kube, f"{pods}/b/status", {"status": {"phase": "Failed"}})
    kube.delete(f"{pods}/c", b'{"gracePeriodSeconds":0}')
    create(kube, pods, pod("d"))
    create(kube, "/api/v1/nodes", {"metadata": {"name": "n"}})
    asked = _Asked(kube)
    caught_up = take(replace(warm, kube=cast("Kube", asked)), LISTS)
    assert asked.verbs == ["watch"] * len(LISTS.lists)
    assert msgspec.json.encode(caught_up) == msgspec.json.encode(take(fresh, LISTS))
    kube.delete("/api/v1/nodes/n")


class _Asked:
    """Notes what is asked of a `Kube`."""

    def __init__(self, kube: Kube) -> None:
        """Ask *kube*."""
        self._kube = kube
        self.verbs: list[str] = []

    def __getattr__(self, verb: str) -> object:
        self.verbs.append(verb)
        return getattr(self._kube, verb)
