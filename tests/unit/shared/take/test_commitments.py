"""Reading commitments: what is used if they cannot be read, and which instances of others count."""

from typing import cast

import msgspec

from shared.errors import Fault, NotFound, Unreachable
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.ec2.commitments import Commitments, OnDemandInstance, ReservedInstances
from shared.model.ec2.instance import Instance
from shared.ports.aws import Ec2
from shared.ports.world import World
from shared.settings import Settings
from shared.store.commitments import COMMITMENTS_KEY
from shared.take.commitments import group_instances, load_commitments
from tests.support.snapshot_world import NOW, make_world

PRICES = {"m5.large": 0.096, "m5.xlarge": 0.192}
EARLIER = Commitments(reserved=(ReservedInstances(reservation_id="ri", instance_type="m5.large", count=1),))


class UnreachableAccount:
    """An EC2 that does not answer, or answers with another fault."""

    def __init__(self, fault: Fault | None = None) -> None:
        """Answer with *fault*."""
        self.fault = fault or Unreachable("ec2:DescribeReservedInstances: no answer")

    def describe_reserved_instances(self) -> tuple[ReservedInstances, ...]:
        raise self.fault

    def describe_other_instances(self, cluster: str) -> tuple[Instance, ...]:
        raise Unreachable(f"ec2:DescribeInstances {cluster}: no answer")


def make_source(source: str) -> World:
    settings = Settings(cluster_name="demo", region="us-east-1", commitments=source)  # type: ignore[arg-type]
    return msgspec.structs.replace(make_world(), settings=settings, ec2=cast("Ec2", UnreachableAccount()))


def make_cluster(commitments: Commitments | None = None) -> ClusterSnapshot:
    return ClusterSnapshot(
        taken_at=NOW, catalog=Catalog(region="us-east-1", instance_types=(), commitments=commitments)
    )


def test_nothing_is_read_without_the_setting() -> None:
    assert load_commitments(make_source("off"), make_cluster(EARLIER), PRICES) == (None, ())


def test_commitments_of_the_last_catalog_are_used_if_the_account_does_not_answer() -> None:
    commitments, [problem] = load_commitments(make_source("account"), make_cluster(EARLIER), PRICES)
    assert commitments == EARLIER
    assert problem.message.endswith("no answer; those of the last catalog are used")
    commitments, [problem] = load_commitments(make_source("account"), make_cluster(), PRICES)
    assert commitments is None
    assert problem.message.endswith("they are not used")


def test_commitments_are_kept_if_the_account_answers_not_found() -> None:
    fault = NotFound("savingsplans:DescribeSavingsPlanRates: ResourceNotFoundException")
    world = msgspec.structs.replace(make_source("account"), ec2=cast("Ec2", UnreachableAccount(fault)))
    commitments, [problem] = load_commitments(world, make_cluster(EARLIER), PRICES)
    assert commitments == EARLIER
    assert problem.name == "account"
    assert problem.message == (f"could not be read: NotFound: {fault}; those of the last catalog are used")


def test_missing_and_invalid_documents_are_reported_with_the_fix() -> None:
    world = make_source("bucket")
    commitments, [problem] = load_commitments(world, make_cluster(EARLIER), PRICES)
    assert commitments is None
    assert problem.message == "is missing: write it with `joiner catalog commitments`, or set commitments: account"
    world.bucket.put(COMMITMENTS_KEY, b'{"savingsPlans": [{"id": "sp"}]}')
    commitments, [problem] = load_commitments(world, make_cluster(EARLIER), PRICES)
    assert commitments == EARLIER
    assert "savingsPlans[0] (sp): " in problem.message


def test_on_demand_instances_of_others_are_counted_by_type_and_zone() -> None:
    instances = [
        Instance(
            instance_id=f"i-{number}",
            instance_type=name,
            zone="us-east-1a",
            subnet_id="",
            image_id="",
            state="running",
            launched_at=NOW,
            capacity_type=capacity_type,  # type: ignore[arg-type]
        )
        for number, (name, capacity_type) in enumerate(
            [("m5.large", "on-demand"), ("m5.large", "on-demand"), ("m5.xlarge", "spot"), ("x9.large", "on-demand")]
        )
    ]
    assert group_instances(instances, PRICES) == (
        OnDemandInstance(
            instance_id="m5.large/us-east-1a",
            instance_type="m5.large",
            zone="us-east-1a",
            usd_per_hour=0.096,
            hours=2.0,
        ),
    )
