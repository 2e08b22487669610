"""Limits of NodePools while nodes are exchanged."""

import pytest

from shared.disruption.terms import Terms
from shared.model.resources import NODES, Resources, parse_resources
from tests.unit.catalogues import pool
from tests.unit.disruption_fleet import fleet, gone, machine, swept, verdict, web


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"cpu": "8"}, [("SingleNode", ["big"], ["m.02", "m.04"])]),
        ({"cpu": "3"}, [("SingleNode", ["big"], ["m.02"])]),
        ({"cpu": "1"}, []),
        ({"nodes": "1"}, [("SingleNode", ["big"], ["m.02", "m.04"])]),
    ],
)
def test_on_paper_nodes_that_go_give_back_what_they_take_of_limits(
    limits: dict[str, str], expected: list[tuple[str, list[str], list[str]]]
) -> None:
    cluster = fleet(machine("big", web("a"), cpu=8), pools=(pool(budgets=(), limits=parse_resources(limits)),))
    assert gone(swept(cluster, Terms(frees_limits=True))) == expected


@pytest.mark.parametrize(("cpu", "commands"), [("8", 0), ("9", 0), ("10", 1)])
def test_where_replacements_come_first_limits_hold_both(cpu: str, commands: int) -> None:
    limited = pool(budgets=(), limits=parse_resources({"cpu": cpu}))
    assert len(gone(swept(fleet(machine("big", web("a"), cpu=8), pools=(limited,))))) == commands


def test_what_did_not_go_gives_nothing_back() -> None:
    """Each of them is tried and put back before the last is; what it takes is not free for that one."""
    full = [machine(f"n{number}", web(f"a{number}", "3500m")) for number in range(3)]
    limited = pool(budgets=(), limits=parse_resources({"cpu": "4"}))
    assert gone(swept(fleet(*full, pools=(limited,)), Terms(frees_limits=True))) == []


@pytest.mark.parametrize("left", [Resources(amounts=((NODES, 0),)), parse_resources({"cpu": "1"})])
def test_where_no_node_may_come_others_go_all_the_same(left: Resources) -> None:
    """Nothing is on offer that advice could be reckoned with."""
    some = (machine("n1", web("a", "3500m")), machine("n2", web("b", "3500m")), machine("n3", cpu=8))
    found = swept(fleet(*some, pools=(pool(budgets=(), limits=left),)), Terms(frees_limits=True))
    assert gone(found) == [("Emptiness", ["n3"], [])]
    assert verdict(found, "n1")[1] == "NoRoom"
