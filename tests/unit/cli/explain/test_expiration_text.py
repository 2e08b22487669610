"""What `explain` says about an expired NodeClaim."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from cli.explain.live_state import _describe_expiration
from shared.model.core.labels import GRACEFUL_EXPIRATION
from shared.model.core.metadata import ObjectMeta
from tests.support.catalogues import NOW, make_node_pool
from tests.support.disruption_fleet import make_fleet, make_node_with_pods


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("", "its expireAfter has passed"),
        ("3h", "its expireAfter has passed: it is replaced as drifted, within the budgets, and deleted in 2h"),
        ("1h", "have passed: it is deleted"),
        ("soon", "it is kept until the NodePool's joiner.dev/graceful-expiration is corrected"),
    ],
)
def test_expired_node_claim_says_when_it_is_deleted(period: str, message: str) -> None:
    annotations = ((GRACEFUL_EXPIRATION, period),) if period else ()
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=annotations))
    node, claim, pods = make_node_with_pods("a")
    created = replace(claim.meta, created_at=NOW - timedelta(hours=5))
    claim = replace(claim, meta=created, expire_after=timedelta(hours=4))
    [line] = _describe_expiration(claim, make_fleet((node, claim, pods), pools=(pool,)))
    assert message in line
