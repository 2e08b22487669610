"""Law: graceful expiration disrupts no more nodes than the budgets allow, and begins if they allow a node."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.core.labels import GRACEFUL_EXPIRATION
from shared.model.core.metadata import ObjectMeta
from shared.model.karpenter.expiration import EXPIRED
from shared.model.karpenter.node_pool import DisruptionBudget
from tests.support.catalogues import NOW, make_node_pool
from tests.support.disruption_fleet import (
    STAGES,
    Machine,
    decide_disruption,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
)

GRACEFUL_META = ObjectMeta(name="default", annotations=((GRACEFUL_EXPIRATION, "24h"),))
EXPIRED_CONDITIONS = (*make_conditions(*STAGES), *make_conditions("Drifted", reason=EXPIRED))


def make_node_of_age(number: int, age_hours: int) -> Machine:
    """Return a node with a pod that fills it and an expireAfter of 10 hours."""
    is_expired = age_hours >= 10
    node, claim, pods = make_node_with_pods(
        f"n{number}",
        make_web_pod(str(number), "3"),
        conditions=EXPIRED_CONDITIONS if is_expired else make_conditions(*STAGES),
        expire_after=timedelta(hours=10),
    )
    return node, replace(claim, meta=replace(claim.meta, created_at=NOW - timedelta(hours=age_hours))), pods


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 4))
def test_graceful_expiration_never_exceeds_the_budget(ages: list[int], allowed: int) -> None:
    pool = make_node_pool(meta=GRACEFUL_META, consolidate_after=None, budgets=(DisruptionBudget(nodes=str(allowed)),))
    machines = [make_node_of_age(number, age_hours) for number, age_hours in enumerate(ages)]
    expired_nodes = {f"n{number}" for number, age_hours in enumerate(ages) if age_hours >= 10}
    decision = decide_disruption(make_fleet(*machines, pools=(pool,)))
    disrupted_nodes = {name for command in decision.commands for name in command.list_node_names()}
    assert disrupted_nodes <= expired_nodes
    assert len(disrupted_nodes) <= allowed
    assert bool(disrupted_nodes) == (bool(expired_nodes) and allowed > 0)
    assert {command.reason for command in decision.commands} <= {"Drifted"}
