"""Selector terms as EC2 queries: terms by id (and by name) share one query, each other term has its own.

An empty selector produces no query: an empty filter would match every object of the account.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from shared.model.ec2.account import SelectorTerm
from shared.model.ec2.types import Tags

DescribeQuery: TypeAlias = dict[str, Any]
"""Arguments of a Describe call."""
RESERVATION_IDS: Final = "CapacityReservationIds"


def build_subnet_queries(selectors: tuple[SelectorTerm, ...]) -> tuple[DescribeQuery, ...]:
    """Build the queries of DescribeSubnets: by id, else by tags."""
    id_queries = _build_value_query("subnet-id", (term.id for term in selectors))
    return (
        *id_queries,
        *(_build_query(*_build_tag_filters(term.tags)) for term in selectors if term.tags and not term.id),
    )


def build_security_group_queries(selectors: tuple[SelectorTerm, ...]) -> tuple[DescribeQuery, ...]:
    """Build the queries of DescribeSecurityGroups: by id, else by name, else by tags."""
    id_queries = _build_value_query("group-id", (term.id for term in selectors))
    name_queries = _build_value_query("group-name", (term.name for term in selectors if not term.id))
    tag_terms = (term for term in selectors if term.tags and not (term.id or term.name))
    return (*id_queries, *name_queries, *(_build_query(*_build_tag_filters(term.tags)) for term in tag_terms))


def build_image_queries(selectors: tuple[SelectorTerm, ...]) -> tuple[DescribeQuery, ...]:
    """Build the queries of DescribeImages: by id, else by name, owner and tags together.

    Images selected by name without an owner are searched among those of this account and of Amazon, because anyone can
    publish an image under any name.
    """
    id_queries = _build_value_query("image-id", (term.id for term in selectors))
    attribute_terms = (term for term in selectors if not term.id and (term.name or term.tags))
    return tuple(_restrict_to_available(query) for query in (*id_queries, *map(_build_image_query, attribute_terms)))


def build_reservation_queries(
    selectors: tuple[SelectorTerm, ...], states: tuple[str, ...] = ("active",)
) -> tuple[DescribeQuery, ...]:
    """Build the queries of DescribeCapacityReservations: by id, else by tags, owner and match criteria; of *states*.

    Ids are a parameter, because DescribeCapacityReservations has no filter for them:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
    """
    ids = sorted({term.id for term in selectors if term.id})
    id_queries = ({RESERVATION_IDS: ids, "Filters": []},) if ids else ()
    attribute_terms = (term for term in selectors if not term.id and (term.tags or term.instance_match_criteria))
    queries = (*id_queries, *(_build_query(*_build_reservation_filters(term)) for term in attribute_terms))
    return tuple({**query, "Filters": [*query["Filters"], _build_filter("state", *states)]} for query in queries)


def _build_reservation_filters(term: SelectorTerm) -> Iterable[dict[str, Any]]:
    yield from _build_tag_filters(term.tags)
    if term.owner:
        yield _build_filter("owner-id", term.owner)
    if term.instance_match_criteria:
        yield _build_filter("instance-match-criteria", term.instance_match_criteria)


def _build_image_query(term: SelectorTerm) -> DescribeQuery:
    name_filters = [_build_filter("name", term.name)] if term.name else []
    query = _build_query(*name_filters, *_build_tag_filters(term.tags))
    if term.owner:
        return {**query, "Owners": [term.owner]}
    return {**query, "Owners": ["self", "amazon"]} if term.name else query


def _restrict_to_available(query: DescribeQuery) -> DescribeQuery:
    return {**query, "Filters": [*query["Filters"], _build_filter("state", "available")], "IncludeDeprecated": True}


def _build_value_query(name: str, values: Iterable[str]) -> tuple[DescribeQuery, ...]:
    distinct_values = sorted({value for value in values if value})
    return (_build_query(_build_filter(name, *distinct_values)),) if distinct_values else ()


def _build_tag_filters(tags: Tags) -> tuple[dict[str, Any], ...]:
    return tuple(
        _build_filter("tag-key", key) if value == "*" else _build_filter(f"tag:{key}", value) for key, value in tags
    )


def _build_filter(name: str, *values: str) -> dict[str, Any]:
    return {"Name": name, "Values": list(values)}


def _build_query(*filters: dict[str, Any]) -> DescribeQuery:
    return {"Filters": list(filters)}
