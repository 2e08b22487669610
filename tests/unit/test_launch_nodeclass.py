"""A node class and the account -> its status."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.launch.catalogues import catalogue, is_due, knobs, statuses, told
from shared.launch.nodeclass import Found, parameters_wanted, resolve
from shared.model.action import FollowUp
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import Image, SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from tests.unit.launch_cases import INFOS, MARKET, NOW, SUBNETS, later, node_class

FOUND = Found(
    subnets=SUBNETS,
    security_groups=(SecurityGroup(group_id="sg-1", name="nodes"),),
    images=((Image(image_id="ami-1", name="one", architecture="x86_64", created_at=NOW), ("standard", "neuron")),),
)


def image(name: str, age: int, *, arch: str = "x86_64", deprecated: bool = False) -> Image:
    gone = NOW - timedelta(days=1) if deprecated else None
    return Image(image_id=f"ami-{name}", name=name, architecture=arch, created_at=later(-age), deprecated_at=gone)


def status(some: EC2NodeClass, found: Found, profile: str = "p", problems: tuple[str, ...] = ()) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(resolve(some, found, profile, NOW, problems).status)
    return written


def conditions(written: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in written["conditions"]}


def test_a_class_that_finds_everything_is_ready() -> None:
    written = status(node_class(), FOUND)
    assert conditions(written)["Ready"] == ("True", "Ready")
    assert written["subnets"][0] == {"id": "subnet-a", "zone": "us-east-1a", "zoneID": "use1-az1"}
    assert written["securityGroups"] == [{"id": "sg-1", "name": "nodes"}]
    assert written["instanceProfile"] == "p"
    assert [one["id"] for one in written["amis"]] == ["ami-1", "ami-1"]


@pytest.mark.parametrize(
    ("found", "profile", "problems", "condition", "reason"),
    [
        (Found(subnets=(), security_groups=(), images=()), "p", (), "SubnetsReady", "SubnetsNotFound"),
        (Found(subnets=(), security_groups=(), images=()), "p", (), "SecurityGroupsReady", "SecurityGroupsNotFound"),
        (Found(subnets=(), security_groups=(), images=()), "p", (), "AMIsReady", "AMINotFound"),
        (FOUND, "", (), "InstanceProfileReady", "InstanceProfileNotFound"),
        (FOUND, "p", ("spec.tags: no",), "ValidationSucceeded", "ValidationFailed"),
    ],
)
def test_what_is_not_found_is_false_with_its_reason(
    found: Found, profile: str, problems: tuple[str, ...], condition: str, reason: str
) -> None:
    got = conditions(status(node_class(), found, profile, problems))
    assert got[condition] == ("False", reason)
    assert got["Ready"] == ("False", "UnhealthyDependents")


def test_what_could_not_be_asked_stays_as_it_was() -> None:
    written = status(node_class(), Found(subnets=None, security_groups=None, images=None))
    assert conditions(written)["SubnetsReady"][0] == "Unknown"
    assert conditions(written)["Ready"] == ("Unknown", "ReconcilingDependents")
    assert not {"subnets", "securityGroups", "amis"} & written.keys()


def test_a_class_that_names_its_profile_keeps_it() -> None:
    assert status(node_class(instance_profile="own"), FOUND)["instanceProfile"] == "own"


@pytest.mark.parametrize(
    ("images", "first"),
    [
        ((image("old", 9), image("new", 1)), "ami-new"),
        ((image("old", 9), image("new", 1, deprecated=True)), "ami-old"),
        ((image("a", 1), image("b", 1)), "ami-b"),
        ((image("mac", 1, arch="arm64_mac"), image("old", 9)), "ami-old"),
    ],
)
def test_the_best_image_of_each_kind_wins(images: tuple[Image, ...], first: str) -> None:
    found = Found(subnets=SUBNETS, security_groups=(), images=tuple((one, ()) for one in images))
    assert [one["id"] for one in status(node_class(), found)["amis"]] == [first]


@pytest.mark.parametrize(
    ("term", "name", "count"),
    [
        (
            Selector(alias="al2023@latest"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id",
            5,
        ),
        (
            Selector(alias="al2023@v20261111"),
            (
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/"
                "amazon-eks-node-al2023-arm64-nvidia-1.34-v20261111/image_id"
            ),
            5,
        ),
        (Selector(alias="bottlerocket@v1.2"), "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.2/image_id", 4),
        (Selector(ssm_parameter="/own"), "/own", 1),
    ],
)
def test_an_alias_is_parameters(term: Selector, name: str, count: int) -> None:
    wanted = parameters_wanted(node_class(image_selectors=(term, Selector(id="ami-9"))), "1.34")
    assert name in [one.name for one in wanted]
    assert len(wanted) == count


def test_the_catalogue_is_made_anew_when_it_is_old_or_a_class_changed() -> None:
    made = Catalogue(region="r", instance_types=(), priced_at=NOW)
    before = Cluster(taken_at=NOW, node_classes=(node_class(),), catalogue=made)
    moved = node_class(resolved_subnets=(Subnet(subnet_id="s", zone="z", zone_id="i", available_ip_count=1),))
    assert not is_due(before, before)
    assert is_due(before, Cluster(taken_at=later(3600), node_classes=(node_class(),)))
    assert is_due(before, Cluster(taken_at=NOW, node_classes=(moved,)))
    assert is_due(Cluster(taken_at=NOW), Cluster(taken_at=NOW))


def test_a_class_without_subnets_is_not_in_the_catalogue() -> None:
    classes = (node_class(), node_class(meta=node_class().meta, resolved_subnets=()))
    made = catalogue(Cluster(taken_at=NOW, node_classes=classes), INFOS, MARKET, knobs("0.075", "0"))
    assert [name for name, _ in made.by_node_class] == ["default"]
    assert made.priced_at == NOW


def test_pods_that_waited_for_a_class_are_planned_at_once() -> None:
    unready, ready = (Cluster(taken_at=NOW, node_classes=(one,)) for one in (node_class(conditions=()), node_class()))
    [action] = told(unready, ready)
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    [action] = told(ready, ready)  # without a catalogue before
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    seen = msgspec.structs.replace(ready, catalogue=catalogue(ready, INFOS, MARKET, knobs("0.075", "0")))
    assert told(seen, seen) == ()
    assert told(unready, unready) == ()


def test_a_class_that_is_gone_meanwhile_is_passed_over() -> None:
    assert statuses(Cluster(taken_at=NOW), (("default", FOUND),), "p") == ()
    [one] = statuses(Cluster(taken_at=NOW, node_classes=(node_class(),)), (("default", FOUND),), "p")
    assert '"True"' in one.status  # type: ignore[union-attr]
