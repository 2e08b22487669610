"""Tests of topology spread and pod affinity: what the pods on other nodes allow."""

from typing import Any

import pytest

from tests.support.cluster_objects import HOST, ZONE, Bench, Obj

APP = {"matchLabels": {"app": "web"}}


def make_spread(**constraint_fields: Any) -> Obj:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
    return {"topologySpreadConstraints": [constraint | constraint_fields]}


def make_required_affinity(kind: str, key: str = ZONE, /, **term_fields: Any) -> Obj:
    term = {"topologyKey": key, "labelSelector": APP, **term_fields}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def make_preferred_affinity(kind: str, **term_fields: Any) -> Obj:
    term = {"weight": 100, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": APP, **term_fields}}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def make_three_zone_bench(**node_fields: Any) -> Bench:
    bench = Bench()
    for zone in "abc":
        bench.create_node(f"n-{zone}", zone=zone, **node_fields)
    return bench


def create_web_pod(bench: Bench, name: str, spec: Obj | None = None, **pod_fields: Any) -> None:
    bench.create_pod(name, labels={"app": "web"}, spec=spec, **pod_fields)


def test_topology_spread_distributes_pods_over_zones() -> None:
    bench = make_three_zone_bench()
    bench.create_node("roomy", zone="a", cpu="64", memory="256Gi", pods="100")
    for number in range(6):
        create_web_pod(bench, f"p{number}", make_spread())
    bench.advance_seconds()
    zones = sorted(bench.get_node_name(f"p{number}").replace("roomy", "n-a") for number in range(6))
    assert zones == ["n-a", "n-a", "n-b", "n-b", "n-c", "n-c"]


def test_pod_stays_pending_if_max_skew_cannot_be_met() -> None:
    bench = make_three_zone_bench()
    create_web_pod(bench, "old", on="n-a")
    bench.api.patch("nodes", "n-b", {"spec": {"unschedulable": True}})
    bench.api.patch("nodes", "n-c", {"spec": {"unschedulable": True}})
    create_web_pod(bench, "p", make_spread())
    bench.advance_seconds()
    assert bench.get_filter_message("p") == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 2 node(s) were unschedulable."
    )


def test_node_without_the_topology_key_is_filtered_out() -> None:
    bench = Bench()
    bench.create_node("n")
    create_web_pod(bench, "p", make_spread(topologyKey="rack"))
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == (
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_min_domains_counts_missing_domains_as_empty() -> None:
    bench = Bench()
    bench.create_node("n", zone="a")
    create_web_pod(bench, "p1", make_spread(minDomains=2))
    create_web_pod(bench, "p2", make_spread(minDomains=2))
    bench.advance_seconds()
    assert [bench.get_node_name("p1"), bench.get_node_name("p2")] == ["n", ""]


@pytest.mark.parametrize(("policy", "fits"), [("Ignore", False), ("Honor", True)])
def test_tainted_nodes_count_as_domains_unless_taints_are_honored(policy: str, *, fits: bool) -> None:
    bench = Bench()
    bench.create_node("n-a", zone="a")
    bench.create_node("n-b", zone="b", taints=[{"key": "t", "effect": "NoSchedule"}])
    create_web_pod(bench, "old", on="n-a")
    create_web_pod(bench, "p", make_spread(nodeTaintsPolicy=policy))
    bench.advance_seconds()
    assert (bench.get_node_name("p") == "n-a") is fits


@pytest.mark.parametrize(("policy", "fits"), [("Ignore", False), ("Honor", True)])
def test_nodes_outside_node_affinity_are_no_domains_unless_affinity_is_ignored(policy: str, *, fits: bool) -> None:
    bench = Bench()
    bench.create_node("n-a", zone="a", labels={"pool": "x"})
    bench.create_node("n-b", zone="b")
    create_web_pod(bench, "old", on="n-a")
    create_web_pod(bench, "p", make_spread(nodeAffinityPolicy=policy) | {"nodeSelector": {"pool": "x"}})
    bench.advance_seconds()
    assert (bench.get_node_name("p") == "n-a") is fits


def test_match_label_keys_count_only_pods_of_the_same_revision() -> None:
    bench = make_three_zone_bench()
    bench.create_pod("old", on="n-a", labels={"app": "web", "rev": "1"})
    bench.api.patch("nodes", "n-b", {"spec": {"unschedulable": True}})
    bench.api.patch("nodes", "n-c", {"spec": {"unschedulable": True}})
    bench.create_pod("p", labels={"app": "web", "rev": "2"}, spec=make_spread(matchLabelKeys=["rev"]))
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n-a"


def test_topology_spread_ignores_terminating_pods() -> None:
    bench = Bench()
    bench.create_node("n-a", zone="a")
    bench.create_node("n-b", zone="b", cordoned=True)
    create_web_pod(bench, "old", on="n-a")
    bench.api.delete("pods", "old", "default", grace_period_seconds=600)
    create_web_pod(bench, "p", make_spread())
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n-a"


def test_soft_topology_spread_prefers_the_emptier_zone() -> None:
    bench = Bench()
    bench.create_node("n-a", zone="a", cpu="64", memory="256Gi")
    bench.create_node("n-b", zone="b")
    bench.create_pod("weight", on="n-b", cpu="1")
    create_web_pod(bench, "old", on="n-a")
    create_web_pod(bench, "p", make_spread(whenUnsatisfiable="ScheduleAnyway"))
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n-b"


def test_pod_affinity_waits_for_and_follows_the_matching_pod() -> None:
    bench = make_three_zone_bench()
    bench.create_pod("p", spec=make_required_affinity("podAffinity"))
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == (
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    create_web_pod(bench, "leader", {"nodeSelector": {ZONE: "b"}})
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n-b"


def test_first_pod_of_a_self_affine_group_can_be_scheduled_anywhere() -> None:
    bench = make_three_zone_bench()
    for name in ("p1", "p2", "p3"):
        create_web_pod(bench, name, make_required_affinity("podAffinity"))
    bench.advance_seconds()
    assert {bench.get_node_name(name) for name in ("p1", "p2", "p3")} == {"n-a"}


def test_pod_affinity_requires_the_topology_key() -> None:
    bench = Bench()
    bench.create_node("n")
    create_web_pod(bench, "p", make_required_affinity("podAffinity", "rack"))
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("1 node(s) didn't match pod affinity rules.")


def test_pod_anti_affinity_places_one_pod_per_host() -> None:
    bench = make_three_zone_bench()
    for name in ("p1", "p2", "p3", "p4"):
        create_web_pod(bench, name, make_required_affinity("podAntiAffinity", HOST))
    bench.advance_seconds()
    assert sorted(bench.get_node_name(name) for name in ("p1", "p2", "p3", "p4")) == ["", "n-a", "n-b", "n-c"]


def test_anti_affinity_of_the_incoming_pod_is_reported_first() -> None:
    bench = Bench()
    bench.create_node("n")
    create_web_pod(bench, "old", on="n")
    bench.create_pod("p", spec=make_required_affinity("podAntiAffinity"))
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("1 node(s) didn't match pod anti-affinity rules.")


def test_anti_affinity_of_an_existing_pod_blocks_matching_pods() -> None:
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("guard", on="n", spec=make_required_affinity("podAntiAffinity"))
    create_web_pod(bench, "p")
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("1 node(s) didn't satisfy existing pods anti-affinity rules.")
    bench.api.delete("pods", "guard", "default", grace_period_seconds=0)
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


@pytest.mark.parametrize(
    ("term_fields", "away"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
    ],
)
def test_affinity_term_applies_to_its_own_namespace_by_default(term_fields: Obj, *, away: bool) -> None:
    bench = Bench()
    bench.create_node("n")
    bench.api.create("namespaces", {"metadata": {"name": "other", "labels": {"team": "x"}}})
    old = {"metadata": {"name": "old", "namespace": "other", "labels": {"app": "web"}}}
    bench.api.create("pods", old | {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}}, "other")
    bench.create_pod("p", spec=make_required_affinity("podAntiAffinity", **term_fields))
    bench.advance_seconds()
    assert (bench.get_node_name("p") == "") is away


def test_changed_namespace_labels_are_evaluated_again() -> None:
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("p", spec=make_required_affinity("podAffinity", namespaceSelector={"matchLabels": {"team": "x"}}))
    create_web_pod(bench, "leader", on="n")
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""
    bench.api.patch("namespaces", "default", {"metadata": {"labels": {"team": "x"}}})
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_mismatch_label_keys_separate_tenants() -> None:
    selector = {"labelSelector": {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]}}
    rule = make_required_affinity("podAntiAffinity", **selector, mismatchLabelKeys=["tenant"])
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("old", on="n", labels={"tenant": "x"})
    bench.create_pod("same", labels={"tenant": "x"}, spec=rule)
    bench.create_pod("stranger", labels={"tenant": "y"}, spec=rule)
    bench.advance_seconds()
    assert (bench.get_node_name("same"), bench.get_node_name("stranger")) == ("n", "")


@pytest.mark.parametrize(("kind", "expected_node"), [("podAffinity", "n-b"), ("podAntiAffinity", "n-a")])
def test_preferred_pod_affinity_attracts_and_anti_affinity_repels(kind: str, expected_node: str) -> None:
    bench = Bench()
    for zone in "ba":
        bench.create_node(f"n-{zone}", zone=zone)
    create_web_pod(bench, "old", on="n-b", cpu="500m")
    bench.create_pod("p", spec=make_preferred_affinity(kind))
    bench.advance_seconds()
    assert bench.get_node_name("p") == expected_node
