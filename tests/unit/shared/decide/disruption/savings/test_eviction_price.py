"""Evictions have a price: a deletion waits until its savings pay for the pods that it moves."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_controller import DisruptionDecision
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.model.core.labels import COMMAND, DO_NOT_DISRUPT, EVICTION_PRICE, POD_DELETION_COST
from shared.model.core.metadata import ObjectMeta, OwnerReference, build_pairs
from shared.model.decisions.workload_history import DemandForecast, HourlyDemand
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_node_pool
from tests.support.disruption_fleet import (
    FREE,
    STAGES,
    TYPES,
    Machine,
    decide_disruption,
    get_verdict,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

ROOMY = make_node_with_pods("b", make_web_pod("2", "1"), annotations={DO_NOT_DISRUPT: "true"})
DAEMON_SET = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="ds")


def with_quiet_minutes(minutes: float, base_node: Machine) -> Machine:
    node, claim, pods = base_node
    past = tuple(replace(condition, since=NOW - timedelta(days=9)) for condition in claim.conditions)
    return node, replace(claim, conditions=past, last_pod_event_at=NOW - timedelta(minutes=minutes)), pods


def make_priced_pool(price: str) -> NodePool:
    return make_node_pool(budgets=(), meta=ObjectMeta(name="default", annotations=build_pairs({EVICTION_PRICE: price})))


def decide_deletion(
    minutes: float, price: float, *, pool: NodePool = FREE, change_pod: Callable[[Pod], Pod] = lambda pod: pod
) -> DisruptionDecision:
    """Decide about a node at $0.2/h with two small pods, which fit on the other node."""
    pods = (change_pod(make_web_pod("1", "200m")), make_web_pod("3", "200m"))
    node = with_quiet_minutes(minutes, make_node_with_pods("a", *pods))
    settings = DisruptionSettings(eviction_price_usd=price, overlap=NODE_OVERLAP_PERIOD)
    return decide_disruption(make_fleet(node, ROOMY, pools=(pool,)), settings)


@pytest.mark.parametrize(("minutes", "goes"), [(11.9, False), (12, True)])
def test_deletion_waits_until_its_savings_pay_for_its_evictions(minutes: float, *, goes: bool) -> None:
    """Two evictions at $0.02 are what the node saves in 12 minutes."""
    decision = decide_deletion(minutes, 0.02)
    assert summarize_commands(decision) == ([("SingleNode", ["a"], [])] if goes else [])
    assert get_verdict(decision, "a")[1:] == (
        (
            "Underutilized",
            "its pods fit on other nodes; saves $0.04 over an expected 12m, costs 2 evictions = $0.04",
        )
        if goes
        else (
            "PaybackPending",
            (
                "would save $0.2000/h, costs 2 evictions = $0.04: waits until 2026-11-21 12:00:06 UTC, when "
                "nothing has changed for 12m"
            ),
        )
    )


def make_job_pod(pod: Pod, hours: float) -> Pod:
    """Return *pod* as a pod of a Job that has run for *hours*."""
    job = OwnerReference(api_version="batch/v1", kind="Job", name="import", uid="job", controller=True)
    return replace(pod, meta=replace(pod.meta, owners=(job,)), started_at=NOW - timedelta(hours=hours))


@pytest.mark.parametrize(("hours", "goes"), [(4, True), (6, False)])
def test_eviction_of_a_job_costs_the_work_that_starts_again(hours: float, *, goes: bool) -> None:
    """In 24 minutes, the node saves $0.08. A pod with a sixteenth of its memory costs $0.0125 per hour."""
    decision = decide_deletion(24, 0.01, change_pod=lambda pod: make_job_pod(pod, hours))
    assert bool(decision.commands) == goes
    assert "costs 2 evictions = $0.02 and work of Jobs that starts again = $" in get_verdict(decision, "a")[2]


def test_work_of_jobs_costs_nothing_while_evictions_cost_nothing() -> None:
    decision = decide_deletion(0, 0.0, change_pod=lambda pod: make_job_pod(pod, 9))
    assert decision.commands[0].message == "its pods fit on other nodes; saves $0.2000/h"


def test_deletion_does_not_wait_while_evictions_cost_nothing() -> None:
    assert decide_deletion(0, 0.0).commands[0].message == "its pods fit on other nodes; saves $0.2000/h"


@pytest.mark.parametrize(
    ("minutes", "annotation", "price", "goes"),
    [
        (0, "0", 0.02, True),
        (12, "0.03", 0.02, False),
        (18, "0.03", 0.02, True),
        (12, "0.02", 0, True),
        (6, "0.02", 0, False),
    ],
)
def test_node_pool_annotation_overrides_the_eviction_price(
    minutes: float, annotation: str, price: float, *, goes: bool
) -> None:
    assert bool(decide_deletion(minutes, price, pool=make_priced_pool(annotation)).commands) is goes


@pytest.mark.parametrize("text", ["cheap", "-0.01", "nan", "inf"])
def test_invalid_eviction_price_stops_disruption_of_its_node_pool(text: str) -> None:
    decision = decide_deletion(1440, 0, pool=make_priced_pool(text))
    assert not decision.commands
    assert EVICTION_PRICE in get_verdict(decision, "a")[2]


def annotate_deletion_cost(pod: Pod, deletion_cost: int) -> Pod:
    return replace(pod, meta=replace(pod.meta, annotations=((POD_DELETION_COST, str(deletion_cost)),)))


@pytest.mark.parametrize(
    ("change_pod", "minutes"),
    [
        (lambda pod: annotate_deletion_cost(pod, 2**27), 18),
        (lambda pod: annotate_deletion_cost(pod, -(2**29)), 6),
        (lambda pod: replace(pod, priority=2**26), 24),
        (lambda pod: replace(pod, meta=replace(pod.meta, owners=(DAEMON_SET,))), 6),
        (lambda pod: replace(pod, meta=replace(pod.meta, deleted_at=NOW)), 6),
    ],
    ids=["expensive to delete", "cheap to delete", "high priority", "of a DaemonSet", "terminating"],
)
def test_eviction_price_is_multiplied_by_the_eviction_cost_of_the_pod(
    change_pod: Callable[[Pod], Pod], minutes: float
) -> None:
    assert not decide_deletion(minutes - 0.1, 0.02, change_pod=change_pod).commands
    assert decide_deletion(minutes, 0.02, change_pod=change_pod).commands


def test_replacement_pays_for_evictions_and_overlap_together() -> None:
    """It saves $0.1/h: 3 minutes pay for the overlap, 12 minutes for one eviction."""
    settings = DisruptionSettings(eviction_price_usd=0.02, overlap=NODE_OVERLAP_PERIOD)
    node = make_node_with_pods("a", make_web_pod("1", "1500m"))
    early, late = (decide_disruption(make_fleet(with_quiet_minutes(minutes, node)), settings) for minutes in (14.9, 15))
    assert not early.commands
    assert "costs 1 eviction = $0.02 and 3m of both nodes = $0.0050" in get_verdict(early, "a")[2]
    assert late.commands[0].message.endswith(
        "saves $0.03 over an expected 15m, costs 1 eviction = $0.02 and 3m of both nodes = $0.0050"
    )


def test_empty_nodes_are_removed_at_any_eviction_price() -> None:
    node = with_quiet_minutes(1, make_node_with_pods("a"))
    assert decide_disruption(make_fleet(node), DisruptionSettings(eviction_price_usd=999)).commands


def test_drifted_nodes_with_the_cheapest_evictions_are_replaced_first_among_equals() -> None:
    drifted = make_conditions(*STAGES, "Drifted")
    nodes = [
        make_node_with_pods("a", make_web_pod("1"), make_web_pod("2"), conditions=drifted),
        make_node_with_pods("b", make_web_pod("3"), conditions=drifted),
    ]
    for price, order in ((0.0, ["a", "b"]), (0.02, ["b", "a"])):
        decision = decide_disruption(make_fleet(*nodes), DisruptionSettings(eviction_price_usd=price))
        assert [sorted(command.list_node_names()) for command in decision.commands] == [[name] for name in order]


def test_of_two_nodes_the_one_with_fewer_evictions_is_removed() -> None:
    """Only one of the two nodes at the same price fits on the other nodes."""
    pods = [make_web_pod(f"a{number}", "150m") for number in range(6)]
    crowded_node = with_quiet_minutes(900, make_node_with_pods("a", *pods))
    sparse_node = with_quiet_minutes(900, make_node_with_pods("b", make_web_pod("b1", "900m")))
    full = make_node_with_pods("c", make_web_pod("c1", "3"), annotations={DO_NOT_DISRUPT: "true"})
    decision = decide_disruption(
        make_fleet(crowded_node, sparse_node, full), DisruptionSettings(eviction_price_usd=0.02)
    )
    assert summarize_commands(decision)[0] == ("SingleNode", ["b"], [])


def make_launched_node(minutes: float, **annotations: str) -> Machine:
    """Return a node that was created *minutes* ago, and cannot be disrupted."""
    node, claim, pods = make_node_with_pods("new", make_web_pod("9", "3"), annotations={DO_NOT_DISRUPT: "true"})
    meta = replace(claim.meta, created_at=NOW - timedelta(minutes=minutes), annotations=build_pairs(annotations))
    return node, replace(claim, meta=meta), pods


@pytest.mark.parametrize(
    ("price", "quiet_minutes", "launch_minutes", "annotations", "goes"),
    [
        (0.02, 60, 11.9, {}, False),
        (0.02, 60, 12, {}, True),
        (0.02, 60, 1, {COMMAND: "singlenode-1"}, True),
        (0.02, 24 * 60, 1, {}, True),
        (0.0, 60, 1, {}, True),
    ],
    ids=["recent launch", "earlier launch", "launch of a command", "quiet day", "no price"],
)
def test_launch_in_the_node_pool_ends_the_quiet_period_if_evictions_have_a_price(
    price: float, quiet_minutes: float, launch_minutes: float, annotations: dict[str, str], *, goes: bool
) -> None:
    node = with_quiet_minutes(
        quiet_minutes, make_node_with_pods("a", make_web_pod("1", "200m"), make_web_pod("3", "200m"))
    )
    cluster = make_fleet(node, ROOMY, make_launched_node(launch_minutes, **annotations))
    assert bool(decide_disruption(cluster, DisruptionSettings(eviction_price_usd=price)).commands) is goes


@pytest.mark.parametrize(
    ("launch_minutes", "goes"), [(11.9, False), (12, True)], ids=["recent launch", "earlier launch"]
)
def test_forecast_does_not_outlast_the_time_since_the_last_launch(launch_minutes: float, *, goes: bool) -> None:
    """Capacity that was just missing may be missing again, whatever the hourly means say."""
    hour = HourlyDemand(cpu_milli=0, memory_bytes=0, cpu_error_milli=0, memory_error_bytes=0)
    forecast = DemandForecast(pool="default", starts_at=NOW, hours=(hour,) * 24, weeks=4)
    node = with_quiet_minutes(60, make_node_with_pods("a", make_web_pod("1", "200m"), make_web_pod("3", "200m")))
    settings = DisruptionSettings(eviction_price_usd=0.02, forecasts=(forecast,))
    cluster = make_fleet(node, ROOMY, make_launched_node(launch_minutes))
    assert bool(decide_disruption(cluster, settings).commands) is goes


@pytest.mark.parametrize(
    ("price", "quiet_minutes", "receiver_minutes", "goes"),
    [(0.02, 60, 11.9, False), (0.02, 60, 12, True), (0.02, 24 * 60, 1, True), (0.0, 60, 1, True)],
    ids=["recent change", "earlier change", "quiet day", "no price"],
)
def test_change_of_a_node_that_receives_the_pods_ends_the_quiet_period_if_evictions_have_a_price(
    price: float, quiet_minutes: float, receiver_minutes: float, *, goes: bool
) -> None:
    """The space on the other node is as new as the last change of its pods."""
    node = with_quiet_minutes(
        quiet_minutes, make_node_with_pods("a", make_web_pod("1", "200m"), make_web_pod("3", "200m"))
    )
    receiver = with_quiet_minutes(receiver_minutes, ROOMY)
    unrelated = with_quiet_minutes(1, make_node_with_pods("c", make_web_pod("c", "3900m")))
    decision = decide_disruption(make_fleet(node, receiver, unrelated), DisruptionSettings(eviction_price_usd=price))
    assert summarize_commands(decision)[:1] == ([("SingleNode", ["a"], [])] if goes else [])
    if not goes:
        text = "when nothing has changed for 12m (pods of b, which receives pods, changed last)"
        assert get_verdict(decision, "a")[2].endswith(text)


def test_node_that_receives_some_of_the_pods_of_a_replaced_node_ends_its_quiet_period() -> None:
    """Of the two pods, the small one fits on the other node, and the large one needs a new node."""
    pods = (make_web_pod("1", "1500m"), make_web_pod("3", "600m"))
    settings = DisruptionSettings(eviction_price_usd=0.02, overlap=NODE_OVERLAP_PERIOD)
    other_pod = make_web_pod("2", "3300m")
    for receiver_minutes, goes in ((1, False), (60, True)):
        receiver = with_quiet_minutes(
            receiver_minutes, make_node_with_pods("b", other_pod, annotations={DO_NOT_DISRUPT: "true"})
        )
        node = with_quiet_minutes(60, make_node_with_pods("a", *pods))
        assert bool(decide_disruption(make_fleet(node, receiver), settings).commands) is goes


@pytest.mark.parametrize(
    ("price", "quiet_minutes", "goes"), [(0.001, 600, False), (0.001, 24 * 60, True), (0.0, 600, True)]
)
def test_node_is_kept_if_its_pods_fit_elsewhere_only_in_one_order(
    price: float, quiet_minutes: float, *, goes: bool
) -> None:
    """If the small pod is bound first, it takes the only place of the large pod."""
    node = with_quiet_minutes(
        quiet_minutes, make_node_with_pods("a", make_web_pod("large", "2"), make_web_pod("small", "900m"))
    )
    gaps = [
        make_node_with_pods("b", make_web_pod("b1", "1800m"), annotations={DO_NOT_DISRUPT: "true"}),
        make_node_with_pods("c", make_web_pod("c1", "3"), annotations={DO_NOT_DISRUPT: "true"}),
    ]
    decision = decide_disruption(
        make_fleet(node, *gaps, types=(TYPES[1],)), DisruptionSettings(eviction_price_usd=price)
    )
    assert summarize_commands(decision) == ([("SingleNode", ["a"], [])] if goes else [])
    if not goes:
        assert get_verdict(decision, "a")[1] == "PlacementUncertain"
