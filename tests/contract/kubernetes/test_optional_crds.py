"""Contract of NodeOverlays and CapacityBuffers in every `Kube`."""

from typing import Any

import pytest

from shared.errors import Invalid
from shared.ports.kubernetes import Kube
from tests.contract import kube_front
from tests.contract.kube_front import create, patch, read

memory, endpoint, kube, namespace = kube_front.memory, kube_front.endpoint, kube_front.kube, kube_front.namespace

OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"


def make_overlay(**spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "o"}}
    return kind | {"spec": {"requirements": []} | spec}


def make_buffer(**spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "b"}}
    return kind | {"spec": spec}


def make_requirements(operator: str, *values: str) -> dict[str, Any]:
    return {"requirements": [{"key": "a/b", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"price": "0.25"},
        {"priceAdjustment": "-100%", "weight": 10000},
        {"priceAdjustment": "+250%"},
        {"priceAdjustment": "-1.2"},
        {"capacity": {"smarter.dev/fuse": 3}},
        make_requirements("NotIn", "x"),
        make_requirements("Gte", "4"),
    ],
)
def test_valid_node_overlay_is_accepted(kube: Kube, spec: dict[str, Any]) -> None:
    create(kube, OVERLAYS, make_overlay(**spec))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "exclude each other"),
        ({"price": "-1"}, "spec.price"),
        ({"priceAdjustment": "10%"}, "spec.priceAdjustment"),
        ({"priceAdjustment": "-101%"}, "spec.priceAdjustment"),
        ({"capacity": {"cpu": "1"}}, "the instance type's own"),
        ({"weight": 0}, "spec.weight"),
        (make_requirements("NotIn"), "at least one value"),
        (make_requirements("Lt", "x"), "exactly one integer"),
    ],
)
def test_invalid_node_overlay_is_rejected(kube: Kube, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        create(kube, OVERLAYS, make_overlay(**spec))


def test_node_overlay_has_a_status_subresource(kube: Kube) -> None:
    create(kube, OVERLAYS, make_overlay(price="1"))
    condition = {"type": "Ready", "status": "False", "reason": "Conflict", "message": "m"}
    patch(
        kube,
        f"{OVERLAYS}/o/status",
        {"status": {"conditions": [condition | {"lastTransitionTime": "2026-11-21T08:00:00Z"}]}},
    )
    assert read(kube, f"{OVERLAYS}/o")["status"]["conditions"][0]["reason"] == "Conflict"


@pytest.mark.parametrize(
    "spec",
    [
        {"podTemplateRef": {"name": "t"}, "replicas": 0},
        {"podTemplateRef": {"name": "t"}, "limits": {"cpu": "4"}},
        {"scalableRef": {"kind": "StatefulSet", "name": "s"}, "percentage": 20},
    ],
)
def test_capacity_buffer_gets_its_default_provisioning_strategy(kube: Kube, spec: dict[str, Any]) -> None:
    created = create(kube, BUFFERS, make_buffer(**spec))
    assert created["spec"]["provisioningStrategy"] == "buffer.x-k8s.io/active-capacity"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": 1}, "one of them"),
        ({"podTemplateRef": {"name": "t"}, "scalableRef": {"kind": "Deployment", "name": "d"}}, "one of them"),
        ({"podTemplateRef": {"name": "t"}}, "needs replicas or limits"),
        ({"podTemplateRef": {"name": "t"}, "replicas": -1}, "spec.replicas"),
        ({"scalableRef": {"kind": "Job", "name": "d"}}, "spec.scalableRef.kind"),
    ],
)
def test_invalid_capacity_buffer_is_rejected(kube: Kube, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        create(kube, BUFFERS, make_buffer(**spec))
