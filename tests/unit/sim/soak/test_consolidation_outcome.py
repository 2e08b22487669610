"""Tests of what a consolidation saved: until its capacity is needed again, less the time in which both nodes ran."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from sim.soak.consolidation_outcome import ConsolidationOutcome, evaluate_consolidations
from sim.soak.monitor import PodEviction
from sim.soak.node_replacements import ClaimLife, NodeReplacement

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
END = START + timedelta(days=3)
HOUR = timedelta(hours=1)


def make_life(hours: float, **fields: object) -> ClaimLife:
    return msgspec.structs.replace(
        ClaimLife(node_pool="services", created_at=START + hours * HOUR, price_usd_per_hour=0.2), **fields
    )


DELETION = NodeReplacement(
    at=START + HOUR,
    command_id="singlenode-1",
    node_pools=("services",),
    removed_claims=("old",),
    created_claims=(),
    removed_kinds=("c6i.large eu-central-1a",),
    savings_usd_per_hour=0.1,
    reason="",
)
OLD_LIFE = make_life(0, ended_at=START + 1.1 * HOUR)


def evaluate(replacement: NodeReplacement, *evictions: str, **lives: ClaimLife) -> ConsolidationOutcome:
    evicted_pods = [PodEviction(at=START, pod="pod", reason="Underutilized", claim=claim) for claim in evictions]
    [outcome] = evaluate_consolidations([replacement], {"old": OLD_LIFE, **lives}, evicted_pods, END)
    return outcome


def test_savings_of_a_deletion_end_with_the_next_launch_in_its_nodepool() -> None:
    outcome = evaluate(DELETION, "old", "old", "elsewhere", next=make_life(3), later=make_life(5))
    assert (outcome.kind, outcome.hours, outcome.ended_by, outcome.evictions) == ("deletion", 2, "launch", 2)
    assert outcome.net_usd == pytest.approx(0.2)


def test_launches_in_other_nodepools_and_by_consolidation_do_not_end_the_savings() -> None:
    replacement_life = make_life(3, command_id="multinode-2")
    outcome = evaluate(DELETION, spot=make_life(2, node_pool="spot"), created=replacement_life)
    assert (outcome.hours, outcome.ended_by) == (24, "day")


def test_savings_of_a_replacement_end_when_the_new_node_is_removed() -> None:
    replacement = msgspec.structs.replace(DELETION, created_claims=("new",))
    new_life = make_life(0.9, command_id="singlenode-1", deleted_at=START + 1.5 * HOUR)
    outcome = evaluate(replacement, new=new_life)
    assert (outcome.kind, outcome.hours, outcome.ended_by) == ("single replacement", 0.5, "removal")
    assert outcome.overlap_usd == pytest.approx(0.2 * 0.2)
    assert outcome.net_usd == pytest.approx(0.05 - 0.04)


def test_savings_last_no_longer_than_the_simulation() -> None:
    replacement = msgspec.structs.replace(DELETION, at=END - HOUR, removed_claims=("old", "second"))
    outcome = evaluate(replacement, second=OLD_LIFE)
    assert (outcome.hours, outcome.ended_by, outcome.removed) == (1, "end", 2)
