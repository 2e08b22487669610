"""Consolidation loses no preferred anti-affinity that holds, for any fleet."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.simulation.preferred_anti_affinity import find_kept_anti_affinity
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod
from shared.state.cluster_state import ClusterState
from tests.support.disruption_fleet import (
    BOTH,
    Machine,
    decide_disruption,
    make_budgeted_pool,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)
from tests.support.snapshot_decisions import validate_command

APPS = ("web", "db")


@st.composite
def generate_pod(draw: st.DrawFn, name: str, cpu: int) -> Pod:
    app = draw(st.sampled_from(APPS))
    size = draw(st.sampled_from((200, 400, cpu * 200, cpu * 400)))
    pod = make_web_pod(name, f"{size}m", labels={"app": app})
    anti_affinity = AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": app}), weight=10)
    spec = replace(pod.spec, preferred_pod_anti_affinity=(anti_affinity,) * draw(st.integers(0, 1)))
    return replace(pod, spec=spec)


@st.composite
def generate_machine(draw: st.DrawFn, number: int) -> Machine:
    cpu = draw(st.sampled_from((2, 4, 8)))
    pods = [draw(generate_pod(f"{number}-{place}", cpu)) for place in range(draw(st.integers(1, 2)))]
    kind, zone = draw(st.sampled_from(("spot", "on-demand"))), draw(st.sampled_from("ab"))
    return make_node_with_pods(f"n{number}", *pods, cpu=cpu, capacity_type=kind, zone=zone)


@st.composite
def generate_preferring_fleet(draw: st.DrawFn) -> ClusterSnapshot:
    machines = [draw(generate_machine(number)) for number in range(draw(st.integers(2, 6)))]
    return make_fleet(*machines, pools=(make_budgeted_pool("100%"),), types=BOTH)


def list_pods_apart(cluster: ClusterSnapshot) -> set[str]:
    """Return the pods with preferred anti-affinity that are the only pod of their app on their node."""
    counts = Counter((pod.node_name, pod.meta.labels) for pod in cluster.pods)
    return {
        pod.name
        for pod in cluster.pods
        if pod.spec.preferred_pod_anti_affinity and counts[pod.node_name, pod.meta.labels] == 1
    }


@settings(max_examples=80, deadline=None)
@given(generate_preferring_fleet())
def test_consolidation_loses_no_satisfied_anti_affinity(cluster: ClusterSnapshot) -> None:
    later_cluster = predict_cluster_after(cluster, decide_disruption(cluster).proposed_commands)
    assert list_pods_apart(cluster) <= list_pods_apart(later_cluster)


@settings(max_examples=40, deadline=None)
@given(generate_preferring_fleet())
def test_commands_that_keep_anti_affinity_are_valid(cluster: ClusterSnapshot) -> None:
    for command in decide_disruption(cluster).commands[:1]:
        assert validate_command(cluster, command) is None


@settings(max_examples=40, deadline=None)
@given(generate_preferring_fleet())
def test_preference_policy_decides_whether_satisfied_anti_affinity_is_kept(cluster: ClusterSnapshot) -> None:
    state = ClusterState(cluster)
    assert find_kept_anti_affinity(state, state.nodes, {}, SchedulingOptions()).keys() == list_pods_apart(cluster)
    assert not find_kept_anti_affinity(state, state.nodes, {}, SchedulingOptions(preference_policy="Ignore"))
