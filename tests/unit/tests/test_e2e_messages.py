"""Tests of how the end-to-end test's narration reads the journal."""

from datetime import UTC, datetime, timedelta

import pytest

from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.e2e.cpu_meter import Meter
from tests.e2e.narrator import Narrator, Planned, Witness

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
ONE_SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("registered", "expected_messages"),
    [
        pytest.param({"first": NOON + 9 * ONE_SECOND}, ["shop/cart: first, then second"], id="in flight"),
        pytest.param({"first": NOON + 4 * ONE_SECOND}, [], id="another pod took the capacity"),
        pytest.param({}, [], id="node never existed"),
    ],
)
def test_pod_planned_twice_while_its_node_is_in_flight_is_reported(
    registered: dict[str, datetime], expected_messages: list[str]
) -> None:
    witness = Witness(Narrator(Meter(lambda: ())), Cloud(Clock(NOON)))
    witness.planned += [
        Planned(claim="second", pods=("shop/cart", "shop/till"), written_at=NOON + 5 * ONE_SECOND),
        Planned(claim="first", pods=("shop/cart",), written_at=NOON),
    ]
    witness.registered |= registered
    assert witness.list_pods_planned_twice() == expected_messages
