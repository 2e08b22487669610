"""Selector terms as EC2 queries: terms by id (and by name) share one query, every other term makes its own.

A selector that says nothing asks nothing: an empty filter would mean everything EC2 has.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from shared.model.ec2 import Selector, Tags

Query: TypeAlias = dict[str, Any]
"""Arguments of a Describe call."""


def subnet_queries(selectors: tuple[Selector, ...]) -> tuple[Query, ...]:
    """Answer the queries of DescribeSubnets: by id, else by tags."""
    ids = _listed("subnet-id", (term.id for term in selectors))
    return (*ids, *(_query(*_tag_filters(term.tags)) for term in selectors if term.tags and not term.id))


def security_group_queries(selectors: tuple[Selector, ...]) -> tuple[Query, ...]:
    """Answer the queries of DescribeSecurityGroups: by id, else by name, else by tags."""
    ids = _listed("group-id", (term.id for term in selectors))
    names = _listed("group-name", (term.name for term in selectors if not term.id))
    tagged = (term for term in selectors if term.tags and not (term.id or term.name))
    return (*ids, *names, *(_query(*_tag_filters(term.tags)) for term in tagged))


def image_queries(selectors: tuple[Selector, ...]) -> tuple[Query, ...]:
    """Answer the queries of DescribeImages: by id, else by name, owner and tags together.

    Images named without an owner are looked for among our own and Amazon's, since anybody can publish under any name.
    """
    ids = _listed("image-id", (term.id for term in selectors))
    described = (term for term in selectors if not term.id and (term.name or term.tags))
    return tuple(_available(query) for query in (*ids, *map(_described_image, described)))


def reservation_queries(selectors: tuple[Selector, ...]) -> tuple[Query, ...]:
    """Answer the queries of DescribeCapacityReservations, active ones: by id, else by tags, owner and criteria.

    Ids are asked for by filter: an id that does not exist then gives nothing, where the parameter would be refused.
    """
    ids = _listed("capacity-reservation-id", (term.id for term in selectors))
    described = (term for term in selectors if not term.id and (term.tags or term.instance_match_criteria))
    some = (*ids, *(_query(*_reservation_filters(term)) for term in described))
    return tuple({**query, "Filters": [*query["Filters"], _filter("state", "active")]} for query in some)


def _reservation_filters(term: Selector) -> Iterable[dict[str, Any]]:
    yield from _tag_filters(term.tags)
    if term.owner:
        yield _filter("owner-id", term.owner)
    if term.instance_match_criteria:
        yield _filter("instance-match-criteria", term.instance_match_criteria)


def _described_image(term: Selector) -> Query:
    named = [_filter("name", term.name)] if term.name else []
    query = _query(*named, *_tag_filters(term.tags))
    if term.owner:
        return {**query, "Owners": [term.owner]}
    return {**query, "Owners": ["self", "amazon"]} if term.name else query


def _available(query: Query) -> Query:
    return {**query, "Filters": [*query["Filters"], _filter("state", "available")], "IncludeDeprecated": True}


def _listed(name: str, values: Iterable[str]) -> tuple[Query, ...]:
    wanted = sorted({value for value in values if value})
    return (_query(_filter(name, *wanted)),) if wanted else ()


def _tag_filters(tags: Tags) -> tuple[dict[str, Any], ...]:
    return tuple(_filter("tag-key", key) if value == "*" else _filter(f"tag:{key}", value) for key, value in tags)


def _filter(name: str, *values: str) -> dict[str, Any]:
    return {"Name": name, "Values": list(values)}


def _query(*filters: dict[str, Any]) -> Query:
    return {"Filters": list(filters)}
