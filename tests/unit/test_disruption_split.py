"""One node for several: what holds the others back gets a node of its own."""

from shared.model.labels import CAPACITY_TYPE
from tests.unit.catalogues import instance_type, pool
from tests.unit.disruption_fleet import fleet, gone, machine, swept, web

BOTH = ("spot", "on-demand")
TYPES = (instance_type("m.02", 2, capacity_types=BOTH), instance_type("m.16", 16, capacity_types=BOTH, price=0.5))
"""The large one costs least for what it holds."""


def test_a_small_pod_that_must_not_be_on_spot_does_not_keep_large_ones_from_it() -> None:
    large = [web(name, "4500m") for name in ("a", "b", "c")]
    small = web("small", "100m", node_selector=((CAPACITY_TYPE, "on-demand"),))
    some = (machine("n", *large, small, cpu=16),)
    found = swept(fleet(*some, pools=(pool(budgets=()),), types=TYPES))
    ((_, nodes, kinds),) = gone(found)
    assert (nodes, sorted(kinds)) == (["n"], ["m.02", "m.16"])
