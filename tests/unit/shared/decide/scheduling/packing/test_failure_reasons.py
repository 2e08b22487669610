"""Failure reasons of pods that cannot be scheduled, and NodePools that are skipped."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.constraints.topology_constraint import TopologyConstraint
from shared.decide.scheduling.topology.messages import describe_topology_group
from shared.decide.scheduling.topology.topology_group import TopologyGroup
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.core.metadata import Condition
from shared.model.core.resources import Resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import (
    NOW,
    SIZES,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_class,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

WEB = build_label_selector({"app": "web"})
IN_A = ((ZONE, "a"),)


def _read_failure_message(*pods: Pod, types: tuple[InstanceType, ...] = SIZES, **fields: object) -> str:
    return solve(replace(make_cluster_snapshot(*pods, types=types), **fields)).unschedulable[0].message


def test_failure_message_lists_each_node_pool_by_weight_with_its_reason() -> None:
    gpu = make_node_pool("gpu", weight=9, taints=(Taint(key="nvidia.com/gpu", effect="NoSchedule"),))
    message = _read_failure_message(
        make_pod("one", memory="512Gi", node_selector=((ZONE, "a"),)), node_pools=(make_node_pool(), gpu)
    )
    assert message == (
        "NodePool gpu: needs toleration nvidia.com/gpu:NoSchedule; "
        "NodePool default: no instance type has 512Gi memory in a"
    )


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (make_pod("x", "100", "900Gi"), "100 cpu and 900Gi memory together"),
        (
            make_pod("x", "16", "64Gi", node_selector=(("team", "b"),)),
            "the pod requires team In [b], the NodePool allows team In [a]",
        ),
        (make_pod("x", node_selector=(("mine", "b"),)), "does not define the label mine"),
        (
            make_pod("x", node_selector=((ZONE, "q"),)),
            "none of its instance types has topology.kubernetes.io/zone In [q]",
        ),
        (make_pod("x", required_terms=(make_requirements((ZONE, "Gt", ("3",))),)), "topology.kubernetes.io/zone >= 4"),
        (make_pod("x", node_selector=(("karpenter.sh/capacity-type", "spot"),)), "none of its instance types has"),
        (
            make_pod("x", node_selector=(("instance-gpu", "1"),)),
            "did you mean karpenter.k8s.aws/instance-gpu-count? Else add",
        ),
        (make_pod("x", node_selector=(("topology.k8s.io/zone", "a"),)), f"did you mean {ZONE}? Else add"),
        (make_pod("x", "2500m", "524352Mi"), "no instance type has 512.1Gi memory"),
        (make_pod("x", "100500m", "1Gi"), "no instance type has 100.5 cpu"),
        (
            make_pod(
                "x",
                required_terms=(make_requirements(("mine", "Exists", ())), make_requirements((ZONE, "In", ("a",)))),
                cpu="99",
            ),
            "no instance type has 99 cpu in a",
        ),
    ],
)
def test_failure_message_names_the_missing_resource_or_label(pod: Pod, words: str) -> None:
    assert words in _read_failure_message(pod, node_pools=(make_node_pool(labels=(("team", "a"),)),))


def test_failure_message_says_when_matching_instance_types_are_unavailable() -> None:
    types = (make_instance_type("m", 4, zones=("a",)), make_instance_type("n", 2, zones=("b",)))
    sold = tuple(replace(offering, available=False) for offering in types[0].offerings)
    message = _read_failure_message(
        make_pod("x", node_selector=((ZONE, "a"),)), types=(replace(types[0], offerings=sold), types[1])
    )
    assert "none of its instance types is available in a now" in message


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
            "topology spread over rack (no existing or possible node for the pod has that label)",
        ),
        (
            {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=build_label_selector({"app": "db"})),)},
            "pod affinity over topology.kubernetes.io/zone (no matching pod is scheduled)",
        ),
        (
            {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=WEB),), "node_selector": ((ZONE, "b"),)},
            "pod affinity over topology.kubernetes.io/zone (matching pods are in a)",
        ),
        (
            {"pod_anti_affinity": (AffinityTerm(topology_key=ZONE, selector=WEB),), "node_selector": IN_A},
            "pod anti-affinity over topology.kubernetes.io/zone (matching pods are in a)",
        ),
    ],
)
def test_failure_message_names_the_unsatisfied_topology_constraint(constraint: dict[str, Any], words: str) -> None:
    running = make_pod("r", labels={"app": "web"}, on="here")
    [failure] = solve(
        make_cluster_snapshot(
            running, make_pod("w", labels={"app": "web"}, **constraint), nodes=(make_node("here", "1"),)
        )
    ).unschedulable
    assert words in failure.message


def test_topology_message_lists_no_hostnames_and_at_most_three_other_domains() -> None:
    hosts = TopologyConstraint(kind="spread", key=HOSTNAME, namespaces=frozenset(("shop",)), selector=WEB, max_skew=2)
    assert (
        describe_topology_group(TopologyGroup(rule=hosts, counts={"n1": 2}, host_levels=[]))
        == f"topology spread over {HOSTNAME} (maxSkew 2)"
    )
    apart = replace(hosts, kind="apart")
    assert (
        describe_topology_group(TopologyGroup(rule=apart, counts={"n1": 2}, host_levels=[]))
        == f"pod anti-affinity over {HOSTNAME}"
    )
    zone_group = TopologyGroup(rule=replace(apart, key=ZONE), counts=dict.fromkeys("abcde", 1), host_levels=[])
    assert (
        describe_topology_group(zone_group)
        == f"pod anti-affinity over {ZONE} (matching pods are in a, b, c and 2 more)"
    )
    assert (
        describe_topology_group(TopologyGroup(rule=replace(apart, key=ZONE), counts={"a": 0}, host_levels=[]))
        == f"pod anti-affinity over {ZONE}"
    )


def test_topology_spread_message_names_the_domain_with_the_fewest_pods() -> None:
    even = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB)
    pods = [make_pod(f"w{number}", labels={"app": "web"}, spread=(even,)) for number in range(4)]
    far = make_node("far", "0", labels={ZONE: "z"})
    [failure] = solve(make_cluster_snapshot(*pods, nodes=(far,))).unschedulable
    assert "topology spread over topology.kubernetes.io/zone (maxSkew 1 while z has 0)" in failure.message


def test_failure_message_names_host_port_conflicts_with_daemon_sets_and_limits_with_min_values() -> None:
    ports = (HostPort(port=80, protocol="UDP"),)
    clash = make_cluster_snapshot(
        make_pod("one", host_ports=ports), daemon_sets=(make_daemon_set("d", host_ports=ports),)
    )
    assert "DaemonSets use a host port of the pod (80/UDP)" in solve(clash).unschedulable[0].message
    various = make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 3})
    tight = make_node_pool(requirements=various, limits=Resources(amounts=(("cpu", 4000),)))
    [failure] = solve(make_cluster_snapshot(make_pod("one"), node_pools=(tight,))).unschedulable
    assert (failure.reason, "increase spec.limits or lower minValues" in failure.message) == ("MinValuesNotMet", True)


def test_remaining_limit_is_rounded_down_in_the_failure_message() -> None:
    limits = Resources(amounts=(("memory", 3 * 1024**3 - 1),))
    assert "limit of memory (2.9Gi left)" in _read_failure_message(
        make_pod("one"), node_pools=(make_node_pool(limits=limits),)
    )


def test_failure_message_names_both_resources_that_fit_only_separately() -> None:
    types = (make_instance_type("wide", 16, 2), make_instance_type("tall", 2, 64))
    assert "8 cpu and 32Gi memory together" in _read_failure_message(make_pod("x", "8", "32Gi"), types=types)


@pytest.mark.parametrize(
    ("node_pool", "words"),
    [
        (
            make_node_pool(node_class=NodeClassRef(name="gone")),
            ("node class gone does not exist: create it or correct"),
        ),
        (make_node_pool(node_class=NodeClassRef(name="raw")), "node class raw is not ready (no subnets)"),
        (make_node_pool(node_class=NodeClassRef(name="going")), "node class going is being deleted"),
        (make_node_pool(node_class=NodeClassRef(name="x", kind="AKSNodeClass")), "is not supported"),
        (make_node_pool(replicas=3), "is static"),
        (replace(make_node_pool(), meta=replace(make_node_pool().meta, deleted_at=NOW)), "is being deleted"),
        (
            make_node_pool(conditions=(Condition(type="Ready", status="False", message="odd taint"),)),
            "(Ready): odd taint",
        ),
        (
            make_node_pool(requirements=make_requirements((ZONE, "In", ("q",)))),
            f"match no available instance type: none matches {ZONE} In [q]",
        ),
        (
            make_node_pool(requirements=make_requirements((INSTANCE_TYPE, "In", ("m.0two",)))),
            f"none matches {INSTANCE_TYPE} In [m.0two]; did you mean m.0",
        ),
        (make_node_pool(limits=Resources(amounts=(("cpu", 0),))), "limit of cpu (0 left)"),
        (make_node_pool(limits=Resources(amounts=(("nodes", 0),))), "increase spec.limits.nodes"),
    ],
)
def test_unusable_node_pool_is_reported_with_its_reason_and_fix(node_pool: NodePool, words: str) -> None:
    raw = replace(make_node_class("raw"), conditions=(Condition(type="Ready", status="False", message="no subnets"),))
    going = replace(make_node_class("going"), meta=replace(make_node_class("going").meta, deleted_at=NOW))
    message = _read_failure_message(
        make_pod("one"), node_pools=(node_pool,), node_classes=(make_node_class(), raw, going)
    )
    assert message.startswith("NodePool default: ")
    assert words in message


def test_missing_node_class_is_accepted_with_readiness_assumed() -> None:
    cluster = make_cluster_snapshot(make_pod("one"), node_classes=())
    assert locate_pods(solve(cluster)) == {"one": "NoNodePool"}
    assert locate_pods(solve(cluster, options=SchedulingOptions(readiness="Assumed"))) == {"one": "default"}


@pytest.mark.parametrize(("fields", "words"), [({"node_pools": ()}, "create one"), ({"catalog": None}, "no catalog")])
def test_only_existing_nodes_are_used_without_node_pools_or_catalog(fields: dict[str, Any], words: str) -> None:
    cluster = make_cluster_snapshot(make_pod("one", "3"), make_pod("two", "3"), nodes=(make_node("here"),), **fields)
    assert locate_pods(solve(cluster)) == {"one": "here", "two": "NoNodePool"}
    assert words in solve(cluster).unschedulable[0].message


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (make_pod("x", node_selector=((HOSTNAME, "here"),)), "InvalidPod"),
        (
            make_pod(
                "x",
                required_terms=(
                    make_requirements((ZONE, "Exists", ())),
                    make_requirements(("karpenter.sh/other", "Exists", ())),
                ),
            ),
            "InvalidPod",
        ),
        (make_pod("x", has_match_fields=True), "InvalidPod"),
        (make_pod("x", has_resource_claims=True), "ResourceClaimsIgnored"),
        (make_pod("x", required_terms=(make_requirements((NODEPOOL, "DoesNotExist", ())),)), "OptedOut"),
        (make_pod("x", volume_claims=("gone",)), "VolumeNotUsable"),
    ],
)
def test_invalid_pod_is_not_scheduled(pod: Pod, reason: str) -> None:
    assert locate_pods(solve(make_cluster_snapshot(pod))) == {"x": reason}


def test_invalid_pod_does_not_affect_other_pods() -> None:
    assert (
        locate_pods(solve(make_cluster_snapshot(make_pod("bad", has_match_fields=True), make_pod("good"))))["good"]
        == "default"
    )
