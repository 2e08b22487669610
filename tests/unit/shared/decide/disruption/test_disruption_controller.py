"""Which nodes are disrupted, what replaces them, and the verdicts on all other nodes."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import EVERYTHING, DisruptionSettings
from shared.decide.disruption.disruption_controller import DisruptionDecision
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    CAPACITY_TYPE,
    DISRUPTION_WINDOWS,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    HOSTNAME,
    INSTANCE_TYPE,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    NOMINATED_UNTIL,
    ZONE,
)
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.core.selectors import build_label_selector
from shared.model.core.units import format_instant
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod import AffinityTerm, SpreadConstraint
from tests.support.catalogues import NOW, ZONES, make_instance_type, make_node_pool, make_pod, make_requirements
from tests.support.disruption_fleet import (
    BOTH,
    FREE,
    MANY_SPOT,
    STAGES,
    TYPES,
    decide_disruption,
    get_verdict,
    make_budgeted_pool,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
    summarize_commands,
)


def test_empty_node_is_deleted_and_full_node_is_kept() -> None:
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a"), make_node_with_pods("b", make_web_pod("1", "3500m"), cpu=4))
    )
    assert summarize_commands(decision) == [("Emptiness", ["a"], [])]
    assert get_verdict(decision, "a")[:2] == ("disrupted", "Empty")


def test_all_empty_nodes_are_deleted_in_commands_of_up_to_100_nodes() -> None:
    decision = decide_disruption(make_fleet(*(make_node_with_pods(f"n{number:03d}") for number in range(130))))
    assert [(method, len(nodes)) for method, nodes, _ in summarize_commands(decision)] == [
        ("Emptiness", 100),
        ("Emptiness", 30),
    ]


def test_node_whose_pods_fit_on_other_nodes_is_deleted() -> None:
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1")), make_node_with_pods("b", make_web_pod("2", "2")))
    )
    assert summarize_commands(decision) == [("SingleNode", ["a"], [])]
    assert decision.commands[0].nominations == (("shop/1", "b"),)
    assert decision.commands[0].savings_usd_per_hour == pytest.approx(0.2)


def test_several_nodes_are_deleted_together_when_all_their_pods_fit_elsewhere() -> None:
    cluster_nodes = [make_node_with_pods(f"n{number}", make_web_pod(str(number), "500m")) for number in range(8)]
    decision = decide_disruption(make_fleet(*cluster_nodes))
    assert [(method, len(nodes)) for method, nodes, _ in summarize_commands(decision)] == [("MultiNode", 7)]


def test_oversized_node_is_replaced_by_a_smaller_one() -> None:
    decision = decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16)))
    assert summarize_commands(decision) == [("SingleNode", ["a"], ["m.02", "m.04", "m.08"])]
    replacement = decision.commands[0].replacements[0]
    assert replacement.pods == ("shop/1",)
    assert decision.commands[0].nominations == (("shop/1", replacement.claim.name),)
    assert decision.commands[0].savings_usd_per_hour == pytest.approx(0.8 - 0.1)


def test_node_is_not_replaced_at_the_same_price() -> None:
    decision = decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=2)))
    assert summarize_commands(decision) == []
    kind, reason, message = get_verdict(decision, "a")
    assert (kind, reason) == ("kept", "NoCheaperOffering")
    assert "1 pod (1500m cpu, 1.0 GiB)" in message


def test_two_nodes_are_replaced_by_one_larger_node() -> None:
    large = make_instance_type("m.06", 6, price=0.35)
    cluster_nodes = [make_node_with_pods(name, make_web_pod(name, "2500m")) for name in ("a", "b")]
    decision = decide_disruption(make_fleet(*cluster_nodes, types=(*TYPES, large)))
    assert summarize_commands(decision) == [("MultiNode", ["a", "b"], ["m.06"])]


def test_multi_node_replacement_is_not_a_copy_of_one_of_the_replaced_nodes() -> None:
    cluster_nodes = [
        make_node_with_pods("a", make_web_pod("a", "2500m")),
        make_node_with_pods("b", make_web_pod("b", "1500m"), cpu=2),
        make_node_with_pods("c", make_web_pod("c", "1500m"), cpu=2),
    ]
    decision = decide_disruption(make_fleet(*cluster_nodes, types=TYPES))
    assert all("m.04" not in kinds or "a" not in nodes for _, nodes, kinds in summarize_commands(decision))


def test_several_nodes_are_replaced_by_several_cheaper_nodes() -> None:
    kind = make_instance_type("c.05", 5, price=0.15)
    cluster_nodes = [make_node_with_pods(f"n{number}", make_web_pod(str(number), "2400m")) for number in range(9)]
    decision = decide_disruption(make_fleet(*cluster_nodes, types=(*TYPES, kind)))
    assert sum(command.savings_usd_per_hour for command in decision.commands) == pytest.approx(9 * 0.2 - 5 * 0.15)


def test_consolidation_respects_pod_anti_affinity() -> None:
    apart = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "web"})),)
    web_pods = [make_web_pod(str(number), "500m", pod_anti_affinity=apart) for number in range(3)]
    decision = decide_disruption(
        make_fleet(*(make_node_with_pods(f"n{number}", web_pod, cpu=2) for number, web_pod in enumerate(web_pods)))
    )
    assert summarize_commands(decision) == []


def test_consolidation_respects_topology_spread() -> None:
    rule = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector({"app": "web"})),)
    cluster_nodes = [
        make_node_with_pods(f"n{zone}", make_web_pod(zone, "500m", spread=rule), zone=zone, cpu=2) for zone in ZONES
    ]
    decision = decide_disruption(
        make_fleet(
            *cluster_nodes,
            make_node_with_pods("big", make_pod("big", "1"), cpu=16, annotations={DO_NOT_DISRUPT: "true"}),
        )
    )
    assert all(get_verdict(decision, f"n{zone}")[0] == "kept" for zone in "bc")


def test_pods_with_pod_affinity_move_together() -> None:
    near = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "web"})),)
    pair = (make_web_pod("1", "1"), make_web_pod("2", "1", pod_affinity=near))
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", *pair), make_node_with_pods("b", make_pod("x", "1", labels={"app": "x"}), cpu=8)
        )
    )
    homes = dict(decision.commands[0].nominations)
    assert homes.get("shop/1") == homes.get("shop/2")


def test_consolidation_accounts_for_pending_pods() -> None:
    waiting = make_pod("waits", "3")
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1", "500m")),
            make_node_with_pods("b", make_web_pod("2", "500m")),
            pods=(waiting,),
        )
    )
    assert summarize_commands(decision) == [("SingleNode", ["b"], [])] or summarize_commands(decision) == []
    assert get_verdict(decision, "a")[:2] == ("blocked", "Nominated")


def test_uninitialized_nodes_accept_no_pods_of_candidates() -> None:
    fresh = make_node_with_pods("b", conditions=make_conditions("Launched", "Registered"))
    unfit = replace(fresh[0], meta=replace(fresh[0].meta, labels=tuple(fresh[0].meta.labels[:-1])))
    labels = build_pairs({key: value for key, value in fresh[0].meta.labels if key != "karpenter.sh/initialized"})
    unfit = replace(fresh[0], meta=replace(fresh[0].meta, labels=labels))
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=2), (unfit, fresh[1], ()))
    )
    assert summarize_commands(decision) == []


# Nodes that must not be disrupted, or whose disruption does not save enough.


@pytest.mark.parametrize(
    ("tested_node", "fields", "reason", "message"),
    [
        (
            make_node_with_pods("a", make_web_pod("1"), annotations={DO_NOT_DISRUPT: "true"}),
            {},
            "DoNotDisrupt",
            "do-not-disrupt",
        ),
        (
            make_node_with_pods("a", make_web_pod("1"), annotations={DO_NOT_CONSOLIDATE: "true"}),
            {},
            "DoNotDisrupt",
            "do-not-disrupt",
        ),
        (
            make_node_with_pods(
                "a", make_web_pod("1"), annotations={NOMINATED_UNTIL: format_instant(NOW + timedelta(minutes=1))}
            ),
            {},
            "Nominated",
            "nominated",
        ),
        (
            make_node_with_pods("a", make_web_pod("1")),
            {"budgets": (make_pod_disruption_budget("web", {"app": "web"}, 0),)},
            "PodBlocksEviction",
            "shop/web",
        ),
        (
            make_node_with_pods("a", make_web_pod("1")),
            {
                "budgets": (
                    make_pod_disruption_budget("web", {"app": "web"}, 1),
                    make_pod_disruption_budget("too", {"app": "web"}, 1),
                )
            },
            "PodBlocksEviction",
            "2 PodDisruptionBudgets",
        ),
        (make_node_with_pods("a", make_web_pod("1"), pool="other"), {}, "NodePoolNotFound", "other"),
    ],
)
def test_blocked_candidate_reports_its_reason(
    tested_node: object, fields: dict[str, object], reason: str, message: str
) -> None:
    decision = decide_disruption(make_fleet(tested_node, make_node_with_pods("b"), **fields))  # type: ignore[arg-type]
    kind, actual_reason, words = get_verdict(decision, "a")
    assert (kind, actual_reason) == ("blocked", reason)
    assert message in words


@pytest.mark.parametrize(
    ("annotations", "started", "blocks"),
    [
        ({DO_NOT_DISRUPT: "true"}, None, True),
        ({DO_NOT_EVICT: "true"}, None, True),
        ({DO_NOT_EVICT: "false"}, None, False),
        ({DO_NOT_DISRUPT: "false"}, None, False),
        ({DO_NOT_DISRUPT: "10m"}, NOW - timedelta(minutes=5), True),
        ({DO_NOT_DISRUPT: "10m"}, NOW - timedelta(minutes=15), False),
        ({DO_NOT_DISRUPT: "-10m"}, NOW, False),
    ],
)
def test_pod_annotations_block_disruption(annotations: dict[str, str], started: object, *, blocks: bool) -> None:
    annotated_pod = make_web_pod("1")
    annotated_pod = replace(
        annotated_pod, meta=replace(annotated_pod.meta, annotations=build_pairs(annotations)), started_at=started
    )
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", annotated_pod), make_node_with_pods("b", make_web_pod("2", "2")))
    )
    assert (get_verdict(decision, "a")[1] == "PodBlocksEviction") is blocks


def test_pdb_that_allows_one_disruption_does_not_block_the_node() -> None:
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1")),
            make_node_with_pods("b", make_web_pod("2", "2")),
            budgets=(make_pod_disruption_budget("g", {"app": "web"}, 1),),
        )
    )
    assert summarize_commands(decision) == [("SingleNode", ["a"], [])]


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (make_node_pool(budgets=(), consolidation_policy="WhenEmpty"), "PolicyWhenEmpty"),
        (make_node_pool(budgets=(), consolidate_after=None), "ConsolidationDisabled"),
        (make_node_pool(budgets=(), replicas=2), "StaticPool"),
    ],
)
def test_node_pool_settings_that_prevent_consolidation_are_the_verdict_reason(pool: object, reason: str) -> None:
    nodes = (make_node_with_pods("a", make_web_pod("1")), make_node_with_pods("b", make_web_pod("2", "2")))
    decision = decide_disruption(make_fleet(*nodes, pools=(pool,)))  # type: ignore[arg-type]
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "a")[:2] == ("kept", reason)


def test_empty_node_is_deleted_with_consolidation_policy_when_empty() -> None:
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a"), pools=(make_node_pool(budgets=(), consolidation_policy="WhenEmpty"),))
    )
    assert summarize_commands(decision) == [("Emptiness", ["a"], [])]


def test_node_that_is_not_consolidatable_is_kept() -> None:
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1"), conditions=make_conditions(*STAGES[:3])),
            make_node_with_pods("b", make_web_pod("2", "2")),
        )
    )
    assert get_verdict(decision, "a")[:2] == ("kept", "NotConsolidatable")


@pytest.mark.parametrize("key", [CAPACITY_TYPE, ZONE, INSTANCE_TYPE])
def test_node_without_instance_type_zone_or_capacity_type_is_not_consolidated(key: str) -> None:
    node, claim, pods = make_node_with_pods("a", make_web_pod("1"))
    labels = tuple(pair for pair in node.meta.labels if pair[0] != key)
    bare = (replace(node, meta=replace(node.meta, labels=labels)), claim, pods)
    decision = decide_disruption(make_fleet(bare, make_node_with_pods("b", make_web_pod("2", "2"))))
    assert get_verdict(decision, "a")[0] == "kept"
    assert summarize_commands(decision) in ([], [("SingleNode", ["b"], [])])


def test_node_within_its_consolidate_after_period_accepts_no_moved_pods() -> None:
    slow = make_node_pool("slow", budgets=(), consolidate_after=timedelta(hours=1))
    event = NOW - timedelta(minutes=1)
    young = make_node_with_pods(
        "b", make_web_pod("2", "2"), pool="slow", last_pod_event_at=event, conditions=make_conditions(*STAGES[:3])
    )
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=2), young, pools=(FREE, slow))
    )
    assert summarize_commands(decision) == []


def test_node_after_its_consolidate_after_period_accepts_moved_pods() -> None:
    slow = make_node_pool("slow", budgets=(), consolidate_after=timedelta(hours=1))
    old = make_node_with_pods("b", make_web_pod("2", "2"), pool="slow", last_pod_event_at=NOW - timedelta(hours=2))
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=2), old, pools=(FREE, slow))
    )
    assert summarize_commands(decision) == [("SingleNode", ["a"], [])]


# Budgets, pauses, thresholds.


@pytest.mark.parametrize(
    ("pool", "count"),
    [
        (make_budgeted_pool("1"), 1),
        (make_budgeted_pool("50%"), 2),
        (make_budgeted_pool("10%"), 1),
        (make_budgeted_pool("0"), 0),
        (make_budgeted_pool("0", reasons=("Drifted",)), 4),
        (make_budgeted_pool("0", reasons=("Empty",)), 0),
        (make_budgeted_pool("110%"), 0),
        (make_node_pool(budgets=()), 4),
        (make_node_pool(budgets=(DisruptionBudget(nodes="0", schedule="0 12 * * *", duration=timedelta(hours=1)),)), 0),
        (make_node_pool(budgets=(DisruptionBudget(nodes="0", schedule="0 11 * * *", duration=timedelta(hours=1)),)), 4),
        (make_node_pool(budgets=(DisruptionBudget(nodes="0", schedule="what", duration=timedelta(hours=1)),)), 0),
    ],
)
def test_budget_limits_the_number_of_disrupted_nodes(pool: object, count: int) -> None:
    decision = decide_disruption(make_fleet(*(make_node_with_pods(f"n{number}") for number in range(4)), pools=(pool,)))  # type: ignore[arg-type]
    assert sum(len(command.targets) for command in decision.commands) == count
    assert sum(node_verdict.reason == "Budget" for node_verdict in decision.verdicts) == 4 - count


def test_nodes_of_open_commands_count_against_the_budget() -> None:
    cluster_nodes = [make_node_with_pods(f"n{number}") for number in range(4)]
    decision = decide_disruption(
        make_fleet(*cluster_nodes, pools=(make_budgeted_pool("2"),)), command_nodes=frozenset({"n0"})
    )
    assert [len(command.targets) for command in decision.commands] == [1]
    assert "n0" not in {node_verdict.node for node_verdict in decision.verdicts}


def test_budget_is_shared_by_all_disruption_methods() -> None:
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a"),
            make_node_with_pods("b", make_web_pod("1")),
            make_node_with_pods("c", make_web_pod("2", "2")),
            pools=(make_budgeted_pool("1"),),
        )
    )
    assert sum(len(command.targets) for command in decision.commands) == 1


def test_cluster_budget_limits_all_node_pools_together() -> None:
    cluster_nodes = [make_node_with_pods(f"n{number}", pool=f"p{number % 2}") for number in range(6)]
    pools = tuple(make_node_pool(f"p{number}", budgets=()) for number in range(2))
    decision = decide_disruption(
        make_fleet(*cluster_nodes, pools=pools), DisruptionSettings(budgets=(DisruptionBudget(nodes="50%"),))
    )
    assert sum(len(command.targets) for command in decision.commands) == 3
    assert any("the cluster allows 3" in node_verdict.message for node_verdict in decision.verdicts)


def test_invalid_cluster_budget_blocks_disruption_and_is_reported() -> None:
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a")), DisruptionSettings(budgets=(DisruptionBudget(nodes="many"),))
    )
    assert decision.commands == ()
    assert get_verdict(decision, "a")[2].startswith("disruption-budgets[0]: nodes 'many'")


@pytest.mark.parametrize("paused", [{"Empty"}, {EVERYTHING}, {"default/Empty"}])
def test_paused_disruption_reason_keeps_nodes(paused: set[str]) -> None:
    decision = decide_disruption(make_fleet(make_node_with_pods("a")), paused_reasons=paused)
    assert decision.commands == ()
    assert get_verdict(decision, "a")[:2] == ("kept", "Paused")
    assert ("NodePool default" in get_verdict(decision, "a")[2]) == ("default/Empty" in paused)


def test_blocking_pdb_is_reported_with_its_allowed_disruptions() -> None:
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1")),
            make_node_with_pods("b"),
            budgets=(make_pod_disruption_budget("web", {"app": "web"}, 0),),
        )
    )
    assert get_verdict(decision, "a")[2].endswith("(0 allowed)")


@pytest.mark.parametrize("paused", [{"Drifted"}, {"other/Empty"}, set[str]()])
def test_disruption_reason_that_is_not_paused_is_not_affected(paused: set[str]) -> None:
    assert decide_disruption(make_fleet(make_node_with_pods("a")), paused_reasons=paused).commands


def make_annotated_pool(**annotations: str) -> object:
    return make_node_pool(budgets=(), meta=ObjectMeta(name="default", annotations=build_pairs(annotations)))


@pytest.mark.parametrize(
    ("key", "value", "goes", "message"),
    [
        (MINIMUM_SAVINGS_USD, "0.69", True, ""),
        (MINIMUM_SAVINGS_USD, "0.71", False, "saves $0.7000/h, less than the threshold of $0.7100/h"),
        (MINIMUM_SAVINGS_PERCENT, "85%", True, ""),
        (MINIMUM_SAVINGS_PERCENT, "90", False, "saves 88%, less than the threshold of 90%"),
        (MINIMUM_SAVINGS_PERCENT, "100", False, "a replacement saves less than the threshold of 100%"),
        (MINIMUM_SAVINGS_PERCENT, "900", False, "NodePool default: joiner.dev/minimum-savings-percent"),
        (DISRUPTION_WINDOWS, "0 22 * * * 8h", False, "outside all disruption windows"),
        (DISRUPTION_WINDOWS, "0 22 * * * 8h; 0 12 * * * 5m", True, ""),
        (DISRUPTION_WINDOWS, "whenever", False, "is not a schedule and a duration"),
    ],
)
def test_node_pool_annotations_for_savings_and_disruption_windows_are_applied(
    key: str, value: str, message: str, *, goes: bool
) -> None:
    node = make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16)
    decision = decide_disruption(make_fleet(node, pools=(make_annotated_pool(**{key: value}),)))  # type: ignore[arg-type]
    assert bool(decision.commands) is goes
    assert message in get_verdict(decision, "a")[2]


APART = (AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "web"})),)


def make_apart_nodes(count: int, cpu: int) -> ClusterSnapshot:
    """Return nodes whose pods cannot share a node: each can only be replaced, alone."""
    cluster_nodes = [
        make_node_with_pods(f"n{number:02d}", make_web_pod(str(number), "1500m", pod_anti_affinity=APART), cpu=cpu)
        for number in range(count)
    ]
    return make_fleet(*cluster_nodes)


def limit_checks(count: int) -> Callable[[], bool]:
    """Return a time limit that is reached after *count* checks."""
    checks = iter(range(count))
    return lambda: next(checks, None) is None


def decide_in_runs(cluster: ClusterSnapshot, checks: int) -> list[DisruptionDecision]:
    """Return the decisions of one sweep, of which each run may check the time limit *checks* times."""
    decisions = [decide_disruption(cluster, is_time_over=limit_checks(checks))]
    while decisions[-1].cursor:
        decisions.append(decide_disruption(cluster, cursor=decisions[-1].cursor, is_time_over=limit_checks(checks)))
        assert len(decisions) < 50, "the runs do not end"
    return decisions


@pytest.mark.parametrize("checks", [8, 13, 20, 31, 50, 80])
def test_runs_with_a_time_limit_evaluate_every_candidate_once(checks: int) -> None:
    decisions = decide_in_runs(make_apart_nodes(24, cpu=2), checks)
    assert len(decisions) > 1 or checks == 80
    evaluated_nodes = {verdict.node for decision in decisions for verdict in decision.verdicts}
    assert evaluated_nodes == {f"n{number:02d}" for number in range(24)}


@pytest.mark.parametrize("checks", [8, 13, 20, 31, 50, 80])
def test_runs_with_a_time_limit_find_the_commands_of_one_run(checks: int) -> None:
    cluster = make_apart_nodes(24, cpu=16)
    replaced_nodes = {node for decision in decide_in_runs(cluster, checks) for node in list_target_nodes(decision)}
    assert replaced_nodes == set(list_target_nodes(decide_disruption(cluster))) == {f"n{n:02d}" for n in range(24)}


def list_target_nodes(decision: DisruptionDecision) -> list[str]:
    return [node for command in decision.commands for node in command.list_node_names()]


def test_next_run_starts_at_the_first_candidate_that_was_not_evaluated_completely() -> None:
    cluster = make_apart_nodes(9, cpu=2)
    first = decide_disruption(cluster, is_time_over=limit_checks(4))
    assert first.cursor.split() == [f"n{number:02d}" for number in range(9)], "only deletions were evaluated"
    second = decide_disruption(cluster, cursor="n04 n05", is_time_over=limit_checks(8))
    assert second.cursor.split()[0] == "n05"


def test_next_run_starts_after_candidates_that_are_gone() -> None:
    cluster = make_apart_nodes(9, cpu=2)
    cursors = [
        decide_disruption(cluster, cursor=cursor, is_time_over=limit_checks(8)).cursor.split()[0]
        for cursor in ("gone n04 n05", "gone", "n03 gone")
    ]
    assert cursors == ["n05", "n01", "n04"]


def test_last_run_evaluates_the_earlier_candidates_again_if_there_is_time() -> None:
    cluster = make_apart_nodes(9, cpu=16)
    decision = decide_disruption(cluster, cursor="n07")
    assert decision.cursor == ""
    assert sorted(list_target_nodes(decision)) == [f"n{number:02d}" for number in range(9)]
    interrupted = decide_disruption(cluster, cursor="n08", is_time_over=limit_checks(12))
    assert interrupted.cursor == "", "the candidates before the cursor belong to earlier runs of the sweep"


def test_disruption_decision_has_one_verdict_for_every_node() -> None:
    cluster_nodes = [
        make_node_with_pods(f"n{number}", make_web_pod(str(number), "1500m"), cpu=(2, 4, 16)[number % 3])
        for number in range(12)
    ]
    decision = decide_disruption(
        make_fleet(*cluster_nodes, make_node_with_pods("empty"), pools=(make_budgeted_pool("30%"),))
    )
    assert [node_verdict.node for node_verdict in decision.verdicts] == sorted(
        ["empty", *(f"n{number}" for number in range(12))]
    )


def test_disruption_decision_does_not_depend_on_the_order_of_objects() -> None:
    cluster = make_fleet(
        *(make_node_with_pods(f"n{number}", make_web_pod(str(number), "700m"), cpu=8) for number in range(6))
    )
    turned = replace(cluster, pods=cluster.pods[::-1], nodes=cluster.nodes[::-1], node_claims=cluster.node_claims[::-1])
    assert decide_disruption(cluster).commands == decide_disruption(turned).commands


def test_commands_are_disjoint_and_do_not_remove_nodes_other_commands_need() -> None:
    cluster_nodes = [
        make_node_with_pods(f"n{number:02d}", make_web_pod(str(number), "1700m"), cpu=(2, 4, 8, 16)[number % 4])
        for number in range(24)
    ]
    decision = decide_disruption(make_fleet(*cluster_nodes, types=BOTH))
    targets = [node for command in decision.commands for node in command.list_node_names()]
    assert len(targets) == len(set(targets))
    assert not {home for command in decision.commands for _, home in command.nominations} & set(targets)


# Prices.


def test_on_demand_node_is_replaced_by_cheaper_spot_offerings_only() -> None:
    decision = decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=2), types=BOTH))
    [replacement] = decision.commands[0].replacements
    assert replacement.claim.requirements[CAPACITY_TYPE].values == {"spot"}
    assert replacement.claim.requirements[INSTANCE_TYPE].values == {"m.02", "m.04"}


def test_spot_node_is_not_replaced_by_spot_without_spot_to_spot_consolidation() -> None:
    spot_node = make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16, capacity_type="spot")
    decision = decide_disruption(make_fleet(spot_node, types=BOTH))
    assert get_verdict(decision, "a")[1] == "SpotToSpotDisabled"


def test_spot_node_can_be_deleted_without_spot_to_spot_consolidation() -> None:
    protected_node = make_node_with_pods("b", make_web_pod("2", "2"), annotations={DO_NOT_DISRUPT: "true"})
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1"), capacity_type="spot"), protected_node, types=BOTH)
    )
    assert summarize_commands(decision) == [("SingleNode", ["a"], [])]


def test_spot_to_spot_consolidation_needs_15_cheaper_instance_types() -> None:
    spot_node = make_node_with_pods("a", make_web_pod("1", "500m"), cpu=16, kind="ma.16", capacity_type="spot")
    decision = decide_disruption(make_fleet(spot_node, types=MANY_SPOT), DisruptionSettings(spot_to_spot=True))
    assert len(decision.commands[0].replacements[0].claim.requirements[INSTANCE_TYPE].values) == 15
    few_types_decision = decide_disruption(
        make_fleet(spot_node, types=[spot_type for spot_type in MANY_SPOT if spot_type.name[1] in "abc"]),
        DisruptionSettings(spot_to_spot=True),
    )
    assert get_verdict(few_types_decision, "a")[1] == "TooFewSpotTypes"


def test_replacement_respects_min_values() -> None:
    requirements = make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 4})
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16),
            pools=(replace(FREE, requirements=requirements),),
        )
    )
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "a")[1] == "MinValuesNotMet"


def test_node_without_a_known_price_is_deleted_but_not_replaced() -> None:
    odd = make_node_with_pods("a", make_web_pod("1", "500m"), kind="m.04", zone="z", cpu=4)
    assert summarize_commands(decide_disruption(make_fleet(odd))) == []
    protected_node = make_node_with_pods("b", make_web_pod("2", "2"), annotations={DO_NOT_DISRUPT: "true"})
    assert summarize_commands(decide_disruption(make_fleet(odd, protected_node))) == [("SingleNode", ["a"], [])]


def test_replacement_must_fit_the_node_pool_limits_together_with_the_old_node() -> None:
    from shared.model.core.resources import parse_resources  # noqa: PLC0415 - only here

    pool = make_node_pool(budgets=(), limits=parse_resources({"cpu": "17"}))
    decision = decide_disruption(
        make_fleet(make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=16), pools=(pool,))
    )
    assert summarize_commands(decision) == []


@pytest.mark.parametrize(("pods", "goes"), [(0, True), (9, False)])
def test_consolidation_policy_balanced_weighs_savings_against_disruption(pods: int, *, goes: bool) -> None:
    pool = make_node_pool(budgets=(), consolidation_policy="Balanced")
    small_pods = [make_web_pod(f"x{number}", "10m") for number in range(pods)]
    do_not_disrupt = {DO_NOT_DISRUPT: "true"}
    protected_nodes = [
        make_node_with_pods(f"n{number}", make_web_pod(f"n{number}", "15"), cpu=16, annotations=do_not_disrupt)
        for number in range(2)
    ]
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1", "1500m"), *small_pods, cpu=16), *protected_nodes, pools=(pool,)
        )
    )
    assert bool(decision.commands) is goes
    if not goes:
        assert get_verdict(decision, "a")[1] == "NotBalanced"
