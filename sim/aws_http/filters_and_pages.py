"""Filters and pages, which all EC2 Describe calls have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sim.aws_http.protocol import ApiDict, ApiError
from sim.cloud.resources.selector_terms import is_match


def filter_items(items: Iterable[ApiDict], parameters: ApiDict, paths: Mapping[str, str]) -> list[ApiDict]:
    """Return the *items* that match all filters of the call; a filter matches any of its values, with wildcards.

    Args:
        items: Results as EC2 returns them, with `Tags` if they have any.
        parameters: The parameters of the call.
        paths: By filter name, the path of the value in an item: ``State.Name``.

    Raises:
        ApiError: there is no filter with this name.
    """
    parsed_filters = [
        (filter_item["Name"], filter_item.get("Values", [])) for filter_item in parameters.get("Filters", ())
    ]
    for name, _ in parsed_filters:
        if name not in paths and name != "tag-key" and not name.startswith("tag:"):
            raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
    return [item for item in items if all(_passes_filter(item, name, values, paths) for name, values in parsed_filters)]


def build_page(items: Sequence[ApiDict], parameters: ApiDict, key: str, max_size: int) -> dict[str, Any]:
    """Return the requested page of *items* under *key*, with a `NextToken` if there are more items.

    Raises:
        ApiError: the page size exceeds *max_size*.
    """
    size = parameters.get("MaxResults") or max_size
    if size > max_size:
        raise ApiError("InvalidParameterValue", f"Value ( {size} ) for parameter maxResults is invalid.")
    start = int(parameters.get("NextToken") or 0)
    next_token = {"NextToken": str(start + size)} if start + size < len(items) else {}
    return {key: items[start : start + size], **next_token}


def encode_tags(tags: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return tags as EC2 returns them."""
    return [{"Key": key, "Value": value} for key, value in tags]


def _passes_filter(item: ApiDict, name: str, values: Sequence[str], paths: Mapping[str, str]) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", ())}
    if name == "tag-key":
        item_values = list(tags)
    elif name.startswith("tag:"):
        item_values = [tags[key] for key in [name.removeprefix("tag:")] if key in tags]
    else:
        item_values = _list_values(item, paths[name])
    return any(is_match(item_value, value) for item_value in item_values for value in values)


def _list_values(item: ApiDict, path: str) -> list[str]:
    path_value: Any = item
    for step in path.split("."):
        path_value = (
            [item_part.get(step, "") for item_part in path_value]
            if isinstance(path_value, list)
            else path_value.get(step, {})
        )
    if isinstance(path_value, str):
        return [path_value]
    return [str(item_part) for item_part in path_value]
