"""Tests of the in-memory API server as controllers see it: dicts, watches and indexes."""

import re
from datetime import timedelta
from typing import Any

import pytest

from shared.errors import Conflict, Expired, Invalid, NotFound
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.api_server.pages import ListOptions
from sim.time.virtual_clock import Clock

Object = dict[str, Any]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api(clock: Clock) -> ApiServer:
    return ApiServer(clock, definitions=())


def make_pod(name: str = "cart", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "one"}]} | spec}


def make_node(name: str = "n1", **spec: object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def test_new_cluster_has_namespaces_priority_classes_and_joiner_crds(clock: Clock) -> None:
    api = ApiServer(clock)
    assert [namespace["metadata"]["name"] for namespace in api.list("namespaces")] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert api.get("priorityclasses.scheduling.k8s.io", "system-cluster-critical")["value"] == 2_000_000_000
    for name in ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"):
        assert api.list(name) == []


def test_custom_resource_without_a_crd_is_not_found(api: ApiServer) -> None:
    with pytest.raises(NotFound):
        api.list("nodepools.karpenter.sh")
    with pytest.raises(NotFound):
        api.subscribe("nodepools.karpenter.sh", lambda *_: None)


def test_generated_names_and_uids_depend_on_the_seed(clock: Clock) -> None:
    def create_generated_pod(seed: int) -> tuple[str, str]:
        api = ApiServer(clock, seed, definitions=())
        metadata = api.create("pods", make_pod() | {"metadata": {"generateName": "a-"}}, "default")["metadata"]
        return metadata["name"], metadata["uid"]

    assert create_generated_pod(1) == create_generated_pod(1)
    assert set(create_generated_pod(1)).isdisjoint(create_generated_pod(2))


def test_generated_names_are_at_most_63_characters_and_avoid_existing_names(api: ApiServer, clock: Clock) -> None:
    long = {"metadata": {"generateName": "a" * 80}, "spec": make_pod()["spec"]}
    name = api.create("pods", long, "default")["metadata"]["name"]
    assert re.fullmatch("a{58}[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    other_api = ApiServer(clock, definitions=())
    other_api.create("pods", make_pod(name), "default")
    assert other_api.create("pods", long, "default")["metadata"]["name"] != name


def test_conflict_is_raised_if_every_generated_name_exists(api: ApiServer, clock: Clock) -> None:
    generated = {"metadata": {"generateName": "a-"}, "spec": make_pod()["spec"]}
    generated_names = [api.create("pods", generated, "default")["metadata"]["name"] for _ in range(8)]
    other_api = ApiServer(clock, definitions=())
    for name in generated_names:
        other_api.create("pods", make_pod(name), "default")
    with pytest.raises(Conflict):
        other_api.create("pods", generated, "default")


def test_uid_has_the_uuid_version_4_format(api: ApiServer) -> None:
    uids = {api.create("nodes", make_node(f"n{index}"))["metadata"]["uid"] for index in range(50)}
    assert len(uids) == 50
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}", uid) for uid in uids)


def test_creation_timestamp_comes_from_the_clock(api: ApiServer, clock: Clock) -> None:
    clock.advance(timedelta(seconds=61.5))
    assert api.create("nodes", make_node())["metadata"]["creationTimestamp"] == "2026-11-21T08:01:01Z"


def test_watcher_gets_old_and_new_object(api: ApiServer) -> None:
    changes: list[tuple[str, Object | None, Object | None]] = []
    api.subscribe("nodes", lambda *change: changes.append(change))
    first = api.create("nodes", make_node())
    second = api.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    api.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    api.delete("nodes", "n1")
    assert changes == [("ADDED", None, first), ("MODIFIED", first, second), ("DELETED", second, None)]
    assert changes[1][1] is first


def test_watchers_are_called_in_subscription_order_one_write_at_a_time(api: ApiServer) -> None:
    changes: list[tuple[str, str, str]] = []

    def label(event: str, _: Object | None, new: Object | None) -> None:
        assert new is not None
        changes.append(("first", event, new["metadata"]["resourceVersion"]))
        if event == "ADDED":
            patched = api.patch("nodes", "n1", {"metadata": {"labels": {"seen": "yes"}}})
            assert api.get("nodes", "n1") is patched

    api.subscribe("nodes", label)
    api.subscribe(
        "nodes", lambda event, _, new: changes.append(("second", event, (new or {})["metadata"]["resourceVersion"]))
    )
    version = int(api.create("nodes", make_node())["metadata"]["resourceVersion"])
    assert changes == [
        ("first", "ADDED", str(version)),
        ("second", "ADDED", str(version)),
        ("first", "MODIFIED", str(version + 1)),
        ("second", "MODIFIED", str(version + 1)),
    ]


def test_failing_watcher_does_not_block_later_writes(api: ApiServer) -> None:
    changes: list[str] = []

    def raise_on_added(event: str, *_: Object | None) -> None:
        changes.append(event)
        if event == "ADDED":
            raise LookupError(event)

    api.subscribe("nodes", raise_on_added)
    with pytest.raises(LookupError):
        api.create("nodes", make_node())
    api.delete("nodes", "n1")
    assert changes == ["ADDED", "DELETED"]


def test_pods_are_listed_by_node(api: ApiServer) -> None:
    for name in ("b", "a"):
        api.create("pods", make_pod(name, nodeName="n1"), "default")
    api.create("pods", make_pod("c"), "default")
    assert [listed_pod["metadata"]["name"] for listed_pod in api.list_pods_on_node("n1")] == ["a", "b"]
    api.bind("default", "c", "n1")
    api.delete("pods", "a", "default", grace_period_seconds=0)
    assert [listed_pod["metadata"]["name"] for listed_pod in api.list_pods_on_node("n1")] == ["b", "c"]
    assert api.list_pods_on_node("n1")[0] is api.get("pods", "b", "default")
    assert api.list_pods_on_node("nowhere") == []


def test_list_is_sorted_by_namespace_and_name(api: ApiServer) -> None:
    for namespace, name in (("kube-system", "a"), ("default", "b"), ("default", "a")):
        api.create("pods", make_pod(name), namespace)
    assert [
        (listed_pod["metadata"]["namespace"], listed_pod["metadata"]["name"]) for listed_pod in api.list("pods")
    ] == [
        ("default", "a"),
        ("default", "b"),
        ("kube-system", "a"),
    ]
    assert len(api.list("pods", "default")) == 2
    assert api.list("pods", "nowhere") == []


def test_update_replaces_the_object_and_checks_its_resource_version(api: ApiServer) -> None:
    old = api.create("nodes", make_node() | {"metadata": {"name": "n1", "labels": {"a": "b"}}})
    new = api.update("nodes", {**old, "metadata": {**old["metadata"], "labels": {"c": "d"}}})
    assert new["metadata"]["labels"] == {"c": "d"}
    with pytest.raises(Conflict):
        api.update("nodes", old)
    api.update("nodes", {"metadata": {"name": "n1"}, "spec": {}})
    assert "labels" not in api.get("nodes", "n1")["metadata"]


def test_update_cannot_change_the_kind(api: ApiServer) -> None:
    api.create("nodes", make_node())
    with pytest.raises(Invalid):
        api.update("nodes", make_node() | {"kind": "Pod"})
    with pytest.raises(NotFound):
        api.update("nodes", make_node(), "scale")


def test_patch_with_empty_metadata_changes_nothing(api: ApiServer) -> None:
    old = api.create("nodes", make_node())
    assert api.patch("nodes", "n1", {"metadata": {}}) is old
    with pytest.raises(Invalid):
        api.patch("nodes", "n1", {"metadata": None})


def test_objects_returned_earlier_are_not_modified(api: ApiServer) -> None:
    old = api.create("nodes", make_node())
    api.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    assert "unschedulable" not in old["spec"]


def test_continue_token_expires_after_five_minutes(api: ApiServer, clock: Clock) -> None:
    for name in "abc":
        api.create("nodes", make_node(name))
    token = api.list_page("nodes", ListOptions(limit=1)).continue_token
    clock.advance(timedelta(minutes=5, seconds=-1))
    assert [
        listed_node["metadata"]["name"]
        for listed_node in api.list_page("nodes", ListOptions(continue_token=token)).objects
    ] == [
        "b",
        "c",
    ]
    clock.advance(timedelta(seconds=1))
    with pytest.raises(Expired):
        api.list_page("nodes", ListOptions(continue_token=token))


def test_continue_tokens_can_be_expired_explicitly(api: ApiServer) -> None:
    kube = InMemoryKube(api)
    for name in "abc":
        api.create("nodes", make_node(name))
    token = api.list_page("nodes", ListOptions(limit=1)).continue_token
    kube.expire_tokens()
    with pytest.raises(Expired):
        kube.list("/api/v1/nodes", continue_token=token)


def test_remaining_item_count_is_omitted_with_a_selector(api: ApiServer) -> None:
    for name in "abc":
        api.create("nodes", make_node(name))
    page = api.list_page("nodes", ListOptions(limit=1, field_selector="metadata.name!=b"))
    assert page.continue_token
    assert page.remaining_item_count is None


def test_object_path_with_a_wrong_namespace_is_not_found(api: ApiServer) -> None:
    kube = InMemoryKube(api)
    for path in ("/api/v1/pods/cart", "/api/v1/namespaces/default/nodes/n1", "/api/v1/nodes/n1/log"):
        with pytest.raises(NotFound):
            kube.read(path)


def test_status_subresource_and_collection_can_be_read(api: ApiServer) -> None:
    kube = InMemoryKube(api)
    api.create("nodes", make_node())
    assert kube.read("/api/v1/nodes/n1/status") == kube.read("/api/v1/nodes/n1")
    assert kube.read("/api/v1/nodes") == kube.list("/api/v1/nodes")
