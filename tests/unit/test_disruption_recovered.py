"""Who is called drifted, and is seen to be as it ought to be: the condition may be a cycle old."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.disruption.validation import still_holds
from shared.model import labels
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass, ResolvedImage
from shared.model.nodepools import NodePool
from shared.model.objects import pairs
from shared.scheduling.hashes import node_pool_hash
from tests.unit.catalogues import needs
from tests.unit.disruption_fleet import FREE, fleet, swept, web
from tests.unit.test_disruption_drift import CLASS, HASHES, drifted

SOUGHT = replace(FREE, requirements=needs((labels.ZONE, "In", ["a"])))
OTHER_IMAGE = replace(CLASS, resolved_images=(ResolvedImage(image_id="ami-2"),))


@pytest.mark.parametrize(
    ("reason", "then", "now"),
    [
        ("NodePoolDrifted", {"notes": {labels.NODEPOOL_HASH: "other"}}, {}),
        ("NodeClassDrift", {"notes": {labels.NODECLASS_HASH: "other"}}, {}),
        ("RequirementsDrifted", {"pool": SOUGHT, "zone": "b"}, {"pool": SOUGHT}),
        ("AMIDrift", {"node_class": OTHER_IMAGE}, {}),
        ("DriftRequested", {"notes": {labels.VOLUNTARY_DISRUPTION: "drifted"}}, {}),
    ],
)
def test_who_is_called_drifted_and_is_not_any_more_stays(
    reason: str, then: dict[str, Any], now: dict[str, Any]
) -> None:
    """What is written on a claim may be a cycle old; whoever changes a NodePool and changes it back loses no node."""
    before, after = called(reason, **then), called(reason, **now)
    [command] = swept(before).commands
    assert command.reason == "Drifted"
    assert still_holds(before, command) is None
    assert swept(after).commands == ()
    found = still_holds(after, command)
    assert found is not None
    assert "NotDrifted" in found.why


def test_what_the_snapshot_does_not_show_is_no_recovery() -> None:
    for reason in ("SecurityGroupDrift", "SubnetDrift", "InstanceTypeNotFound", "AnotherDrift"):
        assert [one.reason for one in swept(called(reason)).commands] == ["Drifted"]
    [command] = swept(called("NodePoolDrifted", notes={labels.NODEPOOL_HASH_VERSION: "v2"})).commands
    assert command.reason == "Drifted"


def called(
    reason: str,
    *,
    notes: dict[str, str] | None = None,
    pool: NodePool = FREE,
    zone: str = "a",
    node_class: EC2NodeClass = CLASS,
) -> Cluster:
    """A cluster whose only claim is called drifted, and has what is asked for today unless the arguments say else."""
    known = replace(pool, budgets=(), consolidate_after=None)
    hashes = HASHES | {labels.NODEPOOL_HASH: node_pool_hash(known)}
    there, claim, pods = drifted("a", web("1", "1500m"), reason=reason, zone=zone)
    meta = replace(claim.meta, annotations=pairs(hashes | (notes or {})))
    machine = there, replace(claim, meta=meta, image_id="ami-1"), pods
    return fleet(machine, pools=(known,), node_classes=(node_class,))
