"""Preferences that hold on the current node are kept by consolidation, as by provisioning."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.decide.disruption.simulation.preference_requirements import keep_preferences
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, PreferredTerm, SpreadConstraint
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_instance_type, make_pod, make_requirements
from tests.support.disruption_fleet import (
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
NEAR_DB = {"preferred_pod_affinity": (AffinityTerm(topology_key=HOSTNAME, selector=DB, weight=100),)}
SPREAD = {
    "spread": (SpreadConstraint(topology_key=HOSTNAME, max_skew=1, when_unsatisfiable="ScheduleAnyway", selector=WEB),)
}
ON_DEMAND = {
    "preferred_terms": (PreferredTerm(weight=1, requirements=make_requirements((CAPACITY_TYPE, "In", ("on-demand",)))),)
}
IN_ZONE_A = {"preferred_terms": (PreferredTerm(weight=1, requirements=make_requirements((ZONE, "In", ("a",)))),)}
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


HELD = {
    "preferred anti-affinity": make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)),
        make_node_with_pods("n2", make_preferring_pod("2", APART)),
    ),
    "preferred affinity": make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", NEAR_DB), make_db_pod("2")),
        make_node_with_pods("n2", make_web_pod("3", "2500m")),
        make_node_with_pods("n3", make_web_pod("4", "2500m")),
    ),
    "soft spread": make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", SPREAD)),
        make_node_with_pods("n2", make_preferring_pod("2", SPREAD)),
    ),
    "preferred node affinity": make_large_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", IN_ZONE_A)),
        make_node_with_pods("n2", make_preferring_pod("2", IN_ZONE_A), zone="b"),
    ),
}


def test_preferred_anti_affinity_that_holds_keeps_the_nodes() -> None:
    decision = decide_disruption(HELD["preferred anti-affinity"])
    assert summarize_commands(decision) == []
    assert {get_verdict(decision, name)[1] for name in ("n1", "n2")} == {"PreferencesNotMet"}
    assert "the preferences that hold now" in get_verdict(decision, "n1")[2]


def test_soft_spread_that_holds_keeps_the_nodes() -> None:
    decision = decide_disruption(HELD["soft spread"])
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "n1")[1] == "PreferencesNotMet"


def test_preferred_node_affinity_that_holds_moves_only_the_other_pod() -> None:
    """The pod in zone b can move to zone a, and not the other way round."""
    assert list_deleted_nodes(decide_disruption(HELD["preferred node affinity"])) == ["n2"]


def test_preferred_affinity_that_holds_keeps_both_pods_together() -> None:
    """Each pod of n1 fits on another node, but not both on the same one."""
    cluster = HELD["preferred affinity"]
    assert summarize_commands(decide_disruption(cluster)) == []
    assert list_deleted_nodes(decide_with(cluster, IGNORE)) == ["n1"]


@pytest.mark.parametrize("name", sorted(HELD))
def test_preferences_do_not_matter_with_preference_policy_ignore(name: str) -> None:
    cluster = HELD[name]
    without_preferences = replace(
        cluster,
        pods=tuple(
            replace(
                pod,
                spec=replace(
                    pod.spec, preferred_terms=(), preferred_pod_affinity=(), preferred_pod_anti_affinity=(), spread=()
                ),
            )
            for pod in cluster.pods
        ),
    )
    expected = decide_with(without_preferences, IGNORE)
    assert decide_with(cluster, IGNORE).verdicts == expected.verdicts
    assert decide_with(cluster, IGNORE).commands == expected.commands


def test_preference_that_does_not_hold_is_relaxed() -> None:
    """The pods share a node already, so they may share the next one."""
    pods = (make_preferring_pod("1", APART), make_preferring_pod("2", APART))
    cluster = make_large_fleet(make_node_with_pods("n1", *pods), make_node_with_pods("n2", make_db_pod("3")))
    assert len(list_deleted_nodes(decide_disruption(cluster))) == 1


def test_pod_without_a_satisfied_preference_does_not_join_a_pod_that_is_apart() -> None:
    """Pods 1 and 2 share a node; pod 3 is alone and stays so, although it does not move itself."""
    pods = (make_preferring_pod("1", APART), make_preferring_pod("2", APART))
    cluster = make_large_fleet(
        make_node_with_pods("n1", *pods), make_node_with_pods("n2", make_preferring_pod("3", APART, "2"))
    )
    assert summarize_commands(decide_disruption(cluster)) == []


def test_node_is_replaced_if_the_new_node_meets_the_preference() -> None:
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART)),
        make_node_with_pods("n2", make_preferring_pod("2", APART)),
    )
    [command] = decide_disruption(cluster).commands
    assert (len(command.targets), len(command.replacements)) == (2, 2)
    assert validate_command(cluster, command) is None


def test_preferred_capacity_type_that_holds_is_a_requirement_of_the_replacement() -> None:
    types = tuple(make_instance_type(f"m.{cpu:02d}", cpu, capacity_types=("spot", "on-demand")) for cpu in (2, 4))
    cluster = make_fleet(make_node_with_pods("n1", make_preferring_pod("1", ON_DEMAND)), types=types)
    [command] = decide_disruption(cluster).commands
    assert command.replacements[0].claim.requirements[CAPACITY_TYPE].values == {"on-demand"}
    [command] = decide_with(cluster, IGNORE).commands
    assert command.replacements[0].claim.requirements[CAPACITY_TYPE].values == {"spot"}


def test_validation_refuses_a_move_that_would_lose_a_preference() -> None:
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
    assert "where the preferences that hold now are met: shop/1" in invalidation.message
    assert validate_command(later_cluster, command, options=IGNORE) is None


def test_drift_replaces_nodes_regardless_of_preferences_and_consolidation_follows() -> None:
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


def list_kept_pods(cluster: ClusterSnapshot, **node_by_pod: str) -> list[str]:
    state = ClusterState(cluster)
    homes = {f"shop/{pod}": node for pod, node in node_by_pod.items()}
    return sorted(keep_preferences(state, state.nodes, homes, SchedulingOptions()))


def test_only_pods_with_satisfied_preferences_are_changed() -> None:
    cluster = make_fleet(
        make_node_with_pods("n1", make_preferring_pod("1", APART), make_preferring_pod("2", APART)),
        make_node_with_pods("n2", make_web_pod("3"), make_preferring_pod("4", NEAR_DB)),
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


def test_preference_over_a_label_that_the_node_does_not_have_is_not_kept() -> None:
    term = AffinityTerm(topology_key="example.com/rack", selector=WEB, weight=1)
    pod = make_preferring_pod("1", {"preferred_pod_anti_affinity": (term,)})
    assert list_kept_pods(make_fleet(make_node_with_pods("n1", pod))) == []


def test_prefer_no_schedule_taint_is_no_preference_that_is_kept() -> None:
    taint = Taint(key="k", effect="PreferNoSchedule")
    cluster = make_fleet(make_node_with_pods("n1", make_web_pod("1")), make_node_with_pods("n2", make_web_pod("2")))
    tainted = replace(
        cluster, nodes=tuple(replace(node, taints=(taint,) * (node.name == "n2")) for node in cluster.nodes)
    )
    assert list_kept_pods(tainted) == []
