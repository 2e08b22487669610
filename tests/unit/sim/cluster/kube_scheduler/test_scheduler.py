"""Tests of kube-scheduler: which nodes fit a pod, which node is chosen, and the message if no node fits."""

from typing import Any

import pytest

from sim.cluster.kube_scheduler.pod_shape import compute_pod_requests, list_host_ports
from tests.support.cluster_objects import Bench, Obj

EXISTS = {"operator": "Exists"}


def make_node_affinity(key: str, operator: str, *values: str) -> Obj:
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


REFUSALS: list[tuple[str, Obj, Obj, str]] = [
    ("a cordon", {"cordoned": True}, {}, "node(s) were unschedulable"),
    (
        "a taint",
        {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
        {},
        "node(s) had untolerated taint {karpenter.sh/disrupted: }",
    ),
    (
        "a NoExecute taint with a value",
        {"taints": [{"key": "team", "value": "x", "effect": "NoExecute"}]},
        {"spec": {"tolerations": [{"key": "team", "value": "y"}]}},
        "node(s) had untolerated taint {team: x}",
    ),
    (
        "a selector",
        {},
        {"spec": {"nodeSelector": {"disk": "ssd"}}},
        "node(s) didn't match Pod's node affinity/selector",
    ),
    ("too much cpu", {}, {"cpu": "5"}, "Insufficient cpu"),
    ("an unknown resource", {}, {"spec": {"overhead": {"nvidia.com/gpu": "1"}}}, "Insufficient nvidia.com/gpu"),
    ("no pod slots", {"pods": "0"}, {}, "Too many pods"),
]


@pytest.mark.parametrize(("description", "node", "pod", "expected_reason"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_unschedulable_message_matches_kube_scheduler(
    description: str, node: Obj, pod: Obj, expected_reason: str
) -> None:
    assert description
    bench = Bench()
    bench.create_node("n", **node)
    bench.create_pod("p", **pod)
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""
    assert bench.get_filter_message("p") == f"0/1 nodes are available: 1 {expected_reason}."


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["x", "7"], True),
        ("In", ["x"], False),
        ("NotIn", ["x"], True),
        ("NotIn", ["7"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["6"], True),
        ("Gt", ["7"], False),
        ("Gt", ["x"], False),
        ("Lt", ["8"], True),
        ("Lt", ["7"], False),
        ("Strange", ["7"], False),
    ],
)
def test_required_node_affinity_supports_all_operators(operator: str, values: list[str], *, fits: bool) -> None:
    bench = Bench()
    bench.create_node("n", labels={"generation": "7"})
    bench.create_pod("p", spec=make_node_affinity("generation", operator, *values))
    bench.advance_seconds()
    assert (bench.get_node_name("p") == "n") is fits


def test_empty_node_selector_term_matches_no_node() -> None:
    bench = Bench()
    bench.create_node("n")
    terms: Obj = {"nodeSelectorTerms": [{}]}
    bench.create_pod(
        "p", spec={"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    )
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("1 node(s) didn't match Pod's node affinity/selector.")


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "value": "x"}, True),
        ({"key": "team", "value": "x", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "x", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "x"}, False),
    ],
)
def test_tolerations_match_taints_as_in_kubernetes(toleration: Obj, *, fits: bool) -> None:
    bench = Bench()
    bench.create_node("n", taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    bench.create_pod("p", spec={"tolerations": [toleration]})
    bench.advance_seconds()
    assert (bench.get_node_name("p") == "n") is fits


def test_cordoned_node_accepts_a_pod_that_tolerates_it() -> None:
    bench = Bench()
    bench.create_node("n", cordoned=True)
    bench.create_pod("p", spec={"tolerations": [EXISTS]})
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_host_ports_conflict_unless_their_addresses_differ() -> None:
    def with_port(ip: str) -> Obj:
        port = {"containerPort": 80, "hostPort": 80, "hostIP": ip}
        return {"containers": [{"name": "c", "image": "x", "ports": [port]}]}

    bench = Bench()
    bench.create_node("n")
    for name, ip in (("p1", "10.0.0.1"), ("p2", "10.0.0.2"), ("p3", "")):
        bench.create_pod(name, spec=with_port(ip))
    bench.advance_seconds()
    assert [bench.get_node_name(name) for name in ("p1", "p2", "p3")] == ["n", "n", ""]
    assert bench.get_filter_message("p3").endswith("1 node(s) didn't have free ports for the requested pod ports.")


def test_host_network_container_ports_are_host_ports() -> None:
    containers = [{"name": "c", "ports": [{"containerPort": 8080}]}]
    assert list_host_ports({"containers": containers, "hostNetwork": True}) == (("0.0.0.0", "TCP", 8080),)  # noqa: S104 - any
    assert list_host_ports({"containers": containers}) == ()


def make_container(cpu: str, **fields: Any) -> Obj:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize(
    ("spec", "cpu_milli"),
    [
        ({"containers": [make_container("1"), make_container("500m")]}, 1500),
        ({"containers": [make_container("1")], "initContainers": [make_container("3"), make_container("2")]}, 3000),
        ({"containers": [make_container("1")], "initContainers": [make_container("1", restartPolicy="Always")]}, 2000),
        (
            {
                "containers": [make_container("1")],
                "initContainers": [make_container("1", restartPolicy="Always"), make_container("4")],
            },
            5000,
        ),
        (
            {
                "containers": [make_container("1")],
                "initContainers": [make_container("4"), make_container("1", restartPolicy="Always")],
            },
            4000,
        ),
        ({"containers": [make_container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [make_container("1")], "resources": {"requests": {"cpu": "3"}}}, 3000),
    ],
)
def test_pod_requests_are_the_maximum_over_init_and_regular_phases(spec: Obj, cpu_milli: int) -> None:
    assert compute_pod_requests(spec)["cpu"] == cpu_milli


def test_unschedulable_reasons_are_sorted_and_counted() -> None:
    bench = Bench()
    for number in range(10):
        bench.create_node(f"small-{number}", cpu="1")
    for number in range(2):
        bench.create_node(f"tainted-{number}", taints=[{"key": "t", "effect": "NoSchedule"}])
    bench.create_pod("p", cpu="2")
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint {t: }. "
        "preemption: 0/12 nodes are available: 12 Preemption is not helpful for scheduling."
    )


def test_preemption_message_counts_nodes_where_it_could_help() -> None:
    bench = Bench()
    bench.create_node("full")
    bench.create_node("tainted", taints=[{"key": "t", "effect": "NoSchedule"}])
    bench.create_pod("old", on="full", cpu="3")
    bench.create_pod("p", cpu="2")
    bench.advance_seconds()
    assert bench.get_scheduling_message("p").partition(" preemption: ")[2] == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_preemption_policy_never_is_in_the_message() -> None:
    bench = Bench()
    bench.create_node("n")
    quiet = {"metadata": {"name": "quiet"}, "value": 5, "preemptionPolicy": "Never"}
    bench.api.create("priorityclasses.scheduling.k8s.io", quiet)
    bench.create_pod("p", cpu="9", spec={"priorityClassName": "quiet"})
    bench.advance_seconds()
    assert bench.get_scheduling_message("p").endswith(
        "1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )


def test_unschedulable_message_says_if_there_are_no_nodes() -> None:
    bench = Bench()
    bench.create_pod("p")
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == "no nodes available to schedule pods"


def test_gated_pod_is_scheduled_after_its_gates_are_removed() -> None:
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("p", spec={"schedulingGates": [{"name": "wait"}]})
    bench.advance_seconds()
    [condition] = bench.api.get("pods", "p", "default")["status"]["conditions"]
    assert (condition["reason"], bench.get_node_name("p")) == ("SchedulingGated", "")
    bench.api.patch("pods", "p", {"spec": {"schedulingGates": None}}, "default")
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_pod_of_another_scheduler_is_ignored() -> None:
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("p", spec={"schedulerName": "theirs"})
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""
    assert bench.get_scheduling_message("p") == ""


def test_pods_are_scheduled_by_priority_then_age() -> None:
    bench = Bench()
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "high"}, "value": 100})
    bench.create_pod("z-old", cpu="3")
    bench.create_pod("a-young", cpu="3")
    bench.create_pod("urgent", cpu="3", spec={"priorityClassName": "high"})
    bench.create_node("n1")
    bench.advance_seconds()
    assert [bench.get_node_name(name) for name in ("urgent", "z-old", "a-young")] == ["n1", "", ""]
    bench.create_node("n2")
    bench.advance_seconds()
    assert [bench.get_node_name(name) for name in ("urgent", "z-old", "a-young")] == ["n1", "n2", ""]


def test_emptier_node_is_selected_then_the_first_name() -> None:
    bench = Bench()
    for name in ("b", "a", "c"):
        bench.create_node(name)
    for name in ("p1", "p2", "p3", "p4"):
        bench.create_pod(name, cpu="1")
    bench.advance_seconds()
    assert [bench.get_node_name(name) for name in ("p1", "p2", "p3", "p4")] == ["a", "b", "c", "a"]


def test_preferred_affinity_outweighs_free_capacity_and_soft_taints() -> None:
    bench = Bench()
    bench.create_node("busy", labels={"disk": "ssd"})
    bench.create_pod("old", on="busy", cpu="2")
    bench.create_node("free")
    bench.create_node("avoid", taints=[{"key": "t", "effect": "PreferNoSchedule"}])
    preference = {"weight": 10, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    wish = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}}
    bench.create_pod("picky", spec=wish)
    bench.create_pod("plain")
    bench.advance_seconds()
    assert (bench.get_node_name("picky"), bench.get_node_name("plain")) == ("busy", "free")


def test_pod_pinned_by_node_name_is_checked_against_one_node() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pinned = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    bench = Bench()
    for name in ("n1", "n2", "n3"):
        bench.create_node(name)
    bench.create_pod("big", cpu="9", spec=pinned)
    bench.create_pod("small", spec=pinned)
    bench.advance_seconds()
    assert bench.get_node_name("small") == "n2"
    assert bench.get_filter_message("big") == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


@pytest.mark.parametrize("event", ["a pod ends", "a pod is deleted", "a node is uncordoned", "a node grows"])
def test_unschedulable_pod_is_retried_after_a_cluster_change(event: str) -> None:
    bench = Bench()
    bench.create_node("n", cordoned=event == "a node is uncordoned")
    bench.create_pod("old", on="n", cpu="3")
    bench.create_pod("p", cpu="2" if event != "a node is uncordoned" else "1")
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""
    match event:
        case "a pod ends":
            bench.api.patch("pods", "old", {"status": {"phase": "Succeeded"}}, "default", "status")
        case "a pod is deleted":
            bench.api.delete("pods", "old", "default", grace_period_seconds=0)
        case "a node is uncordoned":
            bench.api.patch("nodes", "n", {"spec": {"unschedulable": False}})
        case _:
            bench.api.patch("nodes", "n", {"status": {"allocatable": {"cpu": "8"}}}, "", "status")
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_terminating_pod_uses_capacity_until_it_is_deleted() -> None:
    bench = Bench()
    bench.create_node("n")
    bench.create_pod("old", on="n", cpu="3")
    bench.api.delete("pods", "old", "default", grace_period_seconds=60)
    bench.create_pod("p", cpu="2")
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""


def test_failed_scheduling_attempt_backs_off() -> None:
    bench = Bench()
    bench.create_node("n", cpu="1")
    bench.create_pod("p", cpu="2")
    bench.advance_seconds(1)
    attempts = []
    bench.api.subscribe("pods", lambda _event, _old, new: attempts.append(bench.clock.get_time()) if new else None)
    for number in range(100):
        bench.create_node(f"m{number:02}", cpu="1")
        bench.advance_seconds(0.1)
    assert 1 < len(attempts) < 6


def test_pods_with_many_different_labels_are_all_scheduled() -> None:
    bench = Bench()
    bench.create_node("n", cpu="100", memory="100Gi", pods="1000")
    for number in range(300):
        bench.create_pod(f"p{number}", labels={"number": str(number)})
    bench.advance_seconds()
    assert len(bench.api.list_pods_on_node("n")) == 300


def test_deleted_pod_leaves_the_pending_queue() -> None:
    bench = Bench()
    bench.create_pod("p")
    bench.advance_seconds()
    assert bench.scheduler.list_pending_pods() == ["default/p"]
    bench.api.delete("pods", "p", "default")
    bench.create_node("n")
    bench.advance_seconds()
    assert bench.scheduler.list_pending_pods() == []


def test_pods_of_a_recreated_node_count_against_its_capacity() -> None:
    bench = Bench()
    bench.create_pod("old", on="n", cpu="3")
    bench.create_node("n")
    bench.create_pod("p", cpu="2")
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("1 Insufficient cpu.")
    bench.api.delete("nodes", "n")
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == "no nodes available to schedule pods"
    bench.create_node("n")
    bench.advance_seconds()
    assert bench.get_node_name("p") == ""
    bench.api.delete("nodes", "n")
    bench.api.delete("pods", "old", "default", grace_period_seconds=0)
    bench.create_node("n")
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"
