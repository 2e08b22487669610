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


def test_what_was_created_is_read_back(kube: Kube, pods: str) -> None:
    assert create(kube, pods, make_pod("cart")) == read(kube, f"{pods}/cart")


def test_a_name_can_be_created_once(kube: Kube, pods: str) -> None:
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
def test_what_does_not_exist_is_gone(kube: Kube, path: str) -> None:
    with pytest.raises(NotFound):
        kube.read(path)


def test_an_unknown_collection_is_gone_not_empty(kube: Kube) -> None:
    with pytest.raises(NotFound):
        kube.list("/apis/example.com/v1/things")


def test_nothing_is_created_in_a_namespace_that_is_not_there(kube: Kube) -> None:
    with pytest.raises(NotFound):
        create(kube, "/api/v1/namespaces/nowhere/pods", make_pod("cart"))


def test_the_server_gives_an_identity_and_a_time(kube: Kube, pods: str) -> None:
    forged = make_pod("cart")
    forged["metadata"] |= {"uid": "mine", "generation": 9, "deletionTimestamp": "2020-01-01T00:00:00Z"}
    metadata = create(kube, pods, forged)["metadata"]
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["generation"] == 1
    assert "deletionTimestamp" not in metadata


def test_a_generated_name_extends_its_base(kube: Kube, pods: str) -> None:
    created = [create(kube, pods, make_pod("") | {"metadata": {"generateName": "cart-"}}) for _ in range(3)]
    generated_names = {created_pod["metadata"]["name"] for created_pod in created}
    assert len(generated_names) == 3
    assert all(name.startswith("cart-") and len(name) == 10 for name in generated_names)


@pytest.mark.parametrize("name", ["", "Cart", "-cart", "cart_1", "a" * 254])
def test_a_name_is_an_rfc_1123_name(kube: Kube, pods: str, name: str) -> None:
    with pytest.raises(Invalid):
        create(kube, pods, make_pod(name or "x") | {"metadata": {"name": name}})


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "b c"}, {"a": "b" * 64}, {"A/b/c": ""}, {"_/a": ""}])
def test_a_label_is_checked(kube: Kube, pods: str, labels: dict[str, str]) -> None:
    wrong = make_pod("cart")
    wrong["metadata"]["labels"] = labels
    with pytest.raises(Invalid, match=r"metadata\.labels"):
        create(kube, pods, wrong)


def test_an_object_of_another_kind_is_refused(kube: Kube, pods: str) -> None:
    with pytest.raises(Invalid):
        create(kube, pods, make_pod("cart") | {"kind": "Service"})
    with pytest.raises(Invalid):
        create(kube, pods, make_pod("cart") | {"apiVersion": "v2"})


def test_an_object_of_another_namespace_is_refused(kube: Kube, pods: str) -> None:
    foreign_pod = make_pod("cart")
    foreign_pod["metadata"]["namespace"] = "default"
    with pytest.raises(Invalid):
        create(kube, pods, foreign_pod)


def test_what_is_no_object_is_refused(kube: Kube, pods: str) -> None:
    for body in (b"", b"[]", b"{", b'{"metadata":[]}', b'{"metadata":{"labels":[]}}'):
        with pytest.raises(Invalid):
            kube.create(pods, body)


def test_a_patch_merges_and_null_removes(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    patch(kube, f"{pods}/cart", {"metadata": {"labels": {"tier": "web"}}})
    merged = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": None}}})
    assert merged["metadata"]["labels"] == {"tier": "web"}


def test_a_patch_of_nothing_is_gone(kube: Kube, pods: str) -> None:
    with pytest.raises(NotFound):
        patch(kube, f"{pods}/cart", {})


def test_a_write_raises_the_version_and_one_that_changes_nothing_does_not(kube: Kube, pods: str) -> None:
    first = create(kube, pods, make_pod("cart"))["metadata"]["resourceVersion"]
    same_version = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": "cart"}}})["metadata"]["resourceVersion"]
    new_version = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"app": "other"}}})["metadata"]["resourceVersion"]
    assert first == same_version
    assert int(new_version) > int(first)


def test_a_stale_version_is_a_conflict(kube: Kube, pods: str) -> None:
    old = create(kube, pods, make_pod("cart"))["metadata"]["resourceVersion"]
    newer = patch(kube, f"{pods}/cart", {"metadata": {"labels": {"a": "1"}}})["metadata"]["resourceVersion"]
    change = {"metadata": {"resourceVersion": old, "labels": {"a": "2"}}}
    with pytest.raises(Conflict):
        patch(kube, f"{pods}/cart", change)
    change["metadata"]["resourceVersion"] = newer
    assert patch(kube, f"{pods}/cart", change)["metadata"]["labels"]["a"] == "2"


def test_identity_cannot_be_patched(kube: Kube, pods: str) -> None:
    old = create(kube, pods, make_pod("cart"))["metadata"]
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"uid": "other"}})
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"name": "other"}})
    with pytest.raises(Invalid):
        patch(kube, f"{pods}/cart", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    patched = patch(kube, f"{pods}/cart", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7}})
    assert patched["metadata"] == old


def test_status_and_the_rest_are_written_apart(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart") | {"status": {"phase": "Running"}})
    assert read(kube, f"{pods}/cart")["status"]["phase"] == "Pending"
    patch(kube, f"{pods}/cart", {"status": {"phase": "Running"}})
    assert read(kube, f"{pods}/cart")["status"]["phase"] == "Pending"
    patch(kube, f"{pods}/cart/status", {"status": {"phase": "Running"}, "spec": {"schedulerName": "mine"}})
    running = read(kube, f"{pods}/cart")
    assert running["status"]["phase"] == "Running"
    assert running["spec"]["schedulerName"] == "default-scheduler"


def test_labels_of_a_built_in_kind_are_writable_through_its_status(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    assert patch(kube, f"{pods}/cart/status", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"]["a"] == "b"


def test_a_kind_without_status_has_no_such_subresource(kube: Kube, namespace: str) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    create(kube, maps, {"metadata": {"name": "a"}, "data": {"a": "b"}})
    with pytest.raises(NotFound):
        patch(kube, f"{maps}/a/status", {"status": {}})


def test_a_finalizer_keeps_a_deleted_object_until_it_is_taken_off(kube: Kube) -> None:
    create(kube, NODES, make_node("a", finalizers=["example.com/hold"]))
    kube.delete(f"{NODES}/a")
    metadata = read(kube, f"{NODES}/a")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    kube.delete(f"{NODES}/a")
    assert read(kube, f"{NODES}/a")["metadata"] == metadata
    patch(kube, f"{NODES}/a", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        kube.read(f"{NODES}/a")


def test_no_finalizer_is_added_to_what_is_being_deleted(kube: Kube) -> None:
    create(kube, NODES, make_node("a", finalizers=["example.com/hold", "example.com/wait"]))
    kube.delete(f"{NODES}/a")
    patch(kube, f"{NODES}/a", {"metadata": {"finalizers": ["example.com/hold"]}})
    with pytest.raises(Invalid, match="finalizers"):
        patch(kube, f"{NODES}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_deletion_may_be_meant_for_one_object_only(kube: Kube, field: str) -> None:
    right = create(kube, NODES, make_node("a"))["metadata"][field]
    with pytest.raises(Conflict):
        kube.delete(f"{NODES}/a", msgspec.json.encode({"preconditions": {field: "1"}}))
    kube.delete(f"{NODES}/a", msgspec.json.encode({"preconditions": {field: right}}))
    with pytest.raises(NotFound):
        kube.delete(f"{NODES}/a")


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_a_propagation_policy_is_left_to_the_garbage_collector(
    kube: Kube, namespace: str, policy: str, finalizer: str
) -> None:
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    create(kube, maps, {"metadata": {"name": "a"}})
    kube.delete(f"{maps}/a", msgspec.json.encode({"propagationPolicy": policy}))
    assert read(kube, f"{maps}/a")["metadata"]["finalizers"] == [finalizer]


def test_a_deleted_node_leaves_its_pods(kube: Kube, pods: str) -> None:
    create(kube, NODES, make_node("a"))
    create(kube, pods, make_pod("cart", nodeName="a"))
    kube.delete(f"{NODES}/a")
    assert read(kube, f"{pods}/cart")["spec"]["nodeName"] == "a"


def test_a_collection_is_not_deleted_by_accident(kube: Kube, pods: str) -> None:
    with pytest.raises(Invalid):
        kube.delete(pods)


def test_a_list_is_sorted_and_says_what_it_is(kube: Kube, pods: str) -> None:
    for name in ("c", "a", "b"):
        create(kube, pods, make_pod(name))
    document = list_objects(kube, pods)
    assert list_names(document) == ["a", "b", "c"]
    assert (document["kind"], document["apiVersion"]) == ("PodList", "v1")
    assert int(document["metadata"]["resourceVersion"]) > 0
    assert "kind" not in document["items"][0]


def test_a_list_over_all_namespaces_has_them_all(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    create(kube, "/api/v1/namespaces/default/pods", make_pod("other"))
    assert {"cart", "other"} <= set(list_names(list_objects(kube, "/api/v1/pods")))
    assert list_names(list_objects(kube, pods)) == ["cart"]


def test_pages_show_one_moment(kube: Kube, pods: str) -> None:
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


def test_a_continue_token_that_is_none_is_refused(kube: Kube, pods: str) -> None:
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
def test_a_label_selector_selects(kube: Kube, pods: str, selector: str, expected: list[str]) -> None:
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
def test_a_field_selector_selects(kube: Kube, pods: str, selector: str, expected: list[str]) -> None:
    for name in "ac":
        create(kube, pods, make_pod(name))
    create(kube, pods, make_pod("b", nodeName="n1"))
    patch(kube, f"{pods}/c/status", {"status": {"phase": "Failed"}})
    assert list_names(list_objects(kube, pods, fields=selector)) == expected


@pytest.mark.parametrize("selector", ["spec.hostname=a", "nonsense", "metadata.name>a"])
def test_a_field_that_cannot_be_selected_by_is_refused(kube: Kube, pods: str, selector: str) -> None:
    with pytest.raises(Invalid):
        kube.list(pods, field_selector=selector)


@pytest.mark.parametrize("selector", ["a=b=c", "a in b", "in (", "a=,=", "!"])
def test_a_label_selector_that_is_none_is_refused(kube: Kube, pods: str, selector: str) -> None:
    with pytest.raises(Invalid):
        kube.list(pods, label_selector=selector)


def test_an_event_about_a_node_lives_in_default(kube: Kube, namespace: str) -> None:
    event = {"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Node", "name": "a"}, "reason": "Seen"}
    create(kube, "/api/v1/namespaces/default/events", event)
    with pytest.raises(Invalid, match="namespace"):
        create(kube, f"/api/v1/namespaces/{namespace}/events", event)
