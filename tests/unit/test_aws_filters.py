"""Selector terms as queries."""

from typing import Any

import pytest

from shared.aws.ec2_filters import image_queries, security_group_queries, subnet_queries
from shared.model.ec2 import Selector

TAGGED = Selector(tags=(("stage", "live"), ("tier", "*")))
TAG_FILTERS = [{"Name": "tag:stage", "Values": ["live"]}, {"Name": "tag-key", "Values": ["tier"]}]
AVAILABLE = {"Name": "state", "Values": ["available"]}


def one(name: str, *values: str) -> dict[str, Any]:
    return {"Filters": [{"Name": name, "Values": list(values)}]}


@pytest.mark.parametrize(
    ("selectors", "queries"),
    [
        ((), ()),
        ((Selector(),), ()),
        ((Selector(id="b"), Selector(id="a"), Selector(id="b")), (one("subnet-id", "a", "b"),)),
        ((TAGGED, Selector(id="a")), (one("subnet-id", "a"), {"Filters": TAG_FILTERS})),
        ((Selector(id="a", tags=(("x", "y"),)),), (one("subnet-id", "a"),)),
        (
            (Selector(tags=(("a", "1"),)), Selector(tags=(("b", "2"),))),
            (one("tag:a", "1"), one("tag:b", "2")),
        ),
    ],
)
def test_subnets_are_asked_for_by_id_at_once_and_by_tags_one_by_one(
    selectors: tuple[Selector, ...], queries: tuple[dict[str, Any], ...]
) -> None:
    assert subnet_queries(selectors) == queries


def test_security_groups_are_asked_for_by_id_then_name_then_tags() -> None:
    selectors = (TAGGED, Selector(name="b"), Selector(id="sg-1", name="no"), Selector(name="a"), Selector())
    assert security_group_queries(selectors) == (
        one("group-id", "sg-1"),
        one("group-name", "a", "b"),
        {"Filters": TAG_FILTERS},
    )


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        (Selector(id="ami-1"), {"Filters": [{"Name": "image-id", "Values": ["ami-1"]}, AVAILABLE]}),
        (
            Selector(name="golden-*"),
            {"Filters": [{"Name": "name", "Values": ["golden-*"]}, AVAILABLE], "Owners": ["self", "amazon"]},
        ),
        (
            Selector(name="golden-*", owner="123456789012"),
            {"Filters": [{"Name": "name", "Values": ["golden-*"]}, AVAILABLE], "Owners": ["123456789012"]},
        ),
        (TAGGED, {"Filters": [*TAG_FILTERS, AVAILABLE]}),
        (
            Selector(name="a", tags=(("b", "c"),), owner="self"),
            {
                "Filters": [{"Name": "name", "Values": ["a"]}, {"Name": "tag:b", "Values": ["c"]}, AVAILABLE],
                "Owners": ["self"],
            },
        ),
    ],
)
def test_images_are_asked_for_with_their_owner(selector: Selector, query: dict[str, Any]) -> None:
    assert image_queries((selector,)) == ({**query, "IncludeDeprecated": True},)


def test_nobody_asks_for_all_images_of_the_world() -> None:
    assert image_queries((Selector(), Selector(owner="amazon"), Selector(alias="al2023@latest"))) == ()
