"""The requests that a launch sends, as they are kept in the JSON files beside this one.

After a change that is meant, write them anew and read the difference::

    .venv/bin/python -m tests.golden.requests
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from shared.aws.ec2_fleet import fleet_call
from shared.aws.ec2_templates import launch_template_call
from shared.launch.groups import Terms, plan_launches
from shared.model import labels
from shared.model.catalogue import Catalogue, InstanceType, Offering, UnavailableOffering
from shared.model.cluster import Cluster
from shared.model.requirements import requirement, requirements
from tests.unit.launch_cases import NOW, claim, cluster, later, node_class, types

FOLDER: Final = Path(__file__).parent
TAGGED: Final = node_class(tags=(("Name", "mine"), ("team", "shop"), ("karpenter.sh/nodepool", "forged")))


def cases() -> Iterator[tuple[str, Cluster, Terms]]:
    """Answer name, cluster and terms of each launch."""
    yield "spot", cluster(claim("a"), claim("b")), Terms()
    yield "on-demand", cluster(claim("a", capacity_types=("on-demand",))), Terms(uses_open_reservations=True)
    yield "fallback", cluster(claim("a"), unavailable=out("spot")), Terms()
    yield "tags", cluster(claim("a"), node_classes=(TAGGED,)), Terms()
    yield "reserved", reserving("default"), Terms()
    yield "capacity-block", reserving("capacity-block"), Terms()
    yield "interruptible", reserving("default", interruptible=True), Terms()
    yield "overlaid", overlaid(), Terms()


def out(capacity_type: str) -> tuple[UnavailableOffering, ...]:
    return (UnavailableOffering(capacity_type=capacity_type, until=later(60)),)


def reserving(kind: str, *, interruptible: bool = False) -> Cluster:
    """Answer a cluster in which m5.large has reservations in two zones, twice in the first."""
    some = (("us-east-1a", "cr-1", 2), ("us-east-1a", "cr-2", 5), ("us-east-1b", "cr-3", 1), ("us-east-1b", "cr-4", 0))
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
        for zone, name, count in some
    )
    wanted = requirements(
        (
            requirement(labels.CAPACITY_TYPE, "In", ("on-demand", "reserved")),
            requirement(labels.NODEPOOL, "In", ("default",)),
        )
    )
    return cluster(claim("a", requirements=wanted), catalogue=with_offerings("m5.large", offerings))


def overlaid() -> Cluster:
    """Answer a cluster in which a NodeOverlay has set a price."""
    own = types()["m5.large"].offerings
    some = tuple(msgspec.structs.replace(one, is_overlaid=True, price_usd_per_hour=0.01) for one in own)
    return cluster(claim("a"), catalogue=with_offerings("m5.large", some, keep=False))


def with_offerings(name: str, some: tuple[Offering, ...], *, keep: bool = True) -> Catalogue:
    known = types()
    one = known[name]
    offerings = tuple(sorted((*one.offerings, *some))) if keep else some
    known[name] = reserved_too(msgspec.structs.replace(one, offerings=offerings))
    return Catalogue(
        region="us-east-1",
        instance_types=(),
        by_node_class=(("default", tuple(known[key] for key in sorted(known))),),
        priced_at=NOW,
    )


def reserved_too(one: InstanceType) -> InstanceType:
    """Answer *one* with the labels that its offerings make possible."""
    kinds = sorted({offering.capacity_type for offering in one.offerings})
    others = (item for item in one.requirements if item.key != labels.CAPACITY_TYPE and "reservation" not in item.key)
    made = requirements((*others, requirement(labels.CAPACITY_TYPE, "In", kinds)))
    return msgspec.structs.replace(one, requirements=made)


def golden(some: Cluster, terms: Terms) -> dict[str, Any]:
    """Answer what boto3 is handed."""
    [launch] = plan_launches(some, terms).launches
    return {
        "CreateLaunchTemplate": [launch_template_call(one, "us-east-1") for one in launch.group.templates],
        "CreateFleet": fleet_call(launch.group.request),
    }


def written(document: dict[str, Any]) -> str:
    """Answer it as the file has it."""
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    for name, some, terms in cases():
        (FOLDER / f"launch_{name}.json").write_text(written(golden(some, terms)))
