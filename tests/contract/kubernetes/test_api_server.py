"""Contract of every `Kube` for all kinds of objects: names, versions, lists, deletion."""

import msgspec
import pytest

from shared.errors import Conflict, Invalid, NotFound
from shared.ports.kubernetes import Kube
from tests.contract import kube_front
from tests.contract.kube_front import create, list_names, list_objects, make_pod, patch, read

memory, endpoint, kube, namespace = kube_front.memory, kube_front.endpoint, kube_front.kube, kube_front.namespace

NODES = "/api/v1/nodes"


def make_node(name: str, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_created_object_is_read_back(kube: Kube, pods: str) -> None:
    assert create(kube, pods, make_pod("cart")) == read(kube, f"{pods}/cart")


def test_creating_an_existing_name_raises_conflict(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    with pytest.raises(Conflict):
        create(kube, pods, make_pod("cart"))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nodes/nowhere",
        "/api/v1/nowhere",
        "/apis/karpenter.sh/v1/nowhere",
        "/apis/karpenter.sh/v1alpha1/nodepools/a",
        "/apis/nowhere.example/v1/things",
        "/nowhere",
    ],
)
def test_unknown_object_or_resource_raises_not_found(kube: Kube, path: str) -> None:
    with pytest.raises(NotFound):
        kube.read(path)


def test_listing_an_unknown_resource_raises_not_found(kube: Kube) -> None:
    with pytest.raises(NotFound):
        kube.list("/apis/example.com/v1/things")


def test_creating_an_object_in_a_missing_namespace_raises_not_found(kube: Kube) -> None:
    with pytest.raises(NotFound):
        create(kube, "/api/v1/namespaces/nowhere/pods", make_pod("cart"))


def test_server_sets_uid_creation_timestamp_and_generation(kube: Kube, pods: str) -> None:
    forged = make_pod("cart")
    forged["metadata"] |= {"uid": "mine", "generation": 9, "deletionTimestamp": "2020-01-01T00:00:00Z"}
    metadata = create(kube, pods, forged)["metadata"]
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata


def test_generate_name_appends_a_unique_suffix(kube: Kube, pods: str) -> None:
    created = [create(kube, pods, make_pod("") | {"metadata": {"generateName": "cart-"}}) for _ in range(3)]
    generated_names = {created_pod["metadata"]["name"] for created_pod in created}
    assert len(generated_names) == 3
    assert all(name.startswith("cart-") and len(name) == 10 for name in generated_names)


@pytest.mark.parametrize("name", ["", "Cart", "-cart", "cart_1", "a" * 254])
def test_invalid_object_name_is_rejected(kube: Kube, pods: str, name: str) -> None:
    with pytest.raises(Invalid):
        create(kube, pods, make_pod(name or "x") | {"metadata": {"name": name}})


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "b c"}, {"a": "b" * 64}, {"A/b/c": ""}, {"_/a": ""}])
def test_invalid_label_is_rejected(kube: Kube, pods: str, labels: dict[str, str]) -> None:
    wrong = make_pod("cart")
    wrong["metadata"]["labels"] = labels
    with pytest.raises(Invalid, match=r"metadata\.labels"):
        create(kube, pods, wrong)


def test_object_of_a_different_kind_is_rejected(kube: Kube, pods: str) -> None:
    with pytest.raises(Invalid):
        create(kube, pods, make_pod("cart") | {"kind": "Service"})
    with pytest.raises(Invalid):
        create(kube, pods, make_pod("cart") | {"apiVersion": "v2"})


def test_object_of_a_different_namespace_is_rejected(kube: Kube, pods: str) -> None:
    foreign_pod = make_pod("cart")
    foreign_pod["metadata"]["namespace"] = "default"
    with pytest.raises(Invalid):
        create(kube, pods, foreign_pod)


def test_invalid_json_body_is_rejected(kube: Kube, pods: str) -> None:
    for body in (b"", b"[]", b"{", b'{"metadata":[]}', b'{"metadata":{"labels":[]}}'):
        with pytest.raises(Invalid):
            kube.create(pods, body)


def test_merge_patch_merges_fields_and_null_removes_them(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    patch(kube, f"{pods}/cart", {"metadata": {"labels": {"tier": "web"}}})
    merged = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": None}}})
    assert merged["metadata"]["labels"] == {"tier": "web"}


def test_patching_a_missing_object_raises_not_found(kube: Kube, pods: str) -> None:
    with pytest.raises(NotFound):
        patch(kube, f"{pods}/cart", {})


def test_resource_version_increases_only_when_a_write_changes_the_object(kube: Kube, pods: str) -> None:
    first = create(kube, pods, make_pod("cart"))["metadata"]["resourceVersion"]
    same_version = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": "cart"}}})["metadata"]["resourceVersion"]
    new_version = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": "other"}}})["metadata"]["resourceVersion"]
    assert first == same_version
    assert int(new_version) > int(first)


def test_patch_with_a_stale_resource_version_raises_conflict(kube: Kube, pods: str) -> None:
    old = create(kube, pods, make_pod("cart"))["metadata"]["resourceVersion"]
    newer = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"a": "1"}}})["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": old, "labels": {"a": "2"}}}
    with pytest.raises(Conflict):
        patch(kube, f"{pods}/cart", change)
    change["metadata"]["resourceVersion"] = newer
    assert patch(kube, f"{pods}/cart", change)["metadata"]["labels"]["a"] == "2"


def test_immutable_metadata_cannot_be_patched(kube: Kube, pods: str) -> None:
    old = create(kube, pods, make_pod("cart"))["metadata"]
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"uid": "other"}})
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"name": "other"}})
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    patched = patch(kube, f"{pods}/cart", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7}})
    assert patched["metadata"] == old


def test_status_and_spec_are_written_through_separate_endpoints(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart") | {"status": {"phase": "Running"}})
    assert read(kube, f"{pods}/cart")["status"]["phase"] == "Pending"
    patch(kube, f"{pods}/cart", {"status": {"phase": "Running"}})
    assert read(kube, f"{pods}/cart")["status"]["phase"] == "Pending"
    patch(kube, f"{pods}/cart/status", {"status": {"phase": "Running"}, "spec": {"schedulerName": "mine"}})
    running = read(kube, f"{pods}/cart")
    assert running["status"]["phase"] == "Running"
    assert running["spec"]["schedulerName"] == "default-scheduler"


def test_labels_of_a_built_in_object_can_be_written_through_its_status(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    assert patch(kube, f"{pods}/cart/status", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"]["a"] == "b"


def test_kind_without_a_status_has_no_status_subresource(kube: Kube, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    create(kube, maps, {"metadata": {"name": "a"}, "data": {"a": "b"}})
    with pytest.raises(NotFound):
        patch(kube, f"{maps}/a/status", {"status": {}})


def test_finalizer_keeps_a_deleted_object_until_it_is_removed(kube: Kube) -> None:
    create(kube, NODES, make_node("a", finalizers=["example.com/hold"]))
    kube.delete(f"{NODES}/a")
    metadata = read(kube, f"{NODES}/a")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    kube.delete(f"{NODES}/a")
    assert read(kube, f"{NODES}/a")["metadata"] == metadata
    patch(kube, f"{NODES}/a", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        kube.read(f"{NODES}/a")


def test_new_finalizer_cannot_be_added_to_a_terminating_object(kube: Kube) -> None:
    create(kube, NODES, make_node("a", finalizers=["example.com/hold", "example.com/wait"]))
    kube.delete(f"{NODES}/a")
    patch(kube, f"{NODES}/a", {"metadata": {"finalizers": ["example.com/hold"]}})
    with pytest.raises(Invalid, match="finalizers"):
        patch(kube, f"{NODES}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_delete_preconditions_must_match_the_object(kube: Kube, field: str) -> None:
    right = create(kube, NODES, make_node("a"))["metadata"][field]
    with pytest.raises(Conflict):
        kube.delete(f"{NODES}/a", msgspec.json.encode({"preconditions": {field: "1"}}))
    kube.delete(f"{NODES}/a", msgspec.json.encode({"preconditions": {field: right}}))
    with pytest.raises(NotFound):
        kube.delete(f"{NODES}/a")


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_policy_adds_the_garbage_collector_finalizer(
    kube: Kube, namespace: str, policy: str, finalizer: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    create(kube, maps, {"metadata": {"name": "a"}})
    kube.delete(f"{maps}/a", msgspec.json.encode({"propagationPolicy": policy}))
    assert read(kube, f"{maps}/a")["metadata"]["finalizers"] == [finalizer]


def test_deleting_a_node_keeps_its_pods(kube: Kube, pods: str) -> None:
    create(kube, NODES, make_node("a"))
    create(kube, pods, make_pod("cart", nodeName="a"))
    kube.delete(f"{NODES}/a")
    assert read(kube, f"{pods}/cart")["spec"]["nodeName"] == "a"


def test_deleting_a_collection_path_is_rejected(kube: Kube, pods: str) -> None:
    with pytest.raises(Invalid):
        kube.delete(pods)


def test_list_is_sorted_and_has_a_kind_and_a_resource_version(kube: Kube, pods: str) -> None:
    for name in ("c", "a", "b"):
        create(kube, pods, make_pod(name))
    document = list_objects(kube, pods)
    assert list_names(document) == ["a", "b", "c"]
    assert (document["kind"], document["apiVersion"]) == ("PodList", "v1")
    assert int(document["metadata"]["resourceVersion"]) > 0
    assert "kind" not in document["items"][0]


def test_list_across_all_namespaces_returns_all_objects(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    create(kube, "/api/v1/namespaces/default/pods", make_pod("other"))
    assert {"cart", "other"} <= set(list_names(list_objects(kube, "/api/v1/pods")))
    assert list_names(list_objects(kube, pods)) == ["cart"]


def test_paginated_list_is_a_consistent_snapshot(kube: Kube, pods: str) -> None:
    for name in "abcde":
        create(kube, pods, make_pod(name))
    first = list_objects(kube, pods, limit=2)
    assert first["metadata"]["remainingItemCount"] == 3
    create(kube, pods, make_pod("aa"))
    kube.delete(f"{pods}/d")
    second = list_objects(kube, pods, limit=2, after=first["metadata"]["continue"])
    third = list_objects(kube, pods, limit=2, after=second["metadata"]["continue"])
    assert [*list_names(first), *list_names(second), *list_names(third)] == ["a", "b", "c", "d", "e"]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]
    assert "continue" not in third["metadata"]
    assert list_names(list_objects(kube, pods)) == ["a", "aa", "b", "c", "e"]


def test_invalid_continue_token_is_rejected(kube: Kube, pods: str) -> None:
    with pytest.raises(Invalid):
        list_objects(kube, pods, after="nonsense")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=a", ["a"]),
        ("app==a", ["a"]),
        ("app!=a", ["b", "c"]),
        ("app in (a,b)", ["a", "b"]),
        ("app notin (a, b)", ["c"]),
        ("tier", ["b"]),
        ("!tier", ["a", "c"]),
        ("app,app!=b", ["a", "c"]),
        ("app in (a, b),tier", ["b"]),
        ("tier!=web", ["a", "c"]),
    ],
)
def test_label_selector_filters_objects(kube: Kube, pods: str, selector: str, expected: list[str]) -> None:
    for name in "abc":
        create(kube, pods, make_pod(name))
    patch(kube, f"{pods}/b", {"metadata": {"labels": {"tier": "web"}}})
    assert list_names(list_objects(kube, pods, selector=selector)) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", ["a"]),
        ("metadata.name!=a", ["b", "c"]),
        ("spec.nodeName=n1", ["b"]),
        ("spec.nodeName=", ["a", "c"]),
        ("spec.nodeName!=", ["b"]),
        ("status.phase=Pending,spec.nodeName==", ["a"]),
        ("status.phase!=Succeeded,status.phase!=Failed", ["a", "b"]),
        ("spec.schedulerName=default-scheduler", ["a", "b", "c"]),
    ],
)
def test_field_selector_filters_objects(kube: Kube, pods: str, selector: str, expected: list[str]) -> None:
    for name in "ac":
        create(kube, pods, make_pod(name))
    create(kube, pods, make_pod("b", nodeName="n1"))
    patch(kube, f"{pods}/c/status", {"status": {"phase": "Failed"}})
    assert list_names(list_objects(kube, pods, fields=selector)) == expected


@pytest.mark.parametrize("selector", ["spec.hostname=a", "nonsense", "metadata.name>a"])
def test_unsupported_field_selector_is_rejected(kube: Kube, pods: str, selector: str) -> None:
    with pytest.raises(Invalid):
        kube.list(pods, field_selector=selector)


@pytest.mark.parametrize("selector", ["a=b=c", "a in b", "in (", "a=,=", "!"])
def test_invalid_label_selector_is_rejected(kube: Kube, pods: str, selector: str) -> None:
    with pytest.raises(Invalid):
        kube.list(pods, label_selector=selector)


def test_node_event_must_be_in_the_default_namespace(kube: Kube, namespace: str) -> None:
    event = {"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Node", "name": "a"}, "reason": "Seen"}
    create(kube, "/api/v1/namespaces/default/events", event)
    with pytest.raises(Invalid, match="namespace"):
        create(kube, f"/api/v1/namespaces/{namespace}/events", event)


def test_scale_changes_only_the_replicas_and_counts_a_generation(kube: Kube, namespace: str) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    create(
        kube, deployments, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    )
    annotated = patch(kube, f"{deployments}/web", {"metadata": {"annotations": {"a": "b"}}})["metadata"]
    version = {"metadata": {"resourceVersion": annotated["resourceVersion"]}, "spec": {"replicas": 0}}
    scale = patch(kube, f"{deployments}/web/scale", version)
    scaled = read(kube, f"{deployments}/web")
    assert (scaled["spec"]["replicas"], scaled["metadata"]["annotations"]["a"]) == (0, "b")
    assert scaled["metadata"]["generation"] > annotated["generation"]
    assert scale["metadata"]["resourceVersion"] == scaled["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        patch(kube, f"{deployments}/web/scale", version)
