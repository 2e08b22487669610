"""A plan that is replayed leaves exactly those pods that the embedded kube-scheduler leaves."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.scheduling.kube_scheduler.queue import build_scheduling_queue
from shared.decide.scheduling.kube_scheduler.simulation import SimulatedNode, simulate_scheduling
from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.resources import parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint, Toleration
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import make_pod, make_requests
from tests.support.cluster_objects import Bench

TAINT = Taint(key="team", effect="NoSchedule", value="a")
Json = dict[str, Any]

NODES = st.lists(
    st.tuples(st.sampled_from("1248"), st.sampled_from(("2Gi", "5Gi", "16Gi")), st.sampled_from("ab"), st.booleans()),
    min_size=1,
    max_size=5,
)
PODS = st.lists(
    st.tuples(
        st.sampled_from(("100m", "500m", "900m", "2")),
        st.sampled_from(("64Mi", "1Gi", "3Gi")),
        st.sampled_from(("web", "db")),
        st.sampled_from(("", "", "", "spread", "near", "far", "port", "tolerant", "urgent", "zone")),
    ),
    max_size=16,
)


def build_pod_spec(cpu: str, memory: str, app: str, rule: str) -> Json:
    """Build the pod spec as Kubernetes has it."""
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    ports = [{"containerPort": 80, "hostPort": 80}] if rule == "port" else []
    requests = {"cpu": cpu, "memory": memory}
    spec: Json = {"containers": [{"name": "x", "image": "x", "resources": {"requests": requests}, "ports": ports}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    fields_by_rule: dict[str, Json] = {
        "spread": {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
            ]
        },
        "near": {"affinity": {"podAffinity": {required: [{"topologyKey": ZONE, **selector}]}}},
        "far": {"affinity": {"podAntiAffinity": {required: [{"topologyKey": HOSTNAME, **selector}]}}},
        "tolerant": {"tolerations": [{"key": "team", "operator": "Exists"}]},
        "urgent": {"priorityClassName": "urgent"},
        "zone": {"nodeSelector": {ZONE: "a"}},
    }
    return spec | fields_by_rule.get(rule, {})


def build_model_pod(number: int, cpu: str, memory: str, app: str, rule: str) -> Pod:
    """Build the same pod as the model has it; the first pod is the oldest."""
    selector = build_label_selector({"app": app})
    fields_by_rule: dict[str, Json] = {
        "spread": {"spread": (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector),)},
        "near": {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=selector),)},
        "far": {"pod_anti_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=selector),)},
        "tolerant": {"tolerations": (Toleration(key="team", operator="Exists"),)},
        "port": {"host_ports": (HostPort(port=80),)},
        "zone": {"node_selector": ((ZONE, "a"),)},
    }
    model_pod = make_pod(
        f"p{number:02d}", namespace="default", labels={"app": app}, age=100 - number, **fields_by_rule.get(rule, {})
    )
    spec = replace(model_pod.spec, requests=make_requests(cpu, memory))
    return replace(model_pod, spec=spec, priority=1000 if rule == "urgent" else 0)


def list_unscheduled_by_embedded(
    nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]
) -> set[str]:
    """Return the pods that the embedded kube-scheduler leaves unscheduled."""
    bench = Bench()
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "urgent"}, "value": 1000})
    for number, (cpu, memory, zone, tainted) in enumerate(nodes):
        taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}] if tainted else []
        bench.create_node(f"n{number}", cpu=cpu, memory=memory, zone=zone, taints=taints, pods="6")
    for number, given_pod in enumerate(pods):
        metadata = {"name": f"p{number:02d}", "namespace": "default", "labels": {"app": given_pod[2]}}
        bench.api.create("pods", {"metadata": metadata, "spec": build_pod_spec(*given_pod)})
    bench.advance_seconds()
    bench.advance_seconds()
    return {
        f"default/{name}" for name in (f"p{number:02d}" for number in range(len(pods))) if not bench.get_node_name(name)
    }


def list_unscheduled_by_simulation(
    nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]
) -> set[str]:
    """Return the pods that simulated scheduling leaves unscheduled."""
    rooms = [
        SimulatedNode(
            name=f"n{number}",
            labels={ZONE: zone},
            taints=(TAINT,) if tainted else (),
            allocatable=parse_resources({"cpu": cpu, "memory": memory, "pods": "6"}),
        )
        for number, (cpu, memory, zone, tainted) in enumerate(nodes)
    ]
    return set(
        simulate_scheduling(
            [rooms],
            build_scheduling_queue(build_model_pod(number, *pod_fields) for number, pod_fields in enumerate(pods)),
        )
    )


@given(NODES, PODS)
def test_simulated_scheduling_leaves_the_same_pods_pending_as_the_embedded_scheduler(
    nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]
) -> None:
    assert list_unscheduled_by_simulation(nodes, pods) == list_unscheduled_by_embedded(nodes, pods)
