"""Contract of pods in every `Kube`: binding, termination and eviction."""

from typing import Any

import msgspec
import pytest

from shared.errors import Conflict, EvictionRefused, Forbidden, Invalid, NotFound
from shared.ports.kubernetes import Kube
from tests.contract import kube_front
from tests.contract.kube_front import create, is_gone, make_pod, patch, read

memory, endpoint, kube, namespace = kube_front.memory, kube_front.endpoint, kube_front.kube, kube_front.namespace

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:00:00Z"}
HEALTHY = {
    "observedGeneration": 1,
    "disruptionsAllowed": 1,
    "currentHealthy": 2,
    "desiredHealthy": 1,
    "expectedPods": 2,
}


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.fixture
def budgets(namespace: str) -> str:
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"


def create_running_pod(kube: Kube, pods: str, name: str, *, ready: bool = True, **spec: object) -> dict[str, Any]:
    create(kube, pods, make_pod(name, nodeName="n1", **spec))
    conditions = [READY | {"status": "True" if ready else "False"}]
    return patch(kube, f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": conditions}})


def create_budget(
    kube: Kube, budgets: str, app: str, name: str = "guard", status: dict[str, int] | None = None, **spec: object
) -> None:
    budget_spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}} | spec
    create(kube, budgets, {"metadata": {"name": name}, "spec": budget_spec})
    patch(kube, f"{budgets}/{name}/status", {"status": HEALTHY if status is None else status})


def evict(kube: Kube, pods: str, name: str, **options: object) -> None:
    body = {"metadata": {"name": name}, "deleteOptions": options}
    kube.create(f"{pods}/{name}/eviction", msgspec.json.encode(body))


def test_nominated_node_requires_the_matching_uid_and_is_cleared_by_the_binding(kube: Kube, pods: str) -> None:
    uid = create(kube, pods, make_pod("cart"))["metadata"]["uid"]
    hint = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": "n1"}}
    assert patch(kube, f"{pods}/cart/status", hint)["status"]["nominatedNodeName"] == "n1"
    create(kube, pods, make_pod("other"))
    for field_selector in ("status.nominatedNodeName=n1", "metadata.name=cart"):
        items = msgspec.json.decode(kube.list(pods, field_selector=field_selector, limit=1000))["items"]
        assert [item["metadata"]["name"] for item in items] == ["cart"]
    with pytest.raises(Invalid, match="uid"):
        patch(kube, f"{pods}/cart/status", hint | {"metadata": {"uid": "of an older one"}})
    binding = {"metadata": {"name": "cart"}, "target": {"kind": "Node", "name": "n2"}}
    kube.create(f"{pods}/cart/binding", msgspec.json.encode(binding))
    assert "nominatedNodeName" not in read(kube, f"{pods}/cart")["status"]


def test_deleted_running_pod_remains_until_the_kubelet_confirms(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    kube.delete(f"{pods}/cart")
    first = read(kube, f"{pods}/cart")["metadata"]
    assert first["deletionGracePeriodSeconds"] == 30
    assert first["generation"] == 2
    kube.delete(f"{pods}/cart")
    assert read(kube, f"{pods}/cart")["metadata"] == first
    kube.delete(f"{pods}/cart", b'{"gracePeriodSeconds":0}')
    assert is_gone(kube, f"{pods}/cart")


def test_deletion_grace_period_can_only_be_shortened(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    kube.delete(f"{pods}/cart", b'{"gracePeriodSeconds":20}')
    first = read(kube, f"{pods}/cart")["metadata"]
    kube.delete(f"{pods}/cart", b'{"gracePeriodSeconds":60}')
    assert read(kube, f"{pods}/cart")["metadata"] == first
    kube.delete(f"{pods}/cart", b'{"gracePeriodSeconds":5}')
    sooner = read(kube, f"{pods}/cart")["metadata"]
    assert sooner["deletionGracePeriodSeconds"] == 5
    assert sooner["deletionTimestamp"] < first["deletionTimestamp"]


def test_unscheduled_pod_is_deleted_immediately(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    kube.delete(f"{pods}/cart")
    assert is_gone(kube, f"{pods}/cart")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pod_is_deleted_immediately(kube: Kube, pods: str, phase: str) -> None:
    create_running_pod(kube, pods, "cart")
    patch(kube, f"{pods}/cart/status", {"status": {"phase": phase}})
    kube.delete(f"{pods}/cart")
    assert is_gone(kube, f"{pods}/cart")


def test_finalizer_keeps_a_pod_after_its_grace_period(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    patch(kube, f"{pods}/cart", {"metadata": {"finalizers": ["example.com/hold"]}})
    kube.delete(f"{pods}/cart")
    kube.delete(f"{pods}/cart", b'{"gracePeriodSeconds":0}')
    assert read(kube, f"{pods}/cart")["metadata"]["deletionGracePeriodSeconds"] == 0
    patch(kube, f"{pods}/cart", {"metadata": {"finalizers": []}})
    assert is_gone(kube, f"{pods}/cart")


def test_removing_a_finalizer_during_the_grace_period_does_not_delete_the_pod(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    patch(kube, f"{pods}/cart", {"metadata": {"finalizers": ["example.com/hold"]}})
    kube.delete(f"{pods}/cart")
    patch(kube, f"{pods}/cart", {"metadata": {"finalizers": []}})
    assert not is_gone(kube, f"{pods}/cart")


def test_pod_can_be_bound_only_once(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    binding = msgspec.json.encode({"metadata": {"name": "cart"}, "target": {"kind": "Node", "name": "n1"}})
    kube.create(f"{pods}/cart/binding", binding)
    bound = read(kube, f"{pods}/cart")
    assert bound["spec"]["nodeName"] == "n1"
    assert [(condition["type"], condition["status"]) for condition in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    with pytest.raises(Conflict):
        kube.create(f"{pods}/cart/binding", binding)


def test_node_name_of_a_pod_cannot_be_patched(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    with pytest.raises(Invalid, match="spec"):
        patch(kube, f"{pods}/cart", {"spec": {"nodeName": "n1"}})


def test_pod_with_an_unknown_priority_class_is_forbidden(kube: Kube, pods: str) -> None:
    with pytest.raises(Forbidden):
        create(kube, pods, make_pod("cart", priorityClassName="nowhere"))


def test_priority_class_sets_the_pod_priority(kube: Kube, pods: str) -> None:
    created = create(kube, pods, make_pod("cart", priorityClassName="system-node-critical"))
    assert created["spec"]["priority"] == 2_000_001_000


def test_eviction_deletes_the_pod_gracefully_and_uses_up_the_pdb(kube: Kube, pods: str, budgets: str) -> None:
    create_running_pod(kube, pods, "cart")
    create_budget(kube, budgets, "cart")
    evict(kube, pods, "cart")
    evicted, budget = read(kube, f"{pods}/cart"), read(kube, f"{budgets}/guard")
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30
    assert evicted["status"]["conditions"][-1]["type"] == "DisruptionTarget"
    assert budget["status"]["disruptionsAllowed"] == 0
    assert list(budget["status"]["disruptedPods"]) == ["cart"]


def test_eviction_can_shorten_the_grace_period(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    evict(kube, pods, "cart", gracePeriodSeconds=7)
    assert read(kube, f"{pods}/cart")["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(
    "status",
    [
        HEALTHY | {"disruptionsAllowed": 0},
        HEALTHY | {"observedGeneration": 0},
        {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    ],
    ids=["no disruptions allowed", "stale status", "status without generation"],
)
def test_pdb_without_allowed_disruptions_rejects_the_eviction(
    kube: Kube, pods: str, budgets: str, status: dict[str, int]
) -> None:
    create_running_pod(kube, pods, "cart")
    create_budget(kube, budgets, "cart", status=status)
    with pytest.raises(EvictionRefused, match="disruption budget"):
        evict(kube, pods, "cart")
    assert "deletionTimestamp" not in read(kube, f"{pods}/cart")["metadata"]


def test_pod_with_two_pdbs_cannot_be_evicted(kube: Kube, pods: str, budgets: str) -> None:
    create_running_pod(kube, pods, "cart")
    create_budget(kube, budgets, "cart", "one")
    create_budget(kube, budgets, "cart", "two")
    with pytest.raises(EvictionRefused, match="more than one PodDisruptionBudget"):
        evict(kube, pods, "cart")
    assert read(kube, f"{budgets}/one")["status"]["disruptionsAllowed"] == 1


def test_pending_or_finished_pod_is_evicted_despite_a_blocking_pdb(kube: Kube, pods: str, budgets: str) -> None:
    create_budget(kube, budgets, "cart", status=HEALTHY | {"disruptionsAllowed": 0, "currentHealthy": 0})
    create(kube, pods, make_pod("cart"))
    evict(kube, pods, "cart")
    assert is_gone(kube, f"{pods}/cart")
    create_running_pod(kube, pods, "cart")
    patch(kube, f"{pods}/cart/status", {"status": {"phase": "Succeeded"}})
    evict(kube, pods, "cart")
    assert is_gone(kube, f"{pods}/cart")


def test_evicting_a_terminating_pod_succeeds(kube: Kube, pods: str, budgets: str) -> None:
    create_running_pod(kube, pods, "cart")
    kube.delete(f"{pods}/cart")
    create_budget(kube, budgets, "cart", status=HEALTHY | {"disruptionsAllowed": 0, "currentHealthy": 0})
    evict(kube, pods, "cart")
    assert not is_gone(kube, f"{pods}/cart")


@pytest.mark.parametrize(
    ("policy", "status", "goes"),
    [
        ("IfHealthyBudget", HEALTHY | {"disruptionsAllowed": 0}, True),
        (None, HEALTHY | {"disruptionsAllowed": 0}, True),
        (None, HEALTHY | {"disruptionsAllowed": 0, "currentHealthy": 0}, False),
        (None, HEALTHY | {"disruptionsAllowed": 0, "desiredHealthy": 0}, False),
        ("AlwaysAllow", HEALTHY | {"disruptionsAllowed": 0, "currentHealthy": 0}, True),
    ],
)
def test_unready_pod_is_evicted_according_to_the_unhealthy_pod_eviction_policy(
    kube: Kube, pods: str, budgets: str, policy: str | None, status: dict[str, int], *, goes: bool
) -> None:
    create_running_pod(kube, pods, "cart", ready=False)
    create_budget(kube, budgets, "cart", status=status, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
    if goes:
        evict(kube, pods, "cart")
    else:
        with pytest.raises(EvictionRefused):
            evict(kube, pods, "cart")
    assert ("deletionTimestamp" in read(kube, f"{pods}/cart")["metadata"]) is goes
    assert "disruptedPods" not in read(kube, f"{budgets}/guard")["status"]


def test_pdb_does_not_protect_pods_it_does_not_select(kube: Kube, pods: str, budgets: str) -> None:
    create_running_pod(kube, pods, "cart")
    create_budget(kube, budgets, "other", status=HEALTHY | {"disruptionsAllowed": 0})
    evict(kube, pods, "cart")
    assert "deletionTimestamp" in read(kube, f"{pods}/cart")["metadata"]


def test_pdb_with_an_empty_selector_protects_the_whole_namespace(kube: Kube, pods: str, budgets: str) -> None:
    create_running_pod(kube, pods, "cart")
    create_budget(kube, budgets, "cart", status=HEALTHY | {"disruptionsAllowed": 0}, selector={})
    with pytest.raises(EvictionRefused):
        evict(kube, pods, "cart")


def test_eviction_preconditions_must_match_the_pod(kube: Kube, pods: str) -> None:
    right = create_running_pod(kube, pods, "cart")["metadata"]["uid"]
    with pytest.raises(Conflict):
        evict(kube, pods, "cart", preconditions={"uid": "0"})
    assert "deletionTimestamp" not in read(kube, f"{pods}/cart")["metadata"]
    evict(kube, pods, "cart", preconditions={"uid": right})
    assert "deletionTimestamp" in read(kube, f"{pods}/cart")["metadata"]


def test_eviction_with_a_different_pod_name_is_rejected(kube: Kube, pods: str) -> None:
    create_running_pod(kube, pods, "cart")
    with pytest.raises(Invalid):
        kube.create(f"{pods}/cart/eviction", b'{"metadata":{"name":"other"}}')


def test_evicting_a_missing_pod_raises_not_found(kube: Kube, pods: str) -> None:
    with pytest.raises(NotFound):
        evict(kube, pods, "cart")


def test_node_has_no_eviction_subresource(kube: Kube) -> None:
    create(kube, "/api/v1/nodes", {"metadata": {"name": "a"}})
    with pytest.raises(NotFound):
        kube.create("/api/v1/nodes/a/eviction", b'{"metadata":{"name":"a"}}')
