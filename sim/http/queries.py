"""What every Describe call of EC2 has in common: filters and pages, over answers in EC2's own words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sim.cloud.selectors import matches
from sim.http.protocol import ApiError

Wire: TypeAlias = Mapping[str, Any]


def filtered(items: Iterable[Wire], said: Wire, paths: Mapping[str, str]) -> list[Wire]:
    """Answer the *items* that pass all filters of *said*; any value of a filter will do, and may have wildcards.

    Args:
        items: In EC2's words, with `Tags` where they have any.
        said: The call's parameters.
        paths: Where in an item a filter looks, by the filter's name: ``State.Name``.

    Raises:
        ApiError: there is no filter of that name.
    """
    filters = [(each["Name"], each.get("Values", [])) for each in said.get("Filters", ())]
    for name, _ in filters:
        if name not in paths and name != "tag-key" and not name.startswith("tag:"):
            raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return [item for item in items if all(_passes(item, name, values, paths) for name, values in filters)]


def page(items: Sequence[Wire], said: Wire, key: str, largest: int) -> dict[str, Any]:
    """Answer the page of *items* that *said* asks for, under *key*, with a `NextToken` where there is more.

    Raises:
        ApiError: it asks for more than the *largest* page.
    """
    size = said.get("MaxResults") or largest
    if size > largest:
        raise ApiError("InvalidParameterValue", f"Value ( {size} ) for parameter maxResults is invalid.")
    start = int(said.get("NextToken") or 0)
    more = {"NextToken": str(start + size)} if start + size < len(items) else {}
    return {key: items[start : start + size], **more}


def tags_to_wire(tags: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Answer tags in EC2's words."""
    return [{"Key": key, "Value": value} for key, value in tags]


def _passes(item: Wire, name: str, values: Sequence[str], paths: Mapping[str, str]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", ())}
    if name == "tag-key":
        have = list(tags)
    elif name.startswith("tag:"):
        have = [tags[key] for key in [name.removeprefix("tag:")] if key in tags]
    else:
        have = _at(item, paths[name])
    return any(matches(one, value) for one in have for value in values)


def _at(item: Wire, path: str) -> list[str]:
    found: Any = item
    for step in path.split("."):
        found = [one.get(step, "") for one in found] if isinstance(found, list) else found.get(step, {})
    if isinstance(found, str):
        return [found]
    return [str(one) for one in found]
