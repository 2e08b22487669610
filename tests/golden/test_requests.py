"""Requests to EC2 are the stored ones, byte for byte."""

import json
from typing import Any

import pytest

from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cluster import ClusterSnapshot
from tests.golden.requests import FOLDER, build_golden_calls, build_launch_cases, format_document


@pytest.mark.parametrize(
    ("name", "snapshot", "terms"), tuple(build_launch_cases()), ids=lambda one: one if isinstance(one, str) else ""
)
def test_ec2_requests_match_stored_document_byte_for_byte(
    name: str, snapshot: ClusterSnapshot, terms: LaunchPolicy
) -> None:
    document = (FOLDER / f"launch_{name}.json").read_text()
    assert format_document(build_golden_calls(snapshot, terms)) == document, (
        "run `python -m tests.golden.requests` and read the difference"
    )


def test_every_stored_launch_document_belongs_to_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("launch_*.json")} == {
        f"launch_{name}" for name, _, _ in build_launch_cases()
    }


def read_calls(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = json.loads((FOLDER / f"launch_{name}.json").read_text())
    return document["CreateFleet"], [template["LaunchTemplateData"] for template in document["CreateLaunchTemplate"]]


def test_each_capacity_reservation_is_targeted_by_its_own_launch_template() -> None:
    fleet, templates = read_calls("reserved")
    assert fleet["TargetCapacitySpecification"] == {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    targets = [template["CapacityReservationSpecification"]["CapacityReservationTarget"] for template in templates]
    assert sorted(target["CapacityReservationId"] for target in targets) == ["cr-2", "cr-3"]


def test_capacity_block_launch_has_one_template_and_no_allocation_strategy() -> None:
    fleet, templates = read_calls("capacity-block")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert {"OnDemandOptions", "SpotOptions"}.isdisjoint(fleet)
    [template] = templates
    assert template["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_interruptible_reservation_is_requested_as_reserved_capacity() -> None:
    fleet, _ = read_calls("interruptible")
    assert fleet["ReservedCapacityOptions"] == {"ReservationTypes": ["interruptible-capacity-reservation"]}
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "reserved-capacity"


def test_forged_karpenter_tag_is_overwritten() -> None:
    fleet, _ = read_calls("tags")
    [tags, *_] = [one["Tags"] for one in fleet["TagSpecifications"]]
    assert {"Key": "karpenter.sh/nodepool", "Value": "default"} in tags
    assert {"Key": "Name", "Value": "mine"} in tags
