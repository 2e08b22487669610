"""A plan that is replayed leaves exactly those pods that the embedded kube-scheduler leaves."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.labels import HOSTNAME, ZONE
from shared.model.pods import AffinityTerm, HostPort, Pod, SpreadConstraint
from shared.model.resources import parse_resources
from shared.model.selectors import selector
from shared.model.taints import Taint, Toleration
from shared.scheduling.replay import Room, realise
from shared.scheduling.turns import queue_of
from tests.unit.catalogues import asks, pod
from tests.unit.cluster_objects import Bench

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


def manifest(cpu: str, memory: str, app: str, rule: str) -> Json:
    """Answer the spec that Kubernetes has of such a pod."""
    mine = {"labelSelector": {"matchLabels": {"app": app}}}
    ports = [{"containerPort": 80, "hostPort": 80}] if rule == "port" else []
    requests = {"cpu": cpu, "memory": memory}
    spec: Json = {"containers": [{"name": "x", "image": "x", "resources": {"requests": requests}, "ports": ports}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    more: dict[str, Json] = {
        "spread": {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **mine}
            ]
        },
        "near": {"affinity": {"podAffinity": {required: [{"topologyKey": ZONE, **mine}]}}},
        "far": {"affinity": {"podAntiAffinity": {required: [{"topologyKey": HOSTNAME, **mine}]}}},
        "tolerant": {"tolerations": [{"key": "team", "operator": "Exists"}]},
        "urgent": {"priorityClassName": "urgent"},
        "zone": {"nodeSelector": {ZONE: "a"}},
    }
    return spec | more.get(rule, {})


def modelled(number: int, cpu: str, memory: str, app: str, rule: str) -> Pod:
    """Answer the same pod as our model has it; the first is the oldest."""
    mine = selector({"app": app})
    more: dict[str, Json] = {
        "spread": {"spread": (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=mine),)},
        "near": {"pod_affinity": (AffinityTerm(topology_key=ZONE, selector=mine),)},
        "far": {"pod_anti_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=mine),)},
        "tolerant": {"tolerations": (Toleration(key="team", operator="Exists"),)},
        "port": {"host_ports": (HostPort(port=80),)},
        "zone": {"node_selector": ((ZONE, "a"),)},
    }
    made = pod(f"p{number:02d}", namespace="default", labels={"app": app}, age=100 - number, **more.get(rule, {}))
    spec = replace(made.spec, requests=asks(cpu, memory))
    return replace(made, spec=spec, priority=1000 if rule == "urgent" else 0)


def embedded(nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]) -> set[str]:
    """Answer the pods that the embedded kube-scheduler leaves."""
    bench = Bench()
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "urgent"}, "value": 1000})
    for number, (cpu, memory, zone, tainted) in enumerate(nodes):
        taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}] if tainted else []
        bench.node(f"n{number}", cpu=cpu, memory=memory, zone=zone, taints=taints, pods="6")
    for number, given_pod in enumerate(pods):
        metadata = {"name": f"p{number:02d}", "namespace": "default", "labels": {"app": given_pod[2]}}
        bench.api.create("pods", {"metadata": metadata, "spec": manifest(*given_pod)})
    bench.settle()
    bench.settle()
    return {f"default/{name}" for name in (f"p{number:02d}" for number in range(len(pods))) if not bench.node_of(name)}


def replayed(nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]) -> set[str]:
    """Answer the pods that the replay leaves."""
    rooms = [
        Room(
            name=f"n{number}",
            labels={ZONE: zone},
            taints=(TAINT,) if tainted else (),
            allocatable=parse_resources({"cpu": cpu, "memory": memory, "pods": "6"}),
        )
        for number, (cpu, memory, zone, tainted) in enumerate(nodes)
    ]
    return set(realise([rooms], queue_of(modelled(number, *one) for number, one in enumerate(pods))))


@given(NODES, PODS)
def test_a_replay_leaves_whom_the_embedded_scheduler_leaves(
    nodes: list[tuple[str, str, str, bool]], pods: list[tuple[str, str, str, str]]
) -> None:
    assert replayed(nodes, pods) == embedded(nodes, pods)
