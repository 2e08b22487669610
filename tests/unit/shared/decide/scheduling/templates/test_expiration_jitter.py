"""Expiration of nodes, with jitter."""

from datetime import timedelta

import pytest

from shared.decide.scheduling.templates.expiration_jitter import compute_expire_after
from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.core.labels import EXPIRY_JITTER
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import DeleteObject
from shared.model.decisions.placement import SchedulingOptions
from tests.support.catalogues import make_cluster_snapshot, make_node_pool, make_pod
from tests.support.lifecycle_cases import NOW, make_claim, make_cluster, make_node
from tests.support.snapshot_decisions import decide_lifecycle, solve

EXPIRE_AFTER = timedelta(days=1)
NAMES = [f"default-{number}" for number in range(200)]


def make_pool_metadata(percent: str) -> ObjectMeta:
    return ObjectMeta(name="default", annotations=((EXPIRY_JITTER, percent),))


def test_node_expires_after_the_expire_after_of_its_node_pool() -> None:
    assert {compute_expire_after(make_node_pool(expire_after=EXPIRE_AFTER), name) for name in NAMES} == {EXPIRE_AFTER}
    assert compute_expire_after(make_node_pool(expire_after=None, meta=make_pool_metadata("10")), "a") is None


def test_expiry_jitter_spreads_the_expiration_of_nodes_created_together() -> None:
    node_pool = make_node_pool(expire_after=EXPIRE_AFTER, meta=make_pool_metadata("10"))
    ages = [age for name in NAMES if (age := compute_expire_after(node_pool, name)) is not None]
    assert len(set(ages)) > 190
    assert EXPIRE_AFTER * 0.9 <= min(ages) < EXPIRE_AFTER * 0.905
    assert EXPIRE_AFTER * 0.995 < max(ages) <= EXPIRE_AFTER
    assert ages == [compute_expire_after(node_pool, name) for name in NAMES]


@pytest.mark.parametrize("text", ["much", "51", "-1", "0"])
def test_invalid_expiry_jitter_is_ignored(text: str) -> None:
    assert (
        compute_expire_after(make_node_pool(expire_after=EXPIRE_AFTER, meta=make_pool_metadata(text)), "a")
        == EXPIRE_AFTER
    )


@pytest.mark.parametrize(("expires", "is_deleted"), [(None, False), (timedelta(days=3000), True)])
def test_node_claim_without_expire_after_never_expires(expires: timedelta | None, *, is_deleted: bool) -> None:
    old = make_claim(created=NOW - timedelta(days=3650), expire_after=expires)
    ended = [
        action
        for action in decide_lifecycle(make_cluster(node_claims=(old,), nodes=(make_node(),)))
        if isinstance(action, DeleteObject)
    ]
    assert [deletion.message for deletion in ended] == (["expired"] if is_deleted else [])


def test_node_claim_gets_expire_after_with_jitter() -> None:
    snapshot = make_cluster_snapshot(
        make_pod("x"), node_pools=(make_node_pool(expire_after=EXPIRE_AFTER, meta=make_pool_metadata("50")),)
    )
    [node_claim] = build_node_claims(solve(snapshot, options=SchedulingOptions()), snapshot)
    assert node_claim.expire_after == compute_expire_after(snapshot.node_pools[0], node_claim.name) != EXPIRE_AFTER
