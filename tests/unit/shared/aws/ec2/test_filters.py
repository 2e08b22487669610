"""Selector terms as queries."""

from typing import Any

import pytest

from shared.aws.ec2.filters import (
    build_image_queries,
    build_reservation_queries,
    build_security_group_queries,
    build_subnet_queries,
)
from shared.model.ec2.account import SelectorTerm

TAGGED = SelectorTerm(tags=(("stage", "live"), ("tier", "*")))
TAG_FILTERS = [{"Name": "tag:stage", "Values": ["live"]}, {"Name": "tag-key", "Values": ["tier"]}]
AVAILABLE = {"Name": "state", "Values": ["available"]}


def build_query(name: str, *values: str) -> dict[str, Any]:
    return {"Filters": [{"Name": name, "Values": list(values)}]}


@pytest.mark.parametrize(
    ("selectors", "queries"),
    [
        ((), ()),
        ((SelectorTerm(),), ()),
        ((SelectorTerm(id="b"), SelectorTerm(id="a"), SelectorTerm(id="b")), (build_query("subnet-id", "a", "b"),)),
        ((TAGGED, SelectorTerm(id="a")), (build_query("subnet-id", "a"), {"Filters": TAG_FILTERS})),
        ((SelectorTerm(id="a", tags=(("x", "y"),)),), (build_query("subnet-id", "a"),)),
        (
            (SelectorTerm(tags=(("a", "1"),)), SelectorTerm(tags=(("b", "2"),))),
            (build_query("tag:a", "1"), build_query("tag:b", "2")),
        ),
    ],
)
def test_subnets_are_queried_by_ids_in_one_call_and_by_tags_per_term(
    selectors: tuple[SelectorTerm, ...], queries: tuple[dict[str, Any], ...]
) -> None:
    assert build_subnet_queries(selectors) == queries


def test_security_groups_are_queried_by_id_then_name_then_tags() -> None:
    selectors = (
        TAGGED,
        SelectorTerm(name="b"),
        SelectorTerm(id="sg-1", name="no"),
        SelectorTerm(name="a"),
        SelectorTerm(),
    )
    assert build_security_group_queries(selectors) == (
        build_query("group-id", "sg-1"),
        build_query("group-name", "a", "b"),
        {"Filters": TAG_FILTERS},
    )


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        (SelectorTerm(id="ami-1"), {"Filters": [{"Name": "image-id", "Values": ["ami-1"]}, AVAILABLE]}),
        (
            SelectorTerm(name="golden-*"),
            {"Filters": [{"Name": "name", "Values": ["golden-*"]}, AVAILABLE], "Owners": ["self", "amazon"]},
        ),
        (
            SelectorTerm(name="golden-*", owner="123456789012"),
            {"Filters": [{"Name": "name", "Values": ["golden-*"]}, AVAILABLE], "Owners": ["123456789012"]},
        ),
        (TAGGED, {"Filters": [*TAG_FILTERS, AVAILABLE]}),
        (
            SelectorTerm(name="a", tags=(("b", "c"),), owner="self"),
            {
                "Filters": [{"Name": "name", "Values": ["a"]}, {"Name": "tag:b", "Values": ["c"]}, AVAILABLE],
                "Owners": ["self"],
            },
        ),
    ],
)
def test_images_are_queried_with_their_owners(selector: SelectorTerm, query: dict[str, Any]) -> None:
    assert build_image_queries((selector,)) == ({**query, "IncludeDeprecated": True},)


def test_empty_image_selector_terms_make_no_query() -> None:
    assert (
        build_image_queries((SelectorTerm(), SelectorTerm(owner="amazon"), SelectorTerm(alias="al2023@latest"))) == ()
    )


def test_capacity_reservations_are_queried_by_the_id_parameter_and_by_documented_filters() -> None:
    active = {"Name": "state", "Values": ["active"]}
    criteria = SelectorTerm(instance_match_criteria="open", owner="123456789012")
    selectors = (SelectorTerm(id="cr-2"), TAGGED, criteria, SelectorTerm(id="cr-1", owner="123456789012"))
    assert build_reservation_queries(selectors) == (
        {"CapacityReservationIds": ["cr-1", "cr-2"], "Filters": [active]},
        {"Filters": [*TAG_FILTERS, active]},
        {
            "Filters": [
                {"Name": "owner-id", "Values": ["123456789012"]},
                {"Name": "instance-match-criteria", "Values": ["open"]},
                active,
            ]
        },
    )


def test_scheduled_capacity_reservations_are_queried_on_request() -> None:
    states = ("active", "scheduled")
    assert build_reservation_queries((SelectorTerm(id="cr-1"),), states) == (
        {"CapacityReservationIds": ["cr-1"], "Filters": [{"Name": "state", "Values": ["active", "scheduled"]}]},
    )
