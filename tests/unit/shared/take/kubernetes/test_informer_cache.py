"""Tests of the list cache: what a container remembers between invocations, and when it lists again."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from shared.errors import Expired, Fault, Forbidden, NotFound, Throttled, Unreachable
from shared.model.cluster import ClusterSnapshot
from shared.ports.kubernetes import Kube, WatchEvents
from shared.ports.world import World
from shared.take.kubernetes import informer_cache
from shared.take.snapshot import FULL_REQUEST, SnapshotRequest, refresh_snapshot, take_snapshot, take_trigger_snapshot
from tests.support.snapshot_world import NOW, PATHS, Lists, make_object, make_pod, make_world

PODS_REQUEST = SnapshotRequest(lists=("pods",))
NODES_AND_PODS_REQUEST = SnapshotRequest(lists=("nodes", "node_claims", "pods"))
KIND_BY_PATH = {path: kind for kind, path in PATHS.items()}
NODE_CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


class Watched(Lists):
    """Lists with watch results that the test sets; every object has a UID and every list a version."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        """Store *objects* by kind, at version 10."""
        objects_by_kind = {kind: [add_uid_and_version(obj) for obj in ones] for kind, ones in objects.items()}
        super().__init__(objects_by_kind)
        self.versions = {"": "10"}
        self.watch_results: dict[str, WatchEvents | Fault] = {}
        self.since: list[tuple[str, str, str]] = []
        self.memory: dict[str, object] = {}
        self.remembered_while_listing: list[int] = []
        self.refusal: Fault | None = None

    def list(self, path: str, **options: Any) -> bytes:
        token = options.get("continue_token", "")
        self.remembered_while_listing.append(len(self.memory))
        document = msgspec.json.decode(super().list(path, **options))
        document["metadata"]["resourceVersion"] = self.versions.get(token, "10")
        return msgspec.json.encode(document)

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        kind = KIND_BY_PATH[path]
        if self.refusal is not None:
            raise self.refusal
        self.requested_kinds.append(f"watch {kind}")
        self.since.append((kind, since, field_selector))

        def ask() -> WatchEvents:
            self.requested_kinds.append(f"ask {kind}")
            watch_result = self.watch_results.get(kind, WatchEvents(version=since))
            if isinstance(watch_result, Fault):
                raise watch_result
            return watch_result

        return ask


def add_uid_and_version(obj: dict[str, Any], version: str = "9") -> dict[str, Any]:
    meta = obj["metadata"]
    return obj | {"metadata": {"uid": f"uid-{meta['name']}", "resourceVersion": version} | meta}


def encode_event(type_: str, obj: dict[str, Any], version: str) -> bytes:
    return msgspec.json.encode({"type": type_, "object": add_uid_and_version(obj, version)})


def make_watch_events(*events: bytes, version: str = "20", count: int | None = None) -> WatchEvents:
    return WatchEvents(events=events, version=version, count=count)


def make_world_with_memory(kube: Watched, now: Callable[[], datetime] = lambda: NOW) -> World:
    return msgspec.structs.replace(make_world(kube, clock=now), kube=cast("Kube", kube), memory=kube.memory)


def list_pod_names(cluster: ClusterSnapshot) -> list[str]:
    return [pod.meta.name for pod in cluster.pods]


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 0)


@pytest.fixture
def kube() -> Watched:
    return Watched(
        Pod=[make_pod("a"), make_pod("b")],
        Node=[make_object("n")],
        NodeClaim=[make_object("c", spec={"nodeClassRef": NODE_CLASS_REF})],
    )


def test_cached_list_is_updated_by_a_watch_from_its_version(kube: Watched) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.watch_results["Pod"] = make_watch_events(
        encode_event("ADDED", make_pod("c"), "11"),
        encode_event("DELETED", make_pod("a"), "12"),
        encode_event("MODIFIED", make_pod("b"), "13"),
    )
    second = take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert [(pod.meta.name, pod.meta.resource_version) for pod in second.pods] == [("b", "13"), ("c", "11")]
    kube.watch_results.clear()
    assert take_snapshot(make_world_with_memory(kube), PODS_REQUEST) == second
    assert kube.since == [("Pod", "10", kube.selectors["Pod"]), ("Pod", "20", kube.selectors["Pod"])]
    assert kube.requested_kinds.count("Pod") == 1


def test_no_memory_means_a_full_list_every_time(kube: Watched) -> None:
    forgetful = msgspec.structs.replace(make_world_with_memory(kube), memory=None)
    assert take_snapshot(forgetful, PODS_REQUEST) == take_snapshot(forgetful, PODS_REQUEST)
    assert kube.requested_kinds == ["Pod", "Pod"]


def test_small_list_is_not_cached(kube: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "MIN_CACHED_LIST_BYTES", 8192)
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert kube.requested_kinds == ["Pod", "Pod"]


def test_all_watches_start_in_order_before_the_first_is_read(kube: Watched) -> None:
    take_snapshot(make_world_with_memory(kube), NODES_AND_PODS_REQUEST)
    kube.requested_kinds.clear()
    take_snapshot(make_world_with_memory(kube), NODES_AND_PODS_REQUEST)
    kinds = ["Node", "NodeClaim", "Pod"]
    assert kube.requested_kinds == [*(f"watch {kind}" for kind in kinds), *(f"ask {kind}" for kind in kinds)]


@pytest.mark.parametrize("kind", ["Node", "NodeClaim"])
def test_pods_are_watched_again_after_nodes_or_nodeclaims_are_listed(kube: Watched, kind: str) -> None:
    take_snapshot(make_world_with_memory(kube), NODES_AND_PODS_REQUEST)
    kube.watch_results[kind] = Expired("410")
    kube.requested_kinds.clear()
    take_snapshot(make_world_with_memory(kube), NODES_AND_PODS_REQUEST)
    assert kube.requested_kinds[kube.requested_kinds.index(kind) :][-2:] == ["watch Pod", "ask Pod"]
    assert kube.requested_kinds.count("watch Pod") == 2


def test_refresh_reads_only_nodeclaim_changes(kube: Watched) -> None:
    first = take_snapshot(make_world_with_memory(kube), FULL_REQUEST)
    kube.requested_kinds.clear()
    kube.watch_results["NodeClaim"] = make_watch_events(
        encode_event("ADDED", make_object("d", spec={"nodeClassRef": NODE_CLASS_REF}), "15")
    )
    second = refresh_snapshot(make_world_with_memory(kube), first)
    assert [claim.name for claim in second.node_claims] == ["c", "d"]
    assert kube.requested_kinds == ["watch NodeClaim", "ask NodeClaim"]


PLAIN_EVENT = encode_event("MODIFIED", make_pod("a"), "11")


@pytest.mark.parametrize(
    ("reason", "watch_result"),
    [
        ("too old", Expired("410")),
        ("cut off", Unreachable("reset")),
        ("not served", NotFound("404")),
        ("out of order", make_watch_events(encode_event("MODIFIED", make_pod("a"), "12"), PLAIN_EVENT)),
        ("duplicate version", make_watch_events(PLAIN_EVENT, PLAIN_EVENT)),
        ("version already known", make_watch_events(encode_event("MODIFIED", make_pod("a"), "10"))),
        ("version after the end", make_watch_events(encode_event("MODIFIED", make_pod("a"), "21"))),
        ("no JSON", make_watch_events(b"{")),
        ("invalid UTF-8", make_watch_events(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}')),
        ("no name", make_watch_events(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"11"}}}')),
        ("no version", make_watch_events(b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}')),
        ("bookmark among changes", make_watch_events(encode_event("BOOKMARK", make_pod("a"), "11"))),
    ],
)
def test_invalid_watch_result_causes_a_full_list(kube: Watched, reason: str, watch_result: WatchEvents | Fault) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.objects = {"Pod": [add_uid_and_version(make_pod("z"))]}
    kube.watch_results["Pod"] = watch_result
    assert list_pod_names(take_snapshot(make_world_with_memory(kube), PODS_REQUEST)) == ["z"], reason
    assert kube.remembered_while_listing == [0, 0]
    kube.watch_results.clear()
    assert list_pod_names(take_snapshot(make_world_with_memory(kube), PODS_REQUEST)) == ["z"]
    assert kube.requested_kinds.count("Pod") == 2


def test_count_mismatch_causes_a_full_list(kube: Watched) -> None:
    nodes = SnapshotRequest(lists=("nodes",))
    take_snapshot(make_world_with_memory(kube), nodes)
    kube.watch_results["Node"] = make_watch_events(encode_event("ADDED", make_object("m"), "11"), count=2)
    assert len(take_snapshot(make_world_with_memory(kube), nodes).nodes) == 2
    kube.watch_results["Node"] = make_watch_events(count=3, version="21")
    kube.requested_kinds.clear()
    take_snapshot(make_world_with_memory(kube), nodes)
    assert kube.requested_kinds == ["watch Node", "ask Node", "Node"]


def test_count_is_not_compared_for_selected_pods(kube: Watched) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.watch_results["Pod"] = make_watch_events(count=500)
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert kube.requested_kinds.count("Pod") == 1


@pytest.mark.parametrize("begins", [True, False])
def test_throttled_watch_does_not_cause_a_full_list(kube: Watched, *, begins: bool) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.watch_results["Pod"] = Throttled("later")
    kube.refusal = Throttled("later") if begins else None
    with pytest.raises(Throttled):
        take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.refusal = None
    kube.watch_results.clear()
    assert list_pod_names(take_snapshot(make_world_with_memory(kube), PODS_REQUEST)) == ["a", "b"]
    assert kube.requested_kinds.count("Pod") == 1


@pytest.mark.parametrize("begins", [True, False])
def test_forbidden_watch_is_reported_every_30_minutes_and_replaced_by_a_list(kube: Watched, *, begins: bool) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    fault = Forbidden("GET /api/v1/pods?watch=1: 403 cannot watch; apply rbac.yaml")
    kube.watch_results["Pod"] = fault
    kube.refusal = fault if begins else None
    [watch_problem] = take_snapshot(make_world_with_memory(kube), PODS_REQUEST).problems
    assert (watch_problem.kind, watch_problem.name) == ("Watch", "/api/v1/pods")
    assert watch_problem.message == f"{fault}; a full list is used instead, which costs the API server more"
    kube.refusal = None
    kube.requested_kinds.clear()
    for minutes in (0, 1, 29):
        assert (
            take_snapshot(
                make_world_with_memory(kube, partial(NOW.__add__, timedelta(minutes=minutes))), PODS_REQUEST
            ).problems
            == ()
        )
    assert kube.requested_kinds == ["Pod"] * 3
    later = make_world_with_memory(kube, lambda: NOW + timedelta(minutes=30))
    assert [problem.kind for problem in take_snapshot(later, PODS_REQUEST).problems] == ["Watch"], (
        "it is asked for again, in vain"
    )


def test_failed_list_after_a_failed_watch_raises_a_fault(kube: Watched) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    kube.watch_results["Pod"] = Unreachable("down")
    kube.faults["Pod"] = Unreachable("down")
    with pytest.raises(Unreachable):
        take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert kube.memory == {}


@pytest.mark.parametrize(
    ("later", "listed"),
    [(timedelta(minutes=29), 1), (timedelta(minutes=30), 2), (-timedelta(seconds=1), 2), (timedelta(days=3), 2)],
)
def test_cached_list_is_discarded_after_30_minutes_or_if_it_is_from_the_future(
    kube: Watched, later: timedelta, listed: int
) -> None:
    take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    take_snapshot(make_world_with_memory(kube, lambda: NOW + later), PODS_REQUEST)
    assert kube.requested_kinds.count("Pod") == listed


@pytest.mark.parametrize("versions", [{"": "10", "1": "11"}, {"": "", "1": ""}, {"": "ten", "1": "ten"}])
def test_list_without_a_single_resource_version_is_not_cached(kube: Watched, versions: dict[str, str]) -> None:
    kube.per_page, kube.versions = 1, versions
    assert list_pod_names(take_snapshot(make_world_with_memory(kube), PODS_REQUEST)) == ["a", "b"]
    assert kube.memory == {}


def test_invalid_object_is_remembered_until_it_is_corrected_or_deleted(kube: Watched) -> None:
    bad = make_pod("a") | {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}}
    kube.objects = {"Pod": [add_uid_and_version(bad), add_uid_and_version(make_pod("b"))]}
    first = take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert [problem.name for problem in first.problems] == ["shop/a"]
    assert take_snapshot(make_world_with_memory(kube), PODS_REQUEST) == first
    kube.watch_results["Pod"] = make_watch_events(
        encode_event("MODIFIED", bad | make_object("b", "shop"), "11"), encode_event("MODIFIED", make_pod("a"), "12")
    )
    second = take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert [problem.name for problem in second.problems] == ["shop/b"]
    assert list_pod_names(second) == ["a"]
    kube.watch_results["Pod"] = make_watch_events(encode_event("DELETED", make_object("b", "shop"), "21"), version="21")
    third = take_snapshot(make_world_with_memory(kube), PODS_REQUEST)
    assert third.problems == ()
    assert kube.requested_kinds.count("Pod") == 1


def test_unnamed_object_prevents_caching_of_its_list() -> None:
    kube = Watched(Pod=[make_pod("a")])
    kube.objects = {"Pod": [{"metadata": {"uid": ""}, "spec": {}}]}
    assert len(take_snapshot(make_world_with_memory(kube), PODS_REQUEST).problems) == 1
    assert kube.memory == {}


def test_removed_crd_is_reported_and_its_return_is_noticed(kube: Watched) -> None:
    claims = SnapshotRequest(lists=("node_claims",))
    take_snapshot(make_world_with_memory(kube), claims)
    kube.watch_results["NodeClaim"] = kube.faults["NodeClaim"] = NotFound("404")
    snapshot = take_snapshot(make_world_with_memory(kube), claims)
    assert snapshot.node_claims == ()
    assert [problem.kind for problem in snapshot.problems] == ["CustomResourceDefinition"]
    kube.faults.clear()
    assert len(take_snapshot(make_world_with_memory(kube), claims).node_claims) == 1


def make_unschedulable_pod(name: str) -> dict[str, Any]:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return make_pod(name) | {"status": {"conditions": conditions}}


def test_trigger_snapshot_lists_only_unbound_pods_if_a_pod_is_pending() -> None:
    kube = Lists({"Pod": [make_unschedulable_pod("a")]})
    assert list_pod_names(take_trigger_snapshot(make_world(kube))) == ["a"]
    assert kube.requested_kinds == ["Pod"]
    assert kube.selectors["Pod"] == "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def test_trigger_snapshot_stops_at_the_first_page_with_a_pending_pod() -> None:
    kube = Lists(
        {"Pod": [make_pod("a"), make_pod("b"), make_unschedulable_pod("c"), make_pod("d"), make_pod("e")]}, per_page=2
    )
    assert list_pod_names(take_trigger_snapshot(make_world(kube))) == ["a", "b", "c", "d"]


def test_trigger_snapshot_without_pending_pods_lists_nodes_and_node_classes() -> None:
    kube = Lists({"Pod": [make_pod("a")], "Node": [make_object("n")]})
    assert [node.name for node in take_trigger_snapshot(make_world(kube)).nodes] == ["n"]
    assert kube.requested_kinds == ["Pod", "Node", "NodeClaim", "EC2NodeClass"]


def test_expired_trigger_snapshot_starts_again() -> None:
    kube = Lists({"Pod": [make_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 1
    assert list_pod_names(take_trigger_snapshot(make_world(kube))) == list("abcd")
