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
def test_a_request_is_the_one_that_was_written_down(name: str, snapshot: ClusterSnapshot, terms: LaunchPolicy) -> None:
    document = (FOLDER / f"launch_{name}.json").read_text()
    assert format_document(build_golden_calls(snapshot, terms)) == document, (
        "run `python -m tests.golden.requests` and read the difference"
    )


def test_no_file_is_left_of_a_case_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("launch_*.json")} == {
        f"launch_{name}" for name, _, _ in build_launch_cases()
    }


def read_calls(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = json.loads((FOLDER / f"launch_{name}.json").read_text())
    return document["CreateFleet"], [template["LaunchTemplateData"] for template in document["CreateLaunchTemplate"]]


def test_a_reservation_is_targeted_by_its_own_template() -> None:
    fleet, templates = read_calls("reserved")
    assert fleet["TargetCapacitySpecification"] == {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    targets = [template["CapacityReservationSpecification"]["CapacityReservationTarget"] for template in templates]
    assert sorted(target["CapacityReservationId"] for target in targets) == ["cr-2", "cr-3"]


def test_of_capacity_blocks_there_is_one_and_no_strategy() -> None:
    fleet, templates = read_calls("capacity-block")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert {"OnDemandOptions", "SpotOptions"}.isdisjoint(fleet)
    [template] = templates
    assert template["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_an_interruptible_reservation_is_asked_for_as_such() -> None:
    fleet, _ = read_calls("interruptible")
    assert fleet["ReservedCapacityOptions"] == {"ReservationTypes": ["interruptible-capacity-reservation"]}
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "reserved-capacity"


def test_a_forged_tag_is_overwritten() -> None:
    fleet, _ = read_calls("tags")
    [tags, *_] = [one["Tags"] for one in fleet["TagSpecifications"]]
    assert {"Key": "karpenter.sh/nodepool", "Value": "default"} in tags
    assert {"Key": "Name", "Value": "mine"} in tags
