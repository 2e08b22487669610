"""A canary that goes on, and one that is taken back: two versions at work on one cluster lose and double nothing."""

from typing import Final

import pytest

from sim.cloud.chance import share
from tests.golden.state import ROWS
from tests.scenario.versions import Versions, extended, golden, narrowed
from tests.scenario.worlds import CLAIMS, deployment, node_class, notice, pool

WARNING: Final = "EC2 Spot Instance Interruption Warning"
SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge")
CANARY: Final = ((0.0, 3), (0.5, 12), (1.0, 3), (0.5, 9), (0.0, 4))
"""How likely the newer one is called, and for how many minutes: a deployment, and one that takes it back."""
MOST: Final = 9
"""Replicas."""


def churned(seed: int) -> Versions:
    """Answer a world in which something has happened twice a minute all the time."""
    spot = pool(capacity=("spot",), types=SIZES, disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"})
    world = Versions(node_class(), spot, deployment(3), deployment(2, "api", cpu="1500m"), seed=seed)
    for newer, minutes in CANARY:
        world.newer = newer
        for half in range(2 * minutes):
            happen(world, share(seed, "what", newer, half), share(seed, "which", newer, half))
            world.seconds(30)
    return world


def happen(world: Versions, what: float, which: float) -> None:
    if what < 0.4:
        world.scale(int(which * MOST), "web" if what < 0.25 else "api")
    elif what < 0.6 and world.living():
        machine = world.living()[int(which * len(world.living()))]
        world.interrupt(notice(WARNING, machine.instance_id))
    elif what < 0.7 and world.claims():
        world.live.api.delete(CLAIMS, world.claims()[int(which * len(world.claims()))]["metadata"]["name"])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_launched_twice_or_left_over_while_two_versions_take_turns(seed: int) -> None:
    world = churned(seed)
    assert min(world.called["older"], world.called["newer"]) > 60
    world.scale(4)
    world.scale(2, "api")
    world.settled(6, within=600)
    assert world.made
    assert world.doubled() == []
    world.scale(0)
    world.scale(0, "api")
    world.until(lambda: not (world.claims() or world.nodes() or world.living()), within=900)
    assert [row.name for row in world.table.rows("launch-group") if '"result":null' in row.body] == []
    assert [one for one in world.errors() if "lease" not in one] == []


@pytest.mark.parametrize("kind", ROWS)
def test_the_older_version_knows_all_that_it_left_and_nothing_that_is_new(kind: str) -> None:
    left = golden(kind)
    assert narrowed(left, left) == left
    assert narrowed(extended(left), left) == left
