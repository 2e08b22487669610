"""Topology spread and pod affinity: what the pods elsewhere allow."""

from typing import Any

import pytest

from tests.unit.cluster_objects import HOST, ZONE, Bench, Obj

APP = {"matchLabels": {"app": "web"}}


def spread(**given: Any) -> Obj:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": APP}
    return {"topologySpreadConstraints": [constraint | given]}


def affinity(kind: str, key: str = ZONE, /, **given: Any) -> Obj:
    term = {"topologyKey": key, "labelSelector": APP, **given}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def soft(kind: str, **given: Any) -> Obj:
    term = {"weight": 100, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": APP, **given}}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def three_zones(**given: Any) -> Bench:
    bench = Bench()
    for zone in "abc":
        bench.node(f"n-{zone}", zone=zone, **given)
    return bench


def web(bench: Bench, name: str, spec: Obj | None = None, **given: Any) -> None:
    bench.pod(name, labels={"app": "web"}, spec=spec, **given)


def test_pods_spread_over_zones_however_much_room_one_has() -> None:
    bench = three_zones()
    bench.node("roomy", zone="a", cpu="64", memory="256Gi", pods="100")
    for number in range(6):
        web(bench, f"p{number}", spread())
    bench.settle()
    zones = sorted(bench.node_of(f"p{number}").replace("roomy", "n-a") for number in range(6))
    assert zones == ["n-a", "n-a", "n-b", "n-b", "n-c", "n-c"]


def test_a_skew_that_cannot_be_kept_leaves_the_pod_pending() -> None:
    bench = three_zones()
    web(bench, "old", on="n-a")
    bench.api.patch("nodes", "n-b", {"spec": {"unschedulable": True}})
    bench.api.patch("nodes", "n-c", {"spec": {"unschedulable": True}})
    web(bench, "p", spread())
    bench.settle()
    assert bench.refusal("p") == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 2 node(s) were unschedulable."
    )


def test_a_node_without_the_key_is_refused_for_good() -> None:
    bench = Bench()
    bench.node("n")
    web(bench, "p", spread(topologyKey="rack"))
    bench.settle()
    assert bench.message("p") == (
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_too_few_domains_count_as_an_empty_one() -> None:
    bench = Bench()
    bench.node("n", zone="a")
    web(bench, "p1", spread(minDomains=2))
    web(bench, "p2", spread(minDomains=2))
    bench.settle()
    assert [bench.node_of("p1"), bench.node_of("p2")] == ["n", ""]


@pytest.mark.parametrize(("policy", "fits"), [("Ignore", False), ("Honor", True)])
def test_tainted_nodes_are_domains_unless_taints_are_honored(policy: str, *, fits: bool) -> None:
    bench = Bench()
    bench.node("n-a", zone="a")
    bench.node("n-b", zone="b", taints=[{"key": "t", "effect": "NoSchedule"}])
    web(bench, "old", on="n-a")
    web(bench, "p", spread(nodeTaintsPolicy=policy))
    bench.settle()
    assert (bench.node_of("p") == "n-a") is fits


@pytest.mark.parametrize(("policy", "fits"), [("Ignore", False), ("Honor", True)])
def test_nodes_outside_the_affinity_are_no_domains_unless_it_is_ignored(policy: str, *, fits: bool) -> None:
    bench = Bench()
    bench.node("n-a", zone="a", labels={"pool": "x"})
    bench.node("n-b", zone="b")
    web(bench, "old", on="n-a")
    web(bench, "p", spread(nodeAffinityPolicy=policy) | {"nodeSelector": {"pool": "x"}})
    bench.settle()
    assert (bench.node_of("p") == "n-a") is fits


def test_match_label_keys_count_only_pods_of_the_same_revision() -> None:
    bench = three_zones()
    bench.pod("old", on="n-a", labels={"app": "web", "rev": "1"})
    bench.api.patch("nodes", "n-b", {"spec": {"unschedulable": True}})
    bench.api.patch("nodes", "n-c", {"spec": {"unschedulable": True}})
    bench.pod("p", labels={"app": "web", "rev": "2"}, spec=spread(matchLabelKeys=["rev"]))
    bench.settle()
    assert bench.node_of("p") == "n-a"


def test_terminating_pods_are_not_counted_by_a_spread() -> None:
    bench = Bench()
    bench.node("n-a", zone="a")
    bench.node("n-b", zone="b", cordoned=True)
    web(bench, "old", on="n-a")
    bench.api.delete("pods", "old", "default", grace_period_seconds=600)
    web(bench, "p", spread())
    bench.settle()
    assert bench.node_of("p") == "n-a"


def test_a_soft_spread_prefers_the_emptier_zone() -> None:
    bench = Bench()
    bench.node("n-a", zone="a", cpu="64", memory="256Gi")
    bench.node("n-b", zone="b")
    bench.pod("weight", on="n-b", cpu="1")
    web(bench, "old", on="n-a")
    web(bench, "p", spread(whenUnsatisfiable="ScheduleAnyway"))
    bench.settle()
    assert bench.node_of("p") == "n-b"


def test_affinity_follows_the_other_pod_and_waits_for_it() -> None:
    bench = three_zones()
    bench.pod("p", spec=affinity("podAffinity"))
    bench.settle()
    assert bench.message("p") == (
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    web(bench, "leader", {"nodeSelector": {ZONE: "b"}})
    bench.settle()
    assert bench.node_of("p") == "n-b"


def test_the_first_of_a_group_that_wants_to_be_together_may_go_anywhere() -> None:
    bench = three_zones()
    for name in ("p1", "p2", "p3"):
        web(bench, name, affinity("podAffinity"))
    bench.settle()
    assert {bench.node_of(name) for name in ("p1", "p2", "p3")} == {"n-a"}


def test_affinity_needs_the_topology_key() -> None:
    bench = Bench()
    bench.node("n")
    web(bench, "p", affinity("podAffinity", "rack"))
    bench.settle()
    assert bench.refusal("p").endswith("1 node(s) didn't match pod affinity rules.")


def test_anti_affinity_keeps_its_own_distance() -> None:
    bench = three_zones()
    for name in ("p1", "p2", "p3", "p4"):
        web(bench, name, affinity("podAntiAffinity", HOST))
    bench.settle()
    assert sorted(bench.node_of(name) for name in ("p1", "p2", "p3", "p4")) == ["", "n-a", "n-b", "n-c"]


def test_anti_affinity_of_the_incoming_pod_is_asked_first() -> None:
    bench = Bench()
    bench.node("n")
    web(bench, "old", on="n")
    bench.pod("p", spec=affinity("podAntiAffinity"))
    bench.settle()
    assert bench.refusal("p").endswith("1 node(s) didn't match pod anti-affinity rules.")


def test_a_pod_that_is_there_keeps_others_away() -> None:
    bench = Bench()
    bench.node("n")
    bench.pod("guard", on="n", spec=affinity("podAntiAffinity"))
    web(bench, "p")
    bench.settle()
    assert bench.refusal("p").endswith("1 node(s) didn't satisfy existing pods anti-affinity rules.")
    bench.api.delete("pods", "guard", "default", grace_period_seconds=0)
    bench.settle()
    assert bench.node_of("p") == "n"


@pytest.mark.parametrize(
    ("where", "away"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
    ],
)
def test_a_term_speaks_of_its_own_namespace_unless_it_names_others(where: Obj, *, away: bool) -> None:
    bench = Bench()
    bench.node("n")
    bench.api.create("namespaces", {"metadata": {"name": "other", "labels": {"team": "x"}}})
    old = {"metadata": {"name": "old", "namespace": "other", "labels": {"app": "web"}}}
    bench.api.create("pods", old | {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}}, "other")
    bench.pod("p", spec=affinity("podAntiAffinity", **where))
    bench.settle()
    assert (bench.node_of("p") == "") is away


def test_a_namespace_that_changes_its_labels_changes_the_answer() -> None:
    bench = Bench()
    bench.node("n")
    bench.pod("p", spec=affinity("podAffinity", namespaceSelector={"matchLabels": {"team": "x"}}))
    web(bench, "leader", on="n")
    bench.settle()
    assert bench.node_of("p") == ""
    bench.api.patch("namespaces", "default", {"metadata": {"labels": {"team": "x"}}})
    bench.settle()
    assert bench.node_of("p") == "n"


def test_mismatch_label_keys_keep_tenants_apart() -> None:
    selector = {"labelSelector": {"matchExpressions": [{"key": "tenant", "operator": "Exists"}]}}
    rule = affinity("podAntiAffinity", **selector, mismatchLabelKeys=["tenant"])
    bench = Bench()
    bench.node("n")
    bench.pod("old", on="n", labels={"tenant": "x"})
    bench.pod("same", labels={"tenant": "x"}, spec=rule)
    bench.pod("stranger", labels={"tenant": "y"}, spec=rule)
    bench.settle()
    assert (bench.node_of("same"), bench.node_of("stranger")) == ("n", "")


@pytest.mark.parametrize(("kind", "chosen"), [("podAffinity", "n-b"), ("podAntiAffinity", "n-a")])
def test_soft_affinity_draws_and_repels(kind: str, chosen: str) -> None:
    bench = Bench()
    for zone in "ba":
        bench.node(f"n-{zone}", zone=zone)
    web(bench, "old", on="n-b", cpu="500m")
    bench.pod("p", spec=soft(kind))
    bench.settle()
    assert bench.node_of("p") == chosen
