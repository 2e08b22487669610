"""A disruption pays once its savings in the quiet period cover the overlap of both nodes."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.kubernetes.host_ports import HostPort
from tests.support.catalogues import NOW, make_instance_type
from tests.support.disruption_fleet import (
    TYPES,
    Machine,
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

PAYBACK_SETTINGS = DisruptionSettings(overlap=NODE_OVERLAP_PERIOD)


def with_quiet_minutes(minutes: float, base_node: Machine) -> Machine:
    """Set the last pod event to *minutes* ago, and the initialization to long before."""
    node, claim, pods = base_node
    past = tuple(replace(condition, since=NOW - timedelta(days=2)) for condition in claim.conditions)
    return node, replace(claim, conditions=past, last_pod_event_at=NOW - timedelta(minutes=minutes)), pods


def make_half_used_node(name: str = "a") -> Machine:
    """Make a 4-CPU node at $0.2/h that a 2-CPU node at $0.1/h could replace."""
    return make_node_with_pods(name, make_web_pod(f"{name}-1", "1500m"))


@pytest.mark.parametrize(("minutes", "goes"), [(2.9, False), (3, True), (200, True)])
def test_node_is_replaced_after_its_payback_period_without_pod_events(minutes: float, *, goes: bool) -> None:
    decision = decide_disruption(make_fleet(with_quiet_minutes(minutes, make_half_used_node())), PAYBACK_SETTINGS)
    assert summarize_commands(decision) == ([("SingleNode", ["a"], ["m.02"])] if goes else [])
    if not goes:
        assert get_verdict(decision, "a")[1:] == (
            "PaybackPending",
            (
                "would save $0.1000/h, costs 3m of both nodes = $0.0050: waits until 2026-11-21 12:00:06 UTC, when "
                "nothing has changed for 3m"
            ),
        )


def test_payback_period_is_shorter_for_larger_savings() -> None:
    assert summarize_commands(
        decide_disruption(
            make_fleet(with_quiet_minutes(1, make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=8))),
            PAYBACK_SETTINGS,
        )
    )
    assert not summarize_commands(
        decide_disruption(
            make_fleet(with_quiet_minutes(0.9, make_node_with_pods("a", make_web_pod("1", "1500m"), cpu=8))),
            PAYBACK_SETTINGS,
        )
    )


def test_payback_period_counts_from_the_last_pod_event_of_all_replaced_nodes() -> None:
    """Two nodes whose pods cannot share a node: each could be replaced with a smaller one."""
    port = (HostPort(port=80),)
    quiet_node = with_quiet_minutes(600, make_node_with_pods("a", make_web_pod("a-1", "1500m", host_ports=port)))
    fresh = with_quiet_minutes(1, make_node_with_pods("b", make_web_pod("b-1", "1500m", host_ports=port)))
    assert {
        name for _, names, _ in summarize_commands(decide_disruption(make_fleet(quiet_node, fresh))) for name in names
    } == {"a", "b"}
    assert summarize_commands(decide_disruption(make_fleet(quiet_node, fresh), PAYBACK_SETTINGS)) == [
        ("SingleNode", ["a"], ["m.02"])
    ]


def test_deletion_without_replacement_needs_no_payback_period() -> None:
    roomy = make_node_with_pods("b", make_web_pod("2", "1"), annotations={DO_NOT_DISRUPT: "true"})
    assert summarize_commands(
        decide_disruption(make_fleet(with_quiet_minutes(0, make_half_used_node()), roomy), PAYBACK_SETTINGS)
    ) == [("SingleNode", ["a"], [])]


def test_recently_initialized_node_has_not_reached_its_payback_period() -> None:
    node, claim, pods = make_half_used_node()
    assert not summarize_commands(decide_disruption(make_fleet((node, claim, pods)), PAYBACK_SETTINGS))
    assert summarize_commands(decide_disruption(make_fleet((node, claim, pods))))


@pytest.mark.parametrize(("minutes", "saves"), [(1, 0.0), (2.9, 9 * 0.2 - 5 * 0.15)])
def test_multi_node_replacement_waits_for_its_payback_period(minutes: float, saves: float) -> None:
    """Five nodes replace nine at five twelfths of the price."""
    kind = make_instance_type("c.05", 5, price=0.15)
    nodes = (
        with_quiet_minutes(minutes, make_node_with_pods(f"n{number}", make_web_pod(str(number), "2400m")))
        for number in range(9)
    )
    decision = decide_disruption(make_fleet(*nodes, types=(*TYPES, kind)), PAYBACK_SETTINGS)
    assert sum(command.savings_usd_per_hour for command in decision.commands) == pytest.approx(saves)
