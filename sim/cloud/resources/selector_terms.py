"""Matching of selector terms, as in EC2's filters: `*` and `?` are wildcards, so the value `*` matches any value."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from shared.model.ec2.types import Tags


def has_tags(tags: Mapping[str, str], required_tags: Tags) -> bool:
    """Return whether *tags* contains every tag of *required_tags*; False if *required_tags* is empty."""
    return bool(required_tags) and all(key in tags and is_match(tags[key], pattern) for key, pattern in required_tags)


def is_match(text: str, pattern: str) -> bool:
    """Return whether the whole *text* matches *pattern*; a backslash makes a wildcard literal."""
    return _compile_pattern(pattern).fullmatch(text) is not None


def sort_tags(tags: Mapping[str, str] | Iterable[tuple[str, str]]) -> Tags:
    """Return *tags* sorted by key, as in the model; of duplicate keys the last one is used."""
    return tuple(sorted(dict(tags).items()))


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    wildcards = {"*": ".*", "?": "."}
    return re.compile("".join(wildcards.get(token) or re.escape(token[-1]) for token in tokens), re.DOTALL)
