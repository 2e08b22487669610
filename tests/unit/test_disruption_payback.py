"""A node is exchanged once its quiet has earned what it costs that both are paid for; deletions wait for nothing."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.disruption.payback import LONG, OVERLAP, earned_after
from shared.disruption.terms import Terms
from shared.model.labels import DO_NOT_DISRUPT
from shared.model.pods import HostPort
from tests.unit.catalogues import NOW, instance_type
from tests.unit.disruption_fleet import TYPES, Machine, fleet, gone, machine, swept, verdict, web

PATIENT = Terms(overlap=OVERLAP)


def quiet_for(minutes: float, some: Machine) -> Machine:
    """Let the last pod have come to it so long ago, its initialization be long past."""
    there, claim, pods = some
    past = tuple(replace(one, since=NOW - timedelta(days=2)) for one in claim.conditions)
    return there, replace(claim, conditions=past, last_pod_event_at=NOW - timedelta(minutes=minutes)), pods


def half_used(name: str = "a") -> Machine:
    """A node of 4 cpu at $0.2 an hour in whose place one of 2 cpu at $0.1 would do."""
    return machine(name, web(f"{name}-1", "1500m"))


@pytest.mark.parametrize(("minutes", "goes"), [(2.9, False), (3, True), (200, True)])
def test_what_saves_half_is_exchanged_once_it_was_quiet_as_long_as_both_are_paid_for(
    minutes: float, *, goes: bool
) -> None:
    found = swept(fleet(quiet_for(minutes, half_used())), PATIENT)
    assert gone(found) == ([("SingleNode", ["a"], ["m.02"])] if goes else [])
    if not goes:
        assert verdict(found, "a")[1:] == (
            "NotEarned",
            "would save $0.1000 per hour, which pays after 3 min without change; now 3 min",
        )


def test_what_saves_three_quarters_is_exchanged_sooner() -> None:
    assert gone(swept(fleet(quiet_for(1, machine("a", web("1", "1500m"), cpu=8))), PATIENT))
    assert not gone(swept(fleet(quiet_for(0.9, machine("a", web("1", "1500m"), cpu=8))), PATIENT))


def test_of_several_nodes_the_one_that_changed_last_counts() -> None:
    """Two that cannot share a node: each could be exchanged for a smaller one."""
    port = (HostPort(port=80),)
    still = quiet_for(600, machine("a", web("a-1", "1500m", host_ports=port)))
    fresh = quiet_for(1, machine("b", web("b-1", "1500m", host_ports=port)))
    assert {name for _, names, _ in gone(swept(fleet(still, fresh))) for name in names} == {"a", "b"}
    assert gone(swept(fleet(still, fresh), PATIENT)) == [("SingleNode", ["a"], ["m.02"])]


def test_a_deletion_waits_for_nothing() -> None:
    roomy = machine("b", web("2", "1"), annotations={DO_NOT_DISRUPT: "true"})
    assert gone(swept(fleet(quiet_for(0, half_used()), roomy), PATIENT)) == [("SingleNode", ["a"], [])]


def test_a_node_that_has_just_come_was_not_quiet_before() -> None:
    there, claim, pods = half_used()
    assert not gone(swept(fleet((there, claim, pods)), PATIENT))
    assert gone(swept(fleet((there, claim, pods))))


@pytest.mark.parametrize(("minutes", "saves"), [(1, 0.0), (2.9, 9 * 0.2 - 5 * 0.15)])
def test_several_are_repacked_once_that_has_earned_itself(minutes: float, saves: float) -> None:
    """Five for nine, for five twelfths of the price."""
    kind = instance_type("c.05", 5, price=0.15)
    some = (quiet_for(minutes, machine(f"n{number}", web(str(number), "2400m"))) for number in range(9))
    found = swept(fleet(*some, types=(*TYPES, kind)), PATIENT)
    assert sum(one.savings_usd_per_hour for one in found.commands) == pytest.approx(saves)


@given(
    saved=st.floats(1e-9, 100),
    new=st.floats(1e-9, 100),
    overlap=st.timedeltas(timedelta(seconds=1), timedelta(hours=1)),
)
def test_an_exchange_costs_no_more_than_was_wasted_while_nothing_changed(
    saved: float, new: float, overlap: timedelta
) -> None:
    quiet = earned_after(saved, new, overlap)
    assert quiet <= LONG
    costs, wasted = new * overlap.total_seconds(), saved * quiet.total_seconds()
    assert quiet == LONG or costs <= wasted + (saved + new) * 1e-5
