"""Nodes that are marked as drifted but no longer are: the condition may be one cycle old."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import build_pairs
from shared.model.karpenter.node_class import EC2NodeClass, ResolvedImage
from shared.model.karpenter.node_pool import NodePool
from tests.support.catalogues import make_requirements
from tests.support.disruption_fleet import FREE, decide_disruption, make_fleet, make_web_pod
from tests.support.snapshot_decisions import validate_command
from tests.unit.shared.decide.disruption.drift.test_drift import HASH_ANNOTATIONS, NODE_CLASS, make_drifted_node

SOUGHT = replace(FREE, requirements=make_requirements((labels.ZONE, "In", ["a"])))
OTHER_IMAGE = replace(NODE_CLASS, resolved_images=(ResolvedImage(image_id="ami-2"),))


@pytest.mark.parametrize(
    ("reason", "earlier_fields", "now"),
    [
        ("NodePoolDrifted", {"notes": {labels.NODEPOOL_HASH: "other"}}, {}),
        ("NodeClassDrift", {"notes": {labels.NODECLASS_HASH: "other"}}, {}),
        ("RequirementsDrifted", {"pool": SOUGHT, "zone": "b"}, {"pool": SOUGHT}),
        ("AMIDrift", {"node_class": OTHER_IMAGE}, {}),
        ("DriftRequested", {"notes": {labels.VOLUNTARY_DISRUPTION: "drifted"}}, {}),
    ],
)
def test_node_with_an_outdated_drifted_condition_is_not_disrupted(
    reason: str, earlier_fields: dict[str, Any], now: dict[str, Any]
) -> None:
    """The condition of a claim may be a cycle old: a NodePool change that is reverted costs no node."""
    before, after = build_drifted_cluster(reason, **earlier_fields), build_drifted_cluster(reason, **now)
    [command] = decide_disruption(before).commands
    assert command.reason == "Drifted"
    assert validate_command(before, command) is None
    assert decide_disruption(after).commands == ()
    invalidation = validate_command(after, command)
    assert invalidation is not None
    assert "NotDrifted" in invalidation.message


def test_drift_that_the_snapshot_cannot_verify_is_kept() -> None:
    for reason in ("SecurityGroupDrift", "SubnetDrift", "InstanceTypeNotFound", "AnotherDrift"):
        assert [
            drift_command.reason for drift_command in decide_disruption(build_drifted_cluster(reason)).commands
        ] == ["Drifted"]
    [command] = decide_disruption(
        build_drifted_cluster("NodePoolDrifted", notes={labels.NODEPOOL_HASH_VERSION: "v2"})
    ).commands
    assert command.reason == "Drifted"


def build_drifted_cluster(
    reason: str,
    *,
    notes: dict[str, str] | None = None,
    pool: NodePool = FREE,
    zone: str = "a",
    node_class: EC2NodeClass = NODE_CLASS,
) -> ClusterSnapshot:
    """Build a cluster whose only claim is marked as drifted.

    The claim matches what is required today unless the arguments say otherwise.
    """
    node_pool = replace(pool, budgets=(), consolidate_after=None)
    hashes = HASH_ANNOTATIONS | {labels.NODEPOOL_HASH: compute_node_pool_hash(node_pool)}
    node, claim, pods = make_drifted_node("a", make_web_pod("1", "1500m"), reason=reason, zone=zone)
    meta = replace(claim.meta, annotations=build_pairs(hashes | (notes or {})))
    machine = node, replace(claim, meta=meta, image_id="ami-1"), pods
    return make_fleet(machine, pools=(node_pool,), node_classes=(node_class,))
