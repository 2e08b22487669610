"""Graceful expiration: when an expired NodeClaim is deleted, and when its node counts as drifted."""

from datetime import timedelta

import pytest

from shared.model.core.labels import GRACEFUL_EXPIRATION
from shared.model.core.metadata import Problem
from shared.model.decisions.action import DeleteObject, FollowUp
from tests.support.lifecycle_cases import (
    BIRTH,
    NOW,
    POOL,
    filter_actions,
    make_claim,
    make_cluster,
    make_node,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle


def make_graceful_pool(period: str) -> object:
    return replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=((GRACEFUL_EXPIRATION, period),)))


@pytest.mark.parametrize(
    ("period", "expired_seconds", "is_deleted"),
    [
        ("1h", 0, False),
        ("1h", 3599, False),
        ("1h", 3600, True),
        ("0s", 0, True),
        ("soon", 7200, False),
        ("-1h", 7200, False),
    ],
)
def test_expired_node_claim_is_deleted_at_the_end_of_its_graceful_expiration(
    period: str, expired_seconds: int, *, is_deleted: bool
) -> None:
    claim = make_claim(expire_after=NOW - BIRTH - timedelta(seconds=expired_seconds))
    cluster = make_cluster(node_claims=(claim,), nodes=(make_node(),), node_pools=(make_graceful_pool(period),))
    deletions = filter_actions(DeleteObject, decide_lifecycle(cluster))
    assert [deletion.message for deletion in deletions] == (["expired"] if is_deleted else [])


def test_lifecycle_is_requeued_at_the_end_of_the_graceful_expiration() -> None:
    claim = make_claim(expire_after=NOW - BIRTH - timedelta(minutes=55))
    cluster = make_cluster(node_claims=(claim,), nodes=(make_node(),), node_pools=(make_graceful_pool("1h"),))
    follow_ups = filter_actions(FollowUp, decide_lifecycle(cluster))
    assert [follow_up.after for follow_up in follow_ups] == [timedelta(minutes=5)]


def test_expired_node_claim_of_an_unreadable_node_pool_is_kept_and_of_a_missing_one_deleted() -> None:
    claim = make_claim(expire_after=NOW - BIRTH - timedelta(hours=1))
    cluster = make_cluster(node_claims=(claim,), nodes=(make_node(),), node_pools=())
    problem = Problem(kind="NodePool", name="default", message="spec.template: missing")
    unreadable = replace_fields(cluster, problems=(problem,))
    assert [deletion.message for deletion in filter_actions(DeleteObject, decide_lifecycle(cluster))] == ["expired"]
    assert filter_actions(DeleteObject, decide_lifecycle(unreadable)) == []
