"""The commitments document: valid content, and errors that name object, field and fix."""

from pathlib import Path
from typing import Any

import pytest

from cli.cost.commitments.document import parse_commitments, read_commitments
from cli.terminal.errors import InputError

END = "2027-11-01T00:00:00Z"
DOCS = Path(__file__).parents[5] / "docs" / "guide" / "money.md"


def make_plan(**changes: Any) -> dict[str, Any]:
    plan = {
        "id": "sp",
        "type": "Compute",
        "usdPerHour": 2.5,
        "end": END,
        "rates": [{"instanceFamily": "m5", "discountPercent": 27}],
    }
    return {key: value for key, value in (plan | changes).items() if value is not None}


def make_reserved(**changes: Any) -> dict[str, Any]:
    reserved = {
        "id": "ri",
        "instanceType": "m5.large",
        "count": 2,
        "usdPerHour": 0.06,
        "end": END,
        "region": "us-east-1",
    }
    return {key: value for key, value in (reserved | changes).items() if value is not None}


def make_rate(**fields: Any) -> dict[str, Any]:
    return {"savingsPlans": [make_plan(rates=[fields])]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "F: no commitments: write the lists savingsPlans and reservedInstances"),
        ({"plans": []}, "F: unknown field plans: write the lists savingsPlans and reservedInstances"),
        ({"savingsPlans": {}}, "F: savingsPlans: is not a list: begin each commitment with `- id:`"),
        ({"savingsPlans": [3]}, "F: savingsPlans[0]: Expected `object`, got `int`: see docs/guide/money.md"),
        (
            {"savingsPlans": [make_plan(type="Gold")]},
            "F: savingsPlans[0] (sp): type: Invalid enum value 'Gold': write Compute or EC2Instance",
        ),
        (
            {"savingsPlans": [make_plan(usdPerHour=-1)]},
            "F: savingsPlans[0] (sp): usdPerHour: Expected `float` > 0.0: write an amount in USD like 2.50",
        ),
        (
            {"savingsPlans": [make_plan(end=None)]},
            "F: savingsPlans[0] (sp): end: is missing: write a time like 2027-11-01T00:00:00Z",
        ),
        (
            {"savingsPlans": [make_plan(end="2027-11-01")]},
            (
                "F: savingsPlans[0] (sp): end: '2027-11-01' is not a time with a time zone: write a time like "
                "2027-11-01T00:00:00Z"
            ),
        ),
        (
            {"savingsPlans": [make_plan(start="2028-01-01T00:00:00Z")]},
            "F: savingsPlans[0] (sp): end: is not after start: correct one of them",
        ),
        (
            {"savingsPlans": [make_plan(price=1)]},
            "F: savingsPlans[0] (sp): price: is an unknown field: remove it",
        ),
        (
            {"savingsPlans": [make_plan(region="us-east-1")]},
            "F: savingsPlans[0] (sp): region: a Compute Savings Plan applies to all: remove it",
        ),
        (
            {"savingsPlans": [make_plan(type="EC2Instance", instanceFamily="m5")]},
            "F: savingsPlans[0] (sp): region: is missing: write a region like us-east-1",
        ),
        (
            {"savingsPlans": [make_plan(type="EC2Instance", region="us-east-1", instanceFamily="c5")]},
            (
                "F: savingsPlans[0] (sp): rates[0]: instanceFamily: m5 is not c5, the instance family of the plan: "
                "remove this rate"
            ),
        ),
        (
            make_rate(instanceFamily="m5", discountPercent=100),
            (
                "F: savingsPlans[0] (sp): rates[0].discountPercent: Expected `float` < 100.0: write a percentage "
                "below 100 like 27.5"
            ),
        ),
        (
            make_rate(discountPercent=10),
            "F: savingsPlans[0] (sp): rates[0]: instanceType: write either instanceType or instanceFamily",
        ),
        (
            make_rate(instanceType="m5.large"),
            "F: savingsPlans[0] (sp): rates[0]: usdPerHour: write either usdPerHour or discountPercent",
        ),
        (
            make_rate(instanceFamily="m5", usdPerHour=1),
            (
                "F: savingsPlans[0] (sp): rates[0]: usdPerHour: sizes of an instance family have different rates: "
                "write discountPercent"
            ),
        ),
        (
            {"reservedInstances": [make_reserved(count=0)]},
            "F: reservedInstances[0] (ri): count: Expected `int` >= 1: write a whole number like 4",
        ),
        (
            {"reservedInstances": [make_reserved(zone="us-east-1a")]},
            "F: reservedInstances[0] (ri): region: write either region (regional) or zone (zonal)",
        ),
        (
            {"reservedInstances": [make_reserved(), make_reserved()]},
            "F: id: ri is used twice: give each commitment its own id",
        ),
    ],
)
def test_error_names_object_field_and_fix(content: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_commitments("F", content)
    assert str(raised.value) == message


def test_all_errors_are_reported() -> None:
    with pytest.raises(InputError) as raised:
        parse_commitments("F", {"savingsPlans": [make_plan(type="x"), make_plan(end="x")]})
    assert len(str(raised.value).splitlines()) == 2


@pytest.mark.parametrize("text", ["", "a: [", "{}\n---\n{}"])
def test_file_that_is_not_one_document_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError, match=r"c\.yaml"):
        read_commitments(str(tmp_path / "c.yaml"))


def test_missing_file_is_reported() -> None:
    with pytest.raises(InputError, match=r"--commitments nowhere\.yaml: No such file"):
        read_commitments("nowhere.yaml")


def test_example_of_the_guide_is_valid(tmp_path: Path) -> None:
    example = next(block for block in DOCS.read_text().split("```yaml\n") if "savingsPlans:" in block).split("```")[0]
    (tmp_path / "c.yaml").write_text(example)
    document = read_commitments(str(tmp_path / "c.yaml"))
    assert {plan.type for plan in document.savings_plans} == {"Compute", "EC2Instance"}
    assert {reserved.zone is None for reserved in document.reserved_instances} == {True, False}
