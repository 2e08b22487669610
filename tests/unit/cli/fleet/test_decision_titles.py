"""Titles of decisions are subtitles: what happens to which node or pods, and why."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from cli.explain.node_records import NodeRecord
from cli.fleet.decisions.decision_titles import build_decision_title
from cli.journal.journal import Cycle
from cli.journal.journal_decisions import JournalDecision

RECORD = NodeRecord(
    claim="default-ab12",
    node="ip-10-0-0-4",
    instance="i-1",
    instance_type="m5.large",
    capacity_type="spot",
    zone="us-east-1c",
    usd_per_hour=0.04,
    deleted_why="expired",
)
REPLACEMENT = NodeRecord(claim="default-new", instance_type="m6a.large")
RECORDS: Mapping[tuple[str, str], NodeRecord] = {
    name: record for record in (RECORD, REPLACEMENT) for name in record.list_names()
}
CLAIM, NODE = ("NodeClaim", "default-ab12"), ("Node", "ip-10-0-0-4")
PODS = (("Pod", "default/a"), ("Pod", "default/b"))
COMMAND = (("Command", "multinode-1"), NODE, ("Node", "ip-2"))


def build_title(**fields: Any) -> str:
    decision = JournalDecision(cycle=cast("Cycle", None), **{"kind": "other", "summary": "summary", **fields})
    return build_decision_title(decision, RECORDS)


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"step": "created", "objects": (CLAIM, *PODS)}, "New node default-ab12 requested for 2 pending pods"),
        ({"step": "created", "objects": (CLAIM,)}, "New node default-ab12 requested as a replacement"),
        (
            {"step": "launched", "objects": (CLAIM,)},
            "Node default-ab12 launched: m5.large spot in us-east-1c, $0.0400/h",
        ),
        (
            {"step": "launched", "objects": (("NodeClaim", "unknown"),), "reason": "m5.large, spot"},
            "Node unknown launched: m5.large, spot",
        ),
        (
            {"step": "deleted", "objects": (CLAIM,), "reason": "spot_interrupted"},
            "Node default-ab12 will be drained and terminated: Spot interruption",
        ),
        (
            {"step": "terminated", "objects": (("Instance", "i-1"),), "reason": "its NodeClaim is being deleted"},
            "Node default-ab12 terminated: m5.large spot",
        ),
        ({"step": "terminated", "objects": (("Instance", "i-1"), ("Instance", "i-2"))}, "2 instances terminated"),
        (
            {"step": "evicted", "objects": (NODE, *PODS), "reason": "Forceful Termination"},
            "2 pods evicted from default-ab12: expired",
        ),
        (
            {
                "kind": "consolidate",
                "step": "PROPOSED",
                "objects": (*COMMAND, ("NodeClaim", "default-new")),
                "saves_usd_per_hour": 0.05,
            },
            "Consolidation proposed: replace 2 nodes by 1 m6a.large, saves $0.0500/h",
        ),
        (
            {"kind": "consolidate", "step": "LAUNCHED", "objects": (*COMMAND, ("NodeClaim", "not launched"))},
            "Consolidation replacement launched: replace 2 nodes by 1 node",
        ),
        (
            {"kind": "empty", "step": "DONE", "objects": COMMAND[:2], "saves_usd_per_hour": 0.05},
            "Emptiness done: remove 1 empty node, saves $0.0500/h",
        ),
        ({"summary": "provision failed", "reason": "no role"}, "provision failed: no role"),
        ({"summary": "provision failed", "reason": "x" * 90}, "provision failed"),
    ],
)
def test_title_says_what_happens_to_what(fields: dict[str, Any], title: str) -> None:
    assert build_title(**fields) == title
