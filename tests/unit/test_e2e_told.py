"""What the deployment's story makes of the journal."""

from datetime import UTC, datetime, timedelta

import pytest

from sim.clock import Clock
from sim.cloud.cloud import Cloud
from tests.e2e.meter import Meter
from tests.e2e.told import Narrator, Planned, Witness

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("registered", "found"),
    [
        pytest.param({"first": NOON + 9 * SECOND}, ["shop/cart: first, then second"], id="on its way"),
        pytest.param({"first": NOON + 4 * SECOND}, [], id="the place went to another pod"),
        pytest.param({}, [], id="there never was a node"),
    ],
)
def test_a_pod_is_not_planned_for_again_while_its_node_is_on_its_way(
    registered: dict[str, datetime], found: list[str]
) -> None:
    witness = Witness(Narrator(Meter(lambda: ())), Cloud(Clock(NOON)))
    witness.planned += [
        Planned(claim="second", pods=("shop/cart", "shop/till"), written=NOON + 5 * SECOND),
        Planned(claim="first", pods=("shop/cart",), written=NOON),
    ]
    witness.registered |= registered
    assert witness.planned_while_covered() == found
