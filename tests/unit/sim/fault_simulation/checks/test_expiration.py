"""The check of the fault simulation that expired NodeClaims are deleted in time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.model.core.labels import NODEPOOL
from sim.fault_simulation.checks.expiration import EXPIRATION_TIMEOUT, list_overdue_claims
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import MAIN_POOL, SECOND_POOL

CREATED_AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
LATE = CREATED_AT + timedelta(minutes=6) + EXPIRATION_TIMEOUT + timedelta(seconds=1)


def make_claim(pool: str = MAIN_POOL, expire_after: str = "6m", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "labels": {NODEPOOL: pool}, "creationTimestamp": "2026-11-21T08:00:00Z"} | metadata,
        "spec": {"expireAfter": expire_after},
    }


@pytest.mark.parametrize(
    ("claim", "graceful_expiration", "minutes_later", "is_overdue"),
    [
        (make_claim(), "", 0, True),
        (make_claim(), "", -1, False),
        (make_claim(), "3m", 0, False),
        (make_claim(), "3m", 3, True),
        (make_claim(SECOND_POOL), "3m", 0, True),
        (make_claim(expire_after="Never"), "", 60, False),
        (make_claim(deletionTimestamp="2026-11-21T08:07:00Z"), "", 60, False),
    ],
    ids=["expired", "in-time", "graceful", "graceful-expired", "other-pool", "never", "deleting"],
)
def test_expired_claim_must_be_deleted_after_its_graceful_period(
    claim: dict[str, Any], graceful_expiration: str, minutes_later: int, *, is_overdue: bool
) -> None:
    setup, now = ScriptSetup(graceful_expiration=graceful_expiration), LATE + timedelta(minutes=minutes_later)
    assert bool(list_overdue_claims([claim], setup, CREATED_AT, now)) is is_overdue


def test_no_deletion_is_expected_soon_after_a_fault() -> None:
    assert list_overdue_claims([make_claim()], ScriptSetup(), LATE - timedelta(seconds=1), LATE) == []
