"""Preferred anti-affinity that holds on the current node is kept by consolidation, as by provisioning."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.decide.disruption.simulation.preferred_anti_affinity import find_kept_anti_affinity, require_anti_affinity
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.metadata import OwnerReference
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, PreferredTerm, SpreadConstraint
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_instance_type, make_pod, make_requirements
from tests.support.disruption_fleet import (
    OPTIONS,
    STAGES,
    Machine,
    decide_disruption,
    get_verdict,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)
from tests.support.snapshot_decisions import validate_command

WEB = build_label_selector({"app": "web"})
DB = build_label_selector({"app": "db"})
IGNORE = SchedulingOptions(preference_policy="Ignore")
APART = {"preferred_pod_anti_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=WEB, weight=100),)}
APART_BY_ZONE = {"preferred_pod_anti_affinity": (AffinityTerm(topology_key=ZONE, selector=WEB, weight=100),)}
OTHER_PREFERENCES: dict[str, dict[str, object]] = {
    "affinity": {"preferred_pod_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=DB, weight=100),)},
    "spread": {
        "spread": (
            SpreadConstraint(topology_key=HOSTNAME, max_skew=1, when_unsatisfiable="ScheduleAnyway", selector=WEB),
        )
    },
    "node affinity": {
        "preferred_terms": (PreferredTerm(weight=1, requirements=make_requirements((ZONE, "In", ("a",)))),)
    },
}
ONLY_LARGE = (make_instance_type("m.04", 4),)
"""No new node is cheaper than a node of 4 CPUs."""


def make_preferring_pod(name: str, preferences: Mapping[str, object], cpu: str = "1") -> Pod:
    pod = make_web_pod(name, cpu)
    return replace(pod, spec=replace(pod.spec, **preferences))


def make_db_pod(name: str, cpu: str = "1") -> Pod:
    return make_web_pod(name, cpu, labels={"app": "db"})


def make_large_fleet(*machines: Machine) -> ClusterSnapshot:
    return make_fleet(*machines, types=ONLY_LARGE)


def decide_with(cluster: ClusterSnapshot, options: SchedulingOptions) -> DisruptionDecision:
    return decide_node_disruption(ClusterState(cluster), options=options, settings=DEFAULT_SETTINGS)


def list_deleted_nodes(decision: DisruptionDecision) -> list[str]:
    return sorted(node for command in decision.commands for node in command.list_node_names())


def make_cluster_apart(preferences: Mapping[str, object] = APART) -> ClusterSnapshot:
    """Return a cluster of two pods with *preferences* that share no node and no zone."""
    return make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", preferences)),
        make_node_with_pods("n2", make_preferring_pod("2", preferences), zone="b"),
    )


def make_cluster_with_other_preference(name: str) -> ClusterSnapshot:
    """Return a cluster where pod 1 has a preference that holds on n1, and would be lost on n2, the only other node."""
    return make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", OTHER_PREFERENCES[name]), make_db_pod("2", "500m")),
        make_node_with_pods("n2", make_preferring_pod("3", OTHER_PREFERENCES[name], "3"), zone="b"),
        make_node_with_pods("n3", make_db_pod("4", "3500m")),
    )


@pytest.mark.parametrize(("preferences", "key"), [(APART, HOSTNAME), (APART_BY_ZONE, ZONE)])
def test_preferred_anti_affinity_that_holds_keeps_the_nodes(preferences: Mapping[str, object], key: str) -> None:
    decision = decide_disruption(make_cluster_apart(preferences))
    assert summarize_commands(decision) == []
    assert {get_verdict(decision, name)[1] for name in ("n1", "n2")} == {"PreferencesNotMet"}
    assert (
        "pod shop/1 has room on other nodes, but not where its requirements are met and its preferred pod "
        f"anti-affinity over {key} holds as it does now"
    ) in get_verdict(decision, "n1")[2]


def test_pod_that_is_kept_away_by_another_pod_names_that_pod() -> None:
    """The pod on n1 has no preference of its own; the pod on n2 prefers to share its node with no web pod."""
    cluster = make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", {})),
        make_node_with_pods("n2", make_preferring_pod("2", APART, "3"), zone="b"),
    )
    _, reason, message = get_verdict(decide_disruption(cluster), "n1")
    assert reason == "PreferencesNotMet"
    assert (
        "pod shop/1 has room on other nodes, but not where its requirements are met and preferred anti-affinity of "
        f"pod shop/2 over {HOSTNAME} holds as it does now"
    ) in message


def test_message_names_each_topology_key_once() -> None:
    terms = tuple(AffinityTerm(topology_key=key, selector=WEB, weight=9) for key in (HOSTNAME, ZONE, HOSTNAME))
    cluster = make_cluster_apart({"preferred_pod_anti_affinity": terms})
    message = get_verdict(decide_disruption(cluster), "n1")[2]
    assert f"over {HOSTNAME} and {ZONE} holds" in message


@pytest.mark.parametrize("name", sorted(OTHER_PREFERENCES))
def test_other_preferences_are_relaxed_as_for_a_pending_pod(name: str) -> None:
    cluster = make_cluster_with_other_preference(name)
    assert list_deleted_nodes(decide_disruption(cluster)) == ["n1"]
    assert list_kept_pods(cluster) == []


def test_preferred_anti_affinity_does_not_matter_with_preference_policy_ignore() -> None:
    cluster = make_cluster_apart()
    without_preferences = make_cluster_apart({})
    expected = decide_with(without_preferences, IGNORE)
    assert decide_with(cluster, IGNORE).verdicts == expected.verdicts
    assert decide_with(cluster, IGNORE).commands == expected.commands
    assert len(list_deleted_nodes(expected)) == 1


def test_preferred_anti_affinity_that_does_not_hold_is_relaxed() -> None:
    """The pods share a node already, so they may share the next one."""
    pods = (make_preferring_pod("1", APART), make_preferring_pod("2", APART))
    cluster = make_large_fleet(make_node_with_pods("n1", *pods), make_node_with_pods("n2", make_db_pod("3")))
    assert len(list_deleted_nodes(decide_disruption(cluster))) == 1


def test_pod_without_satisfied_anti_affinity_does_not_join_a_pod_that_is_apart() -> None:
    """Pods 1 and 2 share a node; pod 3 is alone and stays so, although it does not move itself."""
    pods = (make_preferring_pod("1", APART), make_preferring_pod("2", APART))
    cluster = make_large_fleet(
        make_node_with_pods("n1", *pods), make_node_with_pods("n2", make_preferring_pod("3", APART, "2"))
    )
    assert summarize_commands(decide_disruption(cluster)) == []


def test_node_is_replaced_if_the_new_node_meets_the_anti_affinity() -> None:
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)),
        make_node_with_pods("n2", make_preferring_pod("2", APART)),
    )
    [command] = decide_disruption(cluster).commands
    assert (len(command.targets), len(command.replacements)) == (2, 2)
    assert validate_command(cluster, command) is None


def test_validation_refuses_a_move_that_would_lose_anti_affinity() -> None:
    """A pod of the same workload has arrived on the node where the pod was expected."""
    cluster = make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)), make_node_with_pods("n2", make_db_pod("2", "2"))
    )
    [command] = decide_disruption(cluster).commands
    assert command.list_node_names() == {"n1"}
    assert validate_command(cluster, command) is None
    arrived_pod = replace(make_web_pod("9", "100m"), node_name="n2", phase="Running", conditions=())
    later_cluster = replace(cluster, pods=(*cluster.pods, arrived_pod))
    invalidation = validate_command(later_cluster, command)
    assert invalidation is not None
    assert "where preferred anti-affinity that holds now is met: shop/1" in invalidation.message
    assert validate_command(later_cluster, command, options=IGNORE) is None


def test_drift_replaces_nodes_regardless_of_anti_affinity_and_consolidation_follows() -> None:
    drifted = make_conditions(*STAGES, "Drifted")
    cluster = make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART), conditions=drifted),
        make_node_with_pods("n2", make_preferring_pod("2", APART)),
        make_node_with_pods("n3", make_db_pod("3")),
        make_node_with_pods("n4", make_db_pod("4")),
    )
    decision = decide_disruption(cluster)
    assert [command.reason for command in decision.commands] == ["Drifted"]
    assert get_verdict(decision, "n4")[1] == "DriftFirst"


def list_kept_pods(cluster: ClusterSnapshot, options: SchedulingOptions = OPTIONS, **node_by_pod: str) -> list[str]:
    state = ClusterState(cluster)
    homes = {f"shop/{pod}": node for pod, node in node_by_pod.items()}
    return sorted(find_kept_anti_affinity(state, state.nodes, homes, options))


def test_only_anti_affinity_that_holds_is_kept() -> None:
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART), make_preferring_pod("2", APART)),
        make_node_with_pods("n2", make_web_pod("3"), make_preferring_pod("4", APART)),
        make_node_with_pods("n3", make_preferring_pod("5", APART)),
    )
    assert list_kept_pods(cluster) == ["shop/5"]


def test_pod_that_is_expected_on_a_node_counts_there() -> None:
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)),
        make_node_with_pods("n2", make_preferring_pod("2", APART)),
        pods=(make_pod("new", labels={"app": "web"}),),
    )
    assert list_kept_pods(cluster) == ["shop/1", "shop/2"]
    assert list_kept_pods(cluster, new="n1") == ["shop/2"]


def test_anti_affinity_over_a_label_that_the_node_does_not_have_is_not_kept() -> None:
    term = AffinityTerm(topology_key="example.com/rack", selector=WEB, weight=1)
    pod = make_preferring_pod("1", {"preferred_pod_anti_affinity": (term,)})
    assert list_kept_pods(make_fleet(make_node_with_pods("n1", pod))) == []


def test_with_preference_policy_ignore_no_anti_affinity_is_kept_even_if_another_pod_requires_the_same() -> None:
    required = {"pod_anti_affinity": APART["preferred_pod_anti_affinity"]}
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)),
        make_node_with_pods("n2", make_preferring_pod("2", APART | required)),
    )
    assert list_kept_pods(cluster) == ["shop/1", "shop/2"]
    assert list_kept_pods(cluster, IGNORE) == []


def test_anti_affinity_of_pods_that_consolidation_never_moves_is_not_kept() -> None:
    leaving_pod, daemon_pod = make_preferring_pod("1", APART), make_preferring_pod("2", APART)
    stateful_set, daemon_set = (
        OwnerReference(api_version="apps/v1", kind=kind, name="web", uid=kind) for kind in ("StatefulSet", "DaemonSet")
    )
    pods = (
        replace(leaving_pod, meta=replace(leaving_pod.meta, deleted_at=NOW, owners=(stateful_set,))),
        replace(daemon_pod, meta=replace(daemon_pod.meta, owners=(daemon_set,))),
        make_preferring_pod("3", APART | {"has_resource_claims": True}),
    )
    machines = (make_node_with_pods(f"n{number}", pod) for number, pod in enumerate(pods))
    assert list_kept_pods(make_fleet(*machines)) == []


def test_kept_terms_are_required_and_no_longer_preferred() -> None:
    kept_term, other_term = (AffinityTerm(topology_key=key, selector=WEB, weight=9) for key in (HOSTNAME, ZONE))
    pod = make_preferring_pod("1", {"preferred_pod_anti_affinity": (kept_term, other_term)})
    spec = require_anti_affinity(pod, (kept_term,)).spec
    assert (spec.pod_anti_affinity, spec.preferred_pod_anti_affinity) == ((kept_term,), (other_term,))
