"""What is said of a pod that has no place, and pools that take no part."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.catalogue import InstanceType
from shared.model.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClassRef
from shared.model.objects import Condition
from shared.model.pods import AffinityTerm, HostPort, Pod, SpreadConstraint
from shared.model.resources import Resources
from shared.model.selectors import selector
from shared.model.taints import Taint
from shared.scheduling.crowds import told
from shared.scheduling.placement import Options
from shared.scheduling.rules import Rule
from shared.scheduling.solve import solve
from shared.scheduling.topology import Group
from tests.unit.catalogues import (
    NOW,
    SIZES,
    daemon,
    instance_type,
    needs,
    node,
    node_class,
    placed,
    pod,
    pool,
    world,
)

WEB = selector({"app": "web"})
IN_A = ((ZONE, "a"),)


def _message(*pods: Pod, types: tuple[InstanceType, ...] = SIZES, **fields: object) -> str:
    return solve(replace(world(*pods, types=types), **fields)).unschedulable[0].message


def test_each_pool_says_in_order_of_weight_what_it_lacks() -> None:
    gpu = pool("gpu", weight=9, taints=(Taint(key="nvidia.com/gpu", effect="NoSchedule"),))
    message = _message(pod("one", memory="512Gi", node_selector=((ZONE, "a"),)), node_pools=(pool(), gpu))
    assert message == (
        "pool gpu: needs toleration nvidia.com/gpu:NoSchedule; pool default: no instance type has 512Gi memory in a"
    )


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (pod("x", "100", "900Gi"), "100 cpu and 900Gi memory together"),
        (
            pod("x", "16", "64Gi", node_selector=(("team", "b"),)),
            "the pod requires team In [b], the pool allows team In [a]",
        ),
        (pod("x", node_selector=(("mine", "b"),)), "does not define label mine"),
        (pod("x", node_selector=((ZONE, "q"),)), "no instance type it allows has topology.kubernetes.io/zone In [q]"),
        (pod("x", required_terms=(needs((ZONE, "Gt", ("3",))),)), "topology.kubernetes.io/zone >= 4"),
        (pod("x", node_selector=(("karpenter.sh/capacity-type", "spot"),)), "no instance type it allows has"),
        (
            pod("x", node_selector=(("instance-gpu", "1"),)),
            "did you mean karpenter.k8s.aws/instance-gpu-count? Else add",
        ),
        (pod("x", node_selector=(("topology.k8s.io/zone", "a"),)), f"did you mean {ZONE}? Else add"),
        (pod("x", "2500m", "524352Mi"), "no instance type has 512.1Gi memory"),
        (pod("x", "100500m", "1Gi"), "no instance type has 100.5 cpu"),
        (
            pod("x", required_terms=(needs(("mine", "Exists", ())), needs((ZONE, "In", ("a",)))), cpu="99"),
            "no instance type has 99 cpu in a",
        ),
    ],
)
def test_a_message_names_what_is_missing(some: Pod, words: str) -> None:
    assert words in _message(some, node_pools=(pool(labels=(("team", "a"),)),))


def test_what_is_there_but_sold_out_is_said_so() -> None:
    types = (instance_type("m", 4, zones=("a",)), instance_type("n", 2, zones=("b",)))
    sold = tuple(replace(offering, available=False) for offering in types[0].offerings)
    message = _message(pod("x", node_selector=((ZONE, "a"),)), types=(replace(types[0], offerings=sold), types[1]))
    assert "no instance type it allows can be bought in a now" in message


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (
            {
                "spread": (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB, min_domains=9),),
                "node_selector": IN_A,
            },
            "topology spread over topology.kubernetes.io/zone (minDomains 9 while there are 1)",
        ),
        (
            {"spread": (SpreadConstraint(topology_key="rack", max_skew=1, selector=WEB),)},
            "topology spread over rack (no node that the pod may be on has that label, or can be made with it)",
        ),
        (
            {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=selector({"app": "db"})),)},
            "pod affinity over topology.kubernetes.io/zone (no such pod has a place)",
        ),
        (
            {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=WEB),), "node_selector": ((ZONE, "b"),)},
            "pod affinity over topology.kubernetes.io/zone (such pods are in a)",
        ),
        (
            {"pod_anti_affinity": (AffinityTerm(topology_key=ZONE, selector=WEB),), "node_selector": IN_A},
            "pod anti-affinity over topology.kubernetes.io/zone (taken: a)",
        ),
    ],
)
def test_a_message_says_what_other_pods_leave_open(constraint: dict[str, Any], words: str) -> None:
    running = pod("r", labels={"app": "web"}, on="here")
    [one] = solve(
        world(running, pod("w", labels={"app": "web"}, **constraint), nodes=(node("here", "1"),))
    ).unschedulable
    assert words in one.message


def test_of_hosts_no_list_is_given_and_of_others_a_short_one() -> None:
    hosts = Rule(kind="spread", key=HOSTNAME, namespaces=frozenset(("shop",)), selector=WEB, max_skew=2)
    assert told(Group(rule=hosts, counts={"n1": 2}, levels=[])) == f"topology spread over {HOSTNAME} (maxSkew 2)"
    apart = replace(hosts, kind="apart")
    assert told(Group(rule=apart, counts={"n1": 2}, levels=[])) == f"pod anti-affinity over {HOSTNAME}"
    many = Group(rule=replace(apart, key=ZONE), counts=dict.fromkeys("abcde", 1), levels=[])
    assert told(many) == f"pod anti-affinity over {ZONE} (taken: a, b, c and 2 more)"
    assert told(Group(rule=replace(apart, key=ZONE), counts={"a": 0}, levels=[])) == f"pod anti-affinity over {ZONE}"


def test_a_spread_names_the_domain_that_holds_it_back() -> None:
    even = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB)
    some = [pod(f"w{number}", labels={"app": "web"}, spread=(even,)) for number in range(4)]
    far = node("far", "0", labels={ZONE: "z"})
    [one] = solve(world(*some, nodes=(far,))).unschedulable
    assert "topology spread over topology.kubernetes.io/zone (maxSkew 1 while z has 0)" in one.message


def test_daemons_on_the_pods_port_and_limits_beside_min_values_are_named() -> None:
    ports = (HostPort(port=80, protocol="UDP"),)
    clash = world(pod("one", host_ports=ports), daemon_sets=(daemon("d", host_ports=ports),))
    assert "DaemonSets take a host port of the pod's (80/UDP)" in solve(clash).unschedulable[0].message
    various = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 3})
    tight = pool(requirements=various, limits=Resources(amounts=(("cpu", 4000),)))
    [one] = solve(world(pod("one"), node_pools=(tight,))).unschedulable
    assert (one.reason, "raise spec.limits or lower minValues" in one.message) == ("MinValuesNotMet", True)


def test_what_is_left_of_a_limit_is_rounded_down() -> None:
    limits = Resources(amounts=(("memory", 3 * 1024**3 - 1),))
    assert "limit of memory (2.9Gi left)" in _message(pod("one"), node_pools=(pool(limits=limits),))


def test_two_needs_that_only_fail_together_are_both_named() -> None:
    types = (instance_type("wide", 16, 2), instance_type("tall", 2, 64))
    assert "8 cpu and 32Gi memory together" in _message(pod("x", "8", "32Gi"), types=types)


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (pool(node_class=NodeClassRef(name="gone")), "node class gone does not exist: create it or correct"),
        (pool(node_class=NodeClassRef(name="raw")), "node class raw is not ready (no subnets)"),
        (pool(node_class=NodeClassRef(name="going")), "node class going is being deleted"),
        (pool(node_class=NodeClassRef(name="x", kind="AKSNodeClass")), "is not ours"),
        (pool(replicas=3), "is static"),
        (replace(pool(), meta=replace(pool().meta, deleted_at=NOW)), "is being deleted"),
        (pool(conditions=(Condition(type="Ready", status="False", message="odd taint"),)), "(Ready): odd taint"),
        (pool(requirements=needs((ZONE, "In", ("q",)))), "leave no instance type"),
        (pool(limits=Resources(amounts=(("cpu", 0),))), "limit of cpu (0 left)"),
        (pool(limits=Resources(amounts=(("nodes", 0),))), "raise spec.limits.nodes"),
    ],
)
def test_a_pool_that_takes_no_part_is_named_with_the_remedy(some: NodePool, words: str) -> None:
    raw = replace(node_class("raw"), conditions=(Condition(type="Ready", status="False", message="no subnets"),))
    going = replace(node_class("going"), meta=replace(node_class("going").meta, deleted_at=NOW))
    message = _message(pod("one"), node_pools=(some,), node_classes=(node_class(), raw, going))
    assert message.startswith("pool default: ")
    assert words in message


def test_a_missing_node_class_may_be_assumed() -> None:
    cluster = world(pod("one"), node_classes=())
    assert placed(solve(cluster)) == {"one": "NoNodePool"}
    assert placed(solve(cluster, options=Options(readiness="Assumed"))) == {"one": "default"}


@pytest.mark.parametrize(("fields", "words"), [({"node_pools": ()}, "create one"), ({"catalogue": None}, "catalogue")])
def test_without_pools_or_catalogue_only_existing_nodes_are_used(fields: dict[str, Any], words: str) -> None:
    cluster = world(pod("one", "3"), pod("two", "3"), nodes=(node("here"),), **fields)
    assert placed(solve(cluster)) == {"one": "here", "two": "NoNodePool"}
    assert words in solve(cluster).unschedulable[0].message


@pytest.mark.parametrize(
    ("some", "reason"),
    [
        (pod("x", node_selector=((HOSTNAME, "here"),)), "InvalidPod"),
        (
            pod("x", required_terms=(needs((ZONE, "Exists", ())), needs(("karpenter.sh/other", "Exists", ())))),
            "InvalidPod",
        ),
        (pod("x", has_match_fields=True), "InvalidPod"),
        (pod("x", has_resource_claims=True), "ResourceClaimsIgnored"),
        (pod("x", required_terms=(needs((NODEPOOL, "DoesNotExist", ())),)), "OptedOut"),
        (pod("x", volume_claims=("gone",)), "VolumeNotUsable"),
    ],
)
def test_a_pod_that_is_not_valid_is_not_planned_for(some: Pod, reason: str) -> None:
    assert placed(solve(world(some))) == {"x": reason}


def test_one_pods_fault_is_no_others() -> None:
    assert placed(solve(world(pod("bad", has_match_fields=True), pod("good"))))["good"] == "default"
