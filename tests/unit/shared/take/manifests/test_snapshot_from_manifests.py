"""Tests of cluster snapshots from manifest files."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shared.model.cluster import ClusterSnapshot
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
RECURSIVE: dict[str, Any] = {"name": "a"}
RECURSIVE["labels"] = RECURSIVE
POOL_LABEL = {"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default"}


def make_document(api: str, kind: str, name: str, **parts: Any) -> dict[str, Any]:
    meta = {"name": name} | parts.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": meta} | parts


def make_pod(name: str = "cart", **parts: Any) -> dict[str, Any]:
    return make_document("v1", "Pod", name, **({"spec": {"containers": []}} | parts))


def make_node(name: str, **parts: Any) -> dict[str, Any]:
    return make_document("v1", "Node", name, **parts)


def read(*objects: dict[str, Any], **options: Any) -> ClusterSnapshot:
    return build_snapshot_from_documents(objects, NOW, **options)


def test_list_documents_and_single_documents_are_read_equally() -> None:
    list_document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [make_pod("a"), {"kind": "PodList", "items": [make_pod("b")]}],
    }
    assert read(list_document) == read(make_pod("b"), make_pod("a"))
    assert read(list_document).taken_at == NOW


def test_pod_without_status_is_pending_in_the_default_namespace() -> None:
    [bare_pod] = read(make_pod()).pods
    assert bare_pod.name == "default/cart"
    assert is_provisionable(bare_pod)


def test_explicit_pod_status_is_used() -> None:
    scheduled = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert not is_provisionable(read(make_pod(status=scheduled)).pods[0])
    assert not read(make_pod(spec={"nodeName": "ip-1"})).pods[0].is_unschedulable()
    assert not read(make_pod(), assume_unschedulable=False).pods[0].is_unschedulable()
    ready = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert len(read(make_pod(status=ready)).pods[0].conditions) == 2


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_ended_pod_is_ignored(phase: str) -> None:
    assert read(make_pod(status={"phase": phase})).pods == ()


def test_nodepools_and_node_classes_without_status_count_as_ready() -> None:
    pool = make_document("karpenter.sh/v1", "NodePool", "default", spec={"template": {"spec": {"nodeClassRef": REF}}})
    node_class = make_document("karpenter.k8s.aws/v1", "EC2NodeClass", "default", metadata={"generation": 4}, spec={})
    cluster = read(pool, node_class)
    assert cluster.node_classes[0].is_ready()
    assert [(condition.type, condition.status) for condition in cluster.node_pools[0].conditions] == [("Ready", "True")]
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert not read(node_class | {"status": unready}).node_classes[0].is_ready()


def test_volume_claim_without_a_storage_class_gets_the_default_class() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    cluster = read(
        make_document("storage.k8s.io/v1", "StorageClass", "gp3", metadata={"annotations": default}),
        make_document("storage.k8s.io/v1", "StorageClass", "gp2"),
        make_document("v1", "PersistentVolumeClaim", "a", spec={}),
        make_document("v1", "PersistentVolumeClaim", "b", spec={"storageClassName": ""}),
        make_document("v1", "PersistentVolumeClaim", "c", spec={"storageClassName": "gp2"}),
    )
    assert [claim.storage_class for claim in cluster.volume_claims] == ["gp3", "", "gp2"]
    assert read(make_document("v1", "PersistentVolumeClaim", "a", spec={})).volume_claims[0].storage_class == ""


def test_node_with_a_nodepool_label_belongs_to_the_nodepool() -> None:
    labels = POOL_LABEL | {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    owned = make_node("ip-1", metadata={"labels": labels}, status={"allocatable": {"cpu": "2"}})
    cluster = read(owned, make_node("ip-2"))
    assert [(state.name, state.pool, state.claim is not None) for state in ClusterState(cluster).nodes] == [
        ("ip-1", "default", True),
        ("ip-2", "", False),
    ]
    assert cluster.node_claims[0].node_class.name == "default"
    assert cluster.node_claims[0].is_initialized()


@pytest.mark.parametrize(
    ("extra_labels", "is_initialized"),
    [({}, True), ({"karpenter.sh/registered": "true"}, False), ({"karpenter.sh/initialized": "false"}, False)],
)
def test_node_of_a_nodepool_is_initialized_unless_its_labels_differ(
    extra_labels: dict[str, str], *, is_initialized: bool
) -> None:
    cluster = read(make_node("ip-1", metadata={"labels": POOL_LABEL | extra_labels}))
    assert [state.is_initialized() for state in ClusterState(cluster).nodes] == [is_initialized]


def test_node_with_a_nodeclaim_gets_no_second_nodeclaim() -> None:
    spec, labelled = {"providerID": "aws:///a/i-1"}, {"labels": POOL_LABEL}
    claim = make_document("karpenter.sh/v1", "NodeClaim", "c", spec={"nodeClassRef": REF}, status=spec)
    assert [
        node_claim.name for node_claim in read(claim, make_node("ip-1", metadata=labelled, spec=spec)).node_claims
    ] == ["c"]
    by_name = make_document(
        "karpenter.sh/v1", "NodeClaim", "c", spec={"nodeClassRef": REF}, status={"nodeName": "ip-1"}
    )
    assert [node_claim.name for node_claim in read(by_name, make_node("ip-1", metadata=labelled)).node_claims] == ["c"]


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
def test_older_karpenter_api_versions_are_reported_with_the_convert_command(api: str, kind: str) -> None:
    cluster = read(make_document(api, kind, "old"), make_pod())
    [problem] = cluster.problems
    assert (problem.kind, problem.name) == (kind, "old")
    assert "joiner convert" in problem.message
    assert len(cluster.pods) == 1


def test_unknown_kinds_are_ignored() -> None:
    assert read(make_document("v1", "ConfigMap", "web", data={})) == ClusterSnapshot(taken_at=NOW)


def test_last_document_of_a_duplicate_object_is_used() -> None:
    assert [pod.node_name for pod in read(make_pod(spec={"nodeName": "a"}), make_pod(spec={"nodeName": "b"})).pods] == [
        "b"
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": 3, "status": []},
        make_pod(spec=[]),
        make_pod(status=4),
        make_pod(status={"conditions": 4}),
        make_pod(status={"conditions": [4]}),
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": 3},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": 3},
        make_document("v1", "PersistentVolumeClaim", "a", spec=4),
        make_document("karpenter.sh/v1", "NodePool", "a", status=4),
        make_document("storage.k8s.io/v1", "StorageClass", "a", metadata={"annotations": 4}),
        make_document("karpenter.sh/v1beta1", "NodePool", "a", metadata={"name": 3}),
    ],
)
def test_invalid_object_is_reported_and_the_others_are_read(bad: dict[str, Any]) -> None:
    cluster = read(bad, make_pod("good"))
    assert [pod.name for pod in cluster.pods] == ["default/good"]
    assert len(cluster.problems) == 1


def test_null_fields_count_as_missing() -> None:
    assert len(read(make_pod(status=None)).pods) == 1
    bare = {"apiVersion": None, "kind": None, "metadata": None, "items": None}
    assert read(bare) == ClusterSnapshot(taken_at=NOW)
    labelled = make_pod(
        metadata={"labels": {"a": None}, "namespace": None}, spec={"containers": None, "priority": None}
    )
    [parsed_pod] = read(labelled).pods
    assert (parsed_pod.name, parsed_pod.meta.labels) == ("default/cart", ())


def encode_list(*items: Any, **fields: Any) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items} | fields)


def test_encoded_and_decoded_documents_are_read_equally() -> None:
    documents = (
        make_pod("a"),
        make_pod("b", status={"phase": "Running"}),
        make_node("n"),
        make_pod("bad", spec=3),
        make_pod("c", status=None),
    )
    snapshot = build_snapshot_from_documents([encode_list(*documents)], NOW)
    encoded_documents = [msgspec.json.encode(document) for document in documents]
    assert snapshot == read(*documents) == build_snapshot_from_documents(encoded_documents, NOW)
    assert snapshot == build_snapshot_from_documents([msgspec.Raw(body) for body in encoded_documents], NOW)
    assert [pod.name for pod in snapshot.pods] == ["default/a", "default/b", "default/c"]
    assert [problem.name for problem in snapshot.problems] == ["default/bad"]


def test_list_items_without_a_kind_get_the_kind_of_their_list() -> None:
    bare = {key: part for key, part in make_pod().items() if key not in ("apiVersion", "kind")}
    assert [pod.name for pod in build_snapshot_from_documents([encode_list(bare, kind="PodList")], NOW).pods] == [
        "default/cart"
    ]
    assert build_snapshot_from_documents([encode_list(bare)], NOW).pods == ()


def test_pods_with_equal_specs_share_one_spec_object() -> None:
    pod_spec = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
    running = {"phase": "Running", "conditions": []}
    first_pod, second_pod, third_pod, fourth_pod = read(
        make_pod("a", spec=pod_spec),
        make_pod("b", spec=pod_spec),
        make_pod("c", spec=pod_spec, status=running),
        make_pod("d"),
    ).pods
    assert first_pod.spec is second_pod.spec is third_pod.spec
    assert first_pod.spec != fourth_pod.spec


def test_ephemeral_volume_claim_name_contains_its_pod_name() -> None:
    spec = {"containers": [], "volumes": [{"name": "scratch", "ephemeral": {}}]}
    assert [pod.spec.volume_claims for pod in read(make_pod("a", spec=spec), make_pod("b", spec=spec)).pods] == [
        ("a-scratch",),
        ("b-scratch",),
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"{", "truncated"),
        (b"7", "is not an object: '7'"),
        (encode_list("text"), "is not an object: 'text'"),
        (b'{"kind": "\xff"}', "utf-8"),
        (
            b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "\xff"}}',
            "is not JSON",
        ),
        ({"kind": "Pod", "metadata": RECURSIVE}, "cannot be written as JSON"),
    ],
)
def test_invalid_document_is_reported_and_the_others_are_read(source: Any, words: str) -> None:
    cluster = build_snapshot_from_documents([source, make_pod("good")], NOW)
    assert [pod.name for pod in cluster.pods] == ["default/good"]
    [problem] = cluster.problems
    assert words in problem.message


def test_non_string_keys_become_text() -> None:
    labels = {"labels": {True: "x"}}
    assert read(make_pod(metadata=labels)).pods[0].meta.labels == (("true", "x"),)
    assert read(make_pod(metadata={"annotations": {(1, 2): "x", "a": "b"}})).problems == ()
