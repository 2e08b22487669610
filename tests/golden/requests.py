"""The requests of a launch, as stored in the JSON files in this folder.

After an intended change, regenerate them and read the difference::

    .venv/bin/python -m tests.golden.requests
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.aws.ec2.fleet import build_fleet_call
from shared.aws.ec2.launch_template import build_launch_template_call
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering, UnavailableOffering
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.requirements import build_requirements, parse_requirement
from tests.support.launch_cases import (
    NOW,
    build_types_by_name,
    get_time_after,
    make_claim,
    make_cluster,
    make_node_class,
)
from tests.support.snapshot_decisions import plan_launches

FOLDER: Final = Path(__file__).parent
TAGGED_NODE_CLASS: Final = make_node_class(
    tags=(("Name", "mine"), ("team", "shop"), ("karpenter.sh/nodepool", "forged"))
)


def build_launch_cases() -> Iterator[tuple[str, ClusterSnapshot, LaunchPolicy]]:
    """Yield name, cluster and launch policy of each case."""
    yield "spot", make_cluster(make_claim("a"), make_claim("b")), LaunchPolicy()
    yield (
        "on-demand",
        make_cluster(make_claim("a", capacity_types=("on-demand",))),
        LaunchPolicy(uses_open_reservations=True),
    )
    yield "fallback", make_cluster(make_claim("a"), unavailable=build_unavailable_offerings("spot")), LaunchPolicy()
    yield "tags", make_cluster(make_claim("a"), node_classes=(TAGGED_NODE_CLASS,)), LaunchPolicy()
    yield "reserved", build_reserved_cluster("default"), LaunchPolicy()
    yield "capacity-block", build_reserved_cluster("capacity-block"), LaunchPolicy()
    yield "interruptible", build_reserved_cluster("default", interruptible=True), LaunchPolicy()
    yield "overlaid", build_overlaid_cluster(), LaunchPolicy()


def build_unavailable_offerings(capacity_type: str) -> tuple[UnavailableOffering, ...]:
    return (UnavailableOffering(capacity_type=capacity_type, until=get_time_after(60)),)


def build_reserved_cluster(kind: str, *, interruptible: bool = False) -> ClusterSnapshot:
    """Return a cluster in which m5.large has reservations in two zones, two of them in the first zone."""
    reservations = (
        ("us-east-1a", "cr-1", 2),
        ("us-east-1a", "cr-2", 5),
        ("us-east-1b", "cr-3", 1),
        ("us-east-1b", "cr-4", 0),
    )
    offerings = tuple(
        Offering(
            zone=zone,
            capacity_type="reserved",
            price_usd_per_hour=1e-8,
            reservation_id=name,
            reservation_capacity=count,
            reservation_type=kind,
            reservation_interruptible=interruptible,
        )
        for zone, name, count in reservations
    )
    requirements = build_requirements(
        (
            parse_requirement(labels.CAPACITY_TYPE, "In", ("on-demand", "reserved")),
            parse_requirement(labels.NODEPOOL, "In", ("default",)),
        )
    )
    return make_cluster(
        make_claim("a", requirements=requirements), catalog=build_catalog_with_offerings("m5.large", offerings)
    )


def build_overlaid_cluster() -> ClusterSnapshot:
    """Return a cluster in which a NodeOverlay has set a price."""
    offerings = build_types_by_name()["m5.large"].offerings
    overlaid_offerings = tuple(
        msgspec.structs.replace(offering, is_overlaid=True, price_usd_per_hour=0.01) for offering in offerings
    )
    return make_cluster(
        make_claim("a"), catalog=build_catalog_with_offerings("m5.large", overlaid_offerings, keep=False)
    )


def build_catalog_with_offerings(name: str, new_offerings: tuple[Offering, ...], *, keep: bool = True) -> Catalog:
    types_by_name = build_types_by_name()
    instance_type = types_by_name[name]
    offerings = tuple(sorted((*instance_type.offerings, *new_offerings))) if keep else new_offerings
    types_by_name[name] = update_capacity_requirements(msgspec.structs.replace(instance_type, offerings=offerings))
    return Catalog(
        region="us-east-1",
        instance_types=(),
        by_node_class=(("default", tuple(types_by_name[key] for key in sorted(types_by_name))),),
        priced_at=NOW,
    )


def update_capacity_requirements(instance_type: InstanceType) -> InstanceType:
    """Return *instance_type* with the capacity-type labels that its offerings make possible."""
    kinds = sorted({offering.capacity_type for offering in instance_type.offerings})
    other_requirements = (
        item
        for item in instance_type.requirements
        if item.key != labels.CAPACITY_TYPE and "reservation" not in item.key
    )
    requirements = build_requirements((*other_requirements, parse_requirement(labels.CAPACITY_TYPE, "In", kinds)))
    return msgspec.structs.replace(instance_type, requirements=requirements)


def build_golden_calls(snapshot: ClusterSnapshot, terms: LaunchPolicy) -> dict[str, Any]:
    """Return the parameters that boto3 receives."""
    [launch] = plan_launches(snapshot, terms).launches
    return {
        "CreateLaunchTemplate": [
            build_launch_template_call(template, "us-east-1") for template in launch.group.templates
        ],
        "CreateFleet": build_fleet_call(launch.group.request),
    }


def format_document(document: dict[str, Any]) -> str:
    """Return *document* as the text of its file."""
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    for name, case_snapshot, terms in build_launch_cases():
        (FOLDER / f"launch_{name}.json").write_text(format_document(build_golden_calls(case_snapshot, terms)))
