"""The hard deadline of expiration: a NodeClaim is deleted at expireAfter plus its graceful period."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from shared.model.core.units import parse_duration
from sim.fault_simulation.checks.ground_truth import get_node_pool, is_deleting
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import MAIN_POOL

Json = dict[str, Any]
EXPIRATION_TIMEOUT: Final = timedelta(minutes=4)
"""Time for the deletion of an expired NodeClaim: two ticks, a lease that must expire, and a tick as reserve."""


def list_overdue_claims(
    claims: Iterable[Json], setup: ScriptSetup, last_fault: datetime, now: datetime
) -> list[tuple[str, datetime]]:
    """Return name and deadline of each NodeClaim that should have been deleted before *now*, sorted by name.

    Until `EXPIRATION_TIMEOUT` after the last fault, no deletion is expected.
    """
    overdue_claims: list[tuple[str, datetime]] = []
    for claim in claims:
        expire_after = claim["spec"].get("expireAfter", "Never")
        if expire_after == "Never" or is_deleting(claim):
            continue
        is_graceful = get_node_pool(claim) == MAIN_POOL and bool(setup.graceful_expiration)
        graceful_period = parse_duration(setup.graceful_expiration) if is_graceful else timedelta()
        created_at = datetime.fromisoformat(claim["metadata"]["creationTimestamp"])
        deadline = created_at + parse_duration(expire_after) + graceful_period
        if now - max(deadline, last_fault) > EXPIRATION_TIMEOUT:
            overdue_claims.append((claim["metadata"]["name"], deadline))
    return sorted(overdue_claims)
