"""NodeClaims of a controller that lost its lease: ignored until they are decided again."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.provisioning.superseded_claims import (
    delete_superseded_claims,
    find_superseded_claims,
    without_claims,
)
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import COMMAND, PLANNED_UNDER
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import CreateNodeClaim, DeleteObject
from shared.model.ec2.fleet import FleetRequest
from shared.model.karpenter.node_claim import NodeClaim
from tests.support.lifecycle_cases import CLASS, NOW


def make_claim(under: str = "7", name: str = "late", **fields: Any) -> NodeClaim:
    annotations = ((PLANNED_UNDER, under),) if under else ()
    plain = NodeClaim(meta=ObjectMeta(name=name, uid=f"uid-{name}", annotations=annotations), node_class=CLASS)
    return replace(plain, **fields)


def build_cluster(*claims: NodeClaim, groups: tuple[LaunchGroup, ...] = ()) -> ClusterSnapshot:
    return ClusterSnapshot(taken_at=NOW, node_claims=claims, launch_groups=groups)


def with_command(claim: NodeClaim) -> NodeClaim:
    return replace(claim, meta=replace(claim.meta, annotations=(*claim.meta.annotations, (COMMAND, "c-1"))))


def with_deletion(claim: NodeClaim) -> NodeClaim:
    return replace(claim, meta=replace(claim.meta, deleted_at=NOW))


@pytest.mark.parametrize(
    ("claim", "is_late"),
    [
        (make_claim(), True),
        (make_claim("8"), False),
        (make_claim(""), False),
        (make_claim(provider_id="aws:///us-east-1a/i-1"), False),
        (with_command(make_claim()), False),
        (with_deletion(make_claim()), False),
    ],
)
def test_node_claim_planned_under_a_lost_lease_is_ignored_until_it_has_an_instance(
    claim: NodeClaim, *, is_late: bool
) -> None:
    assert find_superseded_claims(build_cluster(claim), (7,)) == ((claim,) if is_late else ())
    assert find_superseded_claims(build_cluster(claim), ()) == ()


@pytest.mark.parametrize(("uid", "is_late"), [("uid-late", False), ("uid-before", True)])
def test_node_claim_of_a_recorded_launch_is_not_superseded(uid: str, *, is_late: bool) -> None:
    request = FleetRequest(
        client_token=uid,
        capacity=1,
        capacity_type="spot",
        allocation_strategy="price-capacity-optimized",
        configs=(),
    )
    group = LaunchGroup(name="g", claims=("late",), uids=(uid,), request=request, templates=(), created_at=NOW)
    assert bool(find_superseded_claims(build_cluster(make_claim(), groups=(group,)), (7,))) is is_late


def test_superseded_node_claims_are_removed_from_the_snapshot() -> None:
    late, newer_claim = make_claim(), make_claim("8", name="other")
    snapshot = build_cluster(late, newer_claim)
    assert without_claims(snapshot, (late,)).node_claims == (newer_claim,)
    assert without_claims(snapshot, ()) is snapshot


def test_superseded_node_claims_that_are_not_planned_again_are_deleted_by_uid() -> None:
    late, needed = make_claim(), make_claim(name="needed")
    [deletion] = delete_superseded_claims((late, needed), (CreateNodeClaim(claim=needed),))
    assert isinstance(deletion, DeleteObject)
    assert (deletion.kind, deletion.name, deletion.uid) == ("NodeClaim", "late", "uid-late")
