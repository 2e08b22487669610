"""How `joiner drift` describes an expired node that is replaced gracefully."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from cli.drift.differences import describe_difference
from shared.model.core.labels import GRACEFUL_EXPIRATION
from tests.support.disruption_fleet import FREE
from tests.unit.cli.drift.test_drift import make_drift_inputs


def test_expired_node_is_described_with_its_deadline() -> None:
    pool = replace(FREE, meta=replace(FREE.meta, annotations=((GRACEFUL_EXPIRATION, "24h"),)))
    inputs = make_drift_inputs(pool)
    claim = replace(inputs.claim, expire_after=timedelta(hours=1))
    claim = replace(claim, meta=replace(claim.meta, created_at=datetime(2026, 11, 20, 8, tzinfo=UTC)))
    assert describe_difference(replace(inputs, claim=claim), "Expired") == (
        "expired at 2026-11-20T09:00:00Z",
        "a new node within the budgets, or a forced deletion at 2026-11-21T09:00:00Z",
    )
    assert describe_difference(inputs, "Expired") == ("no expiration", "a new node")
