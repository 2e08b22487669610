"""The commitments document: valid content, and errors that name object, field and fix."""

from typing import Any

import pytest

from shared.model.core.units import parse_instant
from shared.store.commitments import (
    InvalidCommitmentsError,
    build_commitments,
    decode_commitments,
    encode_commitments,
    parse_commitments,
)

END = "2027-11-01T00:00:00Z"


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
    with pytest.raises(InvalidCommitmentsError) as raised:
        parse_commitments("F", content)
    assert str(raised.value) == message


def test_all_errors_are_reported() -> None:
    with pytest.raises(InvalidCommitmentsError) as raised:
        parse_commitments("F", {"savingsPlans": [make_plan(type="x"), make_plan(end="x")]})
    assert len(str(raised.value).splitlines()) == 2


def test_document_is_the_same_after_encoding() -> None:
    rates = [{"instanceType": "m5.large", "usdPerHour": 0.07}, {"instanceFamily": "m5", "discountPercent": 27}]
    content = {"savingsPlans": [make_plan(rates=rates, start="2026-11-01T00:00:00Z")]}
    document = parse_commitments("F", content | {"reservedInstances": [make_reserved()]})
    assert decode_commitments("F", encode_commitments(document)) == document


@pytest.mark.parametrize(("body", "message"), [(b"a: 1", "F: not JSON: "), (b"{}", "F: no commitments")])
def test_body_that_is_no_document_is_reported(body: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_commitments("F", body)


def test_rate_of_a_type_overrides_that_of_its_family_and_terms_are_kept() -> None:
    rates = [{"instanceType": "m5.large", "usdPerHour": 0.07}, {"instanceFamily": "m5", "discountPercent": 50}]
    content = {
        "savingsPlans": [make_plan(rates=rates)],
        "reservedInstances": [make_reserved(), make_reserved(id="other", region="eu-west-1")],
    }
    prices = {"m5.large": 0.1, "m5.xlarge": 0.2, "c5.large": 0.1}
    commitments = build_commitments(parse_commitments("F", content), ("us-east-1",), prices)
    assert commitments.plans[0].rates == (("m5.large", 0.07), ("m5.xlarge", 0.1))
    assert [item.reservation_id for item in commitments.reserved] == ["ri"]
    assert commitments.other_regions == ("other",)
    assert not commitments.select_active(parse_instant(END)).plans
