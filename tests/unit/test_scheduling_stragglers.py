"""Claims of a planner that was overtaken: counted on again only once they are decided on again."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, DeleteObject
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest
from shared.model.labels import COMMAND, PLANNED_UNDER
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta
from shared.scheduling.stragglers import given_up, stragglers, without
from tests.unit.lifecycle_cases import CLASS, NOW


def made(under: str = "7", name: str = "late", **fields: Any) -> NodeClaim:
    annotations = ((PLANNED_UNDER, under),) if under else ()
    plain = NodeClaim(meta=Meta(name=name, uid=f"uid-{name}", annotations=annotations), node_class=CLASS)
    return replace(plain, **fields)


def cluster(*claims: NodeClaim, groups: tuple[LaunchGroup, ...] = ()) -> Cluster:
    return Cluster(taken_at=NOW, node_claims=claims, launch_groups=groups)


def marked(claim: NodeClaim) -> NodeClaim:
    return replace(claim, meta=replace(claim.meta, annotations=(*claim.meta.annotations, (COMMAND, "c-1"))))


def going(claim: NodeClaim) -> NodeClaim:
    return replace(claim, meta=replace(claim.meta, deleted_at=NOW))


@pytest.mark.parametrize(
    ("claim", "is_late"),
    [
        (made(), True),
        (made("8"), False),
        (made(""), False),
        (made(provider_id="aws:///us-east-1a/i-1"), False),
        (marked(made()), False),
        (going(made()), False),
    ],
)
def test_a_claim_that_was_decided_under_a_lost_lease_is_not_counted_on_until_it_has_an_instance(
    claim: NodeClaim, *, is_late: bool
) -> None:
    assert stragglers(cluster(claim), (7,)) == ((claim,) if is_late else ())
    assert stragglers(cluster(claim), ()) == ()


@pytest.mark.parametrize(("uid", "is_late"), [("uid-late", False), ("uid-before", True)])
def test_what_a_launch_was_written_down_for_is_counted_on(uid: str, *, is_late: bool) -> None:
    request = FleetRequest(
        client_token=uid,
        capacity=1,
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(),
    )
    group = LaunchGroup(name="g", claims=("late",), uids=(uid,), request=request, templates=(), created_at=NOW)
    assert bool(stragglers(cluster(made(), groups=(group,)), (7,))) is is_late


def test_it_is_planned_as_if_they_were_not_there() -> None:
    late, other = made(), made("8", name="other")
    seen = cluster(late, other)
    assert without(seen, (late,)).node_claims == (other,)
    assert without(seen, ()) is seen


def test_those_that_are_not_decided_on_again_go_as_the_very_ones_that_were_seen() -> None:
    late, needed = made(), made(name="needed")
    [gone] = given_up((late, needed), (CreateNodeClaim(claim=needed),))
    assert isinstance(gone, DeleteObject)
    assert (gone.kind, gone.name, gone.uid) == ("NodeClaim", "late", "uid-late")
