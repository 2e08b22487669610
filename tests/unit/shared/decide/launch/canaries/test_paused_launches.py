"""Launches of an EC2NodeClass whose nodes do not register."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NODEPOOL
from shared.model.core.metadata import Condition
from shared.model.core.resources import parse_resources
from shared.model.karpenter.node_claim import NodeClaim
from tests.support.catalogues import make_node_pool
from tests.support.failing_launches import with_failed_launches
from tests.support.launch_cases import NOW, make_claim, make_cluster, make_node_class
from tests.support.snapshot_decisions import plan_launches

DUE = NOW - timedelta(minutes=30)
"""When the failed nodes were launched, so that a test is due."""
RECENTLY = NOW - timedelta(minutes=10)
"""The same, so that no test is due yet."""


def make_paused_cluster(launched_at: datetime, *claims: NodeClaim) -> ClusterSnapshot:
    return make_cluster(*claims, node_classes=(with_failed_launches(make_node_class(), launched_at),))


def list_launched(cluster: ClusterSnapshot) -> list[str]:
    return [name for launch in plan_launches(cluster).launches for name in launch.group.claims]


def make_starting_claim(name: str) -> NodeClaim:
    launched = Condition(type="Launched", status="True", since=NOW - timedelta(minutes=2))
    return make_claim(name, provider_id="aws:///us-east-1a/i-1", conditions=(launched,))


def test_no_claim_is_launched_before_the_test_is_due() -> None:
    cluster = make_paused_cluster(RECENTLY, make_claim("a"), make_claim("b"))
    assert list_launched(cluster) == []
    refused = plan_launches(cluster).unlaunchable
    assert [(item.claim.name, item.reason, item.final) for item in refused] == [
        ("a", "LaunchesPaused", True),
        ("b", "LaunchesPaused", True),
    ]
    assert "one node at a time is launched as a test" in refused[0].message


def test_one_claim_is_launched_as_a_test_whatever_it_needs() -> None:
    claims = (make_claim("a"), make_claim("b"), make_claim("c", capacity_types=("on-demand",)))
    cluster = make_paused_cluster(DUE, *claims)
    assert list_launched(cluster) == ["a"]
    assert [item.claim.name for item in plan_launches(cluster).unlaunchable] == ["b", "c"]


def test_no_claim_is_launched_while_the_node_of_the_test_is_starting() -> None:
    assert list_launched(make_paused_cluster(DUE, make_claim("a"), make_starting_claim("test"))) == []


def test_open_request_is_the_test() -> None:
    [launch] = plan_launches(make_paused_cluster(DUE, make_claim("a"))).launches
    cluster = make_paused_cluster(DUE, make_claim("a"), make_claim("b"))
    cluster = replace(cluster, launch_groups=(launch.group,))
    assert list_launched(cluster) == ["a"]
    assert plan_launches(cluster).launches[0].group == launch.group


def test_other_classes_are_launched() -> None:
    other_class = make_node_class(meta=replace(make_node_class().meta, name="other"))
    paused_class = with_failed_launches(other_class, RECENTLY)
    cluster = make_cluster(make_claim("a"), make_claim("b"), node_classes=(make_node_class(), paused_class))
    assert list_launched(cluster) == ["a", "b"]
    assert plan_launches(cluster) == plan_launches(make_cluster(make_claim("a"), make_claim("b")))


def test_claim_that_a_limit_refuses_is_no_test() -> None:
    full_pool = make_node_pool("full", limits=parse_resources({"cpu": "1"}))
    full_claim = make_claim("a")
    full_claim = replace(full_claim, meta=replace(full_claim.meta, labels=((NODEPOOL, "full"),)))
    cluster = replace(make_paused_cluster(DUE, full_claim, make_claim("b")), node_pools=(full_pool,))
    assert list_launched(cluster) == ["b"]
    assert [(item.claim.name, item.reason) for item in plan_launches(cluster).unlaunchable] == [("a", "LimitExceeded")]
