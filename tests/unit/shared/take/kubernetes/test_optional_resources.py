"""Tests of kinds that are read only if a feature needs them."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from shared.cycles.setup.planning_snapshot import take_planning_snapshot
from shared.decide.provisioning.overlay_and_spread_defaults import apply_feature_gates
from shared.errors import NotFound
from shared.model.cluster import ClusterSnapshot
from shared.model.core.feature_gates import parse_feature_gates
from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.core.selectors import build_label_selector
from shared.model.karpenter.capacity_buffer import CapacityBuffer, ScalableRef
from shared.model.karpenter.node_overlay import NodeOverlay
from shared.model.kubernetes.workloads import Workload
from shared.ports.kubernetes import Kube
from shared.take.feature_gated_snapshot import take_planning_trigger_snapshot, with_overlays
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.reflector import Reflector
from shared.take.snapshot import SnapshotRequest
from shared.wire.paths import build_object_path
from tests.support.snapshot_world import NOW, Lists, make_world

BY_FIELD = {listing.field: listing for listing in OPTIONAL_KINDS}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
}


def read(field: str, **body: Any) -> Any:
    [obj], problems = BY_FIELD[field].convert_objects([{"metadata": {"name": "web", "namespace": "shop"}} | body])
    assert problems == []
    return obj


@pytest.mark.parametrize("field", ["deployments", "replica_sets", "stateful_sets"])
def test_workload_has_replicas_selector_and_pod_spec(field: str) -> None:
    selector = {"matchLabels": {"app": "web"}}
    workload = read(field, spec={"replicas": 3, "selector": selector, "template": TEMPLATE})
    assert isinstance(workload, Workload)
    assert (workload.replicas, workload.labels, workload.spec.requests["cpu"]) == (3, (("app", "web"),), 2000)
    assert workload.selector == build_label_selector({"app": "web"})
    assert read(field, spec={"template": TEMPLATE}).replicas == 1


def test_pod_templates_replication_controllers_and_services_are_decoded() -> None:
    template = read("pod_templates", template=TEMPLATE)
    assert (template.kind, template.spec.requests["cpu"]) == ("PodTemplate", 2000)
    assert read("replication_controllers", spec={"selector": {"a": "b"}}).selector == build_label_selector({"a": "b"})
    assert read("replication_controllers", spec={}).selector is None
    assert read("services", spec={"selector": {"a": "b"}}).selector == (("a", "b"),)
    assert read("services", spec={}).selector == ()


def test_invalid_pod_template_is_reported_by_its_field() -> None:
    bad = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}}
    _, [problem] = BY_FIELD["deployments"].convert_objects([{"metadata": {"name": "web"}, "spec": {"template": bad}}])
    assert problem.message.startswith("spec.template.spec.containers[c].resources.requests: cpu: not a quantity")


def test_capacity_buffer_is_decoded_with_all_fields() -> None:
    buffer = read(
        "capacity_buffers",
        spec={"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 20, "limits": {"cpu": "4"}},
        status={
            "replicas": 2,
            "podTemplateRef": {"name": "t"},
            "podTemplateGeneration": 5,
            "provisioningStrategy": "s",
        },
    )
    assert isinstance(buffer, CapacityBuffer)
    assert (buffer.scalable, buffer.percentage, buffer.limits["cpu"]) == (
        ScalableRef(kind="Deployment", name="web"),
        20,
        4000,
    )
    status_fields = (buffer.status_replicas, buffer.status_template, buffer.status_generation, buffer.status_strategy)
    assert status_fields == (2, "t", 5, "s")
    assert buffer.strategy == "buffer.x-k8s.io/active-capacity"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": 1}, "podTemplateRef or scalableRef"),
        (
            {"podTemplateRef": {"name": "t"}, "scalableRef": {"kind": "Deployment", "name": "d"}},
            "either podTemplateRef",
        ),
        ({"podTemplateRef": {"name": "t"}}, "needs replicas or limits"),
        ({"podTemplateRef": {"name": "t"}, "replicas": -1}, "replicas: -1 is below zero"),
        ({"scalableRef": {"kind": "Deployment", "name": "d"}, "percentage": -1}, "percentage: -1 is below zero"),
    ],
)
def test_invalid_capacity_buffer_is_reported(spec: dict[str, Any], words: str) -> None:
    _, [problem] = BY_FIELD["capacity_buffers"].convert_objects([{"metadata": {"name": "b"}, "spec": spec}])
    assert words in problem.message


def test_feature_gates_are_parsed_in_karpenter_format() -> None:
    assert parse_feature_gates("").reserved_capacity
    assert parse_feature_gates("NodeOverlay=true, Unheard=true,,StaticCapacity=false").node_overlay
    with pytest.raises(ValueError, match="NodeOverlay=yes"):
        parse_feature_gates("NodeOverlay=yes")


def test_missing_optional_crd_is_an_empty_list_without_a_problem() -> None:
    kube = Lists({})
    kube.faults["NodeOverlay"] = NotFound("nodeoverlays")
    problems: list[Problem] = []
    lists = Reflector(cast("Kube", kube), None, NOW).read_lists([BY_FIELD["node_overlays"]], problems)
    assert (lists, problems) == ({"node_overlays": ()}, [])


def test_namespaced_object_path_contains_its_namespace() -> None:
    assert (
        build_object_path("CapacityBuffer", "b", "shop")
        == "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/b"
    )
    assert build_object_path("NodeOverlay", "o") == "/apis/karpenter.sh/v1alpha1/nodeoverlays/o"


EMPTY_REQUEST = SnapshotRequest(lists=())


def list_requested_kinds(gates: str, config: str = "", **objects: Any) -> set[str]:
    """Return the optional kinds that a planning snapshot and a trigger snapshot list."""
    kube = Lists(objects)
    plain = make_world(kube)
    gated_world = replace(plain, settings=replace(plain.settings, feature_gates=gates, scheduler_config=config))
    take_planning_snapshot(gated_world, EMPTY_REQUEST)
    take_planning_trigger_snapshot(gated_world)
    with_overlays(gated_world, ClusterSnapshot(taken_at=NOW))
    return {resource_kind.kind for resource_kind in OPTIONAL_KINDS} & set(kube.requested_kinds)


@pytest.mark.parametrize(
    ("gates", "config", "kinds"),
    [
        ("", "", set()),
        ("StaticCapacity=true", "", set()),
        ("NodeOverlay=true", "", {"NodeOverlay"}),
        ("CapacityBuffer=true", "", {"CapacityBuffer"}),
        ("", "{}", {"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}),
    ],
)
def test_optional_kinds_are_listed_only_if_a_feature_needs_them(gates: str, config: str, kinds: set[str]) -> None:
    assert list_requested_kinds(gates, config) == kinds


def test_workload_kinds_are_listed_only_if_capacity_buffers_exist() -> None:
    buffer = {"metadata": {"name": "b"}, "spec": {"scalableRef": {"kind": "Deployment", "name": "d"}}}
    expected_kinds = {"CapacityBuffer", "PodTemplate", "Deployment", "ReplicaSet", "StatefulSet"}
    assert list_requested_kinds("CapacityBuffer=true", CapacityBuffer=[buffer]) == expected_kinds
    assert list_requested_kinds("CapacityBuffer=true", "{}", CapacityBuffer=[buffer]) == expected_kinds | {
        "Service",
        "ReplicationController",
    }


def test_disabled_feature_gates_remove_their_objects_from_the_snapshot() -> None:
    buffer = CapacityBuffer(meta=ObjectMeta(name="b"))
    cluster = ClusterSnapshot(
        taken_at=NOW, node_overlays=(NodeOverlay(meta=ObjectMeta(name="o")),), capacity_buffers=(buffer,)
    )
    off = apply_feature_gates(cluster, "", "")
    assert (off.node_overlays, off.capacity_buffers) == ((), ())
    on = apply_feature_gates(cluster, "NodeOverlay=true,CapacityBuffer=true", "")
    assert (on.node_overlays, on.capacity_buffers) == (cluster.node_overlays, cluster.capacity_buffers)


def test_catalog_is_read_for_node_overlays_only_if_there_are_any() -> None:
    overlay = {"metadata": {"name": "o"}, "spec": {}}
    base_world = make_world(Lists({"NodeOverlay": [overlay]}))
    on = replace(base_world, settings=replace(base_world.settings, feature_gates="NodeOverlay=true"))
    snapshot = with_overlays(on, ClusterSnapshot(taken_at=NOW))
    assert (
        [node_overlay.name for node_overlay in snapshot.node_overlays],
        [problem.kind for problem in snapshot.problems],
    ) == (["o"], ["Catalogue"])
