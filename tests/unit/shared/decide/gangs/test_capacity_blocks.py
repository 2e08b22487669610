"""Gangs that wait for the start of a Capacity Block."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.gangs.capacity_blocks import explain_block_wait
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_ID, ZONE
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements, build_requirements
from shared.model.ec2.account import CapacityReservation
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gangs import find_gangs
from tests.support.catalogues import (
    NOW,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node_class,
    make_node_pool,
)
from tests.unit.shared.decide.provisioning.test_gang_planning import find_message, make_gang

TYPES = (make_instance_type("m.04", 4),)
RESERVED_ONLY = build_label_requirements({CAPACITY_TYPE: "reserved"})
TEXT = "waits for Capacity Block cr-1 (8 m.04 instances in a), which starts at 2026-11-21T15:00:00Z"


def make_block(name: str = "cr-1", **fields: Any) -> CapacityReservation:
    """Return a Capacity Block that starts in three hours."""
    defaults: dict[str, Any] = {
        "instance_type": "m.04",
        "zone": "a",
        "reservation_type": "capacity-block",
        "total_count": 8,
        "starts_at": NOW + timedelta(hours=3),
        "ends_at": NOW + timedelta(hours=27),
    }
    return CapacityReservation(reservation_id=name, **(defaults | fields))


def require(pods: list[Pod], **values: str) -> list[Pod]:
    terms = (build_label_requirements({key.replace("_", "/"): value for key, value in values.items()}),)
    return [replace(pod, spec=replace(pod.spec, required_terms=terms)) for pod in pods]


def make_cluster(
    *blocks: CapacityReservation,
    active: tuple[CapacityReservation, ...] = (),
    pods: list[Pod] | None = None,
    pool: Requirements = RESERVED_ONLY,
) -> ClusterSnapshot:
    cluster = make_cluster_snapshot(
        *(pods or make_gang("train", 2)),
        types=TYPES,
        node_pools=(make_node_pool(requirements=pool),),
        node_classes=(replace(make_node_class(), resolved_capacity_reservations=active),),
        has_gangs=True,
    )
    assert cluster.catalog is not None
    return replace(cluster, catalog=replace(cluster.catalog, scheduled_blocks=(("default", blocks),) if blocks else ()))


def explain(cluster: ClusterSnapshot) -> str:
    [gang] = find_gangs(cluster).values()
    return explain_block_wait(gang, cluster)


def test_gang_waits_for_its_block_and_its_event_says_until_when() -> None:
    placement = plan_pods(ClusterState(make_cluster(make_block()))).placement
    assert locate_pods(placement) == {"train-0": "GangIncomplete", "train-1": "GangIncomplete"}
    assert find_message(placement, "train-0") == f"gang shop/train needs nodes for all its 2 pods or none: {TEXT}"


def test_gang_waits_for_the_block_that_starts_first() -> None:
    later = make_block("cr-0", starts_at=NOW + timedelta(hours=9))
    assert explain(make_cluster(later, make_block())) == TEXT


def test_pods_that_require_reserved_capacity_wait_in_a_pool_of_all_capacity_types() -> None:
    pods = [replace(pod, spec=replace(pod.spec, required_terms=(RESERVED_ONLY,))) for pod in make_gang("train", 2)]
    assert explain(make_cluster(make_block(), pods=pods, pool=Requirements())) == TEXT


@pytest.mark.parametrize(("key", "value"), [(INSTANCE_TYPE, "p5.48xlarge"), (ZONE, "b"), (RESERVATION_ID, "cr-2")])
def test_block_that_the_pods_cannot_use_is_not_waited_for(key: str, value: str) -> None:
    term = build_label_requirements({key: value})
    pods = [replace(pod, spec=replace(pod.spec, required_terms=(term,))) for pod in make_gang("train", 2)]
    assert explain(make_cluster(make_block(), pods=pods)) == ""


@pytest.mark.parametrize("capacity_types", [("on-demand", "reserved"), ("spot",)])
def test_gang_that_can_run_without_reserved_capacity_does_not_wait(capacity_types: tuple[str, ...]) -> None:
    pool = build_requirements([Requirement(key=CAPACITY_TYPE, values=frozenset(capacity_types))])
    assert explain(make_cluster(make_block(), pool=pool)) == ""


def test_gang_does_not_wait_while_another_reservation_is_active() -> None:
    active = make_block("cr-0", starts_at=None)
    assert explain(make_cluster(make_block(), active=(active,))) == ""


def test_gang_waits_for_the_next_block_when_the_active_one_is_about_to_end() -> None:
    active = make_block("cr-0", starts_at=None, ends_at=NOW + timedelta(minutes=39))
    assert explain(make_cluster(make_block(), active=(active,))) == TEXT


def test_gang_waits_for_nothing_without_a_scheduled_block_or_a_usable_node_pool() -> None:
    assert explain(make_cluster()) == ""
    term = build_label_requirements({"karpenter.sh/nodepool": "other"})
    pods = [replace(pod, spec=replace(pod.spec, required_terms=(term,))) for pod in make_gang("train", 2)]
    assert explain(make_cluster(make_block(), pods=pods)) == ""
