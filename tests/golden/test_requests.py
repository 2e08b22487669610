"""What EC2 is asked for is what it was asked for, to the byte."""

import json
from typing import Any

import pytest

from shared.launch.groups import Terms
from shared.model.cluster import Cluster
from tests.golden.requests import FOLDER, cases, golden, written


@pytest.mark.parametrize(("name", "some", "terms"), tuple(cases()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_request_is_the_one_that_was_written_down(name: str, some: Cluster, terms: Terms) -> None:
    document = (FOLDER / f"launch_{name}.json").read_text()
    assert written(golden(some, terms)) == document, "run `python -m tests.golden.requests` and read the difference"


def test_no_file_is_left_of_a_case_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("launch_*.json")} == {f"launch_{name}" for name, _, _ in cases()}


def read(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = json.loads((FOLDER / f"launch_{name}.json").read_text())
    return document["CreateFleet"], [one["LaunchTemplateData"] for one in document["CreateLaunchTemplate"]]


def test_a_reservation_is_targeted_by_its_own_template() -> None:
    fleet, templates = read("reserved")
    assert fleet["TargetCapacitySpecification"] == {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    named = [one["CapacityReservationSpecification"]["CapacityReservationTarget"] for one in templates]
    assert sorted(one["CapacityReservationId"] for one in named) == ["cr-2", "cr-3"]


def test_of_capacity_blocks_there_is_one_and_no_strategy() -> None:
    fleet, templates = read("capacity-block")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert {"OnDemandOptions", "SpotOptions"}.isdisjoint(fleet)
    [template] = templates
    assert template["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_an_interruptible_reservation_is_asked_for_as_such() -> None:
    fleet, _ = read("interruptible")
    assert fleet["ReservedCapacityOptions"] == {"ReservationTypes": ["interruptible-capacity-reservation"]}
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "reserved-capacity"


def test_a_forged_tag_is_overwritten() -> None:
    fleet, _ = read("tags")
    [tags, *_] = [one["Tags"] for one in fleet["TagSpecifications"]]
    assert {"Key": "karpenter.sh/nodepool", "Value": "default"} in tags
    assert {"Key": "Name", "Value": "mine"} in tags
