"""Tests of Pods, DaemonSets and PodDisruptionBudgets as they are decoded."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.core.labels import ARCH, ZONE
from shared.model.core.metadata import OwnerReference
from shared.model.core.requirements import ANYTHING, build_requirements, parse_requirement
from shared.model.core.selectors import LabelSelector, SelectorExpression, build_label_selector
from shared.model.core.taints import Toleration
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.model.kubernetes.workloads import DaemonSet
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

BY_KIND = {listing.kind: listing for listing in RESOURCE_KINDS}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read(kind: str, **parts: Any) -> Any:
    [obj], [] = BY_KIND[kind].convert_objects([{"metadata": {"name": "cart", "namespace": "shop"}} | parts])
    return obj


def read_pod_spec(**parts: Any) -> PodSpec:
    pod: Pod = read("Pod", spec=parts)
    return pod.spec


def make_selector_term(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def test_pod_is_decoded_with_all_fields() -> None:
    pod: Pod = read(
        "Pod",
        metadata={
            "name": "cart",
            "namespace": "shop",
            "uid": "u-1",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-21T08:00:00Z",
            "deletionTimestamp": "2026-11-21T09:00:00+01:00",
            "labels": {"b": "2", "a": "1"},
            "annotations": {
                "karpenter.sh/do-not-disrupt": "true",
                "joiner.dev/x": "y",
                "controller.kubernetes.io/pod-deletion-cost": "5",
                "else": "long",
            },
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "o", "controller": True}
            ],
        },
        spec={"nodeName": "ip-1", "priority": 5, "priorityClassName": "high", "terminationGracePeriodSeconds": 90},
        status={
            "phase": "Running",
            "nominatedNodeName": "ip-2",
            "startTime": "2026-11-21T08:00:01Z",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}],
        },
    )
    assert (pod.name, pod.meta.uid, pod.meta.resource_version) == ("shop/cart", "u-1", "7")
    assert pod.meta.created_at == pod.meta.deleted_at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert pod.meta.labels == (("a", "1"), ("b", "2"))
    assert [key for key, _ in pod.meta.annotations] == [
        "controller.kubernetes.io/pod-deletion-cost",
        "joiner.dev/x",
        "karpenter.sh/do-not-disrupt",
    ]
    assert pod.meta.owners == (
        OwnerReference(api_version="apps/v1", kind="DaemonSet", name="d", uid="o", controller=True),
    )
    assert (pod.node_name, pod.nominated_node_name, pod.phase) == ("ip-1", "ip-2", "Running")
    assert (pod.priority, pod.priority_class, pod.grace_period) == (5, "high", timedelta(seconds=90))
    assert pod.started_at == datetime(2026, 11, 21, 8, 0, 1, tzinfo=UTC)
    assert [condition.type for condition in pod.conditions] == ["Initialized", "Ready"]


@pytest.mark.parametrize(("value", "is_kept"), [("false", True), ("true", False)])
def test_safe_to_evict_is_kept_only_if_it_protects(value: str, *, is_kept: bool) -> None:
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    pod: Pod = read("Pod", metadata={"name": "cart", "namespace": "shop", "annotations": {key: value}}, spec={})
    assert pod.meta.annotations == (((key, value),) if is_kept else ())


def test_pod_without_optional_fields_has_defaults() -> None:
    pod: Pod = read("Pod", spec={})
    assert (pod.phase, pod.priority, pod.grace_period) == ("Pending", 0, timedelta(seconds=30))
    assert pod.spec == PodSpec(requests=pod.spec.requests)


def test_very_long_pod_grace_period_is_clamped() -> None:
    pod: Pod = read("Pod", spec={"terminationGracePeriodSeconds": 2**63 - 1})
    assert pod.grace_period == timedelta(hours=2562047)


def test_restart_policy_and_active_deadline_tell_finite_pods() -> None:
    job_pod: Pod = read("Pod", spec={"restartPolicy": "OnFailure", "activeDeadlineSeconds": 600})
    service_pod: Pod = read("Pod", spec={})
    assert (job_pod.is_finite(), job_pod.active_deadline) == (True, timedelta(minutes=10))
    assert (service_pod.is_finite(), service_pod.active_deadline) == (False, None)


def test_pods_of_one_template_share_one_spec_object() -> None:
    def make_replica(number: int) -> dict[str, Any]:
        volume = {"name": f"kube-api-access-{number}", "projected": {"sources": []}}
        inner = {"containers": [{"name": "app"}], "nodeName": f"ip-{number}", "volumes": [volume]}
        return {"metadata": {"name": f"cart-{number}"}, "spec": inner}

    pods, _ = BY_KIND["Pod"].convert_objects([make_replica(1), make_replica(2)])
    assert pods[0].spec is pods[1].spec


def test_deprecated_node_selector_keys_are_normalized() -> None:
    selector = read_pod_spec(nodeSelector={"beta.kubernetes.io/arch": "arm64", ZONE: "a"}).node_selector
    assert selector == ((ARCH, "arm64"), (ZONE, "a"))


def test_contradictory_node_selector_keys_are_both_kept() -> None:
    selector = read_pod_spec(nodeSelector={"beta.kubernetes.io/arch": "arm64", ARCH: "amd64"}).node_selector
    assert selector == ((ARCH, "amd64"), (ARCH, "arm64"))


def test_required_affinity_terms_keep_their_order_and_empty_terms_are_dropped() -> None:
    terms = [make_selector_term("b", "1"), {}, make_selector_term("beta.kubernetes.io/arch", "arm64", "amd64")]
    pod_spec = read_pod_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    arch = build_requirements([parse_requirement(ARCH, "In", ["amd64", "arm64"])])
    assert pod_spec.required_terms == (build_requirements([parse_requirement("b", "In", ["1"])]), arch)
    assert not pod_spec.has_match_fields


def test_match_fields_in_node_affinity_are_recorded() -> None:
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["ip-1"]}]}
    pod_spec = read_pod_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [fields]}}})
    assert pod_spec.has_match_fields
    assert pod_spec.required_terms == (ANYTHING,)


def test_preferred_terms_are_sorted_by_descending_weight() -> None:
    nodes = [
        {"weight": weight, "preference": make_selector_term(key, "x")} for weight, key in ((1, "a"), (9, "b"), (9, "c"))
    ]
    pods = [{"weight": weight, "podAffinityTerm": {"topologyKey": key}} for weight, key in ((2, "a"), (5, "b"))]
    pod_spec = read_pod_spec(
        affinity={
            "nodeAffinity": {PREFERRED: nodes},
            "podAffinity": {PREFERRED: pods},
            "podAntiAffinity": {PREFERRED: pods},
        }
    )
    assert [
        (preferred_term.weight, preferred_term.requirements.items[0].key) for preferred_term in pod_spec.preferred_terms
    ] == [
        (9, "b"),
        (9, "c"),
        (1, "a"),
    ]
    assert [affinity_term.weight for affinity_term in pod_spec.preferred_pod_affinity] == [5, 2]
    assert [anti_affinity_term.topology_key for anti_affinity_term in pod_spec.preferred_pod_anti_affinity] == [
        "b",
        "a",
    ]


def test_pod_affinity_term_is_decoded_with_all_fields() -> None:
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "cart"}},
        "namespaces": ["b", "a", "b"],
        "namespaceSelector": {},
        "matchLabelKeys": ["pod-template-hash"],
        "mismatchLabelKeys": ["team"],
    }
    pod_spec = read_pod_spec(
        affinity={"podAffinity": {REQUIRED: [term]}, "podAntiAffinity": {REQUIRED: [{"topologyKey": "host"}]}}
    )
    [affinity_term], [anti_affinity_term] = pod_spec.pod_affinity, pod_spec.pod_anti_affinity
    assert (affinity_term.topology_key, affinity_term.weight, affinity_term.namespaces) == (ZONE, 0, ("a", "b"))
    assert affinity_term.selector == build_label_selector({"app": "cart"})
    assert affinity_term.namespace_selector == LabelSelector()
    assert (affinity_term.match_label_keys, affinity_term.mismatch_label_keys) == (("pod-template-hash",), ("team",))
    assert (anti_affinity_term.selector, anti_affinity_term.namespace_selector) == (None, None)


def test_topology_spread_constraint_has_kubernetes_defaults() -> None:
    pod_spec = read_pod_spec(
        topologySpreadConstraints=[
            {"topologyKey": ZONE, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 3},
            {
                "topologyKey": "host",
                "maxSkew": 1,
                "nodeTaintsPolicy": "Honor",
                "nodeAffinityPolicy": "Ignore",
                "matchLabelKeys": ["x"],
            },
        ]
    )
    zone_constraint, host_constraint = pod_spec.spread
    assert (zone_constraint.max_skew, zone_constraint.when_unsatisfiable, zone_constraint.min_domains) == (
        2,
        "ScheduleAnyway",
        3,
    )
    assert (zone_constraint.node_affinity_policy, zone_constraint.node_taints_policy, zone_constraint.selector) == (
        "Honor",
        "Ignore",
        None,
    )
    assert (
        host_constraint.node_affinity_policy,
        host_constraint.node_taints_policy,
        host_constraint.match_label_keys,
    ) == ("Ignore", "Honor", ("x",))


def test_label_selector_expressions_are_sorted() -> None:
    inner = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["2", "1", "2"]}],
    }
    pod_spec = read_pod_spec(topologySpreadConstraints=[{"topologyKey": ZONE, "maxSkew": 1, "labelSelector": inner}])
    assert pod_spec.spread[0].selector == build_label_selector(
        {"b": "1"}, (SelectorExpression(key="a", operator="NotIn", values=("1", "2")),)
    )


def test_tolerations_are_sorted_and_deduplicated() -> None:
    pod_spec = read_pod_spec(
        tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "tolerationSeconds": 3}, {"operator": "Exists"}]
    )
    assert pod_spec.tolerations == (Toleration(operator="Exists"), Toleration(key="a", value="b"))


def test_host_ports_come_from_containers_and_sidecars() -> None:
    pod_spec = read_pod_spec(
        containers=[{"ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]}],
        initContainers=[
            {"restartPolicy": "Always", "ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]},
            {"ports": [{"hostPort": 99}]},
        ],
    )
    assert pod_spec.host_ports == (HostPort(port=53, protocol="UDP", ip="10.0.0.1"), HostPort(port=80))


def test_host_network_pod_uses_container_ports_as_host_ports() -> None:
    assert read_pod_spec(hostNetwork=True, containers=[{"ports": [{"containerPort": 8080}]}]).host_ports == (
        HostPort(port=8080),
    )


def test_pod_volume_claims_include_ephemeral_volumes() -> None:
    volumes = [
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "again", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "empty", "emptyDir": {}},
    ]
    assert read_pod_spec(volumes=volumes).volume_claims == ("cart-tmp", "data-0")


def test_resource_claims_are_recorded() -> None:
    assert read_pod_spec(resourceClaims=[{"name": "gpu"}]).has_resource_claims
    assert not read_pod_spec().has_resource_claims


def read_daemon_set(**parts: Any) -> DaemonSet:
    daemon_set: DaemonSet = read("DaemonSet", spec={"template": {"spec": parts}})
    return daemon_set


def test_daemonset_spec_has_template_requests_and_no_preferences() -> None:
    heavy = [{"weight": 1, "preference": make_selector_term("a", "x")}]
    anywhere = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    close = [{"weight": 1, "podAffinityTerm": {"topologyKey": ZONE}}]
    pod_spec = read_daemon_set(
        containers=[{"name": "app", "resources": {"limits": {"cpu": "1"}}}],
        affinity={
            "nodeAffinity": {PREFERRED: heavy},
            "podAffinity": {PREFERRED: close},
            "podAntiAffinity": {PREFERRED: close},
        },
        topologySpreadConstraints=[anywhere],
        nodeSelector={"a": "b"},
    ).spec
    assert pod_spec.requests["cpu"] == 1000
    assert pod_spec.node_selector == (("a", "b"),)
    assert (pod_spec.preferred_terms, pod_spec.preferred_pod_affinity, pod_spec.preferred_pod_anti_affinity) == (
        (),
        (),
        (),
    )
    assert pod_spec.spread == ()


@pytest.mark.parametrize(("host_network", "count"), [(False, 6), (True, 7)])
def test_daemonset_spec_has_the_tolerations_its_controller_adds(host_network: bool, count: int) -> None:  # noqa: FBT001
    tolerations = read_daemon_set(
        hostNetwork=host_network, tolerations=[{"key": "a", "operator": "Exists"}]
    ).spec.tolerations
    assert len(tolerations) == count + 1
    assert Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute") in tolerations
    assert (
        Toleration(key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule") in tolerations
    ) is host_network


@pytest.mark.parametrize(
    ("bounds", "minimum", "maximum"),
    [
        ({}, "", ""),
        ({"minAvailable": 0}, "0", ""),
        ({"maxUnavailable": "25%"}, "", "25%"),
        ({"maxUnavailable": 0}, "", "0"),
    ],
)
def test_pdb_bounds_are_kept_as_text(bounds: dict[str, object], minimum: str, maximum: str) -> None:
    budget: PodDisruptionBudget = read("PodDisruptionBudget", spec=bounds)
    assert (budget.min_available, budget.max_unavailable) == (minimum, maximum)
    assert budget.selector is None
    assert budget.disruptions_allowed == 0


def test_pdb_selector_and_allowed_disruptions_are_decoded() -> None:
    inner = {"selector": {"matchLabels": {"app": "cart"}}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    budget: PodDisruptionBudget = read("PodDisruptionBudget", spec=inner, status={"disruptionsAllowed": 2})
    assert (budget.selector, budget.disruptions_allowed) == (build_label_selector({"app": "cart"}), 2)
    assert budget.always_allows_unhealthy
    assert not read("PodDisruptionBudget").always_allows_unhealthy
