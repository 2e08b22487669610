"""Conversion of v1alpha1 selectors, which are maps, to v1 selector terms.

All keys of a map had to match, and each value could be a comma-separated list. Of the terms, only one has to match, and
a comma is a literal comma. So a map becomes as many terms as its values have combinations.
"""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import product
from typing import Any, Final

from cli.convert.reading.field_reader import MappingReader, choose_fix

JsonObject = dict[str, Any]
ID_KEYS: Final = ("aws-ids", "aws::ids")
MAX_TERMS: Final = 30
"""Maximum number of terms in v1."""
SUBNET_ID_PATTERN: Final = re.compile(r"subnet-[0-9a-z]+")
SECURITY_GROUP_ID_PATTERN: Final = re.compile(r"sg-[0-9a-z]+")
IMAGE_ID_PATTERN: Final = re.compile(r"ami-[0-9a-z]+")
_EXAMPLE_BY_PATTERN: Final = {
    SUBNET_ID_PATTERN: "subnet-0123456789abcdef0",
    SECURITY_GROUP_ID_PATTERN: "sg-0123456789abcdef0",
    IMAGE_ID_PATTERN: "ami-0123456789abcdef0",
}
_NAME_KEY, _OWNER_KEY = "aws::name", "aws::owners"


def convert_selector(selector: MappingReader, id_pattern: re.Pattern[str]) -> list[JsonObject]:
    """Return the terms for *selector*; *id_pattern* matches the ids of its resources."""
    id_terms = _convert_ids(selector, id_pattern)
    if id_terms is not None:
        return id_terms
    names, owners = (
        (_split_value(selector, key) for key in (_NAME_KEY, _OWNER_KEY)) if id_pattern is IMAGE_ID_PATTERN else ([], [])
    )
    tags = {key: _split_value(selector, key) for key in selector.list_keys() if key not in (_NAME_KEY, _OWNER_KEY)}
    _refuse_unknown_keys(
        selector, tags, (*ID_KEYS, _NAME_KEY, _OWNER_KEY) if id_pattern is IMAGE_ID_PATTERN else ID_KEYS
    )
    if owners and not names and not tags:
        names = ["*"]
        selector.remarks.add_change(selector.get_path(_OWNER_KEY), "added the name '*', which matches all images")
    for key, values in tags.items() if id_pattern is IMAGE_ID_PATTERN else ():
        for tag_value in values:
            if IMAGE_ID_PATTERN.fullmatch(tag_value):
                message = f"{tag_value} is an image ID, but {key} is a tag: write `aws::ids: {tag_value}` instead"
                selector.remarks.add_refusal(selector.get_path(key), message)
    combinations = product(owners or [""], names or [""], *tags.values())
    selector_terms = [
        _build_term(owner, name, dict(zip(tags, values, strict=True))) for owner, name, *values in combinations
    ]
    if len(selector_terms) > 1:
        message = f"commas no longer separate values: split into {len(selector_terms)} terms, of which one must match"
        selector.remarks.add_change(selector.path, message)
    if len(selector_terms) > MAX_TERMS:
        message = f"needs {len(selector_terms)} terms, but the maximum is {MAX_TERMS}: select by one common tag"
        selector.remarks.add_refusal(selector.path, message)
    for index, term in enumerate(selector_terms):
        check_image_name(term.get("name", ""), selector, index)
    return selector_terms


def read_selector(spec: MappingReader, field: str, id_pattern: re.Pattern[str]) -> MappingReader | None:
    """Return the selector in *field*; None if there is none. Refuse a selector that is only a text or list of ids."""
    value = spec.read_raw(field)
    if isinstance(value, str | list) and (matched_ids := id_pattern.findall(str(value))):
        example = f'{field}: {{aws::ids: "{",".join(matched_ids)}"}}'
        spec.remarks.add_refusal(spec.get_path(field), f"selects by key and value: write {example}")
        return None
    return spec.read_mapping(field)


def check_image_name(name: str, part: MappingReader, *keys: str | int) -> None:
    """Refuse an image id in the place of a name: no image has such a name."""
    if name.startswith("ami-"):
        part.remarks.add_refusal(part.get_path(*keys), f"{name} is an image ID, not a name: write `id: {name}`")


def _refuse_unknown_keys(selector: MappingReader, keys: Iterable[str], known_keys: Sequence[str]) -> None:
    for key in keys:
        if key.startswith("aws::") and key not in known_keys:
            suggestions = get_close_matches(key, known_keys, n=1)
            hint = f"did you mean {suggestions[0]}?" if suggestions else "write the tag's own key"
            selector.remarks.add_refusal(selector.get_path(key), f"unknown selector key: {hint}")


def _convert_ids(selector: MappingReader, id_pattern: re.Pattern[str]) -> list[JsonObject] | None:
    id_keys = [key for key in ID_KEYS if selector.has(key)]
    if not id_keys:
        return None
    if len(selector.list_keys()) > 1:
        selector.remarks.add_refusal(
            selector.get_path(id_keys[0]), "cannot be used with other keys: remove them, or the IDs"
        )
    resource_ids = _split_value(selector, id_keys[0])
    for resource_id in resource_ids:
        if not id_pattern.fullmatch(resource_id):
            fix = choose_fix(resource_id, f"write one like {_EXAMPLE_BY_PATTERN[id_pattern]}")
            selector.remarks.add_refusal(selector.get_path(id_keys[0]), f"{resource_id!r} is not an ID: {fix}")
    selector.remarks.add_change(selector.get_path(id_keys[0]), "converted to one term with `id` for each ID")
    return [{"id": valid_id} for valid_id in resource_ids]


def _split_value(selector: MappingReader, key: str) -> list[str]:
    if isinstance(items := selector.read_raw(key), list):
        joined_items = ",".join(str(item) for item in items)
        selector.remarks.add_refusal(
            selector.get_path(key), f'is a list: write one string with commas,  "{joined_items}"'
        )
        return []
    text = selector.read_text(key)
    if selector.is_set(key) and not isinstance(selector.read_raw(key), str | int | float):
        return []
    values = [part.strip() for part in text.split(",")]
    if key in selector.list_keys() and (not key or not all(values)):
        selector.remarks.add_refusal(selector.get_path(key), "is empty: write a value, or '*' for any")
    return [value for value in values if value]


def _build_term(owner: str, name: str, tags: dict[str, str]) -> JsonObject:
    fields = {"tags": tags, "name": name, "owner": owner}
    return {key: value for key, value in fields.items() if value}
