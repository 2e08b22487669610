"""A canary that goes on, and one that is taken back: two versions at work on one cluster lose and double nothing."""

from typing import Final

import pytest

from sim.cloud.seeded_random import draw_fraction
from tests.golden.state import ROW_TYPES
from tests.scenario.versions import Versions, extend_document, narrow_document, read_golden_state
from tests.scenario.worlds import CLAIMS, make_deployment, make_ec2_message, make_node_class, make_node_pool

WARNING: Final = "EC2 Spot Instance Interruption Warning"
SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge")
CANARY: Final = ((0.0, 3), (0.5, 12), (1.0, 3), (0.5, 9), (0.0, 4))
"""How likely the newer one is called, and for how many minutes: a deployment, and one that takes it back."""
MAX_REPLICAS: Final = 9
"""Replicas."""


def build_churned_world(seed: int) -> Versions:
    """Build a world in which something happens twice a minute."""
    spot = make_node_pool(
        capacity=("spot",), types=SIZES, disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    )
    world = Versions(make_node_class(), spot, make_deployment(3), make_deployment(2, "api", cpu="1500m"), seed=seed)
    for newer, minutes in CANARY:
        world.newer = newer
        for half in range(2 * minutes):
            apply_random_change(
                world, draw_fraction(seed, "what", newer, half), draw_fraction(seed, "which", newer, half)
            )
            world.advance_seconds(30)
    return world


def apply_random_change(world: Versions, kind_draw: float, object_draw: float) -> None:
    if kind_draw < 0.4:
        world.scale(int(object_draw * MAX_REPLICAS), "web" if kind_draw < 0.25 else "api")
    elif kind_draw < 0.6 and world.list_active_instances():
        machine = world.list_active_instances()[int(object_draw * len(world.list_active_instances()))]
        world.interrupt(make_ec2_message(WARNING, machine.instance_id))
    elif kind_draw < 0.7 and world.list_claims():
        world.cluster.api.delete(
            CLAIMS, world.list_claims()[int(object_draw * len(world.list_claims()))]["metadata"]["name"]
        )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alternating_versions_launch_no_duplicates_and_leave_no_leftovers(seed: int) -> None:
    world = build_churned_world(seed)
    assert min(world.invocations["older"], world.invocations["newer"]) > 60
    world.scale(4)
    world.scale(2, "api")
    world.wait_until_settled(6, timeout=600)
    assert world.claim_counts
    assert world.find_doubled_claims() == []
    world.scale(0)
    world.scale(0, "api")
    world.wait_until(
        lambda: not (world.list_claims() or world.list_nodes() or world.list_active_instances()), timeout=900
    )
    assert [row.name for row in world.table.list_rows("launch-group") if '"result":null' in row.body] == []
    assert [error for error in world.list_errors() if "lease" not in error] == []


@pytest.mark.parametrize("kind", ROW_TYPES)
def test_older_version_reads_its_own_rows_and_ignores_new_fields(kind: str) -> None:
    old_row = read_golden_state(kind)
    assert narrow_document(old_row, old_row) == old_row
    assert narrow_document(extend_document(old_row), old_row) == old_row
