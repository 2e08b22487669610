"""A cluster from files."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shared.model.cluster import Cluster
from shared.model.state import state_nodes
from shared.snapshot.documents import cluster_from_documents

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
RECURSIVE: dict[str, Any] = {"name": "a"}
RECURSIVE["labels"] = RECURSIVE
POOL_LABEL = {"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default"}


def document(api: str, kind: str, name: str, **parts: Any) -> dict[str, Any]:
    meta = {"name": name} | parts.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": meta} | parts


def pod(name: str = "cart", **parts: Any) -> dict[str, Any]:
    return document("v1", "Pod", name, **({"spec": {"containers": []}} | parts))


def node(name: str, **parts: Any) -> dict[str, Any]:
    return document("v1", "Node", name, **parts)


def read(*objects: dict[str, Any], **options: bool) -> Cluster:
    return cluster_from_documents(objects, NOW, **options)


def test_lists_and_single_documents_are_the_same() -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), {"kind": "PodList", "items": [pod("b")]}]}
    assert read(whole) == read(pod("b"), pod("a"))
    assert read(whole).taken_at == NOW


def test_a_bare_pod_waits_in_the_default_namespace() -> None:
    [one] = read(pod()).pods
    assert one.name == "default/cart"
    assert one.is_provisionable()


def test_a_pod_is_taken_at_its_word_where_it_says_one() -> None:
    scheduled = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert not read(pod(status=scheduled)).pods[0].is_provisionable()
    assert not read(pod(spec={"nodeName": "ip-1"})).pods[0].is_unschedulable()
    assert not read(pod(), assume_unschedulable=False).pods[0].is_unschedulable()
    ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert len(read(pod(status=ready)).pods[0].conditions) == 2


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_left_out(phase: str) -> None:
    assert read(pod(status={"phase": phase})).pods == ()


def test_pools_and_classes_without_status_are_taken_for_ready() -> None:
    pool = document("karpenter.sh/v1", "NodePool", "default", spec={"template": {"spec": {"nodeClassRef": REF}}})
    node_class = document("karpenter.k8s.aws/v1", "EC2NodeClass", "default", metadata={"generation": 4}, spec={})
    cluster = read(pool, node_class)
    assert cluster.node_classes[0].is_ready()
    assert [(one.type, one.status) for one in cluster.node_pools[0].conditions] == [("Ready", "True")]
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert not read(node_class | {"status": unready}).node_classes[0].is_ready()


def test_a_claim_without_class_gets_the_default_one() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    cluster = read(
        document("storage.k8s.io/v1", "StorageClass", "gp3", metadata={"annotations": default}),
        document("storage.k8s.io/v1", "StorageClass", "gp2"),
        document("v1", "PersistentVolumeClaim", "a", spec={}),
        document("v1", "PersistentVolumeClaim", "b", spec={"storageClassName": ""}),
        document("v1", "PersistentVolumeClaim", "c", spec={"storageClassName": "gp2"}),
    )
    assert [claim.storage_class for claim in cluster.volume_claims] == ["gp3", "", "gp2"]
    assert read(document("v1", "PersistentVolumeClaim", "a", spec={})).volume_claims[0].storage_class == ""


def test_a_node_with_a_pools_label_belongs_to_the_pool() -> None:
    labels = POOL_LABEL | {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    owned = node("ip-1", metadata={"labels": labels}, status={"allocatable": {"cpu": "2"}})
    cluster = read(owned, node("ip-2"))
    assert [(state.name, state.pool, state.is_managed()) for state in state_nodes(cluster)] == [
        ("ip-1", "default", True),
        ("ip-2", "", False),
    ]
    assert cluster.node_claims[0].node_class.name == "default"
    assert cluster.node_claims[0].is_initialized()


@pytest.mark.parametrize(
    ("said", "is_initialized"),
    [({}, True), ({"karpenter.sh/registered": "true"}, False), ({"karpenter.sh/initialized": "false"}, False)],
)
def test_such_a_node_has_joined_unless_it_says_something_else(said: dict[str, str], is_initialized: bool) -> None:  # noqa: FBT001 - a table's column
    cluster = read(node("ip-1", metadata={"labels": POOL_LABEL | said}))
    assert [state.is_initialized() for state in state_nodes(cluster)] == [is_initialized]


def test_a_node_that_has_a_claim_gets_no_other() -> None:
    spec, labelled = {"providerID": "aws:///a/i-1"}, {"labels": POOL_LABEL}
    claim = document("karpenter.sh/v1", "NodeClaim", "c", spec={"nodeClassRef": REF}, status=spec)
    assert [one.name for one in read(claim, node("ip-1", metadata=labelled, spec=spec)).node_claims] == ["c"]
    by_name = document("karpenter.sh/v1", "NodeClaim", "c", spec={"nodeClassRef": REF}, status={"nodeName": "ip-1"})
    assert [one.name for one in read(by_name, node("ip-1", metadata=labelled)).node_claims] == ["c"]


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("karpenter.sh/v1alpha5", "Provisioner"),
        ("karpenter.sh/v1beta1", "NodePool"),
        ("karpenter.sh/v1beta1", "NodeClaim"),
        ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"),
        ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
    ],
)
def test_older_versions_are_named_with_what_to_do(api: str, kind: str) -> None:
    cluster = read(document(api, kind, "old"), pod())
    [problem] = cluster.problems
    assert (problem.kind, problem.name) == (kind, "old")
    assert "joiner convert" in problem.message
    assert len(cluster.pods) == 1


def test_kinds_that_nobody_reads_are_passed_over() -> None:
    assert read(document("v1", "ConfigMap", "web", data={})) == Cluster(taken_at=NOW)


def test_of_an_object_that_is_there_twice_the_last_counts() -> None:
    assert [one.node_name for one in read(pod(spec={"nodeName": "a"}), pod(spec={"nodeName": "b"})).pods] == ["b"]


@pytest.mark.parametrize(
    "bad",
    [
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": 3, "status": []},
        pod(spec=[]),
        pod(status=4),
        pod(status={"conditions": 4}),
        pod(status={"conditions": [4]}),
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": 3},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": 3},
        document("v1", "PersistentVolumeClaim", "a", spec=4),
        document("karpenter.sh/v1", "NodePool", "a", status=4),
        document("storage.k8s.io/v1", "StorageClass", "a", metadata={"annotations": 4}),
        document("karpenter.sh/v1beta1", "NodePool", "a", metadata={"name": 3}),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(bad: dict[str, Any]) -> None:
    cluster = read(bad, pod("good"))
    assert [one.name for one in cluster.pods] == ["default/good"]
    assert len(cluster.problems) == 1


def test_nulls_are_nothing() -> None:
    assert len(read(pod(status=None)).pods) == 1
    bare = {"apiVersion": None, "kind": None, "metadata": None, "items": None}
    assert read(bare) == Cluster(taken_at=NOW)
    labelled = pod(metadata={"labels": {"a": None}, "namespace": None}, spec={"containers": None, "priority": None})
    [one] = read(labelled).pods
    assert (one.name, one.meta.labels) == ("default/cart", ())


def a_list(*items: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items} | more)


def test_bytes_say_what_is_decoded_of_them() -> None:
    some = (pod("a"), pod("b", status={"phase": "Running"}), node("n"), pod("bad", spec=3), pod("c", status=None))
    whole = cluster_from_documents([a_list(*some)], NOW)
    each = [msgspec.json.encode(one) for one in some]
    assert whole == read(*some) == cluster_from_documents(each, NOW)
    assert whole == cluster_from_documents([msgspec.Raw(one) for one in each], NOW)
    assert [one.name for one in whole.pods] == ["default/a", "default/b", "default/c"]
    assert [one.name for one in whole.problems] == ["default/bad"]


def test_items_without_a_kind_are_of_that_of_their_list() -> None:
    bare = {key: part for key, part in pod().items() if key not in ("apiVersion", "kind")}
    assert [one.name for one in cluster_from_documents([a_list(bare, kind="PodList")], NOW).pods] == ["default/cart"]
    assert cluster_from_documents([a_list(bare)], NOW).pods == ()


def test_equal_specs_are_one_and_the_same() -> None:
    asked = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
    running = {"phase": "Running", "conditions": []}
    one, two, three, four = read(
        pod("a", spec=asked), pod("b", spec=asked), pod("c", spec=asked, status=running), pod("d")
    ).pods
    assert one.spec is two.spec is three.spec
    assert one.spec != four.spec


def test_an_ephemeral_claim_has_its_own_pods_name() -> None:
    spec = {"containers": [], "volumes": [{"name": "scratch", "ephemeral": {}}]}
    assert [one.spec.volume_claims for one in read(pod("a", spec=spec), pod("b", spec=spec)).pods] == [
        ("a-scratch",),
        ("b-scratch",),
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"{", "truncated"),
        (b"7", "is no object: '7'"),
        (a_list("text"), "is no object: 'text'"),
        (b'{"kind": "\xff"}', "utf-8"),
        (
            b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "\xff"}}',
            "is not JSON",
        ),
        ({"kind": "Pod", "metadata": RECURSIVE}, "cannot be written as JSON"),
    ],
)
def test_what_is_no_document_is_named_and_the_rest_is_read(source: Any, words: str) -> None:
    cluster = cluster_from_documents([source, pod("good")], NOW)
    assert [one.name for one in cluster.pods] == ["default/good"]
    [problem] = cluster.problems
    assert words in problem.message


def test_keys_that_json_does_not_have_become_text() -> None:
    labels = {"labels": {True: "x"}}
    assert read(pod(metadata=labels)).pods[0].meta.labels == (("true", "x"),)
    assert read(pod(metadata={"annotations": {(1, 2): "x", "a": "b"}})).problems == ()
