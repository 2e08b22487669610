"""Graceful expiration: when an expired NodeClaim is deleted, and when its node counts as drifted."""

from datetime import timedelta

import pytest

from shared.model.core.labels import GRACEFUL_EXPIRATION
from shared.model.core.metadata import Pairs, Problem
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


@pytest.mark.parametrize(
    ("annotations", "is_deleted"),
    [
        ((), True),
        (((GRACEFUL_EXPIRATION, "30m"),), True),
        (((GRACEFUL_EXPIRATION, "2h"),), False),
        (((GRACEFUL_EXPIRATION, "soon"),), False),
        (None, False),
    ],
    ids=["default", "past", "within", "invalid", "metadata"],
)
def test_expired_node_claim_of_an_unreadable_node_pool_follows_the_annotation_if_that_can_be_read(
    annotations: Pairs | None, *, is_deleted: bool
) -> None:
    claim = make_claim(expire_after=NOW - BIRTH - timedelta(hours=1))
    problem = Problem(kind="NodePool", name="default", message="spec.template: missing", annotations=annotations)
    cluster = make_cluster(node_claims=(claim,), nodes=(make_node(),), node_pools=(), problems=(problem,))
    deletions = filter_actions(DeleteObject, decide_lifecycle(cluster))
    assert [deletion.message for deletion in deletions] == (["expired"] if is_deleted else [])


def test_expired_node_claim_of_a_missing_node_pool_is_deleted() -> None:
    claim = make_claim(expire_after=NOW - BIRTH - timedelta(hours=1))
    cluster = make_cluster(node_claims=(claim,), nodes=(make_node(),), node_pools=())
    assert [deletion.message for deletion in filter_actions(DeleteObject, decide_lifecycle(cluster))] == ["expired"]
