"""Tests of the in-memory API server's rules for built-in kinds: defaults, allowed changes and deletion."""

from datetime import timedelta
from typing import Any

import pytest

from shared.errors import Conflict, EvictionRefused, Forbidden, Invalid, NotFound
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.api_server.rules.merge_patch import without_nulls
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


def test_created_node_has_the_not_ready_taint_and_its_status(api: ApiServer) -> None:
    created_node = api.create(
        "nodes", make_node(taints=[{"key": "a", "effect": "NoExecute"}]) | {"status": {"capacity": {"cpu": "2"}}}
    )
    assert [taint["key"] for taint in created_node["spec"]["taints"]] == ["a", "node.kubernetes.io/not-ready"]
    assert created_node["status"] == {"capacity": {"cpu": "2"}}
    tainted = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert api.create("nodes", make_node("n2", taints=[tainted]))["spec"]["taints"] == [tainted]


def test_node_provider_id_is_immutable(api: ApiServer) -> None:
    api.create("nodes", make_node())
    api.patch("nodes", "n1", {"spec": {"providerID": "aws:///a/i-1"}})
    for provider_id in ("aws:///a/i-2", None):
        with pytest.raises(Invalid, match="providerID"):
            api.patch("nodes", "n1", {"spec": {"providerID": provider_id}})


def test_created_pod_gets_default_fields(api: ApiServer) -> None:
    created_pod = api.create("pods", make_pod(), "default")
    spec = created_pod["spec"]
    assert (spec["schedulerName"], spec["terminationGracePeriodSeconds"], spec["priority"]) == (
        "default-scheduler",
        30,
        0,
    )
    assert created_pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert [
        (default_toleration["key"].rpartition("/")[2], default_toleration["tolerationSeconds"])
        for default_toleration in spec["tolerations"]
    ] == [
        ("not-ready", 300),
        ("unreachable", 300),
    ]


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        ({"operator": "Exists"}, []),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "operator": "Exists"}, ["unreachable"]),
        (
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule", "operator": "Exists"},
            ["not-ready", "unreachable"],
        ),
    ],
)
def test_default_not_ready_tolerations_are_added_only_if_missing(
    api: ApiServer, toleration: Object, added: list[str]
) -> None:
    tolerations = api.create("pods", make_pod(tolerations=[toleration]), "default")["spec"]["tolerations"]
    assert [default_toleration["key"].rpartition("/")[2] for default_toleration in tolerations[1:]] == added


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_pod_qos_class_is_derived_from_resources(api: ApiServer, resources: Object, expected: str) -> None:
    new_pod = make_pod(containers=[{"name": "app", "resources": resources}])
    assert api.create("pods", new_pod, "default")["status"]["qosClass"] == expected


def test_pod_without_containers_is_rejected(api: ApiServer) -> None:
    with pytest.raises(Invalid, match=r"spec\.containers"):
        api.create("pods", {"metadata": {"name": "a"}}, "default")


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"containers": [{"name": "app", "image": "two"}]}, True),
        ({"containers": [{"name": "other", "image": "one"}]}, False),
        ({"activeDeadlineSeconds": 5}, True),
        ({"nodeSelector": {"a": "b"}}, False),
        ({"schedulingGates": [{"name": "late"}]}, False),
        ({"tolerations": []}, False),
        ({"tolerations": None}, False),
        ({"terminationGracePeriodSeconds": 5}, False),
    ],
)
def test_pod_spec_is_immutable_except_for_a_few_fields(api: ApiServer, change: Object, *, allowed: bool) -> None:
    api.create("pods", make_pod(tolerations=[{"key": "a", "operator": "Exists"}]), "default")
    if allowed:
        assert api.patch("pods", "cart", {"spec": change}, "default")["metadata"]["generation"] == 2
    else:
        with pytest.raises(Invalid):
            api.patch("pods", "cart", {"spec": change}, "default")


def test_pod_tolerations_can_be_added(api: ApiServer) -> None:
    has = api.create("pods", make_pod(), "default")["spec"]["tolerations"]
    api.patch("pods", "cart", {"spec": {"tolerations": [*has, {"key": "a", "operator": "Exists"}]}}, "default")
    assert len(api.get("pods", "cart", "default")["spec"]["tolerations"]) == 3


def test_gated_pod_cannot_be_bound_until_its_gates_are_removed(api: ApiServer) -> None:
    api.create("pods", make_pod(schedulingGates=[{"name": "late"}]), "default")
    with pytest.raises(Conflict, match="schedulingGates"):
        api.bind("default", "cart", "n1")
    api.patch("pods", "cart", {"spec": {"nodeSelector": {"a": "b"}, "schedulingGates": []}}, "default")
    api.bind("default", "cart", "n1")
    with pytest.raises(Conflict, match="already assigned"):
        api.bind("default", "cart", "n2")


def test_terminating_pod_cannot_be_bound(api: ApiServer) -> None:
    api.create("pods", make_pod() | {"metadata": {"name": "cart", "finalizers": ["example.com/hold"]}}, "default")
    api.delete("pods", "cart", "default")
    with pytest.raises(Conflict, match="deleted"):
        api.bind("default", "cart", "n1")


def test_negative_grace_period_becomes_one_second(api: ApiServer) -> None:
    api.create("pods", make_pod(nodeName="n1"), "default")
    api.delete("pods", "cart", "default", grace_period_seconds=-5)
    assert api.get("pods", "cart", "default")["metadata"]["deletionGracePeriodSeconds"] == 1


def test_grace_period_counts_from_the_first_deletion(api: ApiServer, clock: Clock) -> None:
    api.create("pods", make_pod(nodeName="n1", terminationGracePeriodSeconds=600), "default")
    api.delete("pods", "cart", "default")
    assert api.get("pods", "cart", "default")["metadata"]["deletionTimestamp"] == "2026-11-21T08:10:00Z"
    clock.advance(timedelta(seconds=30))
    api.delete("pods", "cart", "default", grace_period_seconds=60)
    assert api.get("pods", "cart", "default")["metadata"]["deletionTimestamp"] == "2026-11-21T08:01:00Z"


def test_second_deletion_can_change_the_propagation_policy(api: ApiServer) -> None:
    api.create("nodes", make_node() | {"metadata": {"name": "n1", "finalizers": ["example.com/hold"]}})
    api.delete("nodes", "n1", propagation="Foreground")
    assert api.get("nodes", "n1")["metadata"]["finalizers"] == ["example.com/hold", "foregroundDeletion"]
    api.delete("nodes", "n1", propagation="Background")
    assert api.get("nodes", "n1")["metadata"]["finalizers"] == ["example.com/hold"]


def test_namespace_is_deleted_when_its_finalizers_are_removed(api: ApiServer) -> None:
    api.create("namespaces", {"metadata": {"name": "shop"}})
    api.create("pods", make_pod(), "shop")
    api.delete("namespaces", "shop")
    api.delete("namespaces", "shop")
    api.patch("namespaces", "shop", {"metadata": {"labels": {"a": "b"}}})
    assert api.get("namespaces", "shop")["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden, match="terminated"):
        api.create("pods", make_pod("other"), "shop")
    api.patch("pods", "cart", {"metadata": {"labels": {"a": "b"}}}, "shop")
    InMemoryKube(api).patch("/api/v1/namespaces/shop/finalize", b'{"spec":{"finalizers":[]}}')
    with pytest.raises(NotFound):
        api.get("namespaces", "shop")


def test_namespaced_object_requires_a_namespace(api: ApiServer) -> None:
    with pytest.raises(Invalid, match="empty namespace"):
        api.create("pods", make_pod())
    with pytest.raises(Invalid):
        api.create("nodes", make_node() | {"metadata": {"name": "n1", "namespace": "default"}})
    assert api.create("pods", make_pod() | {"metadata": {"name": "a", "namespace": "default"}})["metadata"]["namespace"]


def test_name_or_generate_name_is_required(api: ApiServer) -> None:
    with pytest.raises(Invalid, match="generateName"):
        api.create("nodes", {"spec": {}})


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"annotations": {"a b": ""}}, "annotations"),
        ({"annotations": {"a": 1}}, "annotations"),
        ({"annotations": {"a": "x" * 300_000}}, "annotations"),
        ({"finalizers": ["a b"]}, "finalizers"),
        ({"ownerReferences": [{"kind": "A", "name": "b", "uid": "c"}]}, "ownerReferences.apiVersion"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "b", "uid": "c", "controller": True}] * 2},
            "ownerReferences",
        ),
        ({"deletionGracePeriodSeconds": 3}, "deletionGracePeriodSeconds"),
    ],
)
def test_invalid_metadata_is_rejected(api: ApiServer, metadata: Object, field: str) -> None:
    api.create("nodes", make_node())
    with pytest.raises(Invalid, match=field):
        api.patch("nodes", "n1", {"metadata": metadata})


def test_status_update_keeps_pod_owners_and_deployment_labels(api: ApiServer) -> None:
    api.create("pods", make_pod(), "default")
    owner = {"apiVersion": "v1", "kind": "A", "name": "b", "uid": "c"}
    api.patch("pods", "cart", {"metadata": {"ownerReferences": [owner]}}, "default", "status")
    assert "ownerReferences" not in api.get("pods", "cart", "default")["metadata"]
    api.create("deployments.apps", {"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {}}, "default")
    change = {"metadata": {"labels": {"a": "c"}, "annotations": {"d": "e"}}, "status": {"replicas": 1}}
    deployment = api.patch("deployments.apps", "a", change, "default", "status")
    assert deployment["metadata"]["labels"] == {"a": "b"}
    assert deployment["metadata"]["annotations"] == {"d": "e"}
    assert deployment["metadata"]["generation"] == 1
    assert deployment["spec"]["replicas"] == 1


def test_storage_class_gets_default_fields(api: ApiServer) -> None:
    storage_class = api.create("storageclasses.storage.k8s.io", {"metadata": {"name": "a"}, "provisioner": "b"})
    assert (storage_class["reclaimPolicy"], storage_class["volumeBindingMode"]) == ("Delete", "Immediate")
    with pytest.raises(NotFound):
        api.patch("storageclasses.storage.k8s.io", "a", {}, subresource="status")


def test_null_fields_of_built_in_objects_are_not_stored(api: ApiServer) -> None:
    created_node = api.create(
        "nodes", make_node(taints=[{"key": "a", "effect": "NoSchedule", "value": None}], podCIDR=None)
    )
    assert "podCIDR" not in created_node["spec"]
    assert created_node["spec"]["taints"][0] == {"key": "a", "effect": "NoSchedule"}
    assert without_nulls(created_node) is created_node


def test_event_must_be_in_the_namespace_of_its_object(api: ApiServer) -> None:
    involved_object = {"kind": "Pod", "name": "cart", "namespace": "default"}
    created_event = api.create("events", {"metadata": {"name": "e"}, "involvedObject": involved_object}, "default")
    assert api.list("events", field_selector="involvedObject.name=cart") == [created_event]
    with pytest.raises(Invalid, match=r"involvedObject\.namespace"):
        api.patch("events", "e", {"involvedObject": {"namespace": "kube-system"}}, "default")


def test_nodes_can_be_selected_by_unschedulable(api: ApiServer) -> None:
    api.create("nodes", make_node("n1"))
    api.create("nodes", make_node("n2", unschedulable=True))
    assert [
        listed_node["metadata"]["name"] for listed_node in api.list("nodes", field_selector="spec.unschedulable=false")
    ] == ["n1"]
    assert [
        listed_node["metadata"]["name"] for listed_node in api.list("nodes", field_selector="spec.unschedulable=true")
    ] == ["n2"]


def create_running_pod(api: ApiServer, **budget_status: object) -> None:
    labelled = make_pod(nodeName="n1") | {"metadata": {"name": "cart", "labels": {"app": "cart"}}}
    api.create("pods", labelled, "default")
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.patch("pods", "cart", {"status": ready}, "default", "status")
    spec = {"selector": {"matchLabels": {"app": "cart"}}}
    api.create("poddisruptionbudgets.policy", {"metadata": {"name": "guard"}, "spec": spec}, "default")
    status = {"observedGeneration": 1, "disruptionsAllowed": 1} | budget_status
    api.patch("poddisruptionbudgets.policy", "guard", {"status": status}, "default", "status")


@pytest.mark.parametrize(
    "status", [{"disruptionsAllowed": -1}, {"disruptedPods": {f"p{index}": "x" for index in range(2001)}}]
)
def test_invalid_pdb_status_blocks_eviction(api: ApiServer, status: Object) -> None:
    create_running_pod(api, **status)
    with pytest.raises(Forbidden):
        api.evict("default", "cart")


def test_last_allowed_disruption_updates_the_pdb_condition(api: ApiServer) -> None:
    old = {"type": "DisruptionAllowed", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    create_running_pod(api, conditions=[{"type": "Other", "status": "True"}, old])
    api.evict("default", "cart")
    conditions = api.get("poddisruptionbudgets.policy", "guard", "default")["status"]["conditions"]
    assert [(condition["type"], condition["status"]) for condition in conditions] == [
        ("Other", "True"),
        ("DisruptionAllowed", "False"),
    ]
    assert conditions[1]["lastTransitionTime"] == "2026-11-21T08:00:00Z"


def test_eviction_decrements_allowed_disruptions(api: ApiServer) -> None:
    create_running_pod(api, disruptionsAllowed=2)
    api.evict("default", "cart")
    status = api.get("poddisruptionbudgets.policy", "guard", "default")["status"]
    assert status["disruptionsAllowed"] == 1
    assert "conditions" not in status


def test_eviction_with_another_uid_does_not_use_the_pdb(api: ApiServer) -> None:
    create_running_pod(api)
    with pytest.raises(Conflict):
        api.evict("default", "cart", uid="0")
    assert api.get("poddisruptionbudgets.policy", "guard", "default")["status"]["disruptionsAllowed"] == 1
    assert [condition["type"] for condition in api.get("pods", "cart", "default")["status"]["conditions"]] == ["Ready"]


def test_pdb_with_an_invalid_selector_protects_no_pod(api: ApiServer) -> None:
    create_running_pod(api, disruptionsAllowed=0)
    wrong = {"matchExpressions": [{"key": "app", "operator": "Near"}], "matchLabels": None}
    with pytest.raises(EvictionRefused):
        api.evict("default", "cart")
    api.patch("poddisruptionbudgets.policy", "guard", {"spec": {"selector": wrong}}, "default")
    api.evict("default", "cart")
