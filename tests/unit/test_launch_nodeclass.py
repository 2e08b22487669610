"""A node class and the account -> its status."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.launch.catalogues import catalogue, is_due, knobs, statuses, told
from shared.launch.nodeclass import Found, parameters_wanted, resolve, unmatched
from shared.launch.validation import Finding
from shared.model.action import FollowUp, PatchStatus
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import CapacityReservation, Image, PlacementGroup, SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Condition, Meta
from shared.snapshot.foreseen import with_status
from tests.unit.launch_cases import INFOS, MARKET, NOW, SUBNETS, later, node_class, types

FOUND = Found(
    subnets=SUBNETS,
    security_groups=(SecurityGroup(group_id="sg-1", name="nodes"),),
    images=((Image(image_id="ami-1", name="one", architecture="x86_64", created_at=NOW), ("standard", "neuron")),),
)


def image(name: str, age: int, *, arch: str = "x86_64", deprecated: bool = False) -> Image:
    gone = NOW - timedelta(days=1) if deprecated else None
    return Image(image_id=f"ami-{name}", name=name, architecture=arch, created_at=later(-age), deprecated_at=gone)


def status(some: EC2NodeClass, found: Found, profile: str = "p", problems: tuple[Finding, ...] = ()) -> dict[str, Any]:
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
        (
            FOUND,
            "p",
            (Finding(reason="TagValidationFailed", message="spec.tags: no"),),
            "ValidationSucceeded",
            "TagValidationFailed",
        ),
    ],
)
def test_what_is_not_found_is_false_with_its_reason(
    found: Found, profile: str, problems: tuple[Finding, ...], condition: str, reason: str
) -> None:
    got = conditions(status(node_class(), found, profile, problems))
    assert got[condition] == ("False", reason)
    assert got["Ready"] == ("False", "UnhealthyDependents")


def test_what_could_not_be_asked_stays_as_it_was() -> None:
    written = status(node_class(), Found(subnets=None, security_groups=None, images=None))
    assert conditions(written)["SubnetsReady"][0] == "Unknown"
    assert conditions(written)["Ready"] == ("Unknown", "ReconcilingDependents")
    assert not {"subnets", "securityGroups", "amis"} & written.keys()


def test_a_condition_of_this_generation_stands_while_ec2_cannot_be_asked() -> None:
    stood = tuple(
        Condition(type=kind, status="True", reason=kind, observed_generation=1)
        for kind in ("SubnetsReady", "SecurityGroupsReady", "AMIsReady", "ValidationSucceeded")
    )
    silent = Found(subnets=None, security_groups=None, images=None, refusals=None)
    assert conditions(status(node_class(conditions=stood), silent))["Ready"] == ("True", "Ready")


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
        (
            Selector(alias="al2@latest"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2-gpu/recommended/image_id",
            3,
        ),
        (
            Selector(alias="al2@v20261101"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2-arm64/amazon-eks-arm64-node-1.34-v20261101/image_id",
            3,
        ),
        (
            Selector(alias="windows2022@latest"),
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id",
            1,
        ),
    ],
)
def test_an_alias_is_parameters(term: Selector, name: str, count: int) -> None:
    wanted = parameters_wanted(node_class(image_selectors=(term, Selector(id="ami-9"))), "1.34")
    assert name in [one.name for one in wanted]
    assert len(wanted) == count


def test_the_catalogue_is_made_anew_when_it_is_old_or_a_class_changed() -> None:
    made = Catalogue(region="r", instance_types=tuple(types().values()), priced_at=NOW)
    before = Cluster(taken_at=NOW, node_classes=(node_class(),), catalogue=made)
    moved = node_class(resolved_subnets=(Subnet(subnet_id="s", zone="z", zone_id="i", available_ip_count=1),))
    assert not is_due(before, before)
    assert is_due(before, Cluster(taken_at=later(3600), node_classes=(node_class(),)))
    assert is_due(before, Cluster(taken_at=NOW, node_classes=(moved,)))
    assert is_due(Cluster(taken_at=NOW), Cluster(taken_at=NOW, node_classes=(node_class(),)))


def test_no_catalogue_is_made_for_nobody() -> None:
    before = Cluster(taken_at=NOW)
    assert not is_due(before, before)
    assert not is_due(before, Cluster(taken_at=NOW, node_classes=(node_class(resolved_subnets=()),)))


def test_a_class_without_subnets_is_not_in_the_catalogue() -> None:
    classes = (node_class(), node_class(meta=node_class().meta, resolved_subnets=()))
    made = catalogue(Cluster(taken_at=NOW, node_classes=classes), INFOS, MARKET, knobs("0.075", "0"))
    assert [name for name, _ in made.by_node_class] == ["default"]
    assert made.priced_at == NOW


def test_pods_that_waited_for_a_class_are_planned_within_a_second_and_not_at_once() -> None:
    unready, ready = (Cluster(taken_at=NOW, node_classes=(one,)) for one in (node_class(conditions=()), node_class()))
    [action] = told(unready, ready)
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    [action] = told(ready, ready)  # without a catalogue before
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    seen = msgspec.structs.replace(ready, catalogue=catalogue(ready, INFOS, MARKET, knobs("0.075", "0")))
    [action] = told(msgspec.structs.replace(unready, catalogue=seen.catalogue), seen)
    assert isinstance(action, FollowUp)
    assert (action.function, action.after) == ("provision", timedelta(seconds=1))
    assert told(seen, seen) == ()
    assert told(unready, unready) == ()


def test_a_class_that_is_gone_meanwhile_is_passed_over() -> None:
    assert statuses(Cluster(taken_at=NOW), (("default", FOUND),), "p") == ()
    [one] = statuses(Cluster(taken_at=NOW, node_classes=(node_class(),)), (("default", FOUND),), "p")
    assert '"True"' in one.status  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("alias", "version", "words"),
    [
        ("al2@latest", "1.33", "there is no AL2 for Kubernetes 1.33: use al2023@latest"),
        ("al2@latest", "1.32", ""),
        ("windows2025@latest", "1.34", "Windows 2025 begins with Kubernetes 1.35"),
        ("windows2025@latest", "1.35", ""),
        ("al2023@latest", "1.34", ""),
    ],
)
def test_an_alias_without_images_for_the_version_is_unsupported(alias: str, version: str, words: str) -> None:
    some = node_class(image_selectors=(Selector(alias=alias),))
    written = status(some, msgspec.structs.replace(FOUND, kubernetes_version=version))
    [ami] = [one for one in written["conditions"] if one["type"] == "AMIsReady"]
    assert words in ami["message"]
    assert (ami["reason"] == "UnsupportedAlias") == bool(words)


def test_windows_images_are_for_windows_of_their_build() -> None:
    found = msgspec.structs.replace(FOUND, images=((image("w", 1), ("Windows2022",)),))
    [one] = status(node_class(), found)["amis"]
    assert {(each["key"], *each["values"]) for each in one["requirements"]} == {
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "windows"),
        ("node.kubernetes.io/windows-build", "10.0.20348"),
    }


def test_an_image_for_no_kubernetes_node_is_named() -> None:
    found = msgspec.structs.replace(FOUND, images=((image("mac", 1, arch="arm64_mac"), ()),))
    [ami] = [one for one in status(node_class(), found)["conditions"] if one["type"] == "AMIsReady"]
    assert ami["reason"] == "AMINotFound"
    assert "ami-mac is of architecture arm64_mac: choose one of x86_64 or arm64" in ami["message"]


def test_the_terms_that_matched_nothing_are_told() -> None:
    some = node_class(subnet_selectors=(Selector(id="subnet-9"), Selector(tags=(("a", "b"),))))
    found = msgspec.structs.replace(FOUND, subnets=())
    [one] = [one for one in status(some, found)["conditions"] if one["type"] == "SubnetsReady"]
    assert "([0] subnet-9, [1] tags a=b)" in one["message"]


def test_an_id_that_does_not_exist_beside_others_is_told() -> None:
    some = node_class(
        subnet_selectors=(Selector(id="subnet-a"), Selector(id="subnet-9")),
        security_group_selectors=(Selector(name="nodes"), Selector(name="lost"), Selector(id="sg-1")),
        image_selectors=(Selector(id="ami-1"), Selector(id="ami-9"), Selector(name="own-*")),
        capacity_reservation_selectors=(Selector(id="cr-9"), Selector(instance_match_criteria="open")),
    )
    assert [line.partition(" does not")[0] for line in unmatched(some, FOUND)] == [
        "spec.subnetSelectorTerms: subnet-9",
        "spec.securityGroupSelectorTerms: lost",
        "spec.amiSelectorTerms: ami-9",
        "spec.capacityReservationSelectorTerms: cr-9",
    ]
    assert unmatched(some, Found(subnets=None, security_groups=None, images=None, capacity_reservations=None)) == ()


def reservation(**fields: Any) -> CapacityReservation:
    plain = CapacityReservation(reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a", owner_id="1")
    return msgspec.structs.replace(plain, **fields)


@pytest.mark.parametrize(
    ("kind", "minutes", "state"),
    [("capacity-block", 39, "expiring"), ("capacity-block", 41, "active"), ("default", 39, "active")],
)
def test_reservations_stand_in_the_status(kind: str, minutes: int, state: str) -> None:
    one = reservation(reservation_type=kind, ends_at=NOW + timedelta(minutes=minutes), is_interruptible=True)
    [written] = status(node_class(), msgspec.structs.replace(FOUND, capacity_reservations=(one,)))[
        "capacityReservations"
    ]
    assert (written["state"], written["reservationType"], written["interruptible"]) == (state, kind, True)
    assert (written["id"], written["instanceType"], written["availabilityZone"]) == ("cr-1", "m5.large", "us-east-1a")
    assert written["endTime"].startswith("2026-11-21T08:")


def test_reservations_that_are_gone_leave_the_status() -> None:
    some = node_class(resolved_capacity_reservations=(reservation(),))
    assert status(some, FOUND)["capacityReservations"] == []
    unknown = status(some, msgspec.structs.replace(FOUND, capacity_reservations=None))
    assert "capacityReservations" not in unknown
    assert conditions(unknown)["CapacityReservationsReady"][0] == "Unknown"


@pytest.mark.parametrize(
    ("groups", "state"),
    [
        ((PlacementGroup(group_id="pg-1", name="racks"),), ("True", "PlacementGroupReady")),
        ((), ("False", "PlacementGroupNotFound")),
        (None, ("Unknown", "PlacementGroupResolutionFailed")),
    ],
)
def test_a_placement_group_that_is_wanted_must_be_there(
    groups: tuple[PlacementGroup, ...] | None, state: tuple[str, str]
) -> None:
    some = node_class(placement_group_selector=Selector(name="racks"))
    written = status(some, msgspec.structs.replace(FOUND, placement_groups=groups))
    assert conditions(written)["PlacementGroupReady"] == state


def test_a_class_is_validated_once_its_dependencies_are_there() -> None:
    missing = conditions(status(node_class(), msgspec.structs.replace(FOUND, subnets=())))
    assert missing["ValidationSucceeded"] == ("False", "DependenciesNotReady")
    unasked = conditions(status(node_class(), msgspec.structs.replace(FOUND, subnets=None)))
    assert unasked["ValidationSucceeded"] == ("Unknown", "DependenciesNotReady")
    refused = conditions(status(node_class(), msgspec.structs.replace(FOUND, refusals=None)))
    assert refused["ValidationSucceeded"] == ("Unknown", "AwaitingReconciliation")


BLOCK = reservation(reservation_type="capacity-block", ends_at=NOW + timedelta(hours=1))
HOLDING = msgspec.structs.replace(FOUND, capacity_reservations=(BLOCK,))


def said(some: EC2NodeClass, found: Found, profile: str = "p", minutes: int = 0) -> tuple[str, ...]:
    """Answer what is written of *some* so many *minutes* later."""
    cluster = Cluster(taken_at=NOW + timedelta(minutes=minutes), node_classes=(some,))
    actions = statuses(cluster, ((some.name, found),), profile)
    return tuple(one.status for one in actions if isinstance(one, PatchStatus))


@pytest.mark.parametrize("found", [FOUND, HOLDING, Found(subnets=None, security_groups=(), images=())])
def test_a_status_that_says_it_already_is_not_written_again(found: Found) -> None:
    [written] = said(node_class(), found)
    shown = with_status(node_class(), written)
    assert said(shown, found) == said(shown, found, minutes=19) == ()
    unasked = msgspec.structs.replace(found, capacity_reservations=None, refusals=None)
    assert said(shown, unasked) == ()


@pytest.mark.parametrize(
    ("change", "found", "profile", "minutes"),
    [
        ({}, {"subnets": SUBNETS[:1]}, "p", 0),
        ({}, {"security_groups": (SecurityGroup(group_id="sg-1", name="renamed"),)}, "p", 0),
        ({}, {"images": ((image("new", 1), ("standard",)),)}, "p", 0),
        ({}, {"capacity_reservations": ()}, "p", 0),
        ({}, {}, "q", 0),
        ({}, {}, "p", 21),
        ({"meta": Meta(name="default", generation=2)}, {}, "p", 0),
        ({"conditions": ()}, {}, "p", 0),
    ],
)
def test_a_status_is_written_once_anything_of_it_is_another(
    change: dict[str, Any], found: dict[str, Any], profile: str, minutes: int
) -> None:
    [written] = said(node_class(), HOLDING)
    shown = msgspec.structs.replace(with_status(node_class(), written), **change)
    assert len(said(shown, msgspec.structs.replace(HOLDING, **found), profile, minutes)) == 1
