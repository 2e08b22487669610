"""Which launches use the new image of a canary."""

from datetime import timedelta

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CANARY, CANARY_STATE
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.decisions.action import LaunchInstances
from shared.model.ec2.fleet import FleetResult
from shared.model.karpenter.health.canary import CanaryState, CanaryTrial, encode_canary_state
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_class import EC2NodeClass
from tests.support.launch_cases import IMAGES, NOW, make_claim, make_cluster, make_node_class
from tests.support.snapshot_decisions import plan_launches

NEW = replace(IMAGES[0], image_id="ami-new")
STARTED_AT = NOW - timedelta(hours=1)


def make_class(nodes: int = 1, *, is_started: bool = True, passed: tuple[str, ...] = ()) -> EC2NodeClass:
    trial = CanaryTrial(
        identity="ami-new",
        image=NEW,
        known_since=STARTED_AT,
        started_at=STARTED_AT if is_started else None,
        passed=passed,
    )
    annotations = {
        CANARY: f"nodes={nodes} soak=1h",
        CANARY_STATE: encode_canary_state(CanaryState(trials=(trial,))),
    }
    return make_node_class(meta=ObjectMeta(name="default", generation=1, annotations=build_pairs(annotations)))


def list_launches(cluster: ClusterSnapshot) -> dict[str, str]:
    """Return the image of each launched claim."""
    return {
        claim: next(
            iter({override.image_id for config in launch.group.request.configs for override in config.overrides})
        )
        for launch in plan_launches(cluster).launches
        for claim in launch.group.claims
    }


def launch_with(image: str, name: str = "running") -> NodeClaim:
    return make_claim(name, provider_id="aws:///us-east-1a/i-1", image_id=image)


def test_as_many_launches_use_the_new_image_as_the_canary_needs() -> None:
    claims = [make_claim(name) for name in "abc"]
    cluster = make_cluster(*claims, node_classes=(make_class(2),))
    assert list_launches(cluster) == {"a": "ami-new", "b": "ami-new", "c": "ami-amd64"}


def test_nodes_and_passed_nodes_of_the_canary_count() -> None:
    cluster = make_cluster(make_claim("a"), launch_with("ami-new"), node_classes=(make_class(1),))
    assert list_launches(cluster) == {"a": "ami-amd64"}
    cluster = make_cluster(make_claim("a"), node_classes=(make_class(1, passed=("gone",)),))
    assert list_launches(cluster) == {"a": "ami-amd64"}
    cluster = make_cluster(make_claim("a"), launch_with("ami-amd64"), node_classes=(make_class(1),))
    assert list_launches(cluster) == {"a": "ami-new"}


def test_node_with_the_name_of_a_passed_node_claim_is_another_node() -> None:
    for uid, image in (("uid-running", "ami-new"), ("uid-earlier", "ami-amd64")):
        node_class = make_class(2, passed=(f"running/{uid}",))
        cluster = make_cluster(make_claim("a"), launch_with("ami-new"), node_classes=(node_class,))
        assert list_launches(cluster) == {"a": image}


def test_classes_with_the_same_new_image_have_a_canary_each() -> None:
    first, second = make_class(1), replace(make_class(1), meta=replace(make_class(1).meta, name="other"))
    catalog = make_cluster().catalog
    assert catalog is not None
    catalog = replace(catalog, by_node_class=(*catalog.by_node_class, ("other", catalog.by_node_class[0][1])))
    claims = (launch_with("ami-new"), make_claim("a"), make_claim("b", node_class=NodeClassRef(name="other")))
    cluster = make_cluster(*claims, node_classes=(first, second), catalog=catalog)
    assert list_launches(cluster) == {"a": "ami-amd64", "b": "ami-new"}


def test_image_without_its_minimum_age_is_not_launched() -> None:
    cluster = make_cluster(make_claim("a"), node_classes=(make_class(is_started=False),))
    assert list_launches(cluster) == {"a": "ami-amd64"}


def record_launch(cluster: ClusterSnapshot, result: FleetResult | None) -> tuple[LaunchInstances, ClusterSnapshot]:
    [launch] = plan_launches(cluster).launches
    return launch, replace(cluster, launch_groups=(replace(launch.group, result=result),))


def test_open_launch_with_the_new_image_counts() -> None:
    _, cluster = record_launch(make_cluster(make_claim("a"), node_classes=(make_class(1),)), None)
    cluster = replace(cluster, node_claims=(*cluster.node_claims, make_claim("b")))
    assert list_launches(cluster) == {"a": "ami-new", "b": "ami-amd64"}


def test_claim_that_could_not_be_launched_with_the_new_image_gets_the_good_one() -> None:
    failed = FleetResult(fleet_id="f", instances=(), errors=())
    _, cluster = record_launch(make_cluster(make_claim("a"), node_classes=(make_class(1),)), failed)
    assert list_launches(cluster) == {"a": "ami-amd64"}
