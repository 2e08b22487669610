"""A node class and the account -> its status."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.decide.launch.ami_families.images import list_image_parameters
from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.catalog import (
    build_catalog,
    is_catalog_due,
    plan_requeues,
)
from shared.decide.node_class.status import find_unmatched_terms, plan_status_patches, resolve_node_class_status
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers, NodeClassFinding
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.decisions.action import FollowUp, PatchStatus
from shared.model.ec2.account import CapacityReservation, Image, PlacementGroup, SecurityGroup, SelectorTerm, Subnet
from shared.model.karpenter.node_class import EC2NodeClass
from shared.take.kubernetes.status_after_write import with_status
from tests.support.launch_cases import INFOS, MARKET, NOW, SUBNETS, build_types_by_name, get_time_after, make_node_class

ANSWERS = NodeClassAnswers(
    subnets=SUBNETS,
    security_groups=(SecurityGroup(group_id="sg-1", name="nodes"),),
    images=((Image(image_id="ami-1", name="one", architecture="x86_64", created_at=NOW), ("standard", "neuron")),),
)


def make_image(name: str, age: int, *, arch: str = "x86_64", deprecated: bool = False) -> Image:
    deprecated_at = NOW - timedelta(days=1) if deprecated else None
    return Image(
        image_id=f"ami-{name}",
        name=name,
        architecture=arch,
        created_at=get_time_after(-age),
        deprecated_at=deprecated_at,
    )


def resolve_status(
    node_class: EC2NodeClass, answers: NodeClassAnswers, profile: str = "p", problems: tuple[NodeClassFinding, ...] = ()
) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(resolve_node_class_status(node_class, answers, profile, NOW, problems).status)
    return status


def read_conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}


def test_node_class_with_all_dependencies_is_ready() -> None:
    status = resolve_status(make_node_class(), ANSWERS)
    assert read_conditions(status)["Ready"] == ("True", "Ready")
    assert status["subnets"][0] == {"id": "subnet-a", "zone": "us-east-1a", "zoneID": "use1-az1"}
    assert status["securityGroups"] == [{"id": "sg-1", "name": "nodes"}]
    assert status["instanceProfile"] == "p"
    assert [ami["id"] for ami in status["amis"]] == ["ami-1", "ami-1"]


@pytest.mark.parametrize(
    ("answers", "profile", "problems", "condition", "reason"),
    [
        (NodeClassAnswers(subnets=(), security_groups=(), images=()), "p", (), "SubnetsReady", "SubnetsNotFound"),
        (
            NodeClassAnswers(subnets=(), security_groups=(), images=()),
            "p",
            (),
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
        ),
        (NodeClassAnswers(subnets=(), security_groups=(), images=()), "p", (), "AMIsReady", "AMINotFound"),
        (ANSWERS, "", (), "InstanceProfileReady", "InstanceProfileNotFound"),
        (
            ANSWERS,
            "p",
            (NodeClassFinding(reason="TagValidationFailed", message="spec.tags: no"),),
            "ValidationSucceeded",
            "TagValidationFailed",
        ),
    ],
)
def test_missing_dependency_sets_its_condition_to_false_with_a_reason(
    answers: NodeClassAnswers, profile: str, problems: tuple[NodeClassFinding, ...], condition: str, reason: str
) -> None:
    conditions = read_conditions(resolve_status(make_node_class(), answers, profile, problems))
    assert conditions[condition] == ("False", reason)
    assert conditions["Ready"] == ("False", "UnhealthyDependents")


def test_status_fields_are_left_unchanged_when_aws_was_not_queried() -> None:
    status = resolve_status(make_node_class(), NodeClassAnswers(subnets=None, security_groups=None, images=None))
    assert read_conditions(status)["SubnetsReady"][0] == "Unknown"
    assert read_conditions(status)["Ready"] == ("Unknown", "ReconcilingDependents")
    assert not {"subnets", "securityGroups", "amis"} & status.keys()


def test_conditions_of_the_same_generation_are_kept_while_ec2_is_unreachable() -> None:
    stood = tuple(
        Condition(type=kind, status="True", reason=kind, observed_generation=1)
        for kind in ("SubnetsReady", "SecurityGroupsReady", "AMIsReady", "ValidationSucceeded")
    )
    silent = NodeClassAnswers(subnets=None, security_groups=None, images=None, refusals=None)
    assert read_conditions(resolve_status(make_node_class(conditions=stood), silent))["Ready"] == ("True", "Ready")


def test_node_class_with_an_instance_profile_keeps_it() -> None:
    assert resolve_status(make_node_class(instance_profile="own"), ANSWERS)["instanceProfile"] == "own"


@pytest.mark.parametrize(
    ("images", "first"),
    [
        ((make_image("old", 9), make_image("new", 1)), "ami-new"),
        ((make_image("old", 9), make_image("new", 1, deprecated=True)), "ami-old"),
        ((make_image("a", 1), make_image("b", 1)), "ami-b"),
        ((make_image("mac", 1, arch="arm64_mac"), make_image("old", 9)), "ami-old"),
    ],
)
def test_newest_non_deprecated_image_of_each_variant_is_chosen(images: tuple[Image, ...], first: str) -> None:
    answers = NodeClassAnswers(subnets=SUBNETS, security_groups=(), images=tuple((image, ()) for image in images))
    assert [ami["id"] for ami in resolve_status(make_node_class(), answers)["amis"]] == [first]


@pytest.mark.parametrize(
    ("term", "name", "count"),
    [
        (
            SelectorTerm(alias="al2023@latest"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id",
            5,
        ),
        (
            SelectorTerm(alias="al2023@v20261111"),
            (
                "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/"
                "amazon-eks-node-al2023-arm64-nvidia-1.34-v20261111/image_id"
            ),
            5,
        ),
        (SelectorTerm(alias="bottlerocket@v1.2"), "/aws/service/bottlerocket/aws-k8s-1.34/arm64/1.2/image_id", 4),
        (SelectorTerm(ssm_parameter="/own"), "/own", 1),
        (
            SelectorTerm(alias="al2@latest"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2-gpu/recommended/image_id",
            3,
        ),
        (
            SelectorTerm(alias="al2@v20261101"),
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2-arm64/amazon-eks-arm64-node-1.34-v20261101/image_id",
            3,
        ),
        (
            SelectorTerm(alias="windows2022@latest"),
            "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id",
            1,
        ),
    ],
)
def test_ami_alias_maps_to_ssm_parameters(term: SelectorTerm, name: str, count: int) -> None:
    parameters = list_image_parameters(make_node_class(image_selectors=(term, SelectorTerm(id="ami-9"))), "1.34")
    assert name in [parameter.name for parameter in parameters]
    assert len(parameters) == count


def test_catalog_is_rebuilt_when_it_is_old_or_a_node_class_changed() -> None:
    catalog = Catalog(region="r", instance_types=tuple(build_types_by_name().values()), priced_at=NOW)
    before = ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),), catalog=catalog)
    moved = make_node_class(resolved_subnets=(Subnet(subnet_id="s", zone="z", zone_id="i", available_ip_count=1),))
    assert not is_catalog_due(before, before)
    assert is_catalog_due(before, ClusterSnapshot(taken_at=get_time_after(3600), node_classes=(make_node_class(),)))
    assert is_catalog_due(before, ClusterSnapshot(taken_at=NOW, node_classes=(moved,)))
    assert is_catalog_due(
        ClusterSnapshot(taken_at=NOW), ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),))
    )


def test_catalog_is_not_built_without_usable_node_classes() -> None:
    before = ClusterSnapshot(taken_at=NOW)
    assert not is_catalog_due(before, before)
    assert not is_catalog_due(
        before, ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(resolved_subnets=()),))
    )


def test_node_class_without_subnets_is_not_in_the_catalog() -> None:
    classes = (make_node_class(), make_node_class(meta=make_node_class().meta, resolved_subnets=()))
    catalog = build_catalog(ClusterSnapshot(taken_at=NOW, node_classes=classes), INFOS, MARKET, CapacitySettings())
    assert [name for name, _ in catalog.by_node_class] == ["default"]
    assert catalog.priced_at == NOW


def test_provisioning_is_requeued_one_second_after_a_node_class_becomes_ready() -> None:
    unready, ready = (
        ClusterSnapshot(taken_at=NOW, node_classes=(node_class,))
        for node_class in (make_node_class(conditions=()), make_node_class())
    )
    [action] = plan_requeues(unready, ready)
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    [action] = plan_requeues(ready, ready)  # without a catalogue before
    assert isinstance(action, FollowUp)
    assert action.function == "provision"
    cataloged = msgspec.structs.replace(ready, catalog=build_catalog(ready, INFOS, MARKET, CapacitySettings()))
    [action] = plan_requeues(msgspec.structs.replace(unready, catalog=cataloged.catalog), cataloged)
    assert isinstance(action, FollowUp)
    assert (action.function, action.after) == ("provision", timedelta(seconds=1))
    assert plan_requeues(cataloged, cataloged) == ()
    assert plan_requeues(unready, unready) == ()


def test_deleted_node_class_gets_no_status_patch() -> None:
    assert plan_status_patches(ClusterSnapshot(taken_at=NOW), (("default", ANSWERS),), "p") == ()
    [patch] = plan_status_patches(
        ClusterSnapshot(taken_at=NOW, node_classes=(make_node_class(),)), (("default", ANSWERS),), "p"
    )
    assert '"True"' in patch.status  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("alias", "version", "words"),
    [
        ("al2@latest", "1.33", "AL2 does not support Kubernetes 1.33: use al2023@latest"),
        ("al2@latest", "1.32", ""),
        ("windows2025@latest", "1.34", "Windows 2025 requires Kubernetes 1.35"),
        ("windows2025@latest", "1.35", ""),
        ("al2023@latest", "1.34", ""),
    ],
)
def test_alias_without_images_for_the_kubernetes_version_is_unsupported(alias: str, version: str, words: str) -> None:
    node_class = make_node_class(image_selectors=(SelectorTerm(alias=alias),))
    status = resolve_status(node_class, msgspec.structs.replace(ANSWERS, kubernetes_version=version))
    [ami] = [condition for condition in status["conditions"] if condition["type"] == "AMIsReady"]
    assert words in ami["message"]
    assert (ami["reason"] == "UnsupportedAlias") == bool(words)


def test_windows_image_requires_its_windows_build() -> None:
    answers = msgspec.structs.replace(ANSWERS, images=((make_image("w", 1), ("Windows2022",)),))
    [ami] = resolve_status(make_node_class(), answers)["amis"]
    assert {(requirement["key"], *requirement["values"]) for requirement in ami["requirements"]} == {
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "windows"),
        ("node.kubernetes.io/windows-build", "10.0.20348"),
    }


def test_image_with_an_unsupported_architecture_is_reported() -> None:
    answers = msgspec.structs.replace(ANSWERS, images=((make_image("mac", 1, arch="arm64_mac"), ()),))
    [ami] = [
        condition
        for condition in resolve_status(make_node_class(), answers)["conditions"]
        if condition["type"] == "AMIsReady"
    ]
    assert ami["reason"] == "AMINotFound"
    assert "ami-mac is of architecture arm64_mac: choose one of x86_64 or arm64" in ami["message"]


def test_selector_terms_without_matches_are_listed_in_the_condition_message() -> None:
    node_class = make_node_class(subnet_selectors=(SelectorTerm(id="subnet-9"), SelectorTerm(tags=(("a", "b"),))))
    answers = msgspec.structs.replace(ANSWERS, subnets=())
    [subnets_condition] = [
        condition
        for condition in resolve_status(node_class, answers)["conditions"]
        if condition["type"] == "SubnetsReady"
    ]
    assert "([0] subnet-9, [1] tags a=b)" in subnets_condition["message"]


def test_selected_ids_that_do_not_exist_are_reported() -> None:
    node_class = make_node_class(
        subnet_selectors=(SelectorTerm(id="subnet-a"), SelectorTerm(id="subnet-9")),
        security_group_selectors=(SelectorTerm(name="nodes"), SelectorTerm(name="lost"), SelectorTerm(id="sg-1")),
        image_selectors=(SelectorTerm(id="ami-1"), SelectorTerm(id="ami-9"), SelectorTerm(name="own-*")),
        capacity_reservation_selectors=(SelectorTerm(id="cr-9"), SelectorTerm(instance_match_criteria="open")),
    )
    assert [line.partition(" does not")[0] for line in find_unmatched_terms(node_class, ANSWERS)] == [
        "spec.subnetSelectorTerms: subnet-9",
        "spec.securityGroupSelectorTerms: lost",
        "spec.amiSelectorTerms: ami-9",
        "spec.capacityReservationSelectorTerms: cr-9",
    ]
    assert (
        find_unmatched_terms(
            node_class, NodeClassAnswers(subnets=None, security_groups=None, images=None, capacity_reservations=None)
        )
        == ()
    )


def make_reservation(**fields: Any) -> CapacityReservation:
    plain = CapacityReservation(reservation_id="cr-1", instance_type="m5.large", zone="us-east-1a", owner_id="1")
    return msgspec.structs.replace(plain, **fields)


@pytest.mark.parametrize(
    ("kind", "minutes", "state"),
    [("capacity-block", 39, "expiring"), ("capacity-block", 41, "active"), ("default", 39, "active")],
)
def test_capacity_reservations_are_listed_in_the_status(kind: str, minutes: int, state: str) -> None:
    capacity_reservation = make_reservation(
        reservation_type=kind, ends_at=NOW + timedelta(minutes=minutes), is_interruptible=True
    )
    [reservation_status] = resolve_status(
        make_node_class(), msgspec.structs.replace(ANSWERS, capacity_reservations=(capacity_reservation,))
    )["capacityReservations"]
    assert (
        reservation_status["state"],
        reservation_status["reservationType"],
        reservation_status["interruptible"],
    ) == (state, kind, True)
    assert (reservation_status["id"], reservation_status["instanceType"], reservation_status["availabilityZone"]) == (
        "cr-1",
        "m5.large",
        "us-east-1a",
    )
    assert reservation_status["endTime"].startswith("2026-11-21T08:")


def test_missing_capacity_reservations_are_removed_from_the_status() -> None:
    node_class = make_node_class(resolved_capacity_reservations=(make_reservation(),))
    assert resolve_status(node_class, ANSWERS)["capacityReservations"] == []
    unknown = resolve_status(node_class, msgspec.structs.replace(ANSWERS, capacity_reservations=None))
    assert "capacityReservations" not in unknown
    assert read_conditions(unknown)["CapacityReservationsReady"][0] == "Unknown"


@pytest.mark.parametrize(
    ("groups", "state"),
    [
        ((PlacementGroup(group_id="pg-1", name="racks"),), ("True", "PlacementGroupReady")),
        ((), ("False", "PlacementGroupNotFound")),
        (None, ("Unknown", "PlacementGroupResolutionFailed")),
    ],
)
def test_selected_placement_group_must_exist(groups: tuple[PlacementGroup, ...] | None, state: tuple[str, str]) -> None:
    node_class = make_node_class(placement_group_selector=SelectorTerm(name="racks"))
    status = resolve_status(node_class, msgspec.structs.replace(ANSWERS, placement_groups=groups))
    assert read_conditions(status)["PlacementGroupReady"] == state


def test_node_class_is_validated_after_its_dependencies_are_ready() -> None:
    missing = read_conditions(resolve_status(make_node_class(), msgspec.structs.replace(ANSWERS, subnets=())))
    assert missing["ValidationSucceeded"] == ("False", "DependenciesNotReady")
    unasked = read_conditions(resolve_status(make_node_class(), msgspec.structs.replace(ANSWERS, subnets=None)))
    assert unasked["ValidationSucceeded"] == ("Unknown", "DependenciesNotReady")
    refused = read_conditions(resolve_status(make_node_class(), msgspec.structs.replace(ANSWERS, refusals=None)))
    assert refused["ValidationSucceeded"] == ("Unknown", "AwaitingReconciliation")


BLOCK = make_reservation(reservation_type="capacity-block", ends_at=NOW + timedelta(hours=1))
ANSWERS_WITH_RESERVATION = msgspec.structs.replace(ANSWERS, capacity_reservations=(BLOCK,))


def list_written_statuses(
    node_class: EC2NodeClass, answers: NodeClassAnswers, profile: str = "p", minutes: int = 0
) -> tuple[str, ...]:
    """Return the statuses that are written for *node_class* after *minutes*."""
    cluster = ClusterSnapshot(taken_at=NOW + timedelta(minutes=minutes), node_classes=(node_class,))
    actions = plan_status_patches(cluster, ((node_class.name, answers),), profile)
    return tuple(action.status for action in actions if isinstance(action, PatchStatus))


@pytest.mark.parametrize(
    "answers", [ANSWERS, ANSWERS_WITH_RESERVATION, NodeClassAnswers(subnets=None, security_groups=(), images=())]
)
def test_unchanged_status_is_not_written_again(answers: NodeClassAnswers) -> None:
    [status] = list_written_statuses(make_node_class(), answers)
    updated_class = with_status(make_node_class(), status)
    assert (
        list_written_statuses(updated_class, answers) == list_written_statuses(updated_class, answers, minutes=19) == ()
    )
    unasked = msgspec.structs.replace(answers, capacity_reservations=None, refusals=None)
    assert list_written_statuses(updated_class, unasked) == ()


@pytest.mark.parametrize(
    ("change", "answer_changes", "profile", "minutes"),
    [
        ({}, {"subnets": SUBNETS[:1]}, "p", 0),
        ({}, {"security_groups": (SecurityGroup(group_id="sg-1", name="renamed"),)}, "p", 0),
        ({}, {"images": ((make_image("new", 1), ("standard",)),)}, "p", 0),
        ({}, {"capacity_reservations": ()}, "p", 0),
        ({}, {}, "q", 0),
        ({}, {}, "p", 21),
        ({"meta": ObjectMeta(name="default", generation=2)}, {}, "p", 0),
        ({"conditions": ()}, {}, "p", 0),
    ],
)
def test_status_is_written_when_any_field_changes(
    change: dict[str, Any], answer_changes: dict[str, Any], profile: str, minutes: int
) -> None:
    [status] = list_written_statuses(make_node_class(), ANSWERS_WITH_RESERVATION)
    updated_class = msgspec.structs.replace(with_status(make_node_class(), status), **change)
    assert (
        len(
            list_written_statuses(
                updated_class, msgspec.structs.replace(ANSWERS_WITH_RESERVATION, **answer_changes), profile, minutes
            )
        )
        == 1
    )
